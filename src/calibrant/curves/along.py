"""Bias along a feature: are predictions right on average at each of its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant import checks
from calibrant.arrays import as_array
from calibrant.curves.features import Feature, read_feature
from calibrant.curves.gaps import PartSums
from calibrant.curves.parts import parts_of
from calibrant.errors import CalibrantError, SketchError
from calibrant.inference.noise import read_codes
from calibrant.multiclass import one_problem
from calibrant.numerics.probability import pointwise_tail, sidak_tail
from calibrant.reading import read_weights
from calibrant.results.tables import BiasTable
from calibrant.sample import Sample

__all__ = ["bias_along"]


def bias_along(
    y_true: Any,
    y_prob: Any = None,
    feature: Any = None,
    *,
    n_bins: int = 10,
    n_values: int = 25,
    level: float = 0.95,
    simultaneous: bool = False,
    clusters: Any = None,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> BiasTable:
    """Return by how much outcomes exceed predictions on average, along a feature.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`.
    feature
        A value a row: numbers or dates, or names, which text, truth values and categories are.
        Names are sorted, unless their column has an order, as ordered categories do; times are
        taken as they are written, whatever their zone. Rows without a value (None, nan, null) make
        a last row of the table, "missing".
    n_bins
        Numbers and dates are cut into at most so many bins of nearly equal weight, equal ones
        never apart.
    n_values
        But up to so many distinct numbers or dates have a row each, where they have five rows of
        data each on average: months, or counts. Up to so many names always have; of more, the
        rarest share one row, "others", so that there are no more rows than this, but for
        "missing".
    level
        How often intervals should hold.
    simultaneous
        Whether all should hold at once, or each by itself.
    clusters
        One cluster label per row, as in :func:`calibrant.estimate`: rows of one cluster may depend
        on each other.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`. Weights must not depend on the outcome given the prediction.
    multiclass
        "confidence" or a class label; the table is about one binary problem.

    Returns
    -------
    BiasTable
        One row a value, a bin or a name; its `gap` is positive where predictions are too low.

    Notes
    -----
    A gap of 0 at every value is less than calibration: errors at low and at high scores may
    cancel. See :func:`calibrant.by_group` for a test that sees them.

    With m the mean outcome of n rows and r = y - p, limits are those of Clopper and Pearson for
    the chance of m n' events in n' rows, less the mean prediction, where

        n' = n m'(1 - m') / v.

    n' exceeds n where predictions explain part of the outcomes: their variance is m'(1 - m'), that
    of r is v. Both are taken with z^2 rows more, half of them events, that predictions do not
    explain; z is the normal quantile of the interval. So n' is n where all predictions are equal
    and none weighs more than others, and intervals stay honest where only one outcome was seen.
    Weights count as
    n = (sum w)^2 / sum w^2 rows, and n' is divided by the design effect of clusters, of which each
    row of the table should have some tens; where there is but one, nothing is known.

    Measured at level 0.95 with ten kinds of predictions, 3 to 500 rows, weighted and not, 4000
    samples each: for the chances of the rows at hand they held 94.9% of the time or more. For the
    gap of a population, of which predictions are drawn too, it was 91% or more from 30 rows on.

    References
    ----------
    Korn and Graubard, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data" (1998): rows that data are worth.

    Examples
    --------
    >>> y_true, y_prob = [0, 0, 1, 1, 1, 1], [0.2, 0.4, 0.3, 0.6, 0.9, 0.9]
    >>> bias_along(y_true, y_prob, ["sea", "sea", "sea", "land", "land", None])
    feature         n mean_pred mean_true      gap     95% interval
    land            2    0.7500    1.0000  +0.2500  -0.6017 +0.2500
    sea             3    0.3000    0.3333  +0.0333  -0.2919 +0.6076
    missing         1    0.9000    1.0000  +0.1000  -0.8750 +0.1000
    intervals hold each by itself
    """
    n_bins, n_values = checks.as_bins(n_bins), checks.as_count(n_values, "n_values")
    level, simultaneous = checks.as_level(level), checks.as_flag(simultaneous, "simultaneous")
    problem = one_problem(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    if not problem.is_exact:
        raise SketchError("bias_along needs rows: a sketch does not know their features")
    sample = problem.rows
    known = _aligned(feature, sample, sample_weight)
    p, y, w = sample.columns()
    parts = parts_of(known, w, n_bins, n_values)
    sums = PartSums.gather(parts.code, p, y, w)
    tail = sidak_tail(level, parts.n) if simultaneous else pointwise_tail(level)
    code = None if clusters is None else read_codes(clusters, sample_weight, sample.n)
    lower, upper = sums.limits(tail, code)
    return BiasTable(
        known.name,
        known.kind,
        *(parts.label, parts.low, parts.high, parts.mean),
        *(np.bincount(parts.code), sums.weight, sums.pred, sums.true),
        gap=sums.true - sums.pred,
        low=lower - sums.pred,
        high=upper - sums.pred,
        level=level,
        simultaneous=simultaneous,
        has_missing=parts.has_missing,
        n_pooled=parts.n_pooled,
        # Of several classes the greatest probability is at least 1/C.
        is_confidence=sample.lowest > 0,
    )


def _aligned(feature: Any, sample: Sample, sample_weight: Any) -> Feature:
    """Return the feature of the rows that carry weight."""
    if feature is None:
        raise CalibrantError("is missing", argument="feature", hint="give one value per row")
    known = read_feature(feature)
    n_rows = sample.n if sample_weight is None else len(as_array(sample_weight, "sample_weight"))
    if len(known) != n_rows:
        raise CalibrantError(
            "must have one value per row",
            argument="feature",
            value=len(known),
            found="{value} for {n_rows} rows",
            n_rows=n_rows,
        )
    w = read_weights(sample_weight, n_rows)
    return known if w is None else known.rows(w > 0)
