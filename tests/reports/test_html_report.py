"""The HTML report: it shows all, obeys nothing, loads nothing, and stays small.

The golden file is written anew by `FORETOKEN_RENEW=1 pytest tests/reports/test_html_report.py`;
look at what `git diff` says of it before keeping it.
"""

import math
import os
import re
import shutil
import subprocess
import time
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from msgspec import structs
from recorded import HOSTILE, costed_record, hostile_record, lane_events, record_of, run_record

from app import files
from app.reports.html.coloured import coloured, with_guesses
from app.reports.html.drawing import (
    MOST_BARS,
    MOST_POINTS,
    Frame,
    bars,
    curve,
    even_axis,
    shared_bars,
    thinned,
)
from app.reports.html.page import POLICY
from app.reports.html.visible import visible
from app.reports.html_report import html_parts
from app.run.events import (
    At,
    ConditionsSeen,
    Divergence,
    FirstToken,
    LaneEnded,
    LaneStarted,
    Phases,
    Round,
    RoundCommitted,
    RunEnded,
    Token,
)
from app.run.flags import Flag
from app.run.record import Repetition
from app.run.settings import Sampling

GOLDEN = Path(__file__).parent / "golden"
VOID = {"meta", "link", "br", "hr", "img", "input"}
AT = At("r", "speculative")


class Page(HTMLParser):
    """What a page holds, for a test to look at; fails where its elements do not nest."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.spans: dict[str, list[str]] = {}
        self._open: list[tuple[str, str | None]] = []
        self.feed(markup)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names)
        self.tags.append((tag, dict(attrs)))
        inside = next((name for _, name in reversed(self._open) if name), None)
        if inside and tag == "span":
            self.spans.setdefault(inside, []).append(dict(attrs)["class"])
        if tag not in VOID:
            self._open.append((tag, dict(attrs).get("id")))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        for _, name in self._open:
            if name:
                self.texts[name] = self.texts.get(name, "") + data

    def having(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def page_of(record) -> str:
    (markup,) = html_parts(record).values()
    return markup


def long_record(rounds, *, guesses=8, text=" word"):
    """A record of so many loops, each with a whole draft thrown away but for its first guess."""
    thrown = (Token(3, text, "rejected"), *[Token(4, text, "ignored")] * (guesses - 2))
    kept = (Token(2, text, "accepted"), Token(5, text, "corrected"))
    phases = Phases(draft=0.01, verify=0.02)
    lane = [LaneStarted(AT), FirstToken(AT, Token(1, text, "first"), 0.1)]
    lane += [
        RoundCommitted(AT, Round(i, guesses, "draft length", kept, thrown, phases))
        for i in range(rounds)
    ]
    slow = At("r", "baseline")
    lane += [LaneEnded(AT, "length"), LaneStarted(slow)]
    lane += [FirstToken(slow, Token(1, text, "first"), 0.1)]
    lane += [
        RoundCommitted(slow, Round(i, 0, "draft length", (Token(2, text, "plain"),), (), phases))
        for i in range(2 * rounds)
    ]
    return record_of(*lane, LaneEnded(slow, "length"), RunEnded("r", "finished"), draft_length=8)


def differing(tie):
    record = run_record()
    record.lanes[1].repetitions[0].first = Token(9, "<9>", "first")
    tokens = Token(1, "<1>", "first"), Token(9, "<9>", "first")
    record.apply(Divergence("r", 0, *tokens, gap=0.1, moved=0.2, width=5, tie=tie))
    return record


RECORDS = {
    "whole": run_record,
    "costed": costed_record,
    "hostile": hostile_record,
    "drawn": lambda: run_record(sampling=Sampling(temperature=1.0)),
    "empty": lambda: record_of(),
    "no first token": lambda: record_of(LaneStarted(AT)),
    "no loop": lambda: record_of(LaneStarted(AT), FirstToken(AT, Token(1, "x", "first"), 0.0)),
    "mismatch": lambda: differing(False),
    "no guesses": lambda: run_record(draft_length=0, method="nothing"),
}


@pytest.fixture(params=RECORDS)
def record(request):
    return RECORDS[request.param]()


@pytest.mark.parametrize(
    ("name", "make"), [("run", run_record), ("hostile", hostile_record), ("costed", costed_record)]
)
def test_the_page_is_as_it_was(name, make):
    golden = GOLDEN / f"{name}.html"
    if os.environ.get("FORETOKEN_RENEW"):
        golden.write_text(page_of(make()), encoding="utf-8", newline="\n")
    assert page_of(make()) == golden.read_text(encoding="utf-8")


def test_nothing_on_the_page_acts_or_loads(record):
    markup = page_of(record)
    page = Page(markup)
    policy = {"http-equiv": "Content-Security-Policy", "content": POLICY}
    head = [attributes for tag, attributes in page.tags if tag == "meta"]
    assert head[:2] == [{"charset": "utf-8"}, policy]
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "a"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert not set(attributes) & {"src", "href", "xlink:href", "srcset", "action"}
    style = markup.partition("<style>")[2].partition("</style>")[0]
    assert not re.search(r"url\(|@import|//|<", style)


def test_the_page_has_the_parts_it_promises_and_ids_are_unique(record):
    page = Page(page_of(record))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    named = {each for _, a in page.tags for each in (a.get("aria-labelledby") or "").split()}
    assert named <= set(ids)
    drawings = [a for a in page.having("svg") if "aria-hidden" not in a]
    assert len(drawings) == len(page.having("desc")) == len(page.having("figure")) == 5
    assert page.having("html") == [{"lang": "en"}]


def test_the_texts_are_the_records(record):
    page = Page(page_of(record))
    for lane in ("speculative", "baseline"):
        (text,) = [one.text for one in record.repetitions(lane)[:1]] or [""]
        assert page.texts.get(f"text-{lane}", "") == visible(text)
    assert page.texts["text-prompt"] == visible(record.settings.prompt)


def test_no_character_of_a_page_acts(record):
    markup = page_of(record)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", markup)
    assert not re.search(r"[\u061c\u200e\u200f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]", markup)


@settings(deadline=None, max_examples=50)  # the first page waits for the template
@given(some.text() | some.sampled_from(HOSTILE))
def test_visible_text_can_be_read_back_by_a_parser(text):
    record = run_record(prompt=text, pair=text)
    page = Page(page_of(record))
    assert page.texts.get("text-prompt", "") == visible(text)


def test_the_verdict_and_what_is_needed_to_repeat_it_are_there():
    text = page_of(run_record())
    for word in ("2.00×", "one pair, no spread", "50.0 %", "re-quantised from Q4_1", "<td>2</td>",
                 "Both lanes wrote the same 5 tokens.", "Guesses accepted / guesses made",
                 "One pair only", "Draft resident during baseline: no", "shortest match 2",
                 "SHA-256 of the prompt&#39;s ids", "2026-01-02T03:04:05+01:00"):  # fmt: skip
        assert word in text


def test_runs_that_are_not_lossless_or_not_whole_are_marked():
    assert "LOSSY" not in page_of(run_record())
    record = run_record()
    record.lossless = False
    assert '<strong class="badge">not exactly lossless</strong>' in page_of(record)
    record.close("engine ended", message="It is gone.")
    assert "The run is not whole: engine ended. It is gone." in page_of(record)


@pytest.mark.parametrize(("tie", "word"), [(True, "Tie"), (False, "MISMATCH")])
def test_a_difference_is_named_by_its_kind(tie, word):
    assert f">{word}</div>" in page_of(differing(tie))


def test_thrown_guesses_stand_before_what_replaced_them_and_only_when_asked():
    page = Page(page_of(run_record()))
    assert page.texts["text-guesses"] == "<1><2><3><4><8><9><5>"
    assert page.spans["text-guesses"] == ["a", "b", "a", "r", "i", "c"]
    assert page.spans["text-speculative"] == ["a", "b", "a", "c"]


@given(
    some.lists(some.tuples(some.text(max_size=3), some.sampled_from(["first", "plain", "bonus"]))),
    some.text(max_size=3),
    some.integers(0, 12),
)
def test_runs_hold_the_text_of_the_repetition_whatever_was_dropped(tokens, tail, dropped):
    rounds = [
        Round(i, 4, "draft length", (Token(1, text, status),), (), Phases())
        for i, (text, status) in enumerate(tokens)
    ]
    one = Repetition(AT, rounds=rounds, tail=tail)
    one.dropped = min(dropped, len(one.text))
    runs = coloured(one)
    assert "".join(run.text for run in runs) == one.text
    assert all(first.look != second.look for first, second in pairwise(runs))


def test_a_long_page_is_small_and_soon_written():
    record = long_record(10_000)
    start = time.process_time()
    markup = page_of(record)
    assert time.process_time() - start < 3.0
    assert len(markup.encode()) < 5_000_000
    page = Page(markup)
    assert len(page.spans["text-speculative"]) == 20_000
    assert "text-baseline" not in page.spans
    assert max(len(a["d"] or "") for a in page.having("path")) < 20_000


def test_guesses_without_room_are_counted_not_shown():
    record = long_record(300, guesses=64, text="<&>")
    (one,) = record.repetitions("speculative")
    guesses = with_guesses(one, most_bytes=40_000)
    assert 0 < guesses.left_out < 300
    assert guesses.thrown == 300 * 63
    assert sum(len(visible(run.text)) for run in guesses.runs) < 40_000
    whole = with_guesses(one)
    assert whole.left_out == 0


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ([], 0),
        ([NAN], 0),
        ([None, None], 0),
        ([NAN, 0.5], 1),
        ([INF, 1.0], 1),
        ([0.5], 1),
        ([1.0, None, 1.0, 1.0], 2),
        ([0.0, 0.0], 1),
    ],
)
def test_a_number_that_does_not_exist_leaves_a_gap(values, lines):
    frame = Frame(even_axis(0.0, ""), even_axis(INF, ""))
    drawn = curve(frame, list(enumerate(values, 1)), "speculative")
    assert drawn.count("M") == lines
    assert not re.search("nan|inf", drawn)
    heights = bars(frame, [(at, at + 1, value) for at, value in enumerate(values)], "each")
    assert heights.count("Z") == sum(v is not None and math.isfinite(v) for v in values)


def test_a_curve_and_bars_of_many_loops_are_thinned_to_their_end():
    points = [(float(n), float(n)) for n in range(1, 12_346)]
    assert len(thinned(points)) <= MOST_POINTS
    assert thinned(points)[-1] == points[-1]
    shared = shared_bars([1.0] * 10_001)
    assert len(shared) <= MOST_BARS
    assert {height for _, _, height in shared} == {1.0}


def test_a_page_says_whether_it_pays_and_why():
    text = page_of(costed_record())
    for word in ("pays: 1.71× (one pair, no spread), predicted best draft length 2, not tried",
                 "Break-even acceptance",
                 "1.20 single steps (900.00 ms)", "a draft step", "Accounted speed-up",
                 "chunk gap", "<td>1750.00</td>", "sampling and the rule"):  # fmt: skip
        assert word in text


def test_loops_that_a_short_context_of_the_draft_leaves_plain_are_marked():
    record = costed_record(loops=4)
    assert "context full" not in page_of(record)
    rounds = record.repetitions("speculative")[0].rounds
    for place in (2, 3):
        own = structs.replace(rounds[place].committed[-1], status="plain")
        rounds[place] = structs.replace(
            rounds[place], limit=0, limited_by="draft's context", committed=(own,), thrown=()
        )
    page = page_of(record)
    chart = page[page.index('id="chart-tokens-per-loop') :]
    (marks,) = re.findall(r'<path class="bar own" d="([^"]*)"', chart[: chart.index("</svg>")])
    assert marks.count("M") == 2
    assert "▲ draft&#39;s context full" in page
    assert "2 of 4 loops" in page


def test_a_draft_model_that_nobody_asked_was_resident_all_the_same():
    record = run_record()
    record.draft_resident = True
    assert "Draft resident during baseline: yes." in page_of(record)


def test_limits_of_the_machine_are_told_where_they_are_known():
    record = run_record()
    known = {"driver": "580.65", "clock_mhz": 1980.0, "power_limit_w": 350.0}
    record.environment = structs.replace(record.environment, **known)
    text = page_of(record)
    for row in ("Driver</th><td>580.65", "Highest clock</th><td>1980 MHz",
                "Power limit</th><td>350 W"):  # fmt: skip
        assert f'<th scope="row">{row}</td>' in text


def test_cautions_stand_above_and_beside_the_figures_they_touch():
    record = costed_record()
    record.apply(ConditionsSeen("r", (Flag("battery"), Flag("throttled", "by its temperature"))))
    text = page_of(record)
    assert "<li>Caution: The machine ran on its battery, which may slow it.</li>" in text
    assert text.count("1.71× (one pair, no spread); caution: battery, throttled") == 1
    assert "one pair, no spread; caution: battery, throttled</div>" in text
    assert "50.0 %; caution" not in text


def test_pairs_that_lie_far_apart_raise_a_flag():
    lanes = []
    for repetition, seconds in enumerate((1.0, 2.0)):
        lanes += lane_events("speculative", [[2]], repetition=repetition, seconds=seconds)
        lanes += lane_events("baseline", [[2]], repetition=repetition)
    record = record_of(*lanes, RunEnded("r", "finished"), repetitions=2)
    text = page_of(record)
    assert "Noisy" in text
    assert "median of 2 pairs, 0.50× to 1.00×" in text
    assert "speculative 1, baseline 1, speculative 2, baseline 2" in text


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_colour_can_be_read_in_both_schemes():
    style = files.resource("report/style.css").read_text(encoding="utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    for scheme in (light, dark):
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", scheme))
        pairs = [(colours[name], colours[f"{name}-ground"])
                 for name in ("accepted", "corrected", "bonus", "rejected", "trouble")]  # fmt: skip
        grounds = ("page", "panel")
        pairs += [
            (colours[name], colours[ground])
            for ground in grounds
            for name in ("text", "muted", "accent", "good", "speculative", "baseline")
        ]
        assert min(contrast(*pair) for pair in pairs) >= 4.5


def test_every_status_but_the_accepted_has_a_cue_besides_its_colour():
    style = files.resource("report/style.css").read_text(encoding="utf-8")
    cues = dict(re.findall(r"^\.([cbri]) \{ text-decoration: ([a-z -]+)", style, re.MULTILINE))
    assert set(cues) == set("cbri")
    assert len(set(cues.values())) == 4


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture
def browser(tmp_path):
    """Calls a headless browser on a page with one more flag; its standard output."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        pytest.skip(f"none of {', '.join(BROWSERS)} is on this machine")
    flags = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --window-size=1200,1600"
    )

    def call(markup, flag):
        page = tmp_path / "run.html"
        page.write_text(markup, encoding="utf-8")
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        command = [found, *flags.split(), profile, flag, page.as_uri()]
        return subprocess.run(command, check=True, capture_output=True, timeout=120).stdout

    return call


@pytest.mark.parametrize("make", [run_record, hostile_record])
def test_a_browser_draws_it(make, browser, tmp_path):
    browser(page_of(make()), f"--screenshot={tmp_path / 'run.png'}")
    picture = (tmp_path / "run.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000


def test_a_browser_obeys_nothing_of_what_a_model_wrote(browser):
    record = hostile_record()
    seen = Page(browser(page_of(record), "--dump-dom").decode())
    assert not seen.having("script")
    assert not seen.having("img")
    assert seen.texts["text-prompt"] == visible(record.settings.prompt)
    assert "document.title='acted'" in seen.texts["text-prompt"]


def test_a_browser_prints_it(browser, tmp_path):
    browser(page_of(run_record()), f"--print-to-pdf={tmp_path / 'run.pdf'}")
    printed = (tmp_path / "run.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 1 <= pages <= 6


def test_paper_has_the_light_scheme_and_breaks_between_things():
    style = files.resource("report/style.css").read_text(encoding="utf-8")
    assert "@media screen and (prefers-color-scheme: dark)" in style
    paper = style.partition("@media print {")[2]
    for rule in ("print-color-adjust: exact", "break-inside: avoid", "overflow: visible"):
        assert rule in paper
