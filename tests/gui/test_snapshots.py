"""The page looks as it did when a person last looked at it.

After a change that is meant, renew the pictures and look at each of them:

    FORETOKEN_RENEW_SNAPSHOTS=1 python -m pytest tests/gui/test_snapshots.py

Pictures are compared in squares of 8 × 8 points and with tolerance, as versions of Qt and FreeType
smooth edges differently. Only Linux draws the font as the pictures have it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QImage

HERE = Path(__file__).parent
SNAPSHOTS = HERE / "snapshots"
RENEW = bool(os.environ.get("FORETOKEN_RENEW_SNAPSHOTS"))
SQUARE = 8
DIFFERENCE = 20
"""How far the mean of a square may be off, of 255."""
SHARE = 0.01
"""The largest share of squares that may be off by more."""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems draw otherwise")
@pytest.mark.parametrize(
    ("scheme", "scale", "scenes"),
    [
        ("dark", "1", ["finished", "costs", "trouble", "opening", "continued", "runs", "train"]),
        ("dark", "1", ["models", "faults"]),
        ("light", "1", ["finished", "costs", "trouble", "compared", "trained", "untaught"]),
        ("light", "1", ["models", "faults"]),
        ("dark", "2", ["finished"]),
        ("light", "2", ["finished", "trained", "models"]),
    ],
)
def test_the_page_looks_as_it_did(scheme, scale, scenes, tmp_path):
    draw(scheme, tmp_path, scenes, scale=scale)
    for scene in scenes:
        known = SNAPSHOTS / f"{scene}-{scheme}-{scale}x.png"
        drawn = tmp_path / f"{scene}.png"
        if RENEW:
            SNAPSHOTS.mkdir(exist_ok=True)
            known.write_bytes(drawn.read_bytes())
        share = share_that_differs(pixels(drawn), pixels(known))
        assert share <= SHARE, f"{share:.1%} of {drawn} differs from {known}"


SCENES = [
    *("finished", "trouble", "costs", "opening", "continued", "runs", "compared", "train"),
    *("trained", "untaught", "models", "faults", "long_names", "long_models"),
]
FULLEST = ["trouble", "costs", "compared", "untaught", "models"]


@pytest.mark.parametrize(
    ("scheme", "scale", "size", "larger", "scenes"),
    [
        ("light", "1", "960x520", 1.0, SCENES),  # the smallest window
        ("dark", "1", "1100x700", 1.2, SCENES),
        ("light", "2", "1600x1000", 1.2, SCENES),
        ("light", "1.25", "1280x720", 1.0, FULLEST),
        ("dark", "1.5", "1280x720", 1.0, FULLEST),
        ("light", "3", "1280x720", 1.0, FULLEST),
    ],
)
def test_no_word_is_cut_off(scheme, scale, size, larger, scenes, tmp_path):
    draw(scheme, tmp_path, scenes, scale=scale, size=size, larger=larger)


def draw(scheme, folder, scenes, *, scale, size="1280x720", larger=1.0) -> None:
    """Draws scenes in a process of their own; fails where a word is cut off."""
    program = str(HERE / "snapshot_program.py")
    subprocess.run(
        [sys.executable, program, scheme, str(folder), size, str(larger), *scenes],
        env={**os.environ, "QT_SCALE_FACTOR": scale},
        check=True,
        timeout=300,
    )


def test_a_picture_that_lacks_a_line_of_text_is_noticed():
    image = pixels(SNAPSHOTS / "finished-dark-1x.png")
    changed = image.copy()
    changed[190:280, 350:790] = image[5, 5]
    assert share_that_differs(image, changed) > SHARE


def pixels(file: Path) -> np.ndarray:
    """The picture as [height, width, colour]."""
    image = QImage(str(file)).convertToFormat(QImage.Format.Format_RGB888)
    assert not image.isNull(), file
    flat = np.frombuffer(image.constBits(), dtype=np.uint8)
    rows = flat.reshape(image.height(), image.bytesPerLine())[:, : 3 * image.width()]
    return rows.reshape(image.height(), image.width(), 3).astype(float)


def share_that_differs(one: np.ndarray, other: np.ndarray) -> float:
    """The share of squares whose means lie further apart than the tolerance."""
    if one.shape != other.shape:
        return 1.0
    means = [_square_means(image) for image in (one, other)]
    return float((np.abs(means[0] - means[1]).max(axis=-1) > DIFFERENCE).mean())


def _square_means(image: np.ndarray) -> np.ndarray:
    height, width = (size // SQUARE * SQUARE for size in image.shape[:2])
    squares = image[:height, :width].reshape(height // SQUARE, SQUARE, width // SQUARE, SQUARE, 3)
    return squares.mean(axis=(1, 3))
