"""EAGLE-3 heads of the library speculators: written by its own model, and held against that."""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from unittest.mock import MagicMock

import pytest
import torch

from app.library.head_folder import check_head
from app.models.block import Block
from app.models.loaded_head import LoadedHead
from published_heads import HIDDEN
from toys import tiny_llama

VOCABULARY = 64
IDS = [token for token in range(VOCABULARY) if token % 3]
TEXT = [3, 9, 27, 17, 51, 25, 11, 40]
GUESSES = [4, 30, 8, 61]
LAYERS = [0, 2, 3]
_UNUSED = ("openai", "openai.types", "openai.types.chat", "openai.types.completion", "datasets")
_UNUSED += ("hs_connectors",)
"""What speculators imports for its training, which is not installed for these tests."""


@pytest.fixture(scope="module")
def speculators():
    """The library, with stand-ins for what only its training asks for."""
    if find_spec("speculators") is None:
        pytest.skip("speculators is not installed (`python packaging/start.py test` does it)")
    with pytest.MonkeyPatch.context() as patch:
        for name in _UNUSED:
            patch.setitem(sys.modules, name, _stand_in(name))
        import speculators
        import speculators.models.eagle3

        yield speculators


def _stand_in(name: str) -> ModuleType:
    module = MagicMock(name=name)
    module.__spec__ = ModuleSpec(name, None)
    module.__path__ = []
    return module


@pytest.fixture(scope="module")
def target():
    return tiny_llama(1, hidden_size=HIDDEN, num_hidden_layers=5)


def their_head(speculators, kind, **told):
    """A random head of theirs, for a target of the tests."""
    import transformers

    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "rms_norm_eps": 1e-5,
        "max_position_embeddings": 512,
    }
    layer = getattr(transformers, f"{kind}Config")(**sizes)
    layer._attn_implementation = "eager"
    config = speculators.models.eagle3.Eagle3SpeculatorConfig(
        transformer_layer_config=layer,
        draft_vocab_size=len(IDS),
        eagle_aux_hidden_state_layer_ids=LAYERS,
        speculators_config=speculators.SpeculatorsConfig(
            algorithm="eagle3",
            proposal_methods=[
                speculators.proposals.greedy.GreedyTokenProposalConfig(speculative_tokens=5)
            ],
            default_proposal_method="greedy",
            verifier=speculators.VerifierConfig(
                name_or_path="tiny/target", architectures=["LlamaForCausalLM"]
            ),
        ),
        **told,
    )
    torch.manual_seed(3)
    model = speculators.models.eagle3.Eagle3DraftModel(config).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_(0.3 * torch.randn_like(weights) + (weights.dim() == 1))
    ids = torch.tensor(IDS)
    model.load_vocab_mappings(
        torch.isin(torch.arange(VOCABULARY), ids), ids - torch.arange(len(IDS))
    )
    return model


@torch.no_grad()
def their_logits(model, states):
    """What their model answers behind the text and behind each guess, [guesses + 1, vocabulary].

    Its passes are those of training: each step feeds every place with the next token of the text,
    which behind the last place is the guess, and attends to the text and to its own steps.
    """
    answers = []
    hook = model.lm_head.register_forward_hook(lambda _, fed, made: answers.append(made[0]))
    tokens = torch.tensor([[*TEXT[1:], *GUESSES]])
    padded = torch.zeros(1, tokens.shape[1], states.shape[1])
    padded[0, : len(states)] = states
    documents = torch.zeros_like(tokens)
    model(padded, tokens, documents, ttt_steps=len(GUESSES) + 1)
    hook.remove()
    return torch.stack([answer[len(states) - 1] for answer in answers])


@pytest.mark.parametrize("kind", ["Llama", "Qwen3"])
@pytest.mark.parametrize(
    "told",
    [
        {},
        {"norm_before_residual": True},
        {"fc_norm": True, "norm_output": True},
        {"norm_before_fc": True},
    ],
    ids=lambda told: "+".join(told) or "plain",
)
@torch.no_grad()
def test_a_chain_of_guesses_has_the_logits_of_their_model(
    speculators, target, tmp_path, kind, told
):
    theirs = their_head(speculators, kind, **told)
    theirs.save_pretrained(tmp_path)
    head = LoadedHead(check_head(tmp_path), target)
    assert head.layers == tuple(LAYERS)
    assert head.ids.tolist() == IDS
    assert head.name == "EAGLE-3 head for tiny/target"
    session = head.open_target(64)
    session.read(TEXT[:-1], rows=1)
    beside, block = head.open(session, 64), Block()
    due = their_logits(theirs, session.features[: len(TEXT) - 1])
    for guess, row in zip([*GUESSES, None], due, strict=True):
        mine = beside.read(TEXT, block, rows=1).logits[0]
        assert torch.allclose(mine, row, atol=1e-4)
        if guess is not None:
            block.append(torch.tensor(guess))
