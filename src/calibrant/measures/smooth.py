"""SmoothECE: the calibration error after smoothing at the scale of the error itself.

    h_s(t)  = (1/W) sum_i w_i K_s(t, p_i) (y_i - p_i)
    smECE_s = integral of abs(h_s) over [0, 1],   which does not grow with s
    smECE   = the one s with smECE_s = s

K_s(., p) is the density of p + s Z reflected into [0, 1], which keeps all of its mass also for
p = 0 and p = 1. (Read as a sum over a set of preimages, eq. 2 of the paper gives those two points
half of it; its Lemma 25 needs all.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from calibrant.arrays import FloatArray
from calibrant.measures.registry import MeasureInfo
from calibrant.measures.smooth_error import read_smooth_error
from calibrant.multiclass import reduce_classes

__all__ = ["smooth_ece"]


def smooth_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    bandwidth: float | None = None,
    scale: Literal["probability", "logit"] | Callable[[FloatArray], FloatArray] = "probability",
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the smooth calibration error, smECE; 0 is perfect.

    smECE_s = integral of abs((1/W) sum_i w_i K_s(t, p_i) (y_i - p_i)) dt with K_s the Gaussian of
    scale s reflected at 0 and 1; smECE is the one s with smECE_s = s. It has no bins, moves
    continuously with the predictions, and bounds the distance to the nearest calibrated
    predictor: dCE / 2 <= smECE <= 2 sqrt(dCE). (Not SMECE, the ECE with soft labels, which is
    :func:`calibrant.soft_label_ece`.)

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`; soft labels are taken as they are.
    bandwidth
        A scale s, up to 1e6, at which to give smECE_s; None finds the fixed point.
    scale
        "probability"; "logit", or any strictly increasing function f of the scores, smooths in
        u = f(p) on the whole line, with a plain Gaussian. Where f is infinite, at 0 and 1, rows
        cannot be smoothed and count abs(sum w (y - p)) / W at either end.
    sample_weight, multiclass, labels, pos_label
        As in :func:`calibrant.ece`.

    Returns
    -------
    float
        The error, within 1e-9 of the exact value for this sample.

    Notes
    -----
    Between abs(mean(y - p)) and mean(abs(y - p)). One pass over the rows, then work that depends
    on the bandwidth only, and from 1/4096 down on the number of distinct scores at most. Up to 7000
    distinct scores any bandwidth is resolved. With more a fixed point below 8e-6 may be out of
    reach, and is then given as smECE at the finest scale that is not; on other scales, where the
    limit is 8e-6 times the range of f(p), it is refused.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE" (2023), eqs. 2-5, Definition 2 and Appendix B.

    Examples
    --------
    >>> smooth_ece([0.5, 0.75], [0.5, 0.75])
    0.0
    >>> round(smooth_ece([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0]), 6)
    0.171062
    """
    error = read_smooth_error(bandwidth=bandwidth, scale=scale)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(error)


MEASURES = (
    MeasureInfo(
        smooth_ece,
        label="smECE",
        title="Smooth calibration error (smECE)",
        meaning="How far outcomes are from predictions, smoothed at a scale of its own; no bins to "
        "choose.",
        definition="∫ |Σ w (y − p) K(t, p)| dt / W, with K the Gaussian reflected at 0 and 1, of "
        "the one scale that equals the result.",
        make=read_smooth_error,
        sketch="probability",
        in_assess=True,
        order=1,
    ),
)
