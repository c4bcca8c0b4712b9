"""The estimators that are compared, each by the call that a user would make.

`ESTIMATORS` holds the paper's fifteen, the paper's again as the authors' released code has them,
and others of this library. The authors' differ from the paper's text, or from what it must mean:

- convex shares are exchanged, and for confidence the bins lie on [1/C, 1];
- bins of equal mass hold floor(n / B) rows, and the last one all that is left;
- Silverman's constant is (3/4)^(-1/5) = 1.06, and class-wise errors use the bandwidth of the first
  class for all. (Their kernel, a triweight whose standard deviation is the bandwidth, makes next to
  no difference to a Gaussian.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from calibrant.arrays import FloatArray
from calibrant.papers._samples import (
    Samples,
    convex_error,
    debiased_error,
    equal_counts,
    equal_mass,
    hard_error,
    sweep_error,
    uniform,
)
from calibrant.papers._smoothed_samples import (
    density_error,
    logit_smoothed_error,
    silverman,
    smooth_error,
)

Option = str | int | float | bool
Count = int | Literal["sqrt"]
# Takes samples, and those of the first class for what the authors' code takes from it.
Measure = Callable[[Samples, Samples], FloatArray]

COUNTS: tuple[Count, ...] = (10, 30, "sqrt")
BANDWIDTHS: tuple[float | str, ...] = ("silverman", 0.1, 0.033)
KDEPY_CONSTANT = (3 / 4) ** -0.2


@dataclass(frozen=True)
class Estimator:
    """An estimator of the calibration error.

    Attributes
    ----------
    name
        What tables call it.
    family, parameter
        What figures draw it as.
    measure
        Gives its values on many samples at once.
    call, options
        The function of calibrant that computes it and its keywords; no function for those of the
        authors' code.
    """

    name: str
    family: str
    parameter: str
    measure: Measure
    call: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)


def _n_bins(count: Count, samples: Samples) -> int:
    return int(np.sqrt(samples.n)) if count == "sqrt" else count


def _legacy(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return hard_error(samples, uniform(samples, _n_bins(count, samples)))


def _adaptive(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return hard_error(samples, equal_mass(samples, _n_bins(count, samples)))


def _convex(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return convex_error(samples, uniform(samples, _n_bins(count, samples)))


def _adaptive_convex(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return convex_error(samples, equal_mass(samples, _n_bins(count, samples)))


def _density(bandwidth: float | str, samples: Samples, first: Samples) -> FloatArray:
    width = silverman(samples) if isinstance(bandwidth, str) else bandwidth
    return density_error(samples, width)


def _debiased(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return debiased_error(samples, equal_mass(samples, _n_bins(count, samples)))


def _coded_adaptive(count: Count, samples: Samples, first: Samples) -> FloatArray:
    return hard_error(samples, equal_counts(samples, _n_bins(count, samples)))


def _coded_convex(count: Count, samples: Samples, first: Samples) -> FloatArray:
    bins = uniform(samples, _n_bins(count, samples), samples.lowest)
    return convex_error(samples, bins, exchanged=True)


def _coded_adaptive_convex(count: Count, samples: Samples, first: Samples) -> FloatArray:
    bins = equal_counts(samples, _n_bins(count, samples), samples.lowest)
    return convex_error(samples, bins, exchanged=True)


def _coded_density(samples: Samples, first: Samples) -> FloatArray:
    return density_error(samples, silverman(first, KDEPY_CONSTANT))


def _binned(
    family: str,
    measure: Callable[[Count, Samples, Samples], FloatArray],
    options: Mapping[str, Option],
    counts: tuple[Count, ...] = COUNTS,
    call: str = "ece",
) -> list[Estimator]:
    return [
        Estimator(
            f"{family} {count}",
            family,
            str(count),
            partial(measure, count),
            call,
            {"n_bins": count, **options} if call else {},
        )
        for count in counts
    ]


_QUANTILE: dict[str, Option] = {"strategy": "quantile"}
_CONVEX: dict[str, Option] = {"assignment": "convex"}

PUBLISHED: tuple[Estimator, ...] = (
    *_binned("legacy", _legacy, {}),
    *_binned("adaptive", _adaptive, _QUANTILE),
    *_binned("convex", _convex, _CONVEX),
    *_binned("adaptive-convex", _adaptive_convex, _QUANTILE | _CONVEX),
    *(
        Estimator(
            f"density {h}", "density", str(h), partial(_density, h), "density_ece", {"bandwidth": h}
        )
        for h in BANDWIDTHS
    ),
)
CODED: tuple[Estimator, ...] = (
    *_binned("adaptive, code", _coded_adaptive, {}, call=""),
    *_binned("convex, code", _coded_convex, {}, call=""),
    *_binned("adaptive-convex, code", _coded_adaptive_convex, {}, call=""),
    Estimator("density, code silverman", "density, code", "silverman", _coded_density),
)
OTHERS: tuple[Estimator, ...] = (
    *_binned("legacy", _legacy, {}, counts=(15,)),
    *_binned("adaptive", _adaptive, _QUANTILE, counts=(15,)),
    Estimator(
        "adaptive sweep",
        "adaptive",
        "sweep",
        lambda samples, _: sweep_error(samples),
        "ece",
        {"n_bins": "sweep", **_QUANTILE},
    ),
    *_binned("debiased", _debiased, _QUANTILE | {"debias": True}, counts=(5, 10)),
    Estimator("smooth", "smooth", "", lambda samples, _: smooth_error(samples), "smooth_ece"),
    Estimator(
        "logit-smoothed",
        "logit-smoothed",
        "",
        lambda samples, _: logit_smoothed_error(samples, 1.0),
        "logit_smoothed_ece",
        {"sigma": 1.0, "noise": "uniform"},
    ),
)
ESTIMATORS: dict[str, Estimator] = {one.name: one for one in (*PUBLISHED, *CODED, *OTHERS)}
