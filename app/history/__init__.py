"""What is kept: runs in one SQLite file, with tags, notes and figures to search by. No torch."""

from __future__ import annotations

from app.history.archive import Imported
from app.history.comparison import Comparison, ComparisonRow, compare
from app.history.entry import Entry
from app.history.history import History

__all__ = ["Comparison", "ComparisonRow", "Entry", "History", "Imported", "compare"]
