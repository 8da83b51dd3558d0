"""Every field of vLLM's speculative config, and what becomes of it here.

Source: `vllm/config/speculative.py` of vLLM 0.33.0.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from app.run.options import Option
from app.run.settings import LONGEST_DRAFT

RELEASE = "0.33.0"
"""The release of vLLM whose words these are."""

MAX_SPEC_LEN = 128
"""Most guesses of a round in that release. Source: `vllm/v1/sample/rejection_sampler.py`."""

_MTP = (
    "mtp", "deepseek_mtp", "dots3_note_mtp", "mimo_mtp", "mimo_v2_mtp", "glm4_moe_mtp",
    "glm4_moe_lite_mtp", "glm_ocr_mtp", "ernie_mtp", "nemotron_h_mtp", "exaone_moe_mtp",
    "exaone4_5_mtp", "qwen3_next_mtp", "qwen4_exp_mtp", "qwen3_5_mtp", "longcat_flash_mtp",
    "bailing_hybrid_v3_mtp", "minimax_m3_mtp", "bailing_hybrid_mtp", "kimi_k3_mtp",
    "pangu_ultra_moe_mtp", "step3p5_mtp", "step5_mtp", "hy_v3_mtp", "hy_v4_mtp", "gemma4_mtp",
    "inkling_mtp", "glm5_next_mtp",
)  # fmt: skip

METHODS: Mapping[str, str] = {
    "ngram": "ngram",
    "[ngram]": "ngram",
    "ngram_gpu": "ngram",
    "suffix": "suffix",
    "draft_model": "draft-model",
    "eagle": "head",
    "eagle3": "head",
    **dict.fromkeys(_MTP, "mtp"),
}
"""The methods here, by their names in vLLM; all of a family's multi-token prediction are one."""

NOT_HERE: Mapping[str, str] = {
    "dflash": "drafts a block of tokens by diffusion",
    "dspark": "drafts a block of tokens by diffusion",
    "custom_class": "runs a program of its own, and Foretoken runs no code that a model brings",
    "extract_hidden_states": "writes hidden states out and guesses nothing",
    "medusa": "guesses with Medusa's heads",
    "mlp_speculator": "guesses with an MLP speculator",
}
"""vLLM's methods that there are not here, and what each does."""

RULES: Mapping[str, str] = {
    "standard": "exact",
    "block": "block",
    "synthetic": "synthetic",
    "fly": "fly",
}
"""The rules here, by vLLM's names of its rejection sampling methods."""


def _field(default: int | float | bool | str, low: float | None = None, **more: object) -> Option:
    help_ = f"Write it as vLLM {RELEASE} takes it, or leave it out."
    option = Option("", "", help_, default, low, None if low is None else float("inf"))
    return msgspec.structs.replace(option, **more)


USED: Mapping[str, Option] = {
    name: msgspec.structs.replace(option, name=name, label=name)
    for name, option in {
        "method": _field(""),
        "model": _field(""),
        "revision": _field(""),
        "quantization": _field(""),
        "num_speculative_tokens": _field(
            1,
            1,
            high=LONGEST_DRAFT,
            help=f"A loop guesses {LONGEST_DRAFT} tokens at most here, and {MAX_SPEC_LEN} in "
            f"vLLM {RELEASE} (MAX_SPEC_LEN).",
        ),
        "prompt_lookup_min": _field(5, 1, high=32),
        "prompt_lookup_max": _field(5, 1, high=32),
        "suffix_decoding_max_tree_depth": _field(24, 1),
        "suffix_decoding_max_cached_requests": _field(10000, 0),
        "suffix_decoding_max_spec_factor": _field(1.0, 0),
        "suffix_decoding_min_token_prob": _field(0.1, 0, high=1.0),
        "use_heterogeneous_vocab": _field(False),
        "draft_sample_method": _field("greedy", choices=("greedy", "probabilistic")),
        "rejection_sample_method": _field("standard", choices=tuple(RULES)),
        "synthetic_acceptance_length": _field(1.0, 1),
        "fly_window_size": _field(1, 1),
        "fly_entropy_threshold": _field(0.3, 0),
        "fly_entropy_top_k": _field(3, 1),
    }.items()
}
"""Fields of one value that change what is guessed or kept, with vLLM's own defaults and bounds;
`num_speculative_tokens` and the windows have the bounds of this program.
"""

LISTS = ("num_speculative_tokens_per_batch_size", "synthetic_acceptance_rates")
"""Fields of several values that are read too."""

DRAFTED_BY_A_MODEL = ("draft_model", "eagle", "eagle3", *_MTP)
"""vLLM's methods whose guesses come from a law."""

READERS: Mapping[str, tuple[str, ...]] = {
    "prompt_lookup_": ("ngram", "[ngram]", "ngram_gpu"),
    "suffix_decoding_": ("suffix",),
    "draft_sample_method": DRAFTED_BY_A_MODEL,
    "quantization": DRAFTED_BY_A_MODEL,
    "revision": DRAFTED_BY_A_MODEL,
    "fly_": ("fly",),
}
"""Which methods or rules read the fields that begin like this; vLLM lets the others have them."""

NO_EFFECT: Mapping[str, str] = {
    "enforce_eager": "whether kernels are captured is for speed alone",
    "moe_backend": "which kernel computes is for speed alone",
    "attention_backend": "which kernel computes is for speed alone",
    "disable_padded_drafter_batch": "one text at a time needs no padding",
    "disable_eagle_block_drop": "no text is shared with other requests",
    "disable_lookahead_block_hashes": "no text is shared with other requests",
    "use_local_argmax_reduction": "one device has nothing to reduce",
}
"""Fields without effect here, whatever they say, and why."""


class Resting(msgspec.Struct, frozen=True):
    """A field that only has a meaning here at rest."""

    values: tuple[object, ...]
    """Those that change nothing."""
    why: str
    """Why other values cannot be honoured, as the end of a sentence."""
    remedy: str


_OUT = "Take it out of the JSON."
AT_REST: Mapping[str, Resting] = {
    "draft_tensor_parallel_size": Resting((1,), "a draft runs on one device here", "Write 1."),
    "parallel_drafting": Resting((False,), "guesses are made one after the other here", _OUT),
    "enable_adaptive_verification": Resting((False,), "every guess is tested here", _OUT),
    "index_share_for_mtp_iteration": Resting(
        (False,), "each step has its own sparse indices here", _OUT
    ),
    "kv_cache_dtype": Resting(("auto",), "caches are kept in the model's own numbers here", _OUT),
    "draft_lm_head_quantization": Resting(
        (), "a head's output layer is kept as its weights are", _OUT
    ),
    "max_model_len": Resting(
        (), "the draft's own context length counts here", "Use --context-length, for both models."
    ),
    "draft_load_config": Resting((), "models are loaded one way here", _OUT),
    "code_revision": Resting((), "no code of a model's repository is run here", _OUT),
    "dspark_draft_topk": Resting((), "DSpark is not run by this version", _OUT),
    "xpress_topc": Resting((0,), "XPress is not run by this version", _OUT),
    "tensor_parallel_size": Resting(
        (), "vLLM refuses it too", "Write draft_tensor_parallel_size instead, or leave it out."
    ),
    **{
        name: Resting((), "vLLM fills it in itself", _OUT)
        for name in (
            "target_model_config",
            "target_parallel_config",
            "draft_model_config",
            "draft_parallel_config",
        )
    },
}
"""Fields that would change results and cannot be honoured, but for these values."""

SAMPLING: Mapping[str, str] = {
    "temperature": "--temperature",
    "top_k": "--top-k",
    "top_p": "--top-p",
    "min_p": "--min-p",
    "repetition_penalty": "--repetition-penalty",
    "presence_penalty": "--presence-penalty",
    "seed": "--seed",
    "max_tokens": "--max-new-tokens",
    "stop": "--stop",
    "ignore_eos": "--ignore-end-of-text",
    "frequency_penalty": "",
    "min_tokens": "",
    "stop_token_ids": "",
    "logit_bias": "",
    "bad_words": "",
    "n": "",
    "logprobs": "",
}
"""vLLM's sampling parameters, which belong to a request, and the flags here; "" where none is."""

QUANTISED_FOLDERS = ("awq", "awq_marlin", "gptq", "gptq_marlin", "compressed-tensors")
"""Quantisations that a draft's own folder tells of, so that they need not be asked for."""

EVERY = (*USED, *LISTS, *NO_EFFECT, *AT_REST)
"""Every field of that release."""
