"""What each method takes for its sessions and weights, beside what was computed before loading."""

import pytest
import torch
from msgspec.structs import replace
from mtp_kinds import write_deepseek_named

from app.library.catalogue import load_catalogue
from app.library.head_folder import check_head
from app.library.memory import CACHE_STEP, Plan, cache_bytes, estimate
from app.library.memory_plan import Wish, plan_of, sizes_of
from app.library.model_size import size_of
from app.library.preflight import check
from app.models.loaded_head import LoadedHead
from app.models.loaded_mtp import LoadedMtp
from app.models.loading import load
from app.run.methods import METHODS
from app.run.settings import RunSettings
from app.selftest.models import record_here
from app.selftest.tiny_models import write_tiny_pair
from app.studies.workbench import Workbench
from published_heads import first_version, third_version
from tiny_kinds import write_kind
from tongues import letters, pieces, write_pair

CPU = torch.device("cpu")
ONE_VOCABULARY = [name for name, method in METHODS.items() if not method.any_vocabulary]


def planned(catalogue, settings, tokens) -> Plan:
    wish = Wish(
        tokens=tokens,
        precision=settings.precision,
        draft_precision=settings.draft_precision,
        device="cpu",
        method=settings.method,
        method_options=settings.method_options,
        draft_length=settings.draft_length,
    )
    return plan_of(sizes_of(catalogue, settings.pair), wish, ())


def taken_and_computed(bench, catalogue, settings):
    """Bytes of the sessions of both lanes of a run, what was computed of them, and the plan."""
    record = record_here(bench, settings)
    assert record.outcome == "finished", record.message
    lanes = [record.repetitions(lane)[0] for lane in ("baseline", "speculative")]
    tokens = len(record.prompt_ids) + settings.max_new_tokens
    plan = planned(catalogue, settings, tokens)
    return sum(lane.cache_bytes for lane in lanes), estimate(plan)[0].caches, plan


@pytest.fixture(scope="module")
def tiny_pairs(tmp_path_factory):
    """A catalogue of the tiny pairs, and a workbench that loads them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORETOKEN_HOME", str(tmp_path_factory.mktemp("tiny")))
        catalogue = load_catalogue([write_tiny_pair()])
        yield Workbench(catalogue), catalogue


@pytest.mark.parametrize("method", ONE_VOCABULARY)
@pytest.mark.parametrize("tokens", [5, 24])
def test_the_sessions_of_every_method_take_what_was_computed(tiny_pairs, tiny, method, tokens):
    settings = tiny(method=method, max_new_tokens=tokens, ignore_end_of_text=True, draft_length=3)
    taken, computed, _ = taken_and_computed(*tiny_pairs, settings)
    assert taken == computed


@pytest.mark.parametrize("shape", [{"nodes": 9, "breadth": 3}, {"nodes": 40, "breadth": 8}])
def test_trees_take_room_beside_the_text_and_rows_in_a_pass(tiny_pairs, tiny, shape):
    settings = tiny(method="head-tree", method_options=shape, max_new_tokens=9, draft_length=3)
    taken, computed, plan = taken_and_computed(*tiny_pairs, settings)
    assert taken == computed
    # The first level has `breadth` guesses, each of the two behind it its square at most.
    assert plan.rows == 1 + min(shape["nodes"], shape["breadth"] + 2 * shape["breadth"] ** 2)
    plain = replace(plan, tree=None)
    assert estimate(plan)[0].caches > estimate(plain)[0].caches
    wide = replace(
        plan, target=replace(plan.target, shape=replace(plan.target.shape, vocabulary=1 << 20))
    )
    beside = replace(wide, tree=None)
    found, other = (estimate(one)[0].working for one in (wide, beside))
    assert found - other >= (plan.rows - 4) * (1 << 20) * 4


@pytest.mark.parametrize("method", ["tli", "slem"])
def test_a_draft_of_another_vocabulary_takes_no_more_than_twice_the_text(tmp_path, method):
    bench = write_pair(tmp_path, letters(), pieces())
    catalogue = load_catalogue([tmp_path / "models.yaml"])
    settings = RunSettings(
        pair="pair",
        prompt="the cat and the rat",
        raw=True,
        device="cpu",
        precision="fp32",
        draft_precision="fp32",
        ignore_end_of_text=True,
        method=method,
        max_new_tokens=64,
    )
    taken, computed, plan = taken_and_computed(bench, catalogue, settings)
    prompt = plan.tokens - 64
    assert 0 <= computed - taken <= cache_bytes(plan.draft, "fp32", 2 * prompt + CACHE_STEP)
    once = replace(plan, any_vocabulary=False)
    assert estimate(once)[0].caches < taken


@pytest.mark.parametrize("modules", [1, 2])
@pytest.mark.parametrize("kind", ["deepseek_v3", "glm4_moe", "glm4_moe_lite"])
def test_modules_of_experts_and_latent_attention_take_what_was_computed(tmp_path, kind, modules):
    write_deepseek_named(tmp_path, kind, modules)
    target = load(check(tmp_path), name="m", precision="fp32", device=CPU)
    mtp = LoadedMtp(target)
    plan = Plan(
        target=size_of(tmp_path), precision="fp32", tokens=24, drafter="mtp", baseline=False
    )
    session = target.model.open(24, features=True)
    beside = mtp.open(session, 24)
    session.read([1, 2, 3, 4], rows=1)
    beside.read([1, 2, 3, 4, 5], rows=1)
    found = estimate(plan)[0]
    assert found.caches == session.byte_count + beside.byte_count
    # The experts' routers keep a bias each that is no parameter.
    held = {id(it): it for module in mtp.modules for it in module.buffers() if it.numel() == 4}
    assert found.draft == mtp.facts.weight_bytes + sum(it.nbytes for it in held.values())


HEADS = {
    "eagle-1": lambda folder: first_version(folder, 64),
    "eagle-1 without embeddings": lambda folder: first_version(folder, 64, own=False),
    "eagle-3": lambda folder: third_version(folder, 64, ids=list(range(0, 64, 2))),
    "eagle-3 of five layers": lambda folder: third_version(
        folder,
        64,
        ids=list(range(40)),
        count=5,
        eagle_aux_hidden_state_layer_ids=[1, 2, 3, 4, 5],
        normed=True,
    ),
}


@pytest.mark.parametrize("kind", HEADS)
def test_published_heads_take_what_was_computed_with_the_layers_inputs_that_they_read(
    tmp_path, kind
):
    folder = write_kind(tmp_path / "target", "llama", rows=64, num_hidden_layers=7)
    target = load(check(folder), name="m", precision="fp32", device=CPU).model
    facts = check_head(HEADS[kind](tmp_path / "head"))
    head = LoadedHead(facts, target)
    session = head.open_target(24)
    beside = head.open(session, 24)
    session.read([3, 9, 27], rows=1)
    beside.read([3, 9, 27, 17], rows=1)
    plan = Plan(
        target=size_of(folder),
        precision="fp32",
        head=facts.size,
        drafter="head",
        tokens=24,
        baseline=False,
    )
    found = estimate(plan)[0]
    assert found.caches == session.byte_count + beside.byte_count
    # Embeddings as large as the target's are taken to be the target's: these are others.
    other = 64 * target.inner.config.hidden_size * 4 if kind == "eagle-1" else 0
    assert found.draft + other == head.facts.weight_bytes
