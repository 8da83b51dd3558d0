"""What the flags of commands ask for, as settings."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import typer

from app.library.catalogue import Catalogue
from app.library.entries import PairEntry
from app.run.draft_lengths import LengthPolicy
from app.run.methods import Method
from app.run.options import Offer
from app.run.problems import Problem
from app.run.rules import Rule
from app.run.settings import OptionValue, RunSettings

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def chosen_pair(catalogue: Catalogue, name: str | None) -> PairEntry:
    """The pair of this name, or the default one. Raises Problem if there is none."""
    wanted = name or catalogue.default
    if wanted is None:
        raise Problem("The catalogue offers no pair.", "Add one to your models.yaml.")
    return catalogue.pair(wanted)


def prompt_text(prompt: str | None, file: Path | None) -> str:
    """The prompt: as given, or what a file (`-` is standard input) holds, unchanged."""
    if (prompt is None) == (file is None):
        raise typer.BadParameter("give exactly one of --prompt and --prompt-file")
    return prompt if prompt is not None else _read(file or Path("-"))


def options_of(
    offer: Offer,
    given: list[str] | None,
    flag: str = "--option",
    *,
    own: Mapping[str, OptionValue] | None = None,
) -> dict[str, OptionValue]:
    """Every option of a method or a rule: those given to the flag as `name=value`, else the pair's
    `own`, else the defaults.
    """
    defaults = {option.name: option.default for option in offer.options}
    values = dict(own or {})
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not name=value", param_hint=flag)
        values[name.strip()] = _typed(value.strip(), defaults.get(name.strip(), ""))
    return offer.filled(values)


def with_method(
    settings: RunSettings,
    pair: PairEntry,
    name: str | None,
    given: list[str] | None,
    *,
    draft_length: int | None,
    preset: str | None = None,
) -> RunSettings:
    """The settings with the method, its options and the draft length: as asked for, else the
    preset's, else the pair's own.
    """
    method = Method.named(name or pair.method)
    filled = method.preset(preset) if preset is not None else None
    own = pair.method_options if method.name == pair.method else {}
    options = options_of(method, given, own={**own, **(filled.options if filled else {})})
    lengths = (draft_length, filled.draft_length if filled else None)
    length = next((length for length in lengths if length is not None), pair.draft_length)
    return msgspec.structs.replace(
        settings, method=method.name, method_options=options, draft_length=length
    )


def with_rule(
    settings: RunSettings, pair: PairEntry, name: str | None, given: list[str] | None
) -> RunSettings:
    """The settings with the rule and its options: as asked for, else the pair's own."""
    rule = Rule.named(name or pair.rule)
    own = pair.rule_options if rule.name == pair.rule else {}
    options = options_of(rule, given, "--rule-option", own=own)
    return msgspec.structs.replace(settings, rule=rule.name, rule_options=options)


def with_lengths(
    settings: RunSettings, pair: PairEntry, name: str | None, given: list[str] | None
) -> RunSettings:
    """The settings with what chooses draft lengths, and its options: as asked for, else the pair's
    own.
    """
    policy = LengthPolicy.named(name or pair.draft_length_policy)
    own = pair.draft_length_options if policy.name == pair.draft_length_policy else {}
    options = options_of(policy, given, "--draft-length-option", own=own)
    return msgspec.structs.replace(
        settings, draft_length_policy=policy.name, draft_length_options=options
    )


def check_unicode(texts: Iterable[str]) -> None:
    """Raises Problem for bytes from the shell that no character stands for."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            said = f"{text!r} is not whole Unicode."
            raise Problem(said, "Set the terminal to UTF-8, or use --prompt-file.") from error


def _typed(text: str, default: OptionValue) -> OptionValue:
    """The value in the type of the option's default, as far as it can be read so."""
    try:
        if isinstance(default, bool):
            return _WORDS.get(text.lower(), text)
        return type(default)(text)
    except ValueError:
        return text


def _read(file: Path) -> str:
    try:
        if str(file) == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        said = f"{file} cannot be read: {error.strerror or error}."
        raise Problem(said, "Check the path, and that you may read the file.") from error
    except UnicodeDecodeError as error:
        raise Problem(f"{file} is not UTF-8 text.", "Save it as UTF-8.") from error
