"""Canonical calibration: the whole vector of class probabilities against the class that came.

ECE^mul = E abs(P(y | s) - s_y) for the predicted vector s and the class y. P(. | s) is
estimated at every row by leave-one-out regression on the other rows:

    P(c | s_i) = sum_{j != i} w_j k_ij y_jc / sum_{j != i} w_j k_ij,
    k_ij = exp(-KL(s_j, s_i) / b),   KL(s, t) = sum_c s_c log(s_c / t_c).

k_ij is the Dirichlet kernel of row j, the density with parameters s_j / b + 1, taken at s_i and
divided by its greatest value, which it has at s_j: every row counts 1 where it lies, and fades as
the density does. (The densities themselves, as in Popordanoska et al., count rows near a vertex of
the simplex for much more than others; on simulated networks that estimates less well.)

A probability of 0 enters log t_c as the smallest positive number, about 5e-324: a softmax gives 0
by underflow. Nothing else is changed; rows are neither clipped nor normalised.

Limits: O(n^2 C) time; memory stays under 100 MB for 20 000 rows of 10 classes, which take some
twenty seconds on two cores. Sampling noise biases the estimate upwards where predictions are
calibrated, the more so the more classes share the rows; smoothing makes it coarse where
miscalibration changes quickly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.class_table import ClassTable
from calibrant.errors import CalibrantError

# Bandwidths tried where none is given: each is half of the one before, so that its kernels are
# the squares of the others.
_WIDEST, _N_BANDWIDTHS = 1.0, 11
# How many kernel values are held at a time.
_CHUNK = 1 << 22
_SMALLEST = np.nextafter(0.0, 1.0)


@dataclass(frozen=True)
class CanonicalError:
    """The canonical calibration error by leave-one-out Dirichlet kernel regression.

    Attributes
    ----------
    bandwidth
        The bandwidth b of the kernels, or None for the one of 1, 1/2, ..., 1/1024 whose
        regression has the least leave-one-out squared error (Brier score).

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), ECE^mul.
    Aitchison and Lauder, "Kernel density estimation for compositional data" (1985).
    Popordanoska, Sayer and Blaschko, "A consistent and differentiable Lp canonical calibration
    error estimator" (2022).
    """

    bandwidth: float | None = None

    def __call__(self, table: ClassTable) -> float:
        """Return the error of a table; soft labels y count sum_c y_c abs(P(c | s) - s_c)."""
        if len(table.prob) < 2:
            raise CalibrantError(
                "canonical calibration needs at least two rows, as each is judged by the others",
                value=len(table.prob),
            )
        widest = _WIDEST if self.bandwidth is None else self.bandwidth
        squared, absolute = _losses(table, widest, _N_BANDWIDTHS if self.bandwidth is None else 1)
        return float(absolute[np.argmin(squared)])


def _losses(table: ClassTable, widest: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Return the mean squared and absolute errors at bandwidths widest, widest / 2, ..."""
    from scipy.special import entr

    prob, outcome, w = (np.concatenate(parts) for parts in zip(*table.blocks(), strict=True))
    log_prob = np.log(np.maximum(prob, _SMALLEST)) / widest
    entropy = entr(prob).sum(axis=1) / widest
    # The last column adds up the weights.
    targets = w[:, None] * np.column_stack((outcome, np.ones(len(w))))
    squared, absolute = np.zeros((2, count))
    step = max(1, _CHUNK // len(prob))
    for start in range(0, len(prob), step):
        rows = slice(start, start + step)
        kernel = _kernels(log_prob[rows] @ prob.T, entropy, start)
        for k in range(count):
            if k > 0:
                np.square(kernel, out=kernel)
            sums = kernel @ targets
            estimate = sums[:, :-1] / sums[:, -1:]
            squared[k] += w[rows] @ ((estimate - outcome[rows]) ** 2).sum(axis=1)
            gap = np.abs(estimate - prob[rows])
            absolute[k] += w[rows] @ (outcome[rows] * gap).sum(axis=1)
    return squared / w.sum(), absolute / w.sum()


def _kernels(cross: FloatArray, entropy: FloatArray, start: int) -> FloatArray:
    """Return kernels exp(cross + entropy), those of each row scaled to a largest value of 1.

    The scale cancels in the estimate; without it a row far from all others would have none. A
    row's own kernel is left out: 0. Everything happens in the place of `cross`.
    """
    cross += entropy
    own = np.arange(len(cross))
    cross[own, start + own] = -np.inf
    cross -= cross.max(axis=1, keepdims=True)
    return np.asarray(np.exp(cross, out=cross))
