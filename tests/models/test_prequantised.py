"""Folders that hold quantised weights: they load as they are, and are called what they are."""

import json

import msgspec
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from app.library.entries import PairEntry
from app.library.fitting import fit
from app.library.memory import estimate, weights
from app.library.memory_plan import PairSizes, plan_of
from app.library.memory_plan import Wish as Wished
from app.library.model_size import size_of
from app.library.preflight import check
from app.library.quantised import Quantised
from app.models.draft_wish import beside
from app.models.loading import load
from app.models.precision import settle_precision
from app.models.preparing import _Loader
from app.models.warm import WarmModels, Wish
from app.models.weights_note import weights_note
from app.run.preparation import DeviceMemory
from app.run.problems import Problem
from toys import make_lane, run, sessions, tiny_llama

CPU = torch.device("cpu")
QUANTISED = ["nf4", "fp4", "llm-int8"]


def loaded(folder, precision):
    return load(folder, name="tiny", precision=precision, device=CPU)


def text(model):
    return run(make_lane([3, 1, 4], max_new_tokens=30), sessions(model)).token_ids


def planned(target, draft=None):
    """The plan of these on a CPU with much memory, in the precisions that they would take."""
    pair = PairEntry("p", "P", "m", "ngram")
    sizes = PairSizes(pair, target, draft, None, same_weights=False)
    return plan_of(sizes, Wished(tokens=100), [DeviceMemory("cpu", "CPU", 1 << 40, 1 << 40)])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole")
    tiny_llama(1, hidden_size=64, intermediate_size=128).inner.save_pretrained(path)
    return check(path, needs_tokenizer=False)


@pytest.fixture(params=QUANTISED)
def saved(request, whole, tmp_path):
    """A precision, the model as it was quantised on loading, and the folder it was saved to."""
    before = loaded(whole, request.param).model
    before.inner.save_pretrained(tmp_path)
    return request.param, before, check(tmp_path, needs_tokenizer=False)


def test_what_bitsandbytes_saved_writes_the_same_text(saved):
    precision, before, folder = saved
    settled, why = settle_precision(folder, None, CPU)
    assert settled == precision
    assert "how its folder holds" in why
    after = loaded(folder, settled)
    assert after.facts.precision == precision
    assert after.facts.precision_note.endswith("as its folder holds it")
    kinds = {type(module).__name__ for module in after.model.inner.modules()}
    assert ("Linear8bitLt" if precision == "llm-int8" else "Linear4bit") in kinds
    assert after.model.weight_bytes == before.weight_bytes
    assert text(after.model) == text(before)
    assert after.rows.holds == (precision != "llm-int8")


def test_the_memory_that_is_planned_for_quantised_weights_is_what_they_take(saved):
    precision, before, folder = saved
    size = size_of(folder.folder)
    kinds = [type(module).__name__ for module in before.inner.modules()]
    layers = kinds.count("Linear4bit") + kinds.count("Linear8bitLt")
    # The scales of a 4-bit layer and their table, some 1.3 kB here, are not in torch's count.
    assert 0 <= weights(size, "bf16", "cpu") - before.weight_bytes <= 1500 * layers
    plan = planned(size)
    assert plan.precision == precision
    assert estimate(plan)[0].target == weights(size, precision, "cpu")
    # Neither another precision nor a shorter text is there to be proposed: only another device.
    assert fit(plan, [DeviceMemory("cpu", "CPU", 1, 1)]).change == ""


@pytest.mark.parametrize(("held", "due"), [("gptq-4bit", "fp32"), ("fp4", "fp4")])
def test_a_plain_draft_is_planned_in_the_precision_that_it_takes_beside_a_quantised_target(
    whole, held, due
):
    beside_it = beside(Wish("draft", whole, None, CPU), held)
    assert settle_precision(whole, beside_it.precision, CPU)[0] == due
    draft = size_of(whole.folder)
    own = Quantised("some", held, "as its folder holds it")
    target = msgspec.structs.replace(draft, quantised=own, file_bytes=1)
    assert planned(target, draft).draft_precision == due
    assert planned(draft, target).draft_precision == ("bf16" if held == "gptq-4bit" else held)


def test_another_precision_is_refused_and_never_made_silently(saved):
    precision, _, folder = saved
    for wanted in {"fp32", "bf16", "int8", *QUANTISED} - {precision}:
        with pytest.raises(Problem, match=f"held in {precision}; they are not converted"):
            settle_precision(folder, wanted, CPU)
    assert settle_precision(folder, precision, CPU)[0] == precision


def test_a_draft_in_its_own_precision_stands_beside_a_plain_target(whole, saved):
    _, _, folder = saved
    loader = _Loader(WarmModels(), lambda progress: None, lambda: None)
    wish = beside(Wish("draft", folder, None, CPU), "fp32")
    draft = loader.load(wish, loader.settled(wish))[0]
    assert draft.model.precision == settle_precision(folder, None, CPU)[0]
    wish = beside(Wish("other", whole, None, CPU), draft.model.precision)
    other = loader.load(wish, loader.settled(wish))[0]
    assert other.model.precision == draft.model.precision


@pytest.fixture
def fp8(tmp_path):
    """A folder of 8-bit floating-point weights with a scale for each block of 32 by 32."""
    model = tiny_llama(2, hidden_size=64, intermediate_size=128).inner
    model.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    plain = {}
    for name, weight in list(weights.items()):
        plain[name] = weight
        if name.endswith("proj.weight"):
            rows, columns = weight.shape[0] // 32, weight.shape[1] // 32
            blocks = weight.view(rows, 32, columns, 32)
            scale = blocks.abs().amax((1, 3)) / 448
            narrow = (blocks / scale[:, None, :, None]).to(torch.float8_e4m3fn)
            weights[name] = narrow.view(weight.shape)
            weights[f"{name}_scale_inv"] = scale
            plain[name] = (narrow.float() * scale[:, None, :, None]).view(weight.shape)
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {
        "quant_method": "fp8",
        "weight_block_size": [32, 32],
        "modules_to_not_convert": ["lm_head"],
    }
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    model.load_state_dict(plain)
    return check(tmp_path, needs_tokenizer=False), model


def test_fp8_is_planned_as_wide_as_it_is_loaded(fp8):
    folder, _ = fp8
    size = size_of(folder.folder)
    plan = planned(size)
    assert plan.precision == "bf16"
    taken = loaded(folder, "bf16").model.weight_bytes
    assert abs(weights(size, "bf16", "cpu") - taken) <= 0.1 * taken


def test_fp8_is_widened_to_the_numbers_that_its_scales_say(fp8):
    folder, reference = fp8
    assert settle_precision(folder, None, CPU)[0] == "bf16"
    found = loaded(folder, "fp32")
    assert "FP8 widened on loading" in found.facts.precision_note
    ids = torch.tensor([[3, 1, 4, 15, 9]])
    with torch.inference_mode():
        due, mine = reference(ids).logits, found.model.inner(ids).logits
    assert torch.allclose(mine, due, rtol=1e-3, atol=1e-3 * float(due.abs().max()))
    with pytest.raises(Problem, match="second time"):
        settle_precision(folder, "nf4", CPU)
    assert loaded(folder, "bf16").model.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("precision", "was", "words"),
    [
        ("fp32", "Q4_K_M", "Q4_K_M widened to fp32: the same numbers that the file holds"),
        ("fp32", "BF16", "BF16 as the file holds it: the same numbers"),
        ("bf16", "BF16", "BF16 as the file holds it: the same numbers"),
        ("fp16", "F16", "F16 as the file holds it: the same numbers"),
        ("bf16", "Q4_1", "Q4_1 widened to bf16: nearly the numbers that the file holds"),
        ("bf16", "F16", "F16 rounded to bf16: nearly the numbers that the file holds"),
        ("fp16", "Q8_0", "Q8_0 widened to fp16: nearly the numbers that the file holds"),
        ("nf4", "Q4_K_M", "re-quantised from Q4_K_M to NF4: not the weights that llama.cpp runs"),
        ("fp4", "Q4_1", "re-quantised from Q4_1 to FP4: not the weights that llama.cpp runs"),
        ("int8", "Q8_0", "re-quantised from Q8_0 to INT8: not the weights that llama.cpp runs"),
        ("llm-int8", "F16", "quantised from F16 to LLM-INT8: not the weights that llama.cpp runs"),
    ],
)
def test_the_note_says_what_became_of_the_numbers_of_a_gguf_file(whole, precision, was, words):
    folder = msgspec.structs.replace(whole, requantised_from=was)
    note = weights_note(precision, folder)
    assert note.endswith(f"; {words}")
    assert "llama.cpp" not in weights_note(precision, whole)


def test_a_packed_folder_is_counted_by_the_weights_that_it_stands_for(whole, saved):
    assert saved[2].parameters == whole.parameters
    assert size_of(saved[2].folder).shape.parameters == whole.parameters


def packed_experts(folder):
    """A tiny GPT-OSS whose experts are MXFP4: blocks of two weights in a byte, and scales."""
    config = transformers.GptOssConfig(
        vocab_size=64,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        num_local_experts=4,
        num_experts_per_tok=2,
        max_position_embeddings=128,
        pad_token_id=None,
    )
    model = transformers.GptOssForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    stored = {}
    for name, weight in load_file(folder / "model.safetensors").items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            stored[name] = weight
            continue
        experts, inside, out = weight.shape
        stored[f"{name}_blocks"] = torch.zeros(experts, out, inside // 32, 16, dtype=torch.uint8)
        stored[f"{name}_scales"] = torch.full((experts, out, inside // 32), 120, dtype=torch.uint8)
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    file = folder / "config.json"
    declared = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    said = {**json.loads(file.read_text()), "quantization_config": declared}
    file.write_text(json.dumps(said))
    return model


def test_mxfp4_is_planned_at_what_it_is_widened_to(tmp_path):
    before = packed_experts(tmp_path)
    folder = check(tmp_path, needs_tokenizer=False)
    assert folder.parameters == before.num_parameters()
    model = loaded(folder, settle_precision(folder, None, CPU)[0]).model
    assert model.precision == "bf16"
    buffers = sum(buffer.nbytes for buffer in model.inner.buffers())
    assert 0 <= model.weight_bytes - weights(size_of(tmp_path), "bf16", "cpu") <= buffers
