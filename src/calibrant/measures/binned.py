"""Binned calibration errors: ECE and its relatives.

With bins k of weight W_k, mean prediction and mean outcome, and gap_k = mean outcome - mean
prediction:

====================  ================================================================
ECE (l1, mass)        sum_k (W_k / W) abs(gap_k) = sum_k abs(sum_{i in k} w_i (y_i - p_i)) / W
RMS error (l2, mass)  sqrt(sum_k (W_k / W) gap_k^2)
MCE (max)             max_k abs(gap_k)
width-weighted        the same with the width of bin k instead of W_k / W
====================  ================================================================

All take soft labels y in [0, 1] as they are: with hard labels the l1 error is the usual ECE, with
soft ones it is SMECE (Leznik 2026), exactly 0 when every y_i = p_i. Binned errors are biased
upwards, by more the more bins there are; near calibration `debias` removes about seven tenths of it
from l2 errors and two fifths from l1 errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from calibrant.arrays import as_array
from calibrant.binning import Side
from calibrant.measures.binned_error import BinCount, Strategy, read_binned_error
from calibrant.measures.registry import MeasureInfo
from calibrant.multiclass import reduce_classes

__all__ = ["ace", "ece", "mce", "soft_label_ece"]


def ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: BinCount = 15,
    strategy: Strategy = "uniform",
    assignment: Literal["hard", "convex"] = "hard",
    norm: Literal["l1", "l2", "max"] = "l1",
    weighting: Literal["mass", "width"] = "mass",
    closed: Side = "left",
    debias: bool = False,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the expected calibration error over bins; 0 is perfect.

    ECE = sum_k abs(sum_{i in k} w_i (y_i - p_i)) / W over the bins k, with W the total weight.

    Parameters
    ----------
    y_true
        Outcomes: 0/1, bool, soft labels in [0, 1], or two labels with `pos_label`; class labels
        (or soft rows) where `y_prob` has several columns.
    y_prob
        Predicted probabilities, shape (n,), (n, 1), (n, 2) or (n, C).
    n_bins
        A number up to a million; "sqrt", floor(sqrt(n)); "sweep", the largest number up to n whose
        bin means do not decrease; "cv", the number with the lowest leave-one-out squared loss.
    strategy
        "uniform" bins, "quantile" bins of nearly equal weight, or edges increasing from 0 to 1
        (then `n_bins` has no say).
    assignment
        "hard": a row counts in its bin. "convex": it is shared between the two bins whose centres
        enclose it.
    norm
        "l1" mean, "l2" root mean square or "max" over bins.
    weighting
        Count a bin by the "mass" in it or by its "width".
    closed
        Which edge a bin contains; the outer edges always belong to the outer bins.
    debias
        Subtract the expected effect of sampling noise: from squared gaps (l2, Kumar et al. 2019)
        or from absolute ones (l1, folded normal). The result never falls below 0.
    sample_weight
        Non-negative weights, 0 or from 1e-100 to 1e100; a row of weight 0 is ignored.
    multiclass
        How several columns become one number. "confidence" (what None means for more than two
        columns): is the predicted class right as often as its probability says? "classwise": the
        problem "is it class c?" of every c, combined with equal weights. "top_label": confidence
        within each predicted class, combined by their weight. A class label: that class alone.
        Classes combine by mean ("l1"), root mean square ("l2") or maximum ("max").
    labels
        The class of each column of `y_prob`, in order; 0..C-1 unless given.
    pos_label
        The label that `y_prob` speaks of, where the two labels are not 0 and 1.

    Returns
    -------
    float
        The error; 0 where every bin's mean outcome equals its mean prediction.

    Notes
    -----
    Empty bins contribute 0. One pass over the rows for uniform bins and given edges, one sort for
    quantile bins. p = 0 and p = 1 fall into the outer bins.

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), eq. 1.
    Leznik, "Soft Mean Expected Calibration Error" (2026), eq. 5: soft labels.
    Arrieta-Ibarra et al., "Metrics of Calibration" (2022), eqs. 3-4: weighting by width.

    Examples
    --------
    >>> ece([1, 0], [0.95, 1.0], n_bins=10)
    0.475
    """
    error = read_binned_error(
        n_bins=n_bins,
        strategy=strategy,
        assignment=assignment,
        norm=norm,
        weighting=weighting,
        closed=closed,
        debias=debias,
    )
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(error, error.norm)


def mce(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: BinCount = 15,
    strategy: Strategy = "uniform",
    assignment: Literal["hard", "convex"] = "hard",
    closed: Side = "left",
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the maximum calibration error over bins, ``ece(norm="max")``; 0 is perfect.

    MCE = max_k abs(mean outcome - mean prediction) over the bins that hold any row. It is the
    error of the noisiest bin more often than of the worst one: read it beside
    :func:`calibrant.bin_table`.

    Parameters
    ----------
    y_true, y_prob, n_bins, strategy, assignment, closed
        As in :func:`ece`.
    sample_weight, multiclass, labels, pos_label
        As in :func:`ece`.

    Returns
    -------
    float
        The largest gap of any bin (and of any class, where there are several).

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015); Posocco and Bonnefoy (2021), section 3.

    Examples
    --------
    >>> mce([0, 0, 1, 1], [0.125, 0.25, 0.75, 0.875], n_bins=2)
    0.1875
    """
    return ece(
        y_true,
        y_prob,
        norm="max",
        n_bins=n_bins,
        strategy=strategy,
        assignment=assignment,
        closed=closed,
        sample_weight=sample_weight,
        multiclass=multiclass,
        labels=labels,
        pos_label=pos_label,
    )


def ace(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: BinCount = 15,
    assignment: Literal["hard", "convex"] = "hard",
    norm: Literal["l1", "l2", "max"] = "l1",
    weighting: Literal["mass", "width"] = "mass",
    debias: bool = False,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the adaptive calibration error, ``ece(strategy="quantile")``; 0 is perfect.

    Bins hold nearly equal weight. For more than two columns it is class-wise unless `multiclass`
    says otherwise: with bins of exactly equal counts this is the ACE of Nixon et al. (2019).

    Parameters
    ----------
    y_true, y_prob, n_bins, assignment, norm, weighting, debias
        As in :func:`ece`.
    sample_weight, multiclass, labels, pos_label
        As in :func:`ece`.

    Returns
    -------
    float
        The error over bins of equal mass.

    Notes
    -----
    Tied scores always share a bin, so there can be fewer bins than asked for; the order of rows
    never matters.

    References
    ----------
    Nixon et al., "Measuring Calibration in Deep Learning" (2019), eq. 3; Posocco and
    Bonnefoy (2021), ECE_a.

    Examples
    --------
    >>> ace([0, 1, 0, 1], [0.125, 0.25, 0.375, 0.5], n_bins=2)
    0.1875
    """
    shape = () if y_prob is None else as_array(y_prob, "y_prob").shape
    if multiclass is None and len(shape) == 2 and shape[1] > 2:
        multiclass = "classwise"
    return ece(
        y_true,
        y_prob,
        strategy="quantile",
        n_bins=n_bins,
        assignment=assignment,
        norm=norm,
        weighting=weighting,
        debias=debias,
        sample_weight=sample_weight,
        multiclass=multiclass,
        labels=labels,
        pos_label=pos_label,
    )


def soft_label_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: BinCount = 10,
    strategy: Strategy = "uniform",
    assignment: Literal["hard", "convex"] = "hard",
    norm: Literal["l1", "l2", "max"] = "l1",
    weighting: Literal["mass", "width"] = "mass",
    closed: Side = "left",
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the soft mean expected calibration error (SMECE); 0 is perfect.

    SMECE = sum_k (W_k / W) abs(mean prediction - mean soft label): :func:`ece` under the name by
    which people with probabilistic labels look for it, with 10 bins unless told otherwise.

    Parameters
    ----------
    y_true
        Soft labels in [0, 1]; hard ones give the ECE.
    y_prob, n_bins, strategy, assignment, norm, weighting, closed
        As in :func:`ece`.
    sample_weight, multiclass, labels, pos_label
        As in :func:`ece`.

    Returns
    -------
    float
        The error; exactly 0 when every label equals its prediction.

    Notes
    -----
    Rows with p = 1 belong to the last bin. The paper's half-open bins drop them.

    References
    ----------
    Leznik, "Soft Mean Expected Calibration Error" (2026), Definition 1.

    Examples
    --------
    >>> soft_label_ece([0.25, 0.5, 1.0], [0.25, 0.5, 1.0])
    0.0
    >>> soft_label_ece([0.25, 0.75], [0.5, 0.5])
    0.0
    """
    return ece(
        y_true,
        y_prob,
        n_bins=n_bins,
        strategy=strategy,
        assignment=assignment,
        norm=norm,
        weighting=weighting,
        closed=closed,
        sample_weight=sample_weight,
        multiclass=multiclass,
        labels=labels,
        pos_label=pos_label,
    )


MEASURES = (
    MeasureInfo(
        ece,
        label="ECE",
        title="Binned calibration error (ECE)",
        meaning="Mean distance between outcomes and predictions over bins of equal width.",
        definition="Σ over bins of |Σ w (y − p)| / W.",
        make=read_binned_error,
        sketch="probability",
        in_assess=True,
        order=2,
    ),
    MeasureInfo(
        ace,
        label="ACE",
        title="Adaptive calibration error (ACE)",
        meaning="Mean distance between outcomes and predictions over bins of equal weight.",
        definition="Σ over bins of |Σ w (y − p)| / W, the bins between quantiles of the scores.",
        special_case_of="ece",
    ),
    MeasureInfo(
        mce,
        label="MCE",
        title="Maximum calibration error (MCE)",
        meaning="Distance between outcomes and predictions in the worst bin; noisy in small bins.",
        definition="max over bins of |Σ w (y − p) / Σ w|.",
        special_case_of="ece",
        sketch="probability",
    ),
    MeasureInfo(
        soft_label_ece,
        label="SMECE",
        title="Soft mean calibration error (SMECE)",
        meaning="The binned error for labels that are probabilities; 0 where these are predicted.",
        definition="Σ over bins of |Σ w (y − p)| / W, with y in [0, 1].",
        special_case_of="ece",
        sketch="probability",
    ),
)
