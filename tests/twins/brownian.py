"""The laws of Brownian motion by the series of 003 alone, with digits enough for any tail.

P(max|B| <= x) = (2/pi) sum_k (-1)^k/(k+1/2) exp(-(k+1/2)^2 pi^2 / (2 x^2))
P(range  <= x) = sum_k (8/x^2 + 2/((k+1/2)^2 pi^2)) exp(-2 (k+1/2)^2 pi^2 / x^2)
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache

DIGITS = 420


def max_cdf(x):
    def term(k, x, pi):
        half = Decimal(2 * k + 1) / 2
        return 2 / pi * (-1) ** k / half * (-((half * pi / x) ** 2) / 2).exp()

    return _sum(term, x)


def range_cdf(x):
    def term(k, x, pi):
        half = Decimal(2 * k + 1) / 2
        factor = 8 / x**2 + 2 / (half * pi) ** 2
        return factor * (-2 * (half * pi / x) ** 2).exp()

    return _sum(term, x)


def sf(cdf, x):
    with localcontext(prec=DIGITS):
        return float(1 - cdf(x))


def _sum(term, x):
    with localcontext(prec=DIGITS):
        x, pi = Decimal(x), _pi()
        total, k = Decimal(0), 0
        while True:
            added = term(k, x, pi)
            total += added
            k += 1
            if abs(added) < Decimal(10) ** (5 - DIGITS):
                return total


@cache
def _pi():
    """Machin: pi/4 = 4 arctan(1/5) - arctan(1/239)."""
    return 4 * (4 * _arctan_inverse(5) - _arctan_inverse(239))


def _arctan_inverse(n):
    power, total, k = Decimal(1) / n, Decimal(0), 0
    while abs(power) > Decimal(10) ** (-DIGITS - 5):
        total += (-1) ** k * power / (2 * k + 1)
        power /= n * n
        k += 1
    return total
