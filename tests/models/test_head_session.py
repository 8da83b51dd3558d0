"""A draft head beside its target: what is fed is exactly what the text says."""

import pytest
import torch

from app.library.head_folder import DESCRIPTION, WEIGHTS, HeadFacts, MadeFor, check_head
from app.models.block import Block
from app.models.draft_head import DraftHead, shape_for
from app.models.head_file import read_head, save_head
from app.models.loaded_head import LoadedHead
from app.run.problems import Problem
from toys import tiny_llama, wrapped

VOCABULARY = 64
IDS = torch.arange(0, VOCABULARY, 2)


def saved(folder, target, *, head=None, ids=IDS) -> HeadFacts:
    """A head with random weights, on disk."""
    torch.manual_seed(5)
    head = head or DraftHead(shape_for(target.inner, len(ids)))
    save_head(folder, head, ids, MadeFor("tiny", "unknown", VOCABULARY), "Not at all.")
    return check_head(folder)


def counted_once(head: LoadedHead) -> None:
    """Its own weights and its copy of output rows are told, and computed beforehand, alike."""
    own = sum(weight.numel() for weight in DraftHead(head.module.shape).parameters())
    facts, held = head.facts, 4 * (own + len(IDS) * head.hidden)
    assert (facts.parameters, facts.weight_bytes) == (own, held)
    assert head._facts.size.weights * 4 == held
    assert f"{len(IDS)} output rows copied from the target" in facts.precision_note


def loaded(folder, target) -> LoadedHead:
    return LoadedHead(saved(folder, target), target)


def by_definition(head: LoadedHead, text, guesses=()):
    """The logits behind the text and guesses, from one pass over all pairs, nothing kept.

    Pair t is (feature of t, token t + 1); behind the text features are the head's own.
    """
    target, module = head.target, head.module
    session = target.open(len(text), features=True)
    session.read(text[:-1], rows=1)
    features = list(session.features[: len(text) - 1])
    tokens = [*text[1:], *guesses]
    while True:
        out = pass_over(module, target.inner, tokens[: len(features)], torch.stack(features))
        if len(features) == len(tokens):
            return torch.nn.functional.linear(out, target.inner.lm_head.weight[IDS])
        features.append(out)


def pass_over(module, inner, tokens, features):
    """The feature that the head predicts behind pairs of tokens and features."""
    count, size = len(tokens), module.shape.head_size
    cosines, sines = inner.model.rotary_emb(torch.empty(0), torch.arange(count)[None])

    def turned(x):
        half = torch.cat([-x[..., size // 2 :], x[..., : size // 2]], dim=-1)
        return x * cosines[0, :, None] + half * sines[0, :, None]

    x = module.fc(torch.cat([inner.model.embed_tokens(torch.tensor(tokens)), features], dim=-1))
    y = module.input_norm(x)
    query, key, value = (getattr(module, f"{name}_proj")(y).view(count, -1, size) for name in "qkv")
    scores = torch.einsum("qhs,khs->hqk", turned(query), turned(key)) / size**0.5
    scores = scores.masked_fill(torch.ones(count, count).triu(1).bool(), -torch.inf)
    gathered = torch.einsum("hqk,khs->qhs", scores.softmax(-1), value).reshape(count, -1)
    return module.feature(x, gathered)[-1]


@torch.no_grad()
def test_what_it_answers_is_what_one_pass_over_all_pairs_answers(tmp_path):
    target = tiny_llama(1)
    head = loaded(tmp_path, target)
    text = [3, 9, 27, 17, 51, 25, 11]
    session = target.open(64, features=True)
    session.read(text[:-1], rows=1)
    beside = head.open(session, 64)
    block = Block()
    for guesses in ([], [4], [4, 30], [4, 30, 8]):
        for token in guesses[len(block) :]:
            block.append(torch.tensor(token))
        mine = beside.read(text, block, rows=1).logits[0]
        assert torch.allclose(mine, by_definition(head, text, guesses), atol=1e-4)


@torch.no_grad()
def test_each_guess_of_a_tree_is_answered_as_behind_its_own_branch(tmp_path):
    target = tiny_llama(1)
    head = loaded(tmp_path, target)
    text = [3, 9, 27, 17, 51, 25, 11]
    session = target.open(64, features=True)
    session.read(text[:-1], rows=1)
    beside = head.open(session, 64)
    block = Block()
    beside.read(text, block, rows=1)
    paths: list[list[int]] = []
    for level, (tokens, parents) in enumerate(
        [([4, 30, 8], [-1, -1, -1]), ([8, 4, 4], [1, 1, 0]), ([12, 12], [5, 3])], 1
    ):
        block.branch(torch.tensor(tokens), torch.tensor(parents), levels=level)
        rows = beside.read(text, block, rows=len(tokens)).logits
        above = [paths[parent] if parent >= 0 else [] for parent in parents]
        paths += [[*path, token] for path, token in zip(above, tokens, strict=True)]
        for row, path in zip(rows, paths[-len(tokens) :], strict=True):
            assert torch.allclose(row, by_definition(head, text, path), atol=1e-4)
    # And nothing of it is left in the next round.
    text += [30, 4]
    session.read(text[:-1], rows=1)
    again = beside.read(text, Block(), rows=1).logits[0]
    assert torch.allclose(again, by_definition(head, text), atol=1e-4)


@torch.no_grad()
def test_its_own_guesses_leave_no_trace(tmp_path):
    # Rounds with guesses kept and thrown, and one that it sits out: as if it read all at once.
    target = tiny_llama(2)
    head = loaded(tmp_path, target)
    text = [3, 9, 27, 17]
    session = target.open(64, features=True)
    session.read(text[:-1], rows=1)
    beside = head.open(session, 64)
    for guesses, new in (([5, 6], [5, 9]), ([], [1]), ([7, 8, 9], [7, 8, 9, 2]), ([1], [4])):
        block = Block(device=torch.device("cpu"))
        if guesses:
            beside.read(text, block, rows=1)
        for guess in guesses:
            block.append(torch.tensor(guess))
            beside.read(text, block, rows=1)
        session.read(text, Block(guesses), rows=len(guesses) + 1)
        text.extend(new)
        if session.held < len(text) - 1:
            session.read(text[:-1], rows=1)
    mine = beside.read(text, Block(), rows=1).logits[0]
    assert torch.allclose(mine, by_definition(head, text), atol=1e-4)
    assert beside.held == len(text)


@torch.no_grad()
def test_another_text_is_read_from_where_it_differs(tmp_path):
    target = tiny_llama(3)
    head = loaded(tmp_path, target)
    session = target.open(64, features=True)
    beside = head.open(session, 64)
    for text in ([1, 2, 3, 4, 5, 6], [1, 2, 3, 40, 5], [1, 2, 3, 40, 5, 7, 8], [1, 2]):
        session.read(text[:-1], rows=1)
        mine = beside.read(text, Block(), rows=1).logits[0]
        assert torch.allclose(mine, by_definition(head, text), atol=1e-4)
        # The same again, with nothing new to feed.
        again = beside.read(text, Block(), rows=1).logits[0]
        assert torch.allclose(again, mine, atol=1e-5)


def test_what_is_written_is_what_is_read(tmp_path):
    target = tiny_llama(0)
    head = DraftHead(shape_for(target.inner, len(IDS)))
    facts = saved(tmp_path, target, head=head)
    read, ids = read_head(facts)
    assert torch.equal(ids, IDS)
    for name, value in head.state_dict().items():
        assert torch.equal(read.state_dict()[name], value.half().float())


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "mistral"])
@torch.no_grad()
def test_the_kin_of_llama_have_heads_too(tmp_path, kind):
    import transformers

    name = {"qwen2": "Qwen2", "qwen3": "Qwen3", "mistral": "Mistral"}[kind]
    config = getattr(transformers, f"{name}Config")(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=512,
    )
    target = wrapped(getattr(transformers, f"{name}ForCausalLM")(config).eval())
    head = loaded(tmp_path, target)
    assert head.module.shape.biased == (kind == "qwen2")
    assert head.module.shape.normed == (kind == "qwen3")
    counted_once(head)
    text = [3, 9, 27, 17]
    session = target.open(16, features=True)
    session.read(text[:-1], rows=1)
    logits = head.open(session, 16).read(text, Block(), rows=1).logits
    assert logits.shape == (1, len(IDS))
    assert bool(torch.isfinite(logits).all())


def test_a_target_of_another_kind_is_refused():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=32, n_layer=1, n_head=2))
    with pytest.raises(Problem, match="gpt2"):
        shape_for(model, 8)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda folder: (folder / DESCRIPTION).unlink(),
        lambda folder: (folder / DESCRIPTION).write_text("{}"),
        lambda folder: (folder / WEIGHTS).write_bytes(b"version https://git-lfs"),
        lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-100]),
    ],
)
def test_a_broken_folder_is_told_of(tmp_path, break_it):
    saved(tmp_path, tiny_llama(0))
    break_it(tmp_path)
    with pytest.raises(Problem):
        check_head(tmp_path)


@pytest.mark.parametrize(
    "ids",
    [
        torch.arange(32).flip(0),  # not ascending
        torch.arange(40, 72),  # beyond the vocabulary
        torch.zeros(32, dtype=torch.long),
        torch.arange(31),  # too few
    ],
)
def test_ids_that_the_target_does_not_have_are_refused(tmp_path, ids):
    target = tiny_llama(0)
    head = DraftHead(shape_for(target.inner, 32))
    with pytest.raises(Problem, match="broken"):
        read_head(saved(tmp_path, target, head=head, ids=ids))


def test_a_head_of_another_form_is_refused(tmp_path):
    facts = saved(tmp_path, tiny_llama(0))
    with pytest.raises(Problem, match="another form"):
        LoadedHead(facts, tiny_llama(0, intermediate_size=96))
