"""Predictions for rows that were held out: every row is mended by what other rows taught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant import checks
from calibrant.arrays import AnyArray, FloatArray
from calibrant.class_table import ClassTable
from calibrant.errors import CalibrantError
from calibrant.problem import Index
from calibrant.randomness import Generator, read_generator
from calibrant.reading import read_weights
from calibrant.recalibration.calibrator import Calibrator
from calibrant.recalibration.reading import check_order, read_rows
from calibrant.sample import Sample

__all__ = ["cross_fitted"]

Table = Sample | ClassTable


def cross_fitted(
    calibrator: Calibrator,
    y_prob: Any,
    y_true: Any,
    *,
    cv: int = 5,
    rng: int | Generator = 0,
    sample_weight: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> FloatArray:
    """Return mended probabilities of every row, learnt from the other parts of the rows.

    Parameters
    ----------
    calibrator
        What to fit, once a part; it is cloned and stays as it is.
    y_prob, y_true, sample_weight, labels, pos_label
        As in :meth:`~calibrant.recalibration.Calibrator.fit`, in its order.
    cv
        In how many parts the rows are divided, at random, each with its share of every outcome.
    rng
        A seed or a generator for the division.

    Returns
    -------
    ndarray
        Shape (n,) for one or two columns, (n, classes) for more. Row i was mended by a map that
        has not seen row i.

    Examples
    --------
    >>> from calibrant.datasets import load_rain
    >>> from calibrant.measures.smooth import smooth_ece
    >>> from calibrant.recalibration import PlattCalibrator
    >>> y_true, y_prob = load_rain()
    >>> held_out = cross_fitted(PlattCalibrator(), y_prob, y_true)
    >>> round(smooth_ece(y_true, y_prob), 3), round(smooth_ece(y_true, held_out), 3)
    (0.134, 0.028)
    """
    if not isinstance(calibrator, Calibrator):
        raise CalibrantError(
            "must be one of calibrant.recalibration's", argument="calibrator", value=calibrator
        )
    check_order(y_prob, y_true)
    table = read_rows(y_true, y_prob, labels, pos_label)
    weight = read_weights(sample_weight, n_rows(table))
    return held_out(calibrator, table, weight, divided(table, weight, cv, rng))


def divided(table: Table, weight: AnyArray | None, cv: int, rng: int | Generator) -> Index:
    """Return the part of each row, equal outcomes being dealt out evenly.

    Rows without weight, which teach nothing, are dealt out by themselves: after all others.
    """
    cv, n = checks.as_count(cv, "cv"), n_rows(table)
    is_idle = np.zeros(n, dtype=bool) if weight is None else weight == 0
    n_counting = n - int(is_idle.sum())
    if not 2 <= cv <= n_counting:
        which = "rows" if n_counting == n else "rows with positive weight"
        raise CalibrantError(
            "must be between 2 and the number of {which}, {maximum}",
            argument="cv",
            value=cv,
            which=which,
            maximum=n_counting,
        )
    kind = columns(table)[1]
    kind = kind.argmax(axis=1) if kind.ndim == 2 else kind
    order = read_generator(rng).permutation(n)
    order = order[np.lexsort((kind[order], is_idle[order]))]
    part = np.empty(n, dtype=np.intp)
    part[order] = np.arange(n) % cv
    return part


def held_out(
    calibrator: Calibrator, table: Table, weight: AnyArray | None, part: Index
) -> FloatArray:
    """Return every row as mended by the rows of the other parts."""
    prob, outcome = columns(table)
    mended = np.empty(prob.shape)
    for k in range(int(part.max()) + 1):
        inside = part == k
        others = None if weight is None else weight[~inside]
        fitted = clone(calibrator).fit(prob[~inside], outcome[~inside], sample_weight=others)
        mended[inside] = fitted.predict(prob[inside])
    return mended


def columns(table: Table) -> tuple[AnyArray, AnyArray]:
    """Return probabilities and outcomes."""
    return (table.prob, table.outcome) if isinstance(table, ClassTable) else (table.p, table.y)


def with_predictions(table: Table, prob: FloatArray) -> Table:
    """Return the same outcomes under other probabilities."""
    if isinstance(table, ClassTable):
        return replace(table, prob=prob)
    return Sample(table.y, prob, table.w, table.lowest)


def n_rows(table: Table) -> int:
    """Return the number of rows."""
    return len(columns(table)[0])
