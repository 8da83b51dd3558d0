"""Sizes of files and of memory, in the words of a person."""

from __future__ import annotations


def bytes_in_words(size: float) -> str:
    """So many bytes in decimal units, as disks and cards are sold: "3 kB", "93 MB", "1.5 GB"."""
    if size >= 999.5e6:
        return f"{size / 1e9:,.1f} GB"
    return f"{size / 1e6:.0f} MB" if size >= 999.5e3 else f"{size / 1e3:.0f} kB"
