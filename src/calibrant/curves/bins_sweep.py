"""Calibration errors at many numbers of bins: how far ECE depends on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._base import FloatArray, IntArray, TabularResult
from calibrant.curves.reliability_view import ABOUT_ROWS
from calibrant.data import validation
from calibrant.data.classes import one_problem
from calibrant.data.problem import Problem
from calibrant.errors import CalibrantError
from calibrant.inference.estimate import Estimate, estimate
from calibrant.measures.registry import measures

_MAX_BINS = 100
# LS-ECE is smooth in sigma: this many points of it are enough.
_SMOOTH_POINTS = 34


@dataclass(frozen=True, eq=False, repr=False)
class BinsSweep(TabularResult):
    """Calibration errors at many numbers of bins.

    Attributes
    ----------
    n_bins
        The numbers of bins, increasing.
    uniform, quantile
        ECE over bins of equal width and of equal weight; nan where unknown.
    logit_smoothed
        LS-ECE with sigma = 1 / n_bins, its counterpart; nan where unknown or, as it is smooth in
        sigma, not computed.
    smooth
        smECE with its interval, which has no bins.
    name
        The name of the model; empty where there is only one.
    """

    n_bins: IntArray
    uniform: FloatArray
    quantile: FloatArray
    logit_smoothed: FloatArray
    smooth: Estimate
    name: str = ""

    @classmethod
    def of(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        n_bins: Iterable[int] | None = None,
        name: str = "",
        **options: Any,
    ) -> BinsSweep:
        """Measure errors at many numbers of bins; `options` are those of the estimate of smECE."""
        known = (*ABOUT_ROWS, *validation.keywords(estimate), "bandwidth", "scale", "n_bins")
        validation.check_options(options, tuple(dict.fromkeys(known)), "bins_sweep")
        problem = one_problem(y_true, y_prob, *(options.get(one) for one in ABOUT_ROWS))
        counts = _read_counts(n_bins, problem)
        quantile, logit_smoothed = np.full((2, len(counts)), np.nan)
        # A sketch has the bins that divide its cells, and probabilities or logits but not both.
        if problem.is_exact:
            quantile = _errors(problem, "ece", "n_bins", counts, strategy="quantile")
            some = slice(None, None, -(-len(counts) // _SMOOTH_POINTS))
            logit_smoothed[some] = _errors(problem, "logit_smoothed_ece", "sigma", 1 / counts[some])
        return cls(
            n_bins=counts,
            uniform=_errors(problem, "ece", "n_bins", counts),
            quantile=quantile,
            logit_smoothed=logit_smoothed,
            smooth=estimate("smooth_ece", problem, **options),
            name=name,
        )

    def _printed(self) -> list[str]:
        span = f"{self.n_bins[0]} to {self.n_bins[-1]} bins"
        return [f"BinsSweep({span}, ECE {self.uniform.min():.4g} to {self.uniform.max():.4g})"]


def _errors(problem: Problem, measure: str, option: str, values: Any, **others: Any) -> FloatArray:
    """Return a measure at each value of one of its options."""
    read = measures()[measure].read
    asked = [read({option: value, **others}) for value in values.tolist()]
    return np.array([error(problem) for error in asked])


def _read_counts(n_bins: Any, problem: Problem) -> IntArray:
    if n_bins is not None:
        given = [*n_bins] if np.iterable(n_bins) else []
        if not given:
            raise CalibrantError("must hold numbers of bins", argument="n_bins", value=n_bins)
        return np.unique([validation.as_bins(k) for k in given])
    counts = np.arange(1, _MAX_BINS + 1)
    return counts if problem.is_exact else counts[round(1 / problem.cell_width) % counts == 0]
