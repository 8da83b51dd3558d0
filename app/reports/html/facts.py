"""What ran, and all that is needed to repeat it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256

from app.reports.conditions import limits
from app.reports.html.tables import Table
from app.reports.markdown_report import reused
from app.run.draft_lengths import LENGTH_POLICIES, LengthPolicy
from app.run.events import ModelFacts
from app.run.figures import NOTHING, size
from app.run.methods import METHODS, Method
from app.run.options import Offer
from app.run.record import RunRecord
from app.run.rules import RULES, Rule
from app.run.settings import OptionValue, RunSettings, Sampling

Row = tuple[str, str]


def what_ran(record: RunRecord) -> list[Row]:
    """The run in a few lines."""
    settings = record.settings
    return [
        ("Pair", settings.pair),
        ("Target", _in_short(record.target)),
        ("Draft", _in_short(record.draft) if record.draft else "no draft model"),
        ("Method", _method(record)),
        ("Rule", _rule(settings)),
        ("Sampling", _sampling(settings.sampling)),
        ("Device", f"{record.environment.device}, {record.environment.threads} threads"),
        ("When", record.started),
        ("Outcome", record.outcome),
    ]


def to_repeat(record: RunRecord) -> list[Table]:
    """Everything that is needed to repeat the run, in tables of two columns."""
    return [
        _table("Program and machine", _machine(record)),
        _table("Target", _model(record.target)),
        _table("Draft model", _model(record.draft) if record.draft else [("Name", "none")]),
        _table("Settings, the same for both lanes", _settings(record)),
        _table("Prompt, limits and end", _prompt(record)),
    ]


def ids_hash(ids: Sequence[int]) -> str:
    """The SHA-256 of token ids, written as decimals with a space between them."""
    return sha256(" ".join(map(str, ids)).encode()).hexdigest()


def _in_short(facts: ModelFacts) -> str:
    note = f" ({facts.precision_note})" if facts.precision_note else ""
    return f"{facts.name}, {facts.precision}{note}, on {facts.device}"


def _method(record: RunRecord) -> str:
    settings = record.settings
    known = METHODS.get(settings.method, Method(settings.method, settings.method, ""))
    return f"{known.words(settings.method_options)}, draft length {settings.draft_length}"


def _lengths(settings: RunSettings) -> str:
    name = settings.draft_length_policy
    known = LENGTH_POLICIES.get(name, LengthPolicy(name, name, ""))
    return known.words(settings.draft_length_options)


def _rule(settings: RunSettings) -> str:
    return _known_rule(settings).words(_rule_options(settings))


def _known_rule(settings: RunSettings) -> Rule:
    return RULES.get(settings.rule, Rule(settings.rule, settings.rule, "", lossless=True))


def _rule_options(settings: RunSettings) -> dict[str, OptionValue]:
    """What was given, and a window as it was at work."""
    return _known_rule(settings).fitted(settings.rule_options, settings.draft_length)


def _filled(offer: Offer | None, given: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Every option: what was given, and the defaults of the others; another version may have
    offered it.
    """
    defaults = {option.name: option.default for option in offer.options} if offer else {}
    return {**defaults, **given}


def _pairs(options: Mapping[str, OptionValue]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items()) or "none"


def _sampling(sampling: Sampling) -> str:
    if sampling.greedy:
        return "greedy"
    return f"temperature {sampling.temperature:g}, top-p {sampling.top_p:g}, seed {sampling.seed}"


def _table(caption: str, rows: Sequence[Row]) -> Table:
    return Table(caption, ("", ""), tuple(rows), words=True)


def _machine(record: RunRecord) -> list[Row]:
    around = record.environment
    return [
        ("Foretoken", around.app),
        ("Layout of the record", str(record.schema)),
        ("Run", record.run),
        ("Began", record.started),
        ("Python", around.python),
        ("System", around.platform),
        ("Processor", around.processor),
        ("Device", around.device),
        ("Threads", str(around.threads)),
        *limits(around),
        *((name, version) for name, version in around.packages.items()),
        ("Peak memory on the target's device", size(record.peak_bytes)),
        *_draft_peak(record),
        ("Warm-up", "each model, at each width of its passes, before the first lane"),
    ]


def _draft_peak(record: RunRecord) -> list[Row]:
    """What was held for a draft model on a device of its own."""
    peak = record.draft_peak_bytes
    return [] if peak is None else [("Peak memory on the draft model's device", size(peak))]


def _model(facts: ModelFacts) -> list[Row]:
    return [
        ("Name", facts.name),
        ("Precision", facts.precision),
        ("Origin of the weights", facts.precision_note or "as they came"),
        ("Device", facts.device),
        *((("Offloaded", f"{100 * facts.offloaded:.0f} %"),) if facts.offloaded else ()),
        ("Parameters", f"{facts.parameters:_}".replace("_", " ")),
        ("Weights", size(facts.weight_bytes)),
        ("Vocabulary", str(facts.vocabulary)),
        ("Context length", str(facts.context_length)),
        ("Attention", facts.attention),
        *((("Linear layers", facts.kernel),) if facts.kernel else ()),
        *((("Passes", facts.passes),) if facts.passes else ()),
        ("Takes tokens back", _proof(facts.rewinds, facts.rewind_note)),
        ("Rows do not know each other", _proof(facts.rows_independent, facts.rows_note)),
    ]


def _settings(record: RunRecord) -> list[Row]:
    settings = record.settings
    sampling = settings.sampling
    drawn = [(name.replace("_", " "), f"{getattr(sampling, name):g}") for name in _DRAWS]
    return [
        ("method", settings.method),
        ("method options", _pairs(_filled(METHODS.get(settings.method), settings.method_options))),
        ("draft length γ", str(settings.draft_length)),
        ("draft length chosen by", _lengths(settings)),
        ("rule", settings.rule),
        ("rule options", _pairs(_filled(RULES.get(settings.rule), _rule_options(settings)))),
        *drawn,
        ("seed", str(sampling.seed)),
        ("most new tokens", str(settings.max_new_tokens)),
        ("stop strings", ", ".join(map(repr, settings.stop_strings)) or "none"),
        ("goes on behind an end of text", _yes(settings.ignore_end_of_text)),
        ("context length", str(settings.context_length or "the models' own limit")),
        ("precision asked for", settings.precision or "left to the machine"),
        ("draft precision asked for", settings.draft_precision or "the pair's own"),
        ("device asked for", settings.device or "left to the machine"),
        *((("draft device asked for", settings.draft_device),) if settings.draft_device else ()),
        *((("offloading", "allowed"),) if settings.allow_offload else ()),
        *((("passes asked for", settings.passes),) if settings.passes != "auto" else ()),
        ("baseline", _yes(settings.baseline)),
        ("repetitions", str(settings.repetitions)),
        ("order", settings.order),
        ("detail", settings.detail),
    ]


_DRAWS = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty")


def _prompt(record: RunRecord) -> list[Row]:
    every = [one for lane in record.lanes for one in lane.repetitions]
    ended = dict.fromkeys(f"{one.at.lane}: {one.finish or 'it was cut off'}" for one in every)
    rounds = record.rounds("speculative")
    limits = Counter(each.limited_by for each in rounds).most_common()
    template = "without a chat template" if record.settings.raw else "chat template included"
    return [
        ("prompt", f"{len(record.prompt_ids)} tokens, {template}{reused(record)}"),
        ("SHA-256 of the prompt's ids", ids_hash(record.prompt_ids)),
        ("ids that end a text", ", ".join(map(str, record.end_ids)) or "none"),
        ("ended by", "; ".join(ended) or NOTHING),
        ("guesses limited by", ", ".join(f"{by}: {n} loops" for by, n in limits) or NOTHING),
    ]


def _proof(holds: bool, note: str) -> str:
    return f"{_yes(holds)}; {note}" if note else _yes(holds)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
