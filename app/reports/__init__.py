"""How a run leaves: one file a format, and one table (`FORMATS`) from suffix to writer."""

from __future__ import annotations

from app.reports.file_names import suggested_name
from app.reports.json_report import read_record
from app.reports.summary import Summary, summarise
from app.reports.writing import FORMATS, check_report_path, report_files, write_report

__all__ = [
    "FORMATS",
    "Summary",
    "check_report_path",
    "read_record",
    "report_files",
    "suggested_name",
    "summarise",
    "write_report",
]
