"""Predictions and outcomes to measure, made the same at every run."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Columns = tuple[NDArray[np.float64], NDArray[np.float64]]

_STRETCH = 10**6
# Rows times classes, whatever the number of classes.
CELLS = 2 * 10**6


@lru_cache(maxsize=1)
def over_confident(n: int) -> Columns:
    """Return n outcomes and the predictions of them, which claim too much."""
    return _columns(n, 0.8)


@lru_cache(maxsize=1)
def calibrated(n: int) -> Columns:
    """Return n outcomes and the predictions of them, which are right: P-values are not all 0."""
    return _columns(n, 1.0)


def _columns(n: int, slope: float) -> Columns:
    """Fill both columns stretch by stretch, so that making them takes no memory besides."""
    rng = np.random.default_rng(0)
    y, p = np.empty(n), np.empty(n)
    for start in range(0, n, _STRETCH):
        rows = slice(start, min(n, start + _STRETCH))
        p[rows] = rng.beta(0.9, 0.7, rows.stop - start)
        y[rows] = rng.random(rows.stop - start) < 0.5 + slope * (p[rows] - 0.5)
    return y, p


@lru_cache(maxsize=1)
def few_rows(n_classes: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return labels and probabilities, the fewer rows the more classes there are."""
    return _classes(CELLS // n_classes, n_classes)


@lru_cache(maxsize=1)
def many_classes(n_classes: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return labels and probabilities as a large validation set has them: 50 000 rows."""
    return _classes(50_000, n_classes)


def _classes(n: int, n_classes: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Every class occurs, since some packages refuse a column of zeros."""
    rng = np.random.default_rng(1)
    p = rng.gamma(0.5, size=(n, n_classes))
    p /= p.sum(axis=1, keepdims=True)
    return rng.permutation(np.arange(n) % n_classes), p
