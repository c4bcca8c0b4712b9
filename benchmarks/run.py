"""Compare calibrant with other packages and with the limits of the machine, as ratios."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from compare import Ratio, ratio

import calibrant as cb
from calibrant.compiled import passes


def data(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return overconfident predictions of n events, as float64."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.9, 0.7, n)
    return (rng.random(n) < 0.5 + 0.8 * (p - 0.5)).astype(np.float64), p


def summing(*arrays: np.ndarray) -> Callable[[], float]:
    """Return what no method can beat: one pass of addition over the arrays."""
    return lambda: sum(float(a.sum()) for a in arrays)


def import_time() -> Iterator[Ratio]:
    """Compare the import with numpy's own, in fresh interpreters."""

    def fresh(statement: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", statement], check=True)

    ours, bare, numpy = (fresh(f"import {name}") for name in ("calibrant", "sys", "numpy"))
    yield ratio("interpreter + import calibrant", ours, "interpreter + import numpy", numpy)
    yield ratio("interpreter + import calibrant", ours, "interpreter alone", bare)


def binned() -> Iterator[Ratio]:
    """Compare ece with the peers and with summing."""
    from sklearn.calibration import calibration_curve

    for n in (10**3, 10**5, 10**7):
        y, p = data(n)
        task = f"ece, n = {n:.0e}"

        def ours(y: np.ndarray = y, p: np.ndarray = p) -> float:
            return cb.ece(y, p)

        curve = lambda y=y, p=p: calibration_curve(y, p, n_bins=15)  # noqa: E731
        yield ratio(task, ours, "scikit-learn calibration_curve", curve)
        yield ratio(task, ours, "summing both arrays", summing(y, p))


def classwise() -> Iterator[Ratio]:
    """Compare class-wise ece on 50 000 x 1000 with summing; 1 ns an element is a sum's pace."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(1000, 0.05), 50_000)
    y = rng.integers(0, 1000, 50_000)
    yield ratio(
        "classwise ece, 50 000 x 1000",
        lambda: cb.ece(y, p, multiclass="classwise"),
        "summing the matrix",
        summing(p),
        rounds=3,
    )


def smooth() -> Iterator[Ratio]:
    """Compare smooth_ece with relplot, probcal and summing."""
    from probcal.metrics import smooth_ece as probcal_smooth_ece
    from relplot.metrics import smECE

    for n in (10**3, 10**5, 10**7):
        y, p = data(n)
        task = f"smooth_ece, n = {n:.0e}"

        def ours(y: np.ndarray = y, p: np.ndarray = p) -> float:
            return cb.smooth_ece(y, p)

        rounds = 5 if n < 10**7 else 3
        yield ratio(task, ours, "relplot", lambda y=y, p=p: smECE(p, y), rounds)
        yield ratio(task, ours, "probcal", lambda y=y, p=p: probcal_smooth_ece(y, p), rounds)
        yield ratio(task, ours, "summing both arrays", summing(y, p), rounds)


def cumulative() -> Iterator[Ratio]:
    """Compare ecce with its P-value with probcal's ecce, which sorts pairs."""
    from probcal.metrics import ecce as probcal_ecce

    y, p = data(10**7)
    task = "ecce_mad, n = 1e+07"
    yield ratio(task, lambda: cb.ecce_mad(y, p), "probcal", lambda: probcal_ecce(y, p), 3)
    task = "cumulative_test, n = 1e+07"
    yield ratio(task, lambda: cb.cumulative_test(y, p), "probcal", lambda: probcal_ecce(y, p), 3)


def logit_smoothed() -> Iterator[Ratio]:
    """Compare the integral with the paper's estimator, 10 000 sampled points (timed on 20)."""
    y, p = data(50_000)
    u = np.log(p) - np.log1p(-p)
    rng = np.random.default_rng(0)

    def sampling() -> float:
        points = rng.choice(u, 20) + rng.standard_normal(20) / 15
        kernel = np.exp(-0.5 * (15 * (points[:, None] - u)) ** 2)
        means = kernel @ y / kernel.sum(axis=1)
        return float(np.mean(np.abs(means - 1 / (1 + np.exp(-points)))))

    measured = ratio("", lambda: cb.logit_smoothed_ece(y, p), "", sampling)
    scaled = tuple(500 * one for one in measured.ratios)
    yield Ratio("logit_smoothed_ece, n = 5e+04", "sampling 10 000 points", scaled)


def distance() -> Iterator[Ratio]:
    """Compare weak_calibration_error with one sort of its scores."""
    y, p = data(10**6)
    task = "weak_calibration_error, n = 1e+06"
    yield ratio(task, lambda: cb.weak_calibration_error(y, p), "one sort", lambda: np.sort(p), 3)


def sketches() -> Iterator[Ratio]:
    """Compare Sketch.update with summing, and merging with adding."""
    y, p = data(10**7)

    def update() -> cb.Sketch:
        return cb.Sketch().update(y, p)

    yield ratio("Sketch.update, n = 1e+07", update, "summing both arrays", summing(y, p))
    many = [cb.Sketch().update(y[i::1000], p[i::1000]) for i in range(100)]
    tables = [one.table.moments for one in many]
    yield ratio(
        "sum of 100 sketches", lambda: sum(many), "adding their tables", lambda: sum(tables)
    )


def compiled() -> Iterator[Ratio]:
    """Compare with summing what numba compiles, once it has."""
    y, p = data(10**7)
    tasks: dict[str, Callable[[], object]] = {
        "ece": lambda: cb.ece(y, p),
        "smooth_ece": lambda: cb.smooth_ece(y, p),
        "Sketch.update": lambda: cb.Sketch().update(y, p),
    }
    for name, ours in tasks.items():
        task = f"{name}, compiled, n = 1e+07"
        yield ratio(task, ours, "summing both arrays", summing(y, p))


@contextmanager
def numpy_alone() -> Iterator[None]:
    """Leave compiled code aside for a while."""
    at_hand, passes.is_worth_while = passes.is_worth_while, lambda *_: False
    try:
        yield
    finally:
        passes.is_worth_while = at_hand


def memory() -> str:
    """Measure what smooth_ece needs beyond its input at ten million rows."""
    y, p = data(10**7)
    cb.smooth_ece(y[:1000], p[:1000])
    tracemalloc.start()
    cb.smooth_ece(y, p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"{'smooth_ece, n = 1e+07, memory beyond input':<44} {peak / 2**20:9.1f} MiB"


def main() -> None:
    """Run everything and print one line a comparison."""
    groups = (import_time, binned, classwise, smooth, cumulative, logit_smoothed, distance)
    with numpy_alone():
        for group in (*groups, sketches):
            for line in group():
                print(line, flush=True)
        print(memory())
    for line in compiled():
        print(line, flush=True)


if __name__ == "__main__":
    main()
