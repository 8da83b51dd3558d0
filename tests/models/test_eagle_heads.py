"""Published EAGLE heads beside their targets, held against other computations of the same.

SafeAILab's layouts are held against plain torch written from the formulas (`published_heads`), as
there is no library to compare with; the layout of speculators against that library's own model.
"""

import pytest
import torch

from app.library.head_folder import check_head, refuse_unfit
from app.library.preflight import check
from app.models.block import Block
from app.models.eagle_file import target_ids
from app.models.loaded_head import LoadedHead
from app.run.problems import Problem
from published_heads import HIDDEN, ByDefinition, first_version, third_version
from toys import tiny_llama, wrapped

VOCABULARY = 64
LAYERS = 7
IDS = [token for token in range(VOCABULARY) if token % 5]
TEXT = [3, 9, 27, 17, 51, 25, 11, 40]
GUESSES = [4, 30, 8, 61]


def made_target(kind="llama", **changes):
    """A random target with seven layers: those that are read by default are 2, 3 and 4."""
    import transformers

    name = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3", "mistral": "Mistral"}[kind]
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": 48,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
        "initializer_range": 0.3,
        "tie_word_embeddings": False,
    }
    torch.manual_seed(1)
    config = getattr(transformers, f"{name}Config")(**sizes | changes)
    return wrapped(getattr(transformers, f"{name}ForCausalLM")(config).eval())


@pytest.fixture(scope="module")
def target():
    return made_target()


@torch.no_grad()
def states(target, tokens, layers):
    """What transformers says went into these layers; its last states, without any."""
    found = target.inner.model(input_ids=torch.tensor([tokens]), output_hidden_states=True)
    if not layers:
        return found.last_hidden_state[0]
    return torch.cat([found.hidden_states[layer][0] for layer in layers], dim=-1)


@torch.no_grad()
def holds_against_formulas(folder, target, layers):
    """Every logit behind a text and a chain of guesses, as the formulas have them."""
    head = LoadedHead(check_head(folder), target)
    assert head.layers == layers
    embeddings = target.inner.get_input_embeddings().weight
    formulas = ByDefinition(folder, embeddings, target.inner.get_output_embeddings().weight)
    session = head.open_target(64)
    session.read(TEXT[:-1], rows=1)
    beside, block = head.open(session, 64), Block()
    known = states(target, TEXT[:-1], layers)
    for length in range(len(GUESSES) + 1):
        for token in GUESSES[len(block) : length]:
            block.append(torch.tensor(token))
        mine = beside.read(TEXT, block, rows=1).logits[0]
        due = formulas.logits([*TEXT[1:], *GUESSES[:length]], known)
        assert torch.allclose(mine, due, atol=1e-4), f"behind {length} guesses"
    return head


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("own", [True, False])
def test_an_eagle_1_head_answers_as_the_formulas(tmp_path, target, bias, own):
    folder = first_version(tmp_path, VOCABULARY, bias=bias, own=own)
    head = holds_against_formulas(folder, target, ())
    assert head.ids.tolist() == list(range(VOCABULARY))


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "mistral"])
def test_the_kin_of_llama_have_eagle_heads_too(tmp_path, kind):
    target = made_target(kind)
    first = first_version(tmp_path / "1", VOCABULARY, biased=kind == "qwen2")
    holds_against_formulas(first, target, ())
    third = third_version(tmp_path / "3", VOCABULARY, ids=IDS, normed=kind == "qwen3")
    holds_against_formulas(third, target, (2, 3, 4))


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"norm_before_residual": True},
        {"fc_norm": True},
        {"norm_before_fc": True},
        {"norm_output": True},
        {"norm_output": True, "fc_norm": True, "norm_before_residual": True},
    ],
    ids=lambda told: "+".join(told) or "plain",
)
def test_an_eagle_3_head_answers_as_the_formulas(tmp_path, target, told):
    folder = third_version(tmp_path, VOCABULARY, ids=IDS, **told)
    head = holds_against_formulas(folder, target, (2, 3, 4))
    assert head.ids.tolist() == IDS


@pytest.mark.parametrize(
    ("told", "layers"),
    [
        ({}, (2, 3, 4)),
        ({"eagle_aux_hidden_state_layer_ids": [0, 3, 6]}, (0, 3, 6)),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 2, 5]}}, (1, 3, 6)),
        ({"eagle_config": {"use_aux_hidden_state": True}}, (2, 3, 4)),
    ],
    ids=["by default", "inputs", "outputs of the layers before", "none named"],
)
def test_both_ways_of_numbering_layers_mean_what_their_programs_mean(
    tmp_path, target, told, layers
):
    holds_against_formulas(third_version(tmp_path, VOCABULARY, ids=IDS, **told), target, layers)


ROTARIES = [
    {"rope_theta": 20000.0},
    {"rope_theta": 20000.0, "rope_scaling": {"type": "linear", "factor": 4.0}},
    {
        "rope_theta": None,
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 20000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
    {
        "rope_theta": 20000.0,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
]


@pytest.mark.parametrize("said", ROTARIES, ids=["base", "linear", "llama3", "yarn"])
def test_positions_turn_as_the_heads_own_config_says(tmp_path, target, said):
    # As transformers turns them for a Llama of the same config.
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    head = LoadedHead(check_head(third_version(tmp_path, VOCABULARY, ids=IDS, **said)), target)
    known = {name: value for name, value in said.items() if value is not None}
    config = LlamaConfig(hidden_size=HIDDEN, num_attention_heads=4, head_dim=8, **known)
    cosines, sines = LlamaRotaryEmbedding(config)(torch.empty(0), torch.arange(100)[None])
    mine, negated = head.rotary.between(0, 100, torch.float32)
    assert torch.allclose(mine[:, 0], cosines[0], atol=1e-6)
    assert torch.allclose(negated[:, 0, 4:], sines[0, :, 4:], atol=1e-6)
    assert torch.allclose(negated[:, 0, :4], -sines[0, :, :4], atol=1e-6)
    plain = LlamaRotaryEmbedding(LlamaConfig(hidden_size=HIDDEN, num_attention_heads=4, head_dim=8))
    assert not torch.allclose(cosines, plain(torch.empty(0), torch.arange(100)[None])[0])


def test_what_is_computed_of_its_memory_is_what_it_takes(tmp_path, target):
    facts = check_head(third_version(tmp_path, VOCABULARY, ids=IDS, fc_norm=True))
    head = LoadedHead(facts, target)
    session = head.open_target(48)
    session.read(TEXT[:-1], rows=1)
    beside = head.open(session, 48)
    beside.read(TEXT, Block(), rows=1)
    assert head.facts.parameters == facts.size.weights
    assert head.facts.weight_bytes == 4 * facts.size.weights
    assert beside.byte_count == 4 * 48 * facts.size.kept
    assert session.features.numel() == 48 * facts.size.features


def test_a_head_may_be_narrower_than_its_target_with_embeddings_of_its_own(tmp_path):
    wide = made_target(hidden_size=80, num_attention_heads=10, num_key_value_heads=2)
    own = {"embed_tokens.weight": torch.randn(VOCABULARY, HIDDEN)}
    folder = third_version(tmp_path, VOCABULARY, ids=IDS, target_hidden=80, tensors=own)
    holds_against_formulas(folder, wide, (2, 3, 4))


def test_embeddings_that_are_the_targets_own_are_not_held_twice(tmp_path, target):
    theirs = target.inner.get_input_embeddings()
    same = {"embed_tokens.weight": theirs.weight.detach().clone()}
    shared = third_version(tmp_path / "same", VOCABULARY, ids=IDS, tensors=same)
    assert LoadedHead(check_head(shared), target).embeddings is theirs
    other = {"embed_tokens.weight": same["embed_tokens.weight"] + 1}
    apart = third_version(tmp_path / "other", VOCABULARY, ids=IDS, tensors=other)
    head = LoadedHead(check_head(apart), target)
    assert torch.equal(head.embeddings.weight, other["embed_tokens.weight"])


@pytest.mark.parametrize(
    ("d2t", "ids"),
    [
        (torch.tensor([0, 1, 1, 4]), [0, 2, 3, 7]),
        (torch.tensor([5, 5, 5, 5]), [5, 6, 7, 8]),
        (torch.tensor([0, 2, 3, 7], dtype=torch.int32), [0, 2, 3, 7]),
        (torch.tensor([0, 1, 1, 4], dtype=torch.int32), [0, 2, 3, 7]),  # cannot be ids
        (torch.tensor([6, 7, 8, 9]), [6, 7, 8, 9]),  # added up they would leave the vocabulary
        (torch.tensor([0, -1, 0, 0]), None),
        (torch.tensor([-1, 0, 0, 0]), None),
        (torch.tensor([0, 3, 2, 40]), None),
    ],
)
def test_a_map_is_read_as_what_it_can_only_be(d2t, ids):
    found = target_ids(d2t, None, 12)
    assert (found.tolist() if found is not None else None) == ids


def test_the_marks_in_the_targets_vocabulary_decide_how_a_map_is_read():
    d2t = torch.tensor([0, 2, 4, 6])  # ids, or added to their places: 0, 3, 6, 9
    for ids in ([0, 2, 4, 6], [0, 3, 6, 9]):
        t2d = torch.isin(torch.arange(12), torch.tensor(ids))
        assert target_ids(d2t, t2d, 12).tolist() == ids
    assert target_ids(d2t, torch.arange(12) < 4, 12) is None


def test_a_map_of_other_tokens_than_are_marked_is_refused(tmp_path, target):
    marked = {"t2d": torch.arange(VOCABULARY) < len(IDS)}
    folder = third_version(tmp_path, VOCABULARY, ids=IDS, tensors=marked)
    with pytest.raises(Problem, match="d2t is no ascending list"):
        LoadedHead(check_head(folder), target)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_session_keeps_what_went_into_the_layers_that_are_asked_for(kind, packed):
    target = made_target(kind)
    due = states(target, TEXT, (0, 3, 6))
    due_logits = target.inner(input_ids=torch.tensor([TEXT])).logits[0, -2:]
    if packed:
        target.pack(torch.float32)
        assert target.kernel.endswith("lean pass")
    session = target.open(32, features=True, layers=(0, 3, 6))
    session.read(TEXT[:5], rows=1)
    logits = session.read(TEXT, rows=2).logits
    assert torch.allclose(session.features[: len(TEXT)], due, atol=1e-4)
    assert torch.allclose(logits, due_logits, atol=1e-3)
    assert session.features.shape[1] == 3 * HIDDEN


def test_packed_layers_answer_as_plain_ones(tmp_path):
    # With the target's layers packed the head's are too, where this processor can.
    plain, packed = made_target(), made_target()
    packed.pack(torch.float32)
    folder = third_version(tmp_path / "3", VOCABULARY, ids=IDS, fc_norm=True)
    first = first_version(tmp_path / "1", VOCABULARY)
    for place in (folder, first):
        answers = []
        for target in (plain, packed):
            head = LoadedHead(check_head(place), target)
            session = head.open_target(16)
            session.read(TEXT[:-1], rows=1)
            answers.append(head.open(session, 16).read(TEXT, Block([5]), rows=1).logits)
        assert torch.allclose(*answers, atol=1e-3)


def test_a_target_without_the_layers_that_are_read_is_refused(tmp_path):
    told = {"eagle_aux_hidden_state_layer_ids": [2, 5, 7]}
    facts = check_head(third_version(tmp_path, VOCABULARY, ids=IDS, **told))
    with pytest.raises(Problem, match=r"layers 2, 5, 7 .* has 7 layers"):
        LoadedHead(facts, made_target())
    few = check_head(third_version(tmp_path / "few", VOCABULARY, ids=IDS))
    with pytest.raises(Problem, match=r"layers 2, 1, -1 .* has 2 layers"):
        LoadedHead(few, tiny_llama(0))


def test_a_target_of_another_kind_is_refused_before_and_while_loading(tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    facts = check_head(first_version(tmp_path / "head", VOCABULARY))
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, n_embd=HIDDEN, n_layer=LAYERS, n_head=2)
    )
    with pytest.raises(Problem, match="'gpt2'"):
        LoadedHead(facts, wrapped(model.eval()))
    model.save_pretrained(tmp_path / "target")
    with pytest.raises(Problem, match="'gpt2'"):
        refuse_unfit(facts, check(tmp_path / "target", needs_tokenizer=False))
