"""Measure what every calibrator does, on simulated problems, several classes and bundled data.

    python benchmarks/recalibration.py problems   # eleven problems with known truth, half an hour
    python benchmarks/recalibration.py classes    # classifiers of several classes, ten minutes
    python benchmarks/recalibration.py datasets   # bundled networks and forecasts, two minutes

The tables of docs/recalibration-results.md. No number is of a row that a map was fitted to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from calibrant import brier_score, log_score, smooth_ece
from calibrant.datasets import Dataset, load_flares, load_imagenet, load_rain
from calibrant.recalibration import METHODS, IdentityCalibrator, cross_fitted
from calibrant.recalibration.search import choose, read_methods, read_rows

Array = NDArray[np.float64]
Generator = np.random.Generator

# Eleven problems: how scores are drawn, and the probability of the outcome at a score.

N_SAMPLES, SIZES, N_FRESH = 30, (200, 500, 5000), 20_000
UNIFORM = Generator.random


def beta(rng: Generator, n: int, a: float, b: float) -> Array:
    """Draw scores of a beta distribution, strictly between 0 and 1."""
    return np.clip(rng.beta(a, b, n), 1e-12, 1 - 1e-12)


def slope(p: Array, b: float) -> Array:
    """Return the probability whose logit is b times that of the score."""
    return np.asarray(expit(b * logit(p)))


U_SHAPED = partial(beta, a=0.3, b=0.3)
PROBLEMS: dict[str, tuple[Callable[[Generator, int], Array], Callable[[Array], Array]]] = {
    "slope 0.6": (UNIFORM, partial(slope, b=0.6)),
    "slope 1.4": (UNIFORM, partial(slope, b=1.4)),
    "shift -0.5": (UNIFORM, lambda p: expit(logit(p) - 0.5)),
    "power 1.4": (UNIFORM, lambda p: p**1.4),
    "sine": (UNIFORM, lambda p: np.clip(p + 0.1 * np.sin(6 * np.pi * p), 0, 1)),
    "step": (UNIFORM, lambda p: np.where(p < 0.5, 0.2, 0.8)),
    "stated": (
        lambda rng, n: np.ceil(20 * rng.beta(2, 1, n)) / 20,
        lambda p: np.where(p == 1, 0.85, p),
    ),
    "U-shaped, slope 0.6": (U_SHAPED, partial(slope, b=0.6)),
    "rare, doubled": (
        lambda rng, n: 2 * np.minimum(beta(rng, n, 0.5, 24.5), 0.499),
        lambda p: p / 2,
    ),
    "calibrated": (UNIFORM, lambda p: p),
    "calibrated, U-shaped": (U_SHAPED, lambda p: p),
}
SINGLE = ("shift", "temperature", "platt", "beta", "quadratic", "isotonic", "residual", "histogram")


def excess(problem: str, n: int, sample: int, method: str) -> float:
    """Return the Brier score on fresh rows over that of the true probabilities, times 10 000."""
    draw, truth = PROBLEMS[problem]
    rng = np.random.default_rng([sample, n, list(PROBLEMS).index(problem)])
    p = draw(rng, n)
    y = (rng.random(n) < truth(p)).astype(int)
    fresh = draw(np.random.default_rng(99), N_FRESH)
    if method == "auto":
        table = read_rows(y, p, None, None)
        calibrator = choose(read_methods("auto", table), table, None).calibrator
    elif method == "none":
        calibrator = IdentityCalibrator().fit(p, y)
    else:
        calibrator = METHODS[method]().fit(p, y)
    return 1e4 * float(np.mean((calibrator.predict(fresh) - truth(fresh)) ** 2))


def problems() -> None:
    """Print the mean excess Brier score of every method."""
    methods = ("none", "ends", *SINGLE, "auto")
    for n in SIZES:
        print(f"\nn = {n}\n\n| | {' | '.join(methods)} |\n{'|---' * (len(methods) + 1)}|")
        rows = {}
        for problem in PROBLEMS:
            samples = range(N_SAMPLES)
            row = [np.mean([excess(problem, n, s, m) for s in samples]) for m in methods]
            rows[problem] = row
            print(f"| {problem} | {' | '.join(f'{v:.1f}' for v in row)} |", flush=True)
        means = np.mean(list(rows.values()), axis=0)
        print(f"| mean | {' | '.join(f'{v:.1f}' for v in means)} |")
        best = np.mean([min(row[:-1]) for row in rows.values()])
        print(f"\nauto over the best method of every problem: {means[-1] / best:.2f}")
        print(f"auto over the best method on average: {means[-1] / means[:-1].min():.2f}")


# Several classes, held out.


def softmax(z: Array) -> Array:
    """Return rows of probabilities."""
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(z / z.sum(axis=1, keepdims=True))


def simulated_classes(n: int = 20_000, n_classes: int = 100) -> tuple[Array, Array]:
    """Return labels and distorted probabilities of a known truth."""
    rng = np.random.default_rng(0)
    z = 1.5 * rng.standard_normal((n, n_classes))
    z[np.arange(n), rng.integers(0, n_classes, n)] += 4
    label = (softmax(z).cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    slopes = 1 + 0.3 * rng.standard_normal(n_classes)
    return label, softmax(1.6 * z * slopes + 0.5 * rng.standard_normal(n_classes))


def classifiers() -> Iterator[tuple[str, Array, Array]]:
    """Yield (name, labels, probabilities) of rows that classifiers were not fitted to."""
    from sklearn import datasets
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    models = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=1e3, max_iter=1000)),
        "forest": RandomForestClassifier(100, random_state=0),
        "boosting": HistGradientBoostingClassifier(max_iter=50, random_state=0),
        "naive Bayes": GaussianNB(var_smoothing=1e-6),
    }
    for data, load in (("digits", datasets.load_digits), ("wine", datasets.load_wine)):
        x, y = load(return_X_y=True)
        for name, model in models.items():
            yield f"{data}, {name}", y, cross_val_predict(model, x, y, cv=5, method="predict_proba")
    yield "100 classes", *simulated_classes()


def auto_cross_fitted(y: Array, p: Array) -> Array:
    """Return predictions of rows held out from the whole search."""
    fold = np.random.default_rng(0).permutation(len(y)) % 2
    q = np.empty_like(p)
    for k in range(2):
        table = read_rows(y[fold != k], p[fold != k], None, None)
        chosen = choose(read_methods("auto", table), table, None)
        print("  chosen:", chosen.method)
        q[fold == k] = chosen.calibrator.predict(p[fold == k])
    return q


def halves(calibrator: str, y: Array, p: Array) -> Array:
    """Return predictions of either half of the rows by a calibrator fitted to the other."""
    fold = np.random.default_rng(0).permutation(len(y)) % 2
    q = np.empty_like(p)
    for k in range(2):
        q[fold == k] = METHODS[calibrator]().fit(p[fold != k], y[fold != k]).predict(p[fold == k])
    return q


def classes() -> None:
    """Print log and Brier scores of calibrators of several classes."""
    methods = ("as given", "isotonic", "temperature", "vector", "matrix", "auto")
    print("| log score / Brier score |", " | ".join(methods), "|\n" + "|---" * 7 + "|")
    for name, y, p in classifiers():
        columns = {"as given": p, "auto": auto_cross_fitted(y, p)}
        columns |= {m: halves(m, y, p) for m in methods[1:-1]}
        cells = [
            f"{log_score(y, columns[m]):.4f} / {brier_score(y, columns[m]):.4f}" for m in methods
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


# Bundled data.

DATASETS: dict[str, Callable[[], Dataset]] = {
    "rain": load_rain,
    "flares DAFFS": lambda: load_flares("DAFFS"),
    "flares NOAA": lambda: load_flares("NOAA"),
    "flares SIDC": lambda: load_flares("SIDC"),
    "ResNet-34": lambda: load_imagenet("resnet34"),
    "DenseNet-161": lambda: load_imagenet("densenet161"),
}
MEASURES = {"smooth_ece": smooth_ece, "log_score": log_score, "brier_score": brier_score}
CALIBRATORS = {"as given": IdentityCalibrator, **METHODS}


def measured(data: Dataset) -> dict[str, dict[str, float]]:
    """Return every measure of every method on one set of data, in five folds."""
    held_out = {
        name: cross_fitted(make(), data.y_prob, data.y_true) for name, make in CALIBRATORS.items()
    }
    return {
        measure: {name: function(data.y_true, q) for name, q in held_out.items()}
        for measure, function in MEASURES.items()
    }


def table(columns: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the lines of a table with one row per method, the minimum of each column in bold."""
    yield f"| | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for method in CALIBRATORS:
        cells = []
        for values in columns.values():
            cell = "∞" if np.isinf(values[method]) else f"{values[method]:.4f}"
            # As printed: several may be equal.
            cells.append(f"**{cell}**" if cell == f"{min(values.values()):.4f}" else cell)
        yield f"| {method} | {' | '.join(cells)} |"


def datasets() -> None:
    """Print the tables of bundled data."""
    results = {name: measured(load()) for name, load in DATASETS.items()}
    for measure in MEASURES:
        print(f"\n{measure}\n")
        print("\n".join(table({name: result[measure] for name, result in results.items()})))


if __name__ == "__main__":
    {"problems": problems, "classes": classes, "datasets": datasets}[sys.argv[1]]()
