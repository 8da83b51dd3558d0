"""Keeps runs one after the other, says each that was kept or is to go, until it is killed."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from recorded import run_record  # noqa: E402

from app.history import History  # noqa: E402


def main(path: str, name: str) -> None:
    record = run_record(prompt="Hello " * 2000)
    with History(Path(path)) as history:
        number = 0
        while True:
            record.run = f"{name}-{number}"
            history.add(record)
            if number % 5 == 4:
                print(f"-{name}-{number - 1}", flush=True)
                history.delete([f"{name}-{number - 1}"])
            print(f"+{name}-{number}", flush=True)
            number += 1


main(*sys.argv[1:])
