"""How large a frozen program is, what takes the room, and whether that is within its budget.

python packaging/sizes.py dist/foretoken cpu
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

MB = 1_000_000

BUDGETS = {"cpu": 800 * MB, "cuda": 6_000 * MB}
"""The most that a flavour may take on the disk; the embedded model is 93 MB of it."""

_SHOWN = 15
_OTHER = "all others"


def report(folder: Path, flavour: str) -> tuple[str, bool]:
    """The table of the largest entries, and whether the whole is within the budget."""
    files = {file: file.stat().st_size for file in folder.rglob("*") if _counts(file)}
    total, budget = sum(files.values()), BUDGETS[flavour]
    lines = [
        f"{folder.name}, {flavour}: {total / MB:,.0f} MB in {len(files):,} files; the budget is "
        f"{budget / MB:,.0f} MB.",
        "",
        "| MB | packages |",
        "|---:|---|",
        *_rows(_packages(files, folder)),
        "",
        "| MB | files |",
        "|---:|---|",
        *_rows({file.relative_to(folder).as_posix(): size for file, size in files.items()}),
    ]
    return "\n".join(lines), total <= budget


def _counts(file: Path) -> bool:
    """Whether it takes room; a link takes none."""
    return file.is_file() and not file.is_symlink()


def _packages(files: dict[Path, int], folder: Path) -> dict[str, int]:
    """Sizes by the first folder below the program's own."""
    sizes: Counter[str] = Counter()
    for file, size in files.items():
        parts = file.relative_to(folder).parts
        inner = parts[1:] if parts[0] == "_internal" else parts
        sizes[inner[0] if len(inner) > 1 else "(single files)"] += size
    return sizes


def _rows(sizes: dict[str, int]) -> list[str]:
    """The largest, then all others together."""
    ordered = sorted(sizes.items(), key=lambda entry: -entry[1])
    shown = ordered[:_SHOWN]
    rest = sum(size for _, size in ordered[_SHOWN:])
    return [f"| {size / MB:.1f} | {name} |" for name, size in [*shown, (_OTHER, rest)] if size]


def main(arguments: list[str]) -> int:
    """Prints the report; the exit code is 1 past the budget."""
    folder, flavour = Path(arguments[0]), arguments[1]
    text, within = report(folder, flavour)
    print(text)
    if not within:
        print("\nIt is larger than its budget.", file=sys.stderr)
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
