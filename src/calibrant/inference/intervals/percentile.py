"""The percentile bootstrap, for comparison: rows drawn again, as counts of cells.

Rows of one cell and one side of their prediction are all alike, so that drawing n rows again is
drawing how many come from each such place: one multinomial draw. Where weights differ within a
place it stands for (sum w r)^2 / sum (w r)^2 rows. Clusters are drawn again by multipliers.
"""

from __future__ import annotations

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.inference.intervals.cells import Cells
from calibrant.inference.intervals.roots import quantile
from calibrant.inference.intervals.uniform import Interval
from calibrant.inference.intervals.views import View, smooth_view
from calibrant.randomness import Generator

# Scales at which resamples are looked at, in units of the observed one.
_STEP = 0.4
_SCALES = np.exp(_STEP * np.arange(-2, 5))
_TINY = float(np.finfo(np.float64).tiny)


def percentile_of_norm(view: View, level: float, n_resamples: int, rng: Generator) -> Interval:
    """Return the percentile interval for an error that is a norm."""
    values = view.norms(*_resampled(view.cells, n_resamples, rng))
    low, middle, high = (quantile(values, q) for q in _levels(level))
    return _interval(low, middle, high, view.value)


def percentile_of_fixed_point(
    cells: Cells, scale: float, value: float, level: float, n_resamples: int, rng: Generator
) -> Interval:
    """Return the percentile interval for smECE.

    A resample's smECE lies where its norm N_s meets s, and log N_s is nearly straight in log s
    from one of a few scales to the next.
    """
    totals, weight = _resampled(cells, n_resamples, rng)
    scales = scale * _SCALES
    norms = np.array([smooth_view(cells, s, value).norms(totals, weight) for s in scales.tolist()])
    gap = np.log(np.maximum(norms, _TINY)) - np.log(scales)[:, None]
    last = np.clip(np.count_nonzero(gap > 0, axis=0) - 1, 0, len(scales) - 2)
    draw = np.arange(len(last))
    left, right = gap[last, draw], gap[last + 1, draw]
    values = scales[last] * np.exp(left / (left - right) * _STEP)
    low, middle, high = (quantile(values, q) for q in _levels(level))
    return _interval(low, middle, high, value)


def _levels(level: float) -> tuple[float, float, float]:
    return (1 - level) / 2, 0.5, (1 + level) / 2


def _interval(low: float, middle: float, high: float, value: float) -> Interval:
    return Interval(min(low, 1.0), min(high, 1.0), min(max(2 * value - middle, 0.0), 1.0))


def _resampled(cells: Cells, n: int, rng: Generator) -> tuple[FloatArray, FloatArray]:
    """Draw residual totals (n, cells) and weights, (n, cells) or (cells,)."""
    if cells.moves is not None:
        return cells.residual + cells.noise(n, rng), cells.weight
    sides = cells.sides.reshape(len(cells.sides), -1)
    (filled,) = np.nonzero(sides[0])
    weight, squares, _, residual, squared = sides[:, filled]
    # Not as a quotient of squares: those of a sketch's soft labels near 0 or 1 would vanish.
    rows = weight * (weight / squares)
    np.divide(residual, squared, out=rows, where=squared > 0)
    np.multiply(rows, residual, out=rows, where=squared > 0)
    drawn = rng.multinomial(max(1, round(rows.sum())), rows / rows.sum(), n) / rows
    n_cells = len(cells.weight)
    totals, weights = np.zeros((n, 2 * n_cells)), np.zeros((n, 2 * n_cells))
    totals[:, filled], weights[:, filled] = drawn * residual, drawn * weight
    return totals[:, :n_cells] + totals[:, n_cells:], weights[:, :n_cells] + weights[:, n_cells:]
