"""What a model folder says beside its vocabulary: special tokens by their role, chat template."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.library.model_files import read_json_if_there

ROLES = ("bos", "eos", "unk", "pad")
"""Beginning, end, unknown and padding, as tokenizer_config.json names them."""


class _TokenizerConfig(msgspec.Struct, frozen=True):
    """The parts of a tokenizer_config.json, whatever they hold."""

    bos_token: object = None
    eos_token: object = None
    unk_token: object = None
    pad_token: object = None
    chat_template: object = None


class Conventions(msgspec.Struct, frozen=True):
    """What a folder says beside its vocabulary."""

    roles: dict[str, str]
    """The text of each special token that is named, by its role."""
    template: str | None
    """The chat template, or all of them where there are several."""


def conventions(folder: Path) -> Conventions:
    """Reads them. Raises Problem for a tokenizer_config.json that is no JSON."""
    config = read_json_if_there(folder / "tokenizer_config.json", _TokenizerConfig)
    named = {role: _text(getattr(config, f"{role}_token")) for role in ROLES}
    return Conventions(
        {role: text for role, text in named.items() if text is not None},
        _template(folder, config.chat_template),
    )


def _text(token: object) -> str | None:
    """The text of a token, written as it is or as an object."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _template(folder: Path, written: object) -> str | None:
    """The template: of a file of its own, or of tokenizer_config.json."""
    try:
        return (folder / "chat_template.jinja").read_text(encoding="utf-8", errors="replace")
    except OSError:
        pass
    if isinstance(written, list):
        return msgspec.json.encode(written).decode()
    return written if isinstance(written, str) else None
