"""The distributions of Chidambaram et al. (2024), and their way to estimate by sampling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calibrant.arrays import AnyArray, FloatArray
from calibrant.datasets import SCENARIOS
from calibrant.logits import logit, sigmoid

Noise = Literal["gaussian", "uniform"]
Network = Literal["resnet34", "densenet161"]
NETWORKS: tuple[Network, ...] = ("resnet34", "densenet161")

# The predictor of section 6.1 has the logits -ALPHA / 2 and ALPHA / 2.
ALPHA = 1e-3
TWO_POINT_SIZE = 1000
# What the released program takes off a prediction before its logit, so that it is never infinite.
_TOLERANCE = 1e-6
# How many distances between points and rows are held at a time.
_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Atoms:
    """A distribution on finitely many points: outcomes, which may be chances, and weights."""

    y: AnyArray
    p: FloatArray
    weight: FloatArray

    @property
    def true_ece(self) -> float:
        """The ECE without bins; predictions must differ from each other."""
        return float(self.weight @ np.abs(self.y - self.p) / self.weight.sum())


def two_points(n_true: float, n_false: float) -> Atoms:
    """Return the distribution of definition 3.1, or a sample of it, under its predictor."""
    p = sigmoid(np.array([-ALPHA / 2, ALPHA / 2]))
    return Atoms(np.array([0, 1]), p, np.array([n_false, n_true], dtype=np.float64))


def first_coordinate() -> Atoms:
    """Return predictions x1 of proposition 3.5: calibrated, and uniform on (0, 1)."""
    uniform = replace(SCENARIOS["skewed"], calibration=SCENARIOS["perfect"].calibration)
    p, weight = uniform.quadrature()
    return Atoms(p, p, weight)


def separated(n_cells: int) -> Atoms:
    """Return predictions that tell the outcomes apart and differ from x1 by less than 1 / n_cells.

    Equations A.6 and A.7: in every cell of x1, outcome 0 at its upper end, 1 at its lower end.
    """
    delta = 1 / n_cells
    cell = np.arange(n_cells)
    # The mean of x1 over a cell is its chance of outcome 1.
    n_true = (cell + 0.5) * delta
    p = np.append((cell + 1 - delta / 4) * delta, (cell + delta / 4) * delta)
    return Atoms(np.repeat([0, 1], n_cells), p, np.append(1 - n_true, n_true))


def sampled(
    y: AnyArray, p: FloatArray, noise: Noise, sigma: float, window: float, n_points: int
) -> FloatArray:
    """Return abs(E[y | t] - rho(t)) at points t drawn as in the paper's figure 1.

    `window` is the scale of the kernel in E[y | t]: it should be `sigma`.
    """
    rng = np.random.default_rng(n_points)
    h = logit(np.asarray(p) - _TOLERANCE)
    drawn = rng.standard_normal(n_points) if noise == "gaussian" else rng.random(n_points) - 0.5
    t = h[rng.integers(len(h), size=n_points)] + sigma * drawn
    regressed = _gaussian if noise == "gaussian" else _uniform
    return np.abs(regressed(h, np.asarray(y, dtype=np.float64), t, window) - sigmoid(t))


def _gaussian(h: FloatArray, y: FloatArray, t: FloatArray, window: float) -> FloatArray:
    means = []
    for some in np.array_split(t, max(1, len(t) * len(h) // _AT_ONCE)):
        kernel = np.exp(-0.5 * ((some[:, None] - h) / window) ** 2)
        means.append(kernel @ y / kernel.sum(axis=1))
    return np.concatenate(means)


def _uniform(h: FloatArray, y: FloatArray, t: FloatArray, window: float) -> FloatArray:
    order = np.argsort(h)
    running = np.append(0.0, np.cumsum(y[order]))
    # Every point has the row it was drawn from in its window, whatever rounding says.
    reach = window / 2 * (1 + 1e-9)
    low = np.searchsorted(h[order], t - reach, side="left")
    high = np.searchsorted(h[order], t + reach, side="right")
    return np.asarray((running[high] - running[low]) / (high - low))
