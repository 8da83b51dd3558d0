"""What a run will hold: weights and caches by counting, and the sizes as files tell them."""

import msgspec
import pytest
import torch
import transformers

from app.library.head_folder import HeadShape
from app.library.head_size import HeadSize
from app.library.memory import Plan, cache_bytes, estimate, weights
from app.library.model_size import size_of, size_of_shape
from app.library.preflight import check
from app.models.cache import open_cache
from app.models.draft_head import DraftHead
from app.models.fixed.memory import PlacedLayers
from app.models.loaded_mtp import LoadedMtp
from app.models.loading import load, load_weights
from app.run.problems import Problem
from app.run.tree_shape import TreeShape
from tests.mtp_kinds import write_mimo_named
from tests.tiny_kinds import KINDS, write_kind

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("kinds")
    return {kind: write_kind(root / kind, kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_the_sizes_of_a_folder_are_those_of_the_model_in_it(folders, kind):
    model = transformers.AutoModelForCausalLM.from_pretrained(folders[kind])
    found = size_of(folders[kind])
    output, table = model.get_output_embeddings(), model.get_input_embeddings()
    linear = sum(
        module.weight.numel()
        for module in model.modules()
        if type(module).__name__ in ("Linear", "Conv1D") and module is not output
    )
    assert found.shape.parameters == model.num_parameters()
    assert found.shape.tied == (output.weight is table.weight)
    assert (found.shape.vocabulary, found.shape.hidden) == tuple(table.weight.shape)
    # The routers of experts are small matrices, which a quantisation leaves alone.
    assert abs(found.linear - linear) <= model.num_parameters() * 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_takes_as_many_bytes_as_were_computed(folders, kind):
    model = transformers.AutoModelForCausalLM.from_pretrained(folders[kind])
    cache = open_cache(model.config, 24)
    model(input_ids=torch.ones((1, 3), dtype=torch.long), past_key_values=cache.inner)
    assert cache_bytes(size_of(folders[kind]), "fp32", 24) == cache.byte_count


@pytest.mark.parametrize("kind", ["llama", "gpt_neox", "qwen3"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_weights_take_as_many_bytes_as_were_computed(folders, kind, precision):
    facts = check(folders[kind])
    model = load_weights(facts, name="m", precision=precision, device=CPU)
    buffers = sum(b.nbytes for b in model.inner.buffers() if b.layout == torch.strided)
    computed = weights(size_of(folders[kind]), precision, "cpu")
    assert abs(computed - model.weight_bytes) <= buffers + 0.01 * computed


def test_sizes_without_files_count_every_matrix_but_the_tables(folders):
    of_files = size_of(folders["llama"])
    assert size_of_shape(of_files.shape).linear == of_files.linear


def test_a_config_that_does_not_say_its_sizes_is_a_problem(tmp_path):
    folder = write_kind(tmp_path / "m", "llama")
    config = msgspec.json.decode((folder / "config.json").read_bytes())
    del config["num_hidden_layers"]
    (folder / "config.json").write_bytes(msgspec.json.encode(config))
    with pytest.raises(Problem, match="does not say the sizes"):
        size_of(folder)


@pytest.fixture
def llama(folders):
    return size_of(folders["llama"])


def test_both_lanes_keep_their_caches_in_turns_and_one_at_a_time_when_alternated(llama):
    one = cache_bytes(llama, "fp32", 100)
    plan = Plan(target=llama, precision="fp32", tokens=100)
    assert estimate(plan)[0].caches == 2 * one
    assert estimate(msgspec.structs.replace(plan, at_once=False))[0].caches == one
    assert estimate(msgspec.structs.replace(plan, baseline=False))[0].caches == one


def test_a_draft_model_has_weights_and_a_cache_of_its_own(llama):
    plan = Plan(target=llama, precision="fp32", tokens=100, draft=llama, draft_precision="bf16")
    idle = estimate(plan)[0]
    busy = estimate(msgspec.structs.replace(plan, drafter="model"))[0]
    assert idle.draft == weights(llama, "bf16", "cpu")
    assert busy.caches - idle.caches == cache_bytes(llama, "bf16", 100)


def test_the_targets_own_weights_as_draft_are_counted_once(llama):
    plan = Plan(
        target=llama,
        precision="fp32",
        tokens=10,
        draft=llama,
        draft_precision="fp32",
        same_weights=True,
    )
    assert estimate(plan)[0].draft == 0
    assert estimate(msgspec.structs.replace(plan, draft_precision="nf4"))[0].draft > 0


def test_a_draft_on_another_device_takes_nothing_of_the_targets(llama):
    plan = Plan(
        target=llama,
        precision="bf16",
        tokens=100,
        device="cuda:0",
        draft=llama,
        draft_device="cpu",
        drafter="model",
    )
    target, draft = estimate(plan)
    assert (target.device, draft.device) == ("cuda:0", "cpu")
    assert (target.draft, draft.target) == (0, 0)
    assert draft.caches == cache_bytes(llama, "bf16", 100)


def test_a_head_is_counted_with_the_output_rows_that_it_copies(llama):
    shape = HeadShape(
        hidden=32,
        intermediate=48,
        heads=4,
        shared_heads=2,
        head_size=8,
        norm_epsilon=1e-5,
        biased=False,
        normed=False,
        vocabulary=100,
    )
    plan = Plan(target=llama, precision="fp32", tokens=10, head=shape.size, drafter="head")
    own = sum(weight.numel() for weight in DraftHead(shape).parameters())
    found = estimate(plan)[0]
    assert found.draft == 4 * (own + 32 * 100)
    beside = estimate(msgspec.structs.replace(plan, drafter="nothing"))[0]
    # A layer's keys and values, with room for 16 tokens, and the target's feature of each of ten.
    assert found.caches - beside.caches == 4 * (16 * 2 * 2 * 8 + 10 * 32)


def test_modules_of_the_target_count_for_the_method_that_asks_for_them(tmp_path):
    write_mimo_named(tmp_path)
    size = size_of(tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert size.shape.parameters == model.num_parameters()
    target = load(check(tmp_path), name="m", precision="fp32", device=CPU)
    mtp = LoadedMtp(target)
    plan = Plan(target=size, precision="fp32", tokens=24, drafter="mtp", baseline=False)
    found, plain = estimate(plan)[0], estimate(msgspec.structs.replace(plan, drafter="nothing"))[0]
    assert found.draft == mtp.facts.weight_bytes
    assert plain.draft == 0
    session = target.model.open(24, features=True)
    beside = mtp.open(session, 24)
    session.read([1, 2, 3], rows=1)
    beside.read([1, 2, 3, 4], rows=1)
    assert found.caches == session.byte_count + beside.byte_count
    assert found.target == plain.target


def test_no_text_is_longer_than_the_models_own_context(llama):
    asked = Plan(target=llama, precision="fp32", tokens=100_000)
    longest = msgspec.structs.replace(asked, tokens=llama.shape.context_length)
    assert estimate(asked)[0].caches == estimate(longest)[0].caches


def test_passes_of_fixed_shape_have_room_for_padded_rows(llama):
    plan = Plan(target=llama, precision="fp32", tokens=100, baseline=False)
    one = cache_bytes(llama, "fp32", 1) // 16  # bytes of a token
    assert estimate(plan)[0].caches == 112 * one
    assert estimate(msgspec.structs.replace(plan, passes="fixed"))[0].caches == 192 * one
    placed = PlacedLayers(llama.shape.layers, 100)
    assert placed.room == 192


@pytest.mark.parametrize(
    ("draft_length", "rows"),
    [
        (0, 1),
        (1, 1 + 2),
        (4, 1 + 2 + 3 + 4 + 5),
        (8, 36 + 12),
        (11, 36 + 12),
        (63, 36 + 12 + 16 + 24 + 32 + 48 + 64),
        (64, 36 + 12 + 16 + 24 + 32 + 48 + 64),
    ],
)
def test_graphs_leave_the_logits_of_every_width_on_a_card(llama, draft_length, rows):
    plan = Plan(
        target=llama,
        precision="bf16",
        tokens=100,
        device="cuda:0",
        baseline=False,
        draft_length=draft_length,
    )
    eager = estimate(msgspec.structs.replace(plan, passes="eager"))[0]
    graphs, both = estimate(plan)[0], estimate(msgspec.structs.replace(plan, baseline=True))[0]
    assert graphs.caches > eager.caches
    logits = rows * llama.shape.vocabulary * 2
    of_a_session = graphs.working - eager.working
    assert both.working - graphs.working == of_a_session  # a pool and a stream of its own
    assert of_a_session - logits == (64 << 20) + (32 << 20)
    in_turns = msgspec.structs.replace(plan, baseline=True, at_once=False)
    assert estimate(in_turns)[0].working == graphs.working


@pytest.mark.parametrize(("precision", "unpacked"), [("nf4", 2), ("fp4", 2), ("bf16", 0)])
def test_graphs_of_four_bits_hold_the_largest_layer_unpacked(llama, precision, unpacked):
    def of_graphs(held: str) -> int:
        plan = Plan(target=llama, precision=held, tokens=100, device="cuda:0", baseline=False)
        eager = estimate(msgspec.structs.replace(plan, passes="eager"))[0]
        return estimate(plan)[0].working - eager.working

    shape = llama.shape
    assert shape.intermediate > shape.heads * shape.head_size
    more = of_graphs(precision) - of_graphs("fp16")
    assert more == unpacked * shape.hidden * shape.intermediate


def with_draft_on_a_card(size) -> Plan:
    """A run whose target is on the CPU."""
    return Plan(
        target=size,
        precision="bf16",
        tokens=100,
        device="cpu",
        draft=size,
        draft_precision="bf16",
        draft_device="cuda:0",
        drafter="model",
    )


def test_graphs_of_a_draft_on_a_card_are_counted_there(llama):
    plan = with_draft_on_a_card(llama)
    eager = estimate(msgspec.structs.replace(plan, passes="eager"))
    graphs = estimate(plan)
    assert graphs[0] == eager[0]
    assert graphs[1].working > eager[1].working
    assert graphs[1].caches == cache_bytes(llama, "bf16", 100, placed=True)
    idle = msgspec.structs.replace(plan, drafter="nothing")
    assert estimate(idle)[1].working == eager[1].working


def test_laws_of_chains_are_counted_up_to_the_longest_chain(llama):
    plan = with_draft_on_a_card(llama)

    def of_graphs(length: int) -> int:
        asked = msgspec.structs.replace(plan, draft_length=length)
        eager = msgspec.structs.replace(asked, passes="eager")
        return estimate(asked)[1].working - estimate(eager)[1].working

    law = 4 * llama.shape.vocabulary  # in fp32
    assert of_graphs(8) - of_graphs(4) == 4 * 4 * law
    assert of_graphs(40) == of_graphs(16) > of_graphs(15)


def test_chains_of_first_layers_are_counted_with_the_targets_graphs(llama):
    plan = Plan(target=llama, precision="bf16", tokens=100, device="cuda:0", draft_length=6)
    exits = msgspec.structs.replace(plan, drafter="early-exit")
    more = estimate(exits)[0].working - estimate(plan)[0].working
    assert more == (64 << 20) + 6 * 4 * 4 * llama.shape.vocabulary  # graphs, and laws in fp32
    eager = [msgspec.structs.replace(one, passes="eager") for one in (plan, exits)]
    assert estimate(eager[0]) == estimate(eager[1])


def test_scores_of_trees_are_counted_by_their_breadth(llama):
    def of_graphs(breadth: int, length: int) -> int:
        plan = Plan(
            target=llama,
            precision="bf16",
            tokens=100,
            device="cuda:0",
            baseline=False,
            head=HeadSize(weights=100, kept=8, features=32),
            drafter="head",
            tree=TreeShape(nodes=8, breadth=breadth),
            draft_length=length,
        )
        eager = msgspec.structs.replace(plan, passes="eager")
        return estimate(plan)[0].working - estimate(eager)[0].working

    row = 4 * llama.shape.vocabulary  # in fp32
    assert of_graphs(10, 4) - of_graphs(8, 4) == 2 * 4 * row
    assert of_graphs(10, 40) == of_graphs(10, 4)  # levels take the same memory in turn
