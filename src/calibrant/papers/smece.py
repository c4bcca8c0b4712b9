"""Leznik, "Soft Mean Expected Calibration Error" (2026): tables 2 to 8.

Inputs x are uniform on (-3, 3), the soft label of x is the posterior sigmoid(k x), the hard one
1[x >= 0], and five models predict. SMECE is the binned error against soft labels, ECE that against
hard ones, both with ten uniform bins.

The paper's last bin leaves out predictions of exactly 1, which model D makes for all large x, while
they still count in n. Both ways are measured: ``rows`` is "all", or "p < 1" as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import expit, logit

import calibrant as cb  # layers: papers are written with what users have
from calibrant.arrays import FloatArray
from calibrant.papers._frame import Paper, Part
from calibrant.papers._smece_published import MODELS, SIZES, STEEPNESS
from calibrant.papers._smece_report import report

N_BINS = 10
REACH = 3.0
BIAS = 0.15
RANKED_SIZE = 1000
MEASURES = ("SMECE", "ECE")
# The right order is A, then B and C, then D, then E: any order of B and C is right.
PAIRS = tuple(combinations(MODELS, 2))
TIED = ("B", "C")


@dataclass(frozen=True)
class Error:
    """Mean and standard deviation of an error over samples of n."""

    k: float
    n: int
    replications: int
    model: str
    measure: str
    rows: str
    mean: float
    deviation: float


@dataclass(frozen=True)
class Ranking:
    """How often a measure ranks a pair of models rightly; of "all pairs", the mean share."""

    k: float
    replications: int
    pair: str
    measure: str
    rows: str
    accuracy: float
    deviation: float


@dataclass(frozen=True)
class Population:
    """The error of infinitely many rows, by quadrature."""

    k: float
    model: str
    measure: str
    rows: str
    value: float


def parts(quick: bool) -> list[Part]:
    """List the tables to measure."""
    repeated, ranked = (40, 60) if quick else (500, 1000)
    sizes = [(k, 5000) for k in STEEPNESS] + [(2.0, n) for n in SIZES if n != 5000]
    return [
        Part("population", Population, [(k,) for k in STEEPNESS], population),
        Part("errors", Error, [(k, n, repeated) for k, n in sizes], errors),
        Part("ranking", Ranking, [(k, ranked) for k in STEEPNESS], ranking),
    ]


def errors(k: float, n: int, replications: int) -> Iterator[Error]:
    """Measure every model on samples of n."""
    drawn = _replicated(k, n, replications)
    for (model, measure, rows), values in drawn.items():
        mean, deviation = float(values.mean()), float(values.std(ddof=1))
        yield Error(k, n, replications, model, measure, rows, mean, deviation)


def ranking(k: float, replications: int) -> Iterator[Ranking]:
    """Count how often each pair of models is ranked rightly."""
    drawn = _replicated(k, RANKED_SIZE, replications)
    for measure, rows in dict.fromkeys(key[1:] for key in drawn):
        errors_of = {model: drawn[model, measure, rows] for model in MODELS}
        right = {
            f"{better} vs {worse}": (errors_of[better] < errors_of[worse])
            | ((better, worse) == TIED)
            for better, worse in PAIRS
        }
        n_right = np.sum(list(right.values()), axis=0)
        counts = {pair: (found, 1) for pair, found in right.items()}
        for pair, (found, of) in {**counts, "all pairs": (n_right, len(PAIRS))}.items():
            mean, deviation = float(found.mean() / of), float(found.std(ddof=1) / of)
            yield Ranking(k, replications, pair, measure, rows, mean, deviation)


def population(k: float) -> Iterator[Population]:
    """Integrate every model's errors over x."""
    x, mass = _quadrature(k)
    found = _errors(_labels(k, x), _predictions(k, x), mass)
    # E predicts without looking at x: whatever it says, outcomes average 1/2.
    middles = (np.arange(N_BINS) + 0.5) / N_BINS
    halves = dict.fromkeys(MEASURES, np.full(N_BINS, 0.5))
    found |= _errors(halves, {"E": middles}, np.full(N_BINS, 1 / N_BINS))
    for (model, measure, rows), value in found.items():
        yield Population(k, model, measure, rows, value)


def _replicated(k: float, n: int, replications: int) -> dict[tuple[str, str, str], FloatArray]:
    """Return every error of every sample, by model, measure and rows."""
    rng = np.random.default_rng([round(10 * k), n])
    samples = []
    for _ in range(replications):
        x = rng.uniform(-REACH, REACH, n)
        samples.append(_errors(_labels(k, x), _predictions(k, x) | {"E": rng.random(n)}))
    return {key: np.array([sample[key] for sample in samples]) for key in samples[0]}


def _labels(k: float, x: FloatArray) -> dict[str, FloatArray]:
    return {"SMECE": expit(k * x), "ECE": (x >= 0).astype(np.float64)}


def _predictions(k: float, x: FloatArray) -> dict[str, FloatArray]:
    """Return what the models that look at x predict."""
    return {
        "A": expit(k * x),
        "B": expit(3 * k * x),
        "C": expit(0.4 * k * x),
        "D": np.minimum(expit(k * x) + BIAS, 1),
    }


def _errors(
    labels: dict[str, FloatArray],
    predictions: dict[str, FloatArray],
    mass: FloatArray | None = None,
) -> dict[tuple[str, str, str], float]:
    """Measure every model against both kinds of labels, with and without predictions of 1."""
    found = {}
    for model, p in predictions.items():
        weight = np.ones_like(p) if mass is None else mass
        kept = p < 1
        share = 1.0 if kept.all() else float(weight[kept].sum() / weight.sum())
        for measure, y in labels.items():
            whole = cb.ece(y, p, n_bins=N_BINS, sample_weight=mass)
            found[model, measure, "all"] = whole
            if share < 1:
                # Rows that are dropped from their bin still count in n.
                weighted = None if mass is None else mass[kept]
                whole = cb.ece(y[kept], p[kept], n_bins=N_BINS, sample_weight=weighted) * share
            found[model, measure, "p < 1"] = whole
    return found


def _quadrature(k: float) -> tuple[FloatArray, FloatArray]:
    """Return points x and their masses, on panels that end where a model passes a bin's edge."""
    edges = np.arange(1, N_BINS) / N_BINS
    of_d = np.append(edges, 1.0) - BIAS
    passed = [logit(edges) / (slope * k) for slope in (1, 3, 0.4)] + [logit(of_d[of_d > 0]) / k]
    inside = np.concatenate([ends[np.abs(ends) < REACH] for ends in passed])
    ends = np.union1d(inside, np.linspace(-REACH, REACH, 201))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(ends)[:, None] / 2
    x = ends[:-1, None] + half * (1 + nodes)
    return x.ravel(), (half * weights).ravel() / (2 * REACH)


PAPER = Paper("smece", parts=parts, report=report)
