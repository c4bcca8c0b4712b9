"""Differences between the errors of two models on the same rows.

As in :mod:`calibrant.inference.intervals`, an error is a norm N of an image h = h0 + e, the
population's image and noise. Rows make the noise of both models together: it is drawn by
multipliers, z_i of variance 1 for each row (or cluster) i, the same for all models, times what the
row adds to their images. Seen is D = N(h_a) - N(h_b), wanted delta = N(h_a0) - N(h_b0), and

    D - delta = x_a(h_a0) - x_b(h_b0),   x(g) = N(g + e) - N(g): what noise adds to an error.

What it adds depends on the population: most where that is calibrated, nothing on average where its
image stands clear of the noise. Drawing rows again, around h_a and h_b as they were seen, gets this
wrong, and says of equally good models that they differ in 10 to 16% of samples, not 5%. Here the
lower end of the interval for delta asks how large D may be by chance in a population that speaks
against a being worse than b. Three things do.

Luck may have made a look worse, or b better. Noise is taken to have raised a's error by AGAINST of
its standard deviations, or lowered b's by as much, whichever speaks more against: with s the linear
function that attains the norm of a's image, images are moved back by

    AGAINST cov(e, <s, e_a>) / sd <s, e_a>,

b's along with a's, through the rows they share; and likewise for b. This matters where the two err
in opposite ways, so that what makes one look worse makes the other look better, and where what was
clear of noise no longer is. For tails of less than 2.3%, whose normal quantile is beyond AGAINST,
that takes its place.

a may be calibrated wherever it does not clearly err: g has the least norm among images within
KAPPA standard deviations of a's (the same KAPPA as for a single error). Noise adds most to it.

b is what it seems, after moving; on average its image lies further from 0 than the population's,
which makes noise add less to it.

With u_a, u_b the images after moving, and g that of u_a, low = D - Q_{1-tail}[x_a(g) - x_b(u_b)].
Where both images stand clear of the noise, this is the interval of the paired, linear part of the
noise alone. The P-value is the least tail for which low is above 0.

At last, a is not worse than b unless a is refuted as perfectly calibrated, at the same tail: errors
are at least 0, so delta > 0 says that a's is not 0. Whatever else is approximate, of two perfectly
calibrated models neither is called worse more often than with probability `tail`.

smECE moves by no more than its norm at a fixed scale does: N_s falls with s, so that
abs(T - theta) <= abs(N_s(h) - N_s(h0)) at the larger of the two scales.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant.arrays import FloatArray
from calibrant.inference.intervals import KAPPA, View
from calibrant.measures.image_norms import shifted_norms
from calibrant.numerics.probability import rank_p_value, weibull_quantile
from calibrant.numerics.roots import monotone_root
from calibrant.randomness import Generator

# Larger is safer for models that err in opposite ways, and less powerful for all others. Measured,
# of a nominal 5%: see tests/null/test_compare_size.py.
_AGAINST = 2.0
# Numbers in all draws of one model, and how many draws are made however many cells there are.
_NUMBERS, _FEWEST_DRAWS = 1 << 23, 300
# Errors that are equal in exact arithmetic may differ by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Difference:
    """What may be said of the difference between two errors.

    Attributes
    ----------
    low, high
        The interval for the population's difference.
    p_more, p_less
        Chance of a difference at least as large, or at least as small, if the population's is 0.
    """

    low: float
    high: float
    p_more: float
    p_less: float

    @property
    def p_value(self) -> float:
        """The two-sided P-value."""
        return min(1.0, 2 * min(self.p_more, self.p_less))


@dataclass(frozen=True, eq=False)
class NoisyError:
    """The error of one model, and its noise, drawn together with that of others.

    Attributes
    ----------
    view
        The error as a norm.
    images
        Images of the noise, one row a draw; the rows of all models belong together.
    calibrated
        Simulated errors of perfectly calibrated predictions.
    """

    view: View
    images: FloatArray
    calibrated: FloatArray

    @cached_property
    def p_calibrated(self) -> float:
        """The P-value of perfect calibration."""
        return rank_p_value(self.calibrated, self.view.value, _ROUNDING * self.view.value)

    @cached_property
    def spread(self) -> FloatArray:
        """The standard deviation at each coordinate of the image."""
        return np.asarray(self.images.std(axis=0))

    @cached_property
    def luck(self) -> FloatArray:
        """The linear part of what noise adds to the error, with variance 1 (or 0)."""
        linear = self.images @ self.view.image.norm.slope(self.view.observed)
        sd = float(linear.std())
        return np.asarray(linear / sd if sd > 0 else linear)

    def without(self, luck: FloatArray) -> FloatArray:
        """Return the image as it was before luck, of some model, made it what it is."""
        return self.view.observed - (luck @ self.images) / len(self.images)

    def added_to(self, image: FloatArray) -> FloatArray:
        """Return what noise adds to the error of a population with this image."""
        norm = self.view.image.norm
        return shifted_norms(norm, self.images, image) - norm.of(image)


def drawn_together(
    views: Sequence[View], n_draws: int, rng: Generator, *, clustered: bool, needed: int = 0
) -> list[NoisyError]:
    """Draw the noise of several models on the same rows, however many cells `needed` times.

    The cells of each view know how the same clusters (or single rows) move them.
    """
    affordable = _NUMBERS // max(view.size for view in views)
    n_draws = min(n_draws, max(affordable, _FEWEST_DRAWS, needed))
    seed = int(rng.integers(1 << 62))
    models = []
    for view in views:
        # The same seed makes the same multipliers, and so the noise of the same rows.
        images = view.of_noise(view.cells.noise(n_draws, np.random.default_rng(seed)))
        alone = view.cells if clustered else replace(view.cells, moves=None, n_clusters=0)
        calibrated = view.of_noise(alone.calibrated_noise(n_draws, rng))
        norms = shifted_norms(view.image.norm, calibrated, view.offset)
        models.append(NoisyError(view, images, norms))
    return models


def difference(a: NoisyError, b: NoisyError, level: float) -> Difference:
    """Return what may be said of a's error minus b's."""
    tail = (1 - level) / 2
    low, high = _least(a, b, tail), -_least(b, a, tail)
    return Difference(max(low, -1.0), min(high, 1.0), _p_more(a, b), _p_more(b, a))


def _least(a: NoisyError, b: NoisyError, tail: float) -> float:
    """Return the least that a's error minus b's may be."""
    most = max(weibull_quantile(drawn, 1 - tail) for drawn in _by_chance(a, b, tail))
    low = a.view.value - b.view.value - most
    return low if a.p_calibrated <= tail else min(low, 0.0)


def _p_more(a: NoisyError, b: NoisyError) -> float:
    """Return the P-value of a's error being no more than b's."""
    seen, usual = a.view.value - b.view.value, float(ndtr(-_AGAINST))
    rounding = _ROUNDING * abs(seen)

    def spare(tail: float) -> float:
        p_values = (rank_p_value(drawn, seen, rounding) for drawn in _by_chance(a, b, tail))
        return tail - max(p_values)

    p = usual - spare(usual)
    if p < usual:
        p = monotone_root(spare, p, usual, 0.05 / len(a.images))
    return max(p, a.p_calibrated)


def _by_chance(a: NoisyError, b: NoisyError, tail: float) -> Iterator[FloatArray]:
    """Yield by how much chance may have raised a's error minus b's, drawn many times.

    Once in the population where a was unlucky, once in that where b was lucky.
    """
    against = max(_AGAINST, float(-ndtri(tail)))
    for luck in (against * a.luck, -against * b.luck):
        best = a.view.image.norm.least(a.without(luck), KAPPA * a.spread)
        yield a.added_to(best) - b.added_to(b.without(luck))
