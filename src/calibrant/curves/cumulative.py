"""Cumulative curves: where along the scores outcomes depart from what is expected of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from calibrant import checks
from calibrant.measures.cumulative_differences import (
    CumulativeDifferences,
    cumulative_differences,
)
from calibrant.measures.group_differences import GroupCells, group_alone, read_group
from calibrant.multiclass import one_problem
from calibrant.results.curves import CumulativeCurve

__all__ = ["cumulative_curve", "subpopulation_curve"]


def cumulative_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> CumulativeCurve:
    """Return the cumulative deviation of outcomes from predictions; level is perfect.

    C_k = (1/W) sum of w_i (y_i - p_i) over rows with p_i <= s_k, against the share of the weight
    of those rows. Between two points of the curve, the slope is the mean of y - p over the scores
    between them: positive where predictions are too low.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        "confidence" or a class label; a curve is about one binary problem.

    Returns
    -------
    CumulativeCurve
        One point a distinct score, after the start at 0.

    Notes
    -----
    The curve of calibrated predictions is like Brownian motion of standard deviation sigma at its
    end. Its largest value in size is :func:`calibrant.ecce_mad`, its range
    :func:`calibrant.ecce_r`. One sort, O(n log n).

    References
    ----------
    Arrieta-Ibarra et al., "Metrics of Calibration for Probabilistic Predictions" (2022), eq. 5.

    Examples
    --------
    >>> curve = cumulative_curve([0, 1, 1, 1], [0.5, 0.625, 0.75, 0.75])
    >>> curve.fraction.tolist(), curve.deviation.tolist()
    ([0.0, 0.25, 0.5, 1.0], [0.0, -0.125, -0.03125, 0.09375])
    """
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return as_curve(cumulative_differences(problem))


def subpopulation_curve(
    y_true: Any,
    y_prob: Any,
    *,
    group: Any,
    against: Literal["population", "calibration"] = "population",
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> CumulativeCurve:
    """Return the cumulative deviation of a group's outcomes; level is no deviation.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`: the whole population.
    group
        True for the rows of the group.
    against
        "population": from the mean deviation of the whole population at the same scores.
        "calibration": from the predictions, the curve of the group's rows by themselves.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        "confidence" or a class label; a curve is about one binary problem.

    Returns
    -------
    CumulativeCurve
        One point a distinct score of the group, after the start at 0. Its slope is the mean
        deviation of the group.

    Notes
    -----
    See :func:`calibrant.subpopulation_test` for what "the same scores" are and for sigma. Against
    the population, a group is refused that has no others between its lowest and highest scores.

    References
    ----------
    Tygert, "Cumulative deviation of a subpopulation from the full population" (2021).

    Examples
    --------
    >>> y, p = [0, 1, 1, 0], [0.25, 0.25, 0.75, 0.75]
    >>> subpopulation_curve(y, p, group=[True, False, True, False]).deviation.tolist()
    [0.0, -0.25, 0.0]
    """
    checks.check_choice(against, "against", ("population", "calibration"))
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    member = read_group(group, sample_weight, problem)
    if against == "calibration":
        return as_curve(cumulative_differences(group_alone(problem, member)))
    return as_curve(GroupCells.around(problem, member).differences())


def as_curve(differences: CumulativeDifferences) -> CumulativeCurve:
    """Return cumulative differences as a curve."""
    return CumulativeCurve(
        fraction=differences.fraction,
        score=np.concatenate((differences.score[:1], differences.score)),
        deviation=differences.deviation,
        sigma=differences.sigma,
    )
