"""How far two colours are apart, for the eye and for eyes that lack a kind of cone."""

from __future__ import annotations

import numpy as np

SIGHTS = {
    "full": np.eye(3),
    # Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
"""What each kind of sight makes of a colour."""

_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def difference(one: str, other: str, sight: str) -> float:
    """The distance in CIELAB (CIE76) as this kind of sight sees it; about 2 is just noticeable."""
    return float(np.linalg.norm(_lab(_linear(one), sight) - _lab(_linear(other), sight)))


def _linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def _luminance(colour: str) -> float:
    return float(_TO_XYZ[1] @ _linear(colour))


def _lab(linear: np.ndarray, sight: str) -> np.ndarray:
    seen = np.clip(SIGHTS[sight] @ linear, 0, 1)
    x, y, z = _root(_TO_XYZ @ seen / _WHITE)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def _root(value: np.ndarray) -> np.ndarray:
    return np.where(value > 216 / 24389, np.cbrt(value), (24389 / 27 * value + 16) / 116)
