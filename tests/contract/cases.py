"""Calls of the public functions on bundled and simulated data, by name.

Each returns a number, a list of numbers or a result. `python -m tests.contract.cases` writes what
they return now to values.json: do that only when a number is meant to change, and say why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cb

VALUES = Path(__file__).with_name("values.json")
# Long lists are known by their length, sum, sum of squares and a few members.
_FEW = 8


def binary() -> dict[str, tuple[Any, Any]]:
    """Return the binary problems, by name."""
    rng = np.random.default_rng(7)
    p = rng.beta(2, 3, 2000)
    return {
        "rain": tuple(cb.datasets.load_rain()),
        "flares": tuple(cb.datasets.load_flares("DAFFS")),
        "simulated": ((rng.random(2000) < p**1.2).astype(int), p),
        "tenths": ((rng.random(2000) < p).astype(int), np.round(p, 1)),
        "soft": (np.clip(p + 0.1 * rng.standard_normal(2000), 0, 1), p),
    }


def classes() -> tuple[Any, Any]:
    """Return labels and probabilities of five classes."""
    rng = np.random.default_rng(3)
    logits = 2 * rng.standard_normal((1500, 5))
    prob = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    flat = np.exp(logits / 1.5)
    flat /= flat.sum(axis=1, keepdims=True)
    label = (flat.cumsum(axis=1) > rng.random((1500, 1))).argmax(axis=1)
    return label, prob


Case = Callable[[], Any]


def cases() -> Mapping[str, Case]:
    """Return every call, by name."""
    return {
        **_measures(),
        **_multiclass(),
        **_weighted(),
        **_inference(),
        **_curves(),
        **_sketches(),
    }


def _measures() -> dict[str, Case]:
    calls: dict[str, Callable[..., Any]] = {
        "ece": cb.ece,
        "ece quantile": lambda y, p: cb.ece(y, p, strategy="quantile"),
        "ece convex": lambda y, p: cb.ece(y, p, assignment="convex", n_bins=10),
        "ece l2 right": lambda y, p: cb.ece(y, p, norm="l2", closed="right"),
        "ece width": lambda y, p: cb.ece(y, p, weighting="width", strategy="quantile"),
        "ece sqrt": lambda y, p: cb.ece(y, p, n_bins="sqrt"),
        "ece sweep": lambda y, p: cb.ece(y, p, n_bins="sweep", strategy="quantile"),
        "ece cv": lambda y, p: cb.ece(y, p, n_bins="cv"),
        "mce": cb.mce,
        "ace": cb.ace,
        "soft_label_ece": cb.soft_label_ece,
        "smooth_ece": cb.smooth_ece,
        "smooth_ece at 0.05": lambda y, p: cb.smooth_ece(y, p, bandwidth=0.05),
        "smooth_ece logit": lambda y, p: cb.smooth_ece(y, p, scale="logit"),
        "density_ece": cb.density_ece,
        "density_ece triweight": lambda y, p: cb.density_ece(y, p, kernel="triweight"),
        "logit_smoothed_ece": cb.logit_smoothed_ece,
        "logit_smoothed_ece uniform": lambda y, p: cb.logit_smoothed_ece(y, p, noise="uniform"),
        "ecce_mad": cb.ecce_mad,
        "ecce_r": cb.ecce_r,
        "weak_calibration_error": cb.weak_calibration_error,
        "laplace_kernel_error": cb.laplace_kernel_error,
        "interval_error": cb.interval_error,
        "brier_score": cb.brier_score,
        "log_score": cb.log_score,
        "score_decomposition": cb.score_decomposition,
        "distance_bounds": cb.distance_bounds,
        "bin_table": lambda y, p: cb.bin_table(y, p, n_bins=10),
    }
    return {
        f"{name} of {data}": (lambda call=call, rows=rows: call(*rows))
        for name, call in calls.items()
        for data, rows in binary().items()
    }


def _multiclass() -> dict[str, Case]:
    y, p = classes()
    kinds = ("confidence", "classwise", "top_label", 2)
    measures = (cb.ece, cb.smooth_ece, cb.ecce_r, cb.density_ece, cb.weak_calibration_error)
    found: dict[str, Case] = {
        f"{measure.__name__} of classes, {kind}": (
            lambda measure=measure, kind=kind: measure(y, p, multiclass=kind)
        )
        for measure in measures
        for kind in kinds
    }
    found["density_ece of classes, canonical"] = lambda: cb.density_ece(
        y[:300], p[:300], multiclass="canonical"
    )
    found["brier_score of classes"] = lambda: cb.brier_score(y, p)
    found["log_score of classes"] = lambda: cb.log_score(y, p)
    return found


def _weighted() -> dict[str, Case]:
    y, p = binary()["simulated"]
    w = np.random.default_rng(1).exponential(size=len(p))
    w[::7] = 0
    measures = (
        cb.ece, cb.smooth_ece, cb.density_ece, cb.logit_smoothed_ece, cb.ecce_mad, cb.ecce_r,
        cb.weak_calibration_error, cb.laplace_kernel_error, cb.interval_error, cb.brier_score,
    )  # fmt: skip
    return {
        f"{measure.__name__}, weighted": (lambda measure=measure: measure(y, p, sample_weight=w))
        for measure in measures
    }


def _inference() -> dict[str, Case]:
    data = binary()
    y, p = data["simulated"]
    w = np.random.default_rng(1).exponential(size=len(p))
    few = {"n_resamples": 200}
    found: dict[str, Case] = {
        f"estimate {name} of {kind}": (
            lambda name=name, kind=kind: cb.estimate(name, *data[kind], **few)
        )
        for name in ("smooth_ece", "ece", "ecce_mad", "ecce_r", "logit_smoothed_ece")
        for kind in ("flares", "simulated", "soft")
    }
    for name, rows in data.items():
        if name == "soft":
            continue
        found[f"cumulative_test of {name}"] = lambda rows=rows: cb.cumulative_test(*rows)
        found[f"cumulative_test max of {name}"] = lambda rows=rows: cb.cumulative_test(
            *rows, statistic="max", method="monte_carlo", n_resamples=199
        )
        found[f"calibration_test of {name}"] = lambda rows=rows: [
            value
            for part in cb.calibration_test(*rows, n_resamples=39).parts
            for value in (part.statistic, part.p_asymptotic)
        ]
        found[f"spiegelhalter_test of {name}"] = lambda rows=rows: cb.spiegelhalter_test(*rows)
    found["calibration_slope_test"] = lambda: cb.calibration_slope_test(y, p)
    found["hosmer_lemeshow_test"] = lambda: cb.hosmer_lemeshow_test(y, p)
    found["clinical_summary"] = lambda: [
        number
        for row in cb.clinical_summary(y, p, **few)._columns().values()
        for number in row
        if not isinstance(number, str)
    ]
    found["heterogeneity"] = lambda: [
        getattr(getattr(cb.heterogeneity(y, p, np.arange(len(p)) % 5), measure), name)
        for measure in ("o_e", "intercept", "slope")
        for name in ("value", "low", "high", "tau", "prediction_low", "prediction_high")
    ]
    found["sample_size"] = lambda: [cb.sample_size(m, 0.3, p).n for m in ("o_e", "slope")]
    found["noise_floor"] = lambda: cb.noise_floor(p, n_resamples=39, measures=["ece", "ecce_r"])
    found["subpopulation_test"] = lambda: cb.subpopulation_test(
        y, p, group=np.arange(len(p)) % 3 == 0, method="monte_carlo", n_resamples=199
    )
    found["estimate weighted"] = lambda: cb.estimate("ece", y, p, sample_weight=w, **few)
    q = np.clip(p + 0.05, 0, 1)
    for measure in ("smooth_ece", "brier_score"):
        found[f"compare by {measure}"] = lambda measure=measure: [
            getattr(cb.compare(y, {"p": p, "q": q}, measure=measure, **few).pair("p", "q"), name)
            for name in ("difference", "low", "high", "p_value")
        ]
    found["by_group"] = lambda: [
        number
        for row in cb.by_group(y, p, np.arange(len(p)) % 3, **few)
        for number in (row.n, row.p_value, row.ecce_r)
    ]
    found["bias_along"] = lambda: cb.bias_along(y, p, np.sqrt(p)).gap
    return found


def _curves() -> dict[str, Case]:
    y, p = binary()["flares"]
    found: dict[str, Case] = {
        f"reliability_curve {method} {band}": (
            lambda method=method, band=band: cb.reliability_curve(
                y, p, method=method, band=band, n_resamples=200
            )
        )
        for method in ("binned", "density", "isotonic", "loess")
        for band in ("confidence", "consistency", None)
    }
    found["cumulative_curve"] = lambda: cb.cumulative_curve(y, p)
    found["weak_calibration_witness"] = lambda: cb.weak_calibration_witness(y, p)
    found["local_calibration_error"] = lambda: cb.local_calibration_error(y, p, band=None)
    return found


def _sketches() -> dict[str, Case]:
    y, p = binary()["simulated"]
    sketch = cb.Sketch(2520).update(y, p)
    on_logits = cb.Sketch(scale="logit").update(y, p)
    found: dict[str, Case] = {
        f"{measure.__name__} of a sketch": (lambda measure=measure: measure(sketch))
        for measure in (cb.ece, cb.smooth_ece, cb.ecce_mad, cb.ecce_r, cb.brier_score)
    }
    found["logit_smoothed_ece of a sketch"] = lambda: cb.logit_smoothed_ece(on_logits)
    found["error_bound of smooth_ece"] = lambda: cb.error_bound(sketch, "smooth_ece")
    found["estimate of a sketch"] = lambda: cb.estimate("smooth_ece", sketch, n_resamples=200)
    return found


def numbers(value: Any) -> dict[str, list[float]]:
    """Return what a call returned as short lists of numbers, by field where it is a result."""
    fields = value.to_dict() if hasattr(value, "to_dict") else {"": value}
    arrays = {name: np.asarray(field) for name, field in fields.items()}
    return {name: _short(array) for name, array in arrays.items() if array.dtype.kind in "uif"}


def _short(array: Any) -> list[float]:
    flat = array.astype(float).ravel()
    if len(flat) <= _FEW:
        return [float(x) for x in flat]
    known = flat[np.isfinite(flat)]
    some = flat[np.linspace(0, len(flat) - 1, _FEW).astype(int)]
    return [float(len(flat)), float(known.sum()), float(np.square(known).sum()), *some.tolist()]


def main() -> None:
    """Write the values of all calls."""
    values = {name: numbers(call()) for name, call in cases().items()}
    VALUES.write_text(json.dumps(values, indent=0) + "\n")


if __name__ == "__main__":
    main()
