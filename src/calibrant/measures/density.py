"""Density-based calibration error: kernels instead of bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from calibrant.errors import CalibrantError
from calibrant.measures.canonical import CanonicalError
from calibrant.measures.density_error import Bandwidth, read_density_error
from calibrant.measures.registry import MeasureInfo
from calibrant.multiclass import read_classes, reduce_classes

__all__ = ["density_ece"]


def density_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    bandwidth: Bandwidth = "silverman",
    kernel: Literal["gaussian", "triweight"] = "gaussian",
    bounds: tuple[float, float] | None = None,
    sample_weight: Any = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> float:
    """Return the density-based expected calibration error, ECE_d; 0 is perfect.

    ECE_d = integral of f(s) abs(P(y = 1 | s) - s) ds, with f and P(y = 1 | s) from two kernel
    density estimates of one bandwidth, mirrored at the bounds.

    Parameters
    ----------
    y_true, y_prob
        As in :func:`calibrant.ece`; soft labels are taken as they are.
    bandwidth
        "silverman", 0.9 min(sd, IQR / 1.34) n^(-1/5) on all scores, or a number up to 1e6.
    kernel
        "gaussian", or "triweight", which the authors' code uses: zero beyond one bandwidth.
    bounds
        The domain of the scores, where they are mirrored: (1/C, 1) for the confidence of C
        classes and (0, 1) otherwise, unless given.
    sample_weight, labels, pos_label
        As in :func:`calibrant.ece`.
    multiclass
        As in :func:`calibrant.ece`, and "canonical": the full multiclass error
        mean abs(P(y_i | s_i) - s_i[y_i]) by a Dirichlet kernel on the simplex, leave-one-out; its
        bandwidth, unless a number, is the one that predicts left-out rows best. O(n^2 C).

    Returns
    -------
    float
        The error.

    Notes
    -----
    With the Gaussian kernel it is the visual area of the smooth reliability diagram (Błasiok and
    Nakkiran 2023, Appendix A) at this bandwidth. O(n log n) for Silverman's rule, which needs
    quartiles, and O(n + 1/bandwidth) for a number, or O(n log n) for a small one. Where the IQR is
    0, Silverman's rule takes the standard deviation alone; scores that do not vary at all get a
    bandwidth of 0.01, and it gives none below 8e-6, or 1e-3 for the triweight. A number may be
    smaller as long as there are no more than 7000 distinct scores, or 300 for the triweight.

    References
    ----------
    Posocco and Bonnefoy, "Estimating Expected Calibration Errors" (2021), section 4.5.

    Examples
    --------
    >>> round(density_ece([0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75], bandwidth=0.01), 4)
    0.25
    """
    error = read_density_error(bandwidth=bandwidth, kernel=kernel, bounds=bounds)
    if isinstance(multiclass, str) and multiclass == "canonical":
        if kernel != "gaussian" or bounds is not None or pos_label is not None:
            raise CalibrantError(
                "'canonical' has its own kernel and domain",
                argument="multiclass",
                hint="leave out {kernel}, {bounds} and {pos_label}",
            )
        return _canonical(y_true, y_prob, bandwidth, sample_weight, labels)
    reduction = reduce_classes(y_true, y_prob, sample_weight, multiclass, labels, pos_label)
    return reduction.measure(error)


def _canonical(
    y_true: Any, y_prob: Any, bandwidth: Bandwidth, sample_weight: Any, labels: Any
) -> float:
    # Silverman's rule knows nothing of a simplex; there, leave-one-out prediction chooses.
    error = CanonicalError(None if isinstance(bandwidth, str) else bandwidth)
    return error(read_classes(y_true, y_prob, sample_weight, labels))


MEASURES = (
    MeasureInfo(
        density_ece,
        label="density ECE",
        title="Density-based calibration error",
        meaning="Mean distance between outcomes and predictions by kernel density estimates.",
        definition="∫ |Σ w (y − t) K(t, p)| dt / W, with K a kernel of Silverman's bandwidth, "
        "reflected at 0 and 1.",
        make=read_density_error,
        sketch="probability",
    ),
)
