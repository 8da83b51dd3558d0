"""The sentence of counts that a run ends with says of which repetitions it tells."""

from recorded import costed_record
from rich.console import Console

from app.cli.tables import show_verdict
from app.reports.markdown_report import markdown_parts


def shown(record):
    console = Console(width=100, color_system=None, force_terminal=False)
    with console.capture() as told:
        show_verdict(console, record)
    return told.get()


def test_counts_are_those_of_all_repetitions_and_say_so():
    # A repetition: 8 loops of 4 guesses, 2 of them accepted and 1 rejected, 3 tokens each, and a
    # first one.
    told = shown(costed_record())
    assert "\n25 tokens in 8 loops: drafted 32, accepted 16, rejected 8, ignored 8," in told
    record = costed_record(repetitions=3)
    told = shown(record)
    said = "All 3 repetitions together: 75 tokens in 24 loops: drafted 96, accepted 48,"
    assert f"\n{said} rejected 24," in told
    page = markdown_parts(record)[".md"]
    assert "## Tokens, all repetitions together" in page
    row = "| speculative | 3 | 48 | 24 | 0 | 0 | 75 | 96 | 24 | 24 | 0 | 24 |"
    assert row in page
    assert "| discarded | loops |" in page
    assert "round" not in told
