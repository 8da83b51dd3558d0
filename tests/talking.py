"""A toy pair that holds conversations: a random model of bytes, its draft, and a chat template."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import msgspec
import torch
from tokenizers import Tokenizer as Inner
from tokenizers import decoders, models, pre_tokenizers

from app.models.loading import LoadedModel
from app.models.pair import LoadedPair
from app.models.proofs import Proof
from app.models.tokenizer import Tokenizer
from app.run.preparation import Prepare
from app.run.record import RunRecord
from app.run.settings import Message, RunSettings
from app.studies.conversation import Conversation
from app.studies.workbench import Workbench
from toys import tiny_head, tiny_llama

_PRINTABLE = 94
"""Ids of the byte tokenizer below this are the printable characters of ASCII, but for the space."""

TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}\n{% endfor %}"
    "<assistant>"
)


def pair(*, rewinds: bool = True, context: int = 512) -> LoadedPair:
    """The loaded toy pair, whose draft guesses right often, not always."""
    target, draft = _model(0.0, context), _model(0.02, context)
    loaded = [
        LoadedModel(model, _folder(), Proof(rewinds, "told"), Proof(True, "told"))
        for model in (target, draft)
    ]
    return LoadedPair(Prepare("toy"), *loaded, _tokenizer(), head=tiny_head(target))


def bench(loaded: LoadedPair | None = None) -> Workbench:
    """A workbench on which this pair is loaded, whatever is asked for."""
    found, loaded = Workbench(None), loaded or pair()
    found.loaded = lambda *args, **kwargs: loaded
    return found


def talked(
    turns: tuple[str, ...],
    settings: RunSettings,
    *,
    conversation: Conversation | None = None,
    on: Workbench | None = None,
) -> list[RunRecord]:
    """The records of a conversation, each turn run behind the replies to those before it."""
    on, records, earlier = on or bench(), [], ()
    for turn in turns:
        asked = msgspec.structs.replace(settings, prompt=turn, earlier=earlier)
        events = []
        on.run("r", asked, emit=events.append, report=lambda _: None, pause=lambda: None,
               conversation=conversation)  # fmt: skip
        records.append(RunRecord.begin(events[0]))
        for event in events:
            records[-1].apply(event)
        assert records[-1].outcome == "finished", records[-1].message
        reply = records[-1].repetitions("speculative")[0].text
        earlier = (*earlier, Message("user", turn), Message("assistant", reply))
    return records


def _model(noise: float, context: int):
    """It hardly ever writes more than printable characters: a reply is read as it was written."""
    model = tiny_llama(noise=noise, vocabulary=256, max_position_embeddings=context)
    with torch.no_grad():
        model.inner.lm_head.weight[_PRINTABLE:] = 0.0
    return model


def _folder():
    return SimpleNamespace(
        end_ids=(),
        quantised=None,
        requantised_from=None,
        suggested_sampling=None,
        notes=(),
        folder=Path("toy"),
    )


@cache
def _tokenizer() -> Tokenizer:
    from transformers import PreTrainedTokenizerFast

    letters = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    inner = Inner(models.BPE(vocab=letters, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    whole = PreTrainedTokenizerFast(tokenizer_object=inner)
    whole.chat_template = TEMPLATE
    with tempfile.TemporaryDirectory() as folder:
        whole.save_pretrained(folder)
        return Tokenizer(Path(folder))
