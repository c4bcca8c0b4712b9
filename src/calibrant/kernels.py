"""Kernels for density estimates: their Fourier transforms and how finely they must be resolved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.arrays import FloatArray


@dataclass(frozen=True)
class Kernel:
    """A kernel of unit scale on the line.

    Attributes
    ----------
    multiplier
        Its Fourier transform.
    peak
        Its value at 0.
    reach
        How far from 0 there is anything of it, or of what a series of cosines makes of it.
    roughness
        How many times more finely than a Gaussian of the same scale it must be resolved.
    third
        The integral of the size of its third derivative, over 3!.
    widening
        The integral of the size of its derivative with respect to its scale.
    """

    multiplier: Callable[[FloatArray], FloatArray]
    peak: float
    reach: float
    roughness: float
    third: float
    widening: float


def _gaussian(omega: FloatArray) -> FloatArray:
    return np.exp(omega * omega * -0.5)


def _triweight(omega: FloatArray) -> FloatArray:
    from scipy.special import spherical_jn

    small = omega < 1e-2
    safe = np.where(small, 1.0, omega)
    # 105 j_3(x) / x^3, by its series where the quotient would lose digits.
    return np.where(small, 1 - omega**2 / 18, 105 * spherical_jn(3, safe) / safe**3)


GAUSSIAN = Kernel(_gaussian, 1 / np.sqrt(2 * np.pi), 9.0, 1.0, third=0.252, widening=0.968)
# (35/32) (1 - u^2)^3 on [-1, 1]: its transform falls like 105 / x^4 only.
TRIWEIGHT = Kernel(_triweight, 35 / 32, 1.5, 128.0, third=91 / 16, widening=1.042)
KERNELS = {"gaussian": GAUSSIAN, "triweight": TRIWEIGHT}
