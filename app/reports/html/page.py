"""The page: fills the template, in which every text is text, whatever it holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from app import files
from app.reports.html.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment

POLICY = Markup("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
"""What a browser may load for the page: nothing but the style inside it."""


def filled(values: Mapping[str, object], template: str = "report.html.jinja") -> str:
    """The template with these values. Raises jinja2.UndefinedError where one is missing."""
    style = files.resource("report/style.css").read_text(encoding="utf-8")
    page = _environment().get_template(template)
    return page.render(values, style=Markup(style), policy=POLICY) + "\n"


@cache
def _environment() -> Environment:
    # Imported here, as most starts of the program write no page.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(files.resource("report"), encoding="utf-8"),
        autoescape=True,
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _finalized(value: object) -> object:
    """What the template writes for a value: markup as it is, all else with nothing unseen."""
    return value if isinstance(value, Markup) else visible(str(value))
