"""Distances to calibration: linear programs, double sums and bins in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy.optimize import linprog

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def residuals(y, p, w=None):
    """Return the distinct scores and their sums of w (y - p) / W, as fractions."""
    w = [1] * len(p) if w is None else w
    total = sum(Fraction(wi) for wi in w)
    sums = {}
    for yi, pi, wi in zip(y, p, w, strict=True):
        sums[pi] = sums.get(pi, 0) + Fraction(wi) * (Fraction(yi) - Fraction(pi)) / total
    scores = sorted(sums)
    return scores, [sums[s] for s in scores]


def weak_calibration_error(y, p, w=None):
    """Maximise sum v_i nu_i over all v within [-1, 1], 1-Lipschitz between every pair."""
    scores, nu = residuals(y, p, w)
    m = len(scores)
    rows, limits = [], []
    for i in range(m):
        for j in range(m):
            if i != j:
                row = [0.0] * m
                row[i], row[j] = 1.0, -1.0
                rows.append(row)
                limits.append(abs(scores[i] - scores[j]))
    found = linprog(
        [-float(v) for v in nu],
        A_ub=rows or None,
        b_ub=limits or None,
        bounds=(-1, 1),
        options=TIGHT,
    )
    return -found.fun


def distance_to_calibration(y, p, w=None, extra=()):
    """Minimise the movement to calibrated predictions among the scores, 0, 1 and `extra`.

    Fewer places to go can only make the distance longer, so this is never below the truth.
    """
    w = [1] * len(p) if w is None else w
    places = sorted({0.0, 1.0, *p, *extra})
    sources = [(pi, 1, wi * yi) for yi, pi, wi in zip(y, p, w, strict=True)]
    sources += [(pi, 0, wi * (1 - yi)) for yi, pi, wi in zip(y, p, w, strict=True)]
    sources = [s for s in sources if s[2] > 0]
    k = len(places)
    cost = [abs(pi - q) for pi, _, _ in sources for q in places]
    leave = np.kron(np.eye(len(sources)), np.ones(k))
    arrive = np.hstack([np.diag([label - q for q in places]) for _, label, _ in sources])
    found = linprog(
        cost,
        A_eq=np.vstack([leave, arrive]),
        b_eq=[mass for _, _, mass in sources] + [0] * k,
        options=TIGHT,
    )
    return found.fun / sum(w)


def laplace_kernel_error(y, p, w=None):
    w = [1] * len(p) if w is None else w
    rows = list(zip(y, p, w, strict=True))
    total = math.fsum(
        wi * wj * (yi - pi) * (yj - pj) * math.exp(-abs(pi - pj))
        for yi, pi, wi in rows
        for yj, pj, wj in rows
    )
    return math.sqrt(max(total, 0.0)) / sum(w)


def shifted_ece(y, p, w, width):
    """Average the binned error over starts u in [0, width), one stretch of equal bins at a time."""
    scores, nu = residuals(y, p, w)
    width = Fraction(width)
    turns = sorted({Fraction(0), width, *(Fraction(s) % width for s in scores)})
    mean = Fraction(0)
    for low, high in pairwise(turns):
        start = (low + high) / 2
        bins = {}
        for s, v in zip(scores, nu, strict=True):
            index = math.floor((Fraction(s) - start) / width)
            bins[index] = bins.get(index, 0) + v
        mean += (high - low) / width * sum(abs(v) for v in bins.values())
    return mean


def interval_error(y, p, w=None, finest=60):
    """Take the least sum over widths 1 to 2^-finest, and in the limit of ever smaller ones."""
    _, nu = residuals(y, p, w)
    sums = [shifted_ece(y, p, w, Fraction(1, 2**k)) + Fraction(1, 2**k) for k in range(finest + 1)]
    return float(min(sum(abs(v) for v in nu), *sums))
