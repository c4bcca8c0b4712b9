"""Confidence intervals for calibration errors, valid at perfect calibration too.

Every error here is a norm N of an image h that is linear in the residuals summed over narrow cells
of scores: h = h0 + e, the population's image and noise that can be simulated. The target is
theta = N(h0), observed is T = N(h0 + e). Noise adds to a norm: N(e) where h0 = 0, nothing
where h0 is far from 0. A bootstrap around h, which lies further from 0 than h0 does, ignores this.
a is half of 1 - level, Q_a the a-quantile over simulated noise.

Is it 0?  low = 0 unless T > Q_{1-a} N(e0), e0 drawn under perfect calibration: outcomes
Bernoulli(p). At perfect calibration low > 0 has probability a, whatever n and the scores.

How low?  In two steps. With b = a / 5 and kappa = Q_{1-b} max_k abs(e_k) / sd_k, all coordinates of
h0 are within kappa standard deviations of those of h, but for a probability b. What noise e adds to
the norm of any such image is at most A(e), which the norm knows (`most_added`), and

    low = T - Q_{1-a+b} A(e).

Theorem: given the distribution of e, theta < low has probability a at most, whatever h0. Proof: if
h0 is in the rectangle, T - theta = N(h0 + e) - N(h0) exceeds Q_{1-a+b} A only where it exceeds its
own quantile Q_{1-a+b} [N(h0 + e) - N(h0)], as A is not less for any e; the probabilities of that
and of h0 outside the rectangle are a - b and b. For the sum of absolute values
A(e) = N(g + e) - N(g), g the image of minimum norm in the rectangle: see `L1Norm` and `MaxNorm`.
Linear functions that never exceed the norm bound it from below, and noise adds less to them: the
sum over all coordinates is the better bound for a shift, sums with one change of sign for
predictions too extreme or too cautious (`linear_bounds`). The rectangle then includes them; of the
tail a - b the norm has half, and each family of such functions the same part of the other half.
The root of a sum of squares needs no rectangle: noise of equal sd adds the same wherever h0 points,
so that low = the x with Q_{1-a} N(x d + e) = T, d being the direction of h, or of sd.

How high?  high = the x with Q_a N(g_x + e) = T along images g_x of norm x to which noise adds
least (`paths` of each norm): those that are significantly different from 0 as observed, the others
rising together. By duality, N(h0 + e) >= theta + <s, e> with s the linear function that attains the
norm of h0; so high is never above the bound T - Q_a <s, e> that the linear function alone would
give. Where noise is made of few events, only that bound is used.

smECE is the scale s at which N_s = s, and N_s decreases with s: smECE >= s if and only if N_s >= s.
At the population's own smECE, a fixed scale, the theorem holds as it stands: so low is the smallest
s that the bound at scale s does not exclude, and no fixed point is ever searched for in simulated
data. docs/methods/intervals.md has the proofs, and what is only simulated.

Rows may depend on each other within clusters, which are then resampled as a whole. With R_gc the
residual total of cluster g in cell c and W_g its weight, resampling clusters changes the total r_c
by the sum of z_g (R_gc - (W_g / W) r_c), z_g independent with variance 1: a multiplier bootstrap.
Where clusters are many they are added up in bundles, each cluster with a random sign, which leaves
the covariance of the noise unchanged on average, and nearly so in fact.

Cost: one pass over the rows, then n_resamples times the number of cells, whatever n.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from calibrant._base import FloatArray
from calibrant.data import validation
from calibrant.data.labels import read_labels
from calibrant.data.problem import CellOf, Index, Problem
from calibrant.data.validation import Generator
from calibrant.errors import CalibrantError
from calibrant.measures.registry import LinearImage, MaxNorm, Measure, shifted_norms
from calibrant.numerics.probability import monotone_root, weibull_quantile

# Binomial counts of at least this variance are drawn as normal: no measure looks at single cells,
# and sums over several are closer to normal still.
_NORMAL_VARIANCE = 9.0
# Bundling changes covariances by about sqrt(2 / 1024), 4%.
_MOST_BUNDLES = 1024
# The variance between fewer clusters is unknown, or hardly known.
MIN_CLUSTERS, _FEW_CLUSTERS = 3, 10
# Of differences between two errors: see `calibrant.inference.paired`.
KAPPA = 1.25
# The part of a tail that is spent on the rectangle around the image.
_PART = 0.2
# With fewer events the noise estimated from one sample differs too much from that of the next.
_FEW_EVENTS = 15.0
# An error beyond all of few resamples under perfect calibration rejects it. Of m resamples, k = m a
# for a tail a, an error that is no larger than the quantile of 1 - a exceeds the maximum with
# probability a exp(-k) / k at most, whatever the distribution; here 3% of a.
_DRAWS_PER_TAIL = 2.5
# Norms of one outcome or another may be equal, but for rounding.
_TIE = 1e-9
# Ends are found to this fraction of the standard deviation of the mean residual, or of smECE.
_PRECISION = 1e-6
# Scales at which the lower end of smECE is tried.
_MOST_SCALES = 3
# Numbers in all resamples together. Where cells are so many that there would be more, an error is
# the sum of so many nearly independent parts that fewer resamples, but at least 300, show its
# quantiles as well. High levels need more of them, as far as 64 MB hold them.
_NUMBERS, _MOST_NUMBERS, _FEWEST_DRAWS = 1 << 19, 1 << 23, 300


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which cluster each row belongs to.

    Attributes
    ----------
    bundle, sign
        The bundle of each row, and the sign with which it counts there.
    n
        The number of clusters.
    """

    bundle: Index
    sign: FloatArray
    n: int

    @classmethod
    def read(
        cls, labels: Any, sample_weight: Any, problem: Problem, rng: Generator
    ) -> Clusters | None:
        """Read one label per row, or None; rows of weight 0 are left out as they are elsewhere."""
        if labels is None:
            return None
        if not problem.is_exact:
            raise CalibrantError(
                "clusters needs rows: a sketch does not know which rows belong together"
            )
        return cls.of_codes(read_codes(labels, sample_weight, problem.n), rng)

    @classmethod
    def of_codes(cls, code: Index, rng: Generator) -> Clusters:
        """Return the clusters of rows known by numbers, some of which may not occur."""
        names, code = np.unique(code, return_inverse=True)
        n = len(names)
        if n <= _MOST_BUNDLES:
            return cls(code, np.ones(len(code)), n)
        bundle = rng.permutation(n) % _MOST_BUNDLES
        return cls(bundle[code], rng.choice([-1.0, 1.0], n)[code], n)

    @classmethod
    def single_rows(cls, n: int, rng: Generator) -> Clusters:
        """Return n rows, each a cluster of its own."""
        return cls.of_codes(np.arange(n), rng)

    @cached_property
    def n_bundles(self) -> int:
        """The number of bundles of clusters, or of clusters where they are few."""
        return int(self.bundle.max()) + 1

    def blocks(
        self, problem: Problem
    ) -> Iterator[tuple[Index, FloatArray, FloatArray, FloatArray]]:
        """Yield bundle, p, y and signed weight of the rows, block by block."""
        start = 0
        for p, y, w in problem.rows.blocks():
            rows = slice(start, start + len(p))
            start, sign = rows.stop, self.sign[rows]
            yield self.bundle[rows], p, y, sign if w is None else w * sign

    def totals(
        self, problem: Problem, cell_of: CellOf, n_cells: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the residual totals of bundles, shape (bundles, cells), and their weights."""
        totals, weight = np.zeros(self.n_bundles * n_cells), np.zeros(self.n_bundles)
        for bundle, p, y, w in self.blocks(problem):
            np.add.at(totals, bundle * n_cells + cell_of(p), w * (y - p))
            weight += np.bincount(bundle, w, minlength=self.n_bundles)
        return totals.reshape(self.n_bundles, n_cells), weight

    def moves(self, problem: Problem, cell_of: CellOf, residual: FloatArray) -> FloatArray:
        """Return the deviations of the residual totals of bundles, shape (bundles, cells)."""
        totals, weight = self.totals(problem, cell_of, len(residual))
        moves = totals - np.outer(weight / problem.weight, residual)
        return np.asarray(moves * np.sqrt(self.n / (self.n - 1)))


def read_codes(labels: Any, sample_weight: Any, n_rows: int, stacklevel: int = 4) -> Index:
    """Return the number of the cluster of each row that carries weight.

    Fewer than ten clusters are warned of, at this level of the stack.
    """
    names, code = read_labels(labels, "clusters", sample_weight, n_rows, allow_missing=False)
    check_clusters(len(names))
    if len(names) < _FEW_CLUSTERS:
        warnings.warn(
            f"there are only {len(names)} clusters: the variance between so few is hardly known, "
            "and intervals and P-values are inexact",
            UserWarning,
            stacklevel=stacklevel,
        )
    return code


def check_clusters(n: int) -> None:
    """Refuse so few clusters that the variance between them is unknown."""
    if n < MIN_CLUSTERS:
        raise CalibrantError(
            "must hold at least {minimum} clusters",
            argument="clusters",
            value=n,
            minimum=MIN_CLUSTERS,
        )


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows summed over cells: all that the noise of a measure depends on."""

    # Sums of w, w^2, w p, w r and (w r)^2 over the rows with y <= p and those with y > p of each
    # cell, shape (5, 2, cells).
    sides: FloatArray
    total: float  # the total weight W
    is_soft: bool  # whether outcomes are soft: then their noise is known only from the residuals
    # The deviations of the residual totals of (bundles of) clusters, shape (bundles, cells); None
    # where rows are independent.
    moves: FloatArray | None = None
    n_clusters: int = 0  # the number of clusters, 0 where rows are independent

    @classmethod
    def gather(
        cls, problem: Problem, cell_of: CellOf, n_cells: int, clusters: Clusters | None = None
    ) -> Cells:
        """Sum a problem's rows in one pass; `cell_of` says which cell holds a score."""
        cells = cls(problem.cell_sums(cell_of, n_cells), problem.weight, problem.is_soft)
        if clusters is None:
            return cells
        moves = clusters.moves(problem, cell_of, cells.residual)
        return replace(cells, moves=moves, n_clusters=clusters.n)

    def some(self, which: Index) -> Cells:
        """Return some of the cells; the others must hold no rows."""
        moves = None if self.moves is None else self.moves[:, which]
        return replace(self, sides=self.sides[:, :, which], moves=moves)

    @cached_property
    def weight(self) -> FloatArray:
        """Sum of w."""
        return np.asarray(self.sides[0].sum(axis=0))

    @cached_property
    def weight_squared(self) -> FloatArray:
        """Sum of w^2."""
        return np.asarray(self.sides[1].sum(axis=0))

    @cached_property
    def score(self) -> FloatArray:
        """Mean score."""
        pred: FloatArray = self.sides[2].sum(axis=0)
        mean = np.divide(pred, self.weight, out=np.zeros_like(pred), where=self.weight > 0)
        return np.clip(mean, 0.0, 1.0)

    @cached_property
    def residual(self) -> FloatArray:
        """Sum of w (y - p)."""
        return np.asarray(self.sides[3].sum(axis=0))

    @cached_property
    def residual_squared(self) -> FloatArray:
        """Sum of w^2 (y - p)^2: the variance of the residual total."""
        return np.asarray(self.sides[4].sum(axis=0))

    @cached_property
    def rows(self) -> FloatArray:
        """The effective number of rows: (sum w)^2 / sum w^2, a whole number."""
        empty, squares = np.zeros_like(self.weight), self.weight_squared
        ratio = np.divide(self.weight**2, squares, out=empty, where=squares > 0)
        return np.where(self.weight > 0, np.maximum(np.rint(ratio), 1.0), 0.0)

    @cached_property
    def calibrated_variance(self) -> FloatArray:
        """The variance of residual totals under perfect calibration, of independent rows."""
        if self.is_soft:
            return self.residual_squared
        return self.weight_squared * self.score * (1 - self.score)

    @cached_property
    def variance(self) -> float:
        """The variance of the sum of all residuals.

        Where few outcomes of one kind were seen their residuals may say too little: it is never
        less than under perfect calibration.
        """
        if self.moves is None:
            seen = float(self.residual_squared.sum())
        else:
            seen = float(np.square(self.moves.sum(axis=1)).sum())
        return max(float(self.calibrated_variance.sum()), seen)

    @property
    def has_one_distribution(self) -> bool:
        """Whether noise is drawn alike whether or not calibration is perfect."""
        return self.is_soft or self.moves is not None

    @cached_property
    def is_normal(self) -> bool:
        """Whether calibrated noise is drawn as normal in every cell."""
        return self.has_one_distribution or not self._is_counted.any()

    @cached_property
    def growth(self) -> float:
        """How fast the variance of the mean residual may grow with its mean.

        Changing the probability of outcome 1 by x changes its variance by at most x abs(1 - 2p):
        negligible, unless outcomes are rare; then x more is as much more variance, as for a Poisson
        count.
        """
        if self.is_soft:
            return 0.0
        v = self.calibrated_variance if self.calibrated_variance.any() else self.weight_squared
        filled = v > 0
        mean_weight = self.weight_squared[filled] / self.weight[filled]
        steepness = np.abs(1 - 2 * self.score[filled]) * mean_weight
        return float(v[filled] @ steepness / (v.sum() * self.total))

    @cached_property
    def events(self) -> float:
        """The effective number of events: few where one of the outcomes is rare.

        That many Poisson events have a sum of squares as variable, relative to its mean, as that
        of calibrated residuals. It is infinite for p = 1/2, where every square is 1/4.
        """
        if self.is_soft:
            return math.inf
        filled = self.weight > 0
        p = self.score[filled]
        # Relative to the largest: fourth powers of weights may overflow.
        most = float(self.weight_squared.max())
        fourth = (self.weight_squared[filled] / most) ** 2 / self.rows[filled]
        spread = float(fourth @ (p * (1 - p) * (1 - 2 * p) ** 2))
        mean = float(self.calibrated_variance.sum()) / most
        return mean * mean / spread if spread > 0 else math.inf

    def calibrated_noise(self, n: int, rng: Generator) -> FloatArray:
        """Draw residual totals under perfect calibration, shape (n, cells)."""
        if self.has_one_distribution:
            return self.noise(n, rng)
        noise = _normal(np.where(self._is_counted, 0.0, self.calibrated_variance), n, rng)
        (counted,) = np.nonzero(self._is_counted)
        k, p = self.rows[counted], self.score[counted]
        # One cell at a time: the set-up of a binomial distribution serves all its draws.
        draws = rng.binomial(k.astype(np.int64)[:, None], p[:, None], (len(k), n)).T - k * p
        draws *= np.sqrt(self.weight_squared[counted] / k)
        noise[:, counted] = draws
        return noise

    def noise(self, n: int, rng: Generator, *, calibrated: bool = False) -> FloatArray:
        """Draw noise of the residual totals, shape (n, cells).

        Its variance has the shape of that of the residuals, or that under perfect calibration.
        """
        # Moves so small that their squares underflow are ignored.
        drawn = 0.0 if self.moves is None else float(np.square(self.moves).sum())
        if self.moves is not None and drawn > 0:
            draws = _cluster_noise(self.moves, self.n_clusters, n, rng)
            expected = float(self.calibrated_variance.sum())
            draws *= math.sqrt(max(expected / drawn, 1.0))
            return draws
        certain = not self.calibrated_variance.any()
        variance = self.calibrated_variance if calibrated and not certain else self.residual_squared
        if variance.any():
            variance = variance * (self.variance / variance.sum())
        return _normal(variance, n, rng)

    @cached_property
    def _is_counted(self) -> npt.NDArray[np.bool_]:
        """Where calibrated noise is drawn as a binomial count."""
        variance = self.rows * self.score * (1 - self.score)
        return np.asarray((variance > 0) & (variance < _NORMAL_VARIANCE))


def _normal(variance: FloatArray, n: int, rng: Generator) -> FloatArray:
    """Draw independent normal totals, shape (n, cells)."""
    (moved,) = np.nonzero(variance)
    draws = rng.standard_normal((n, len(moved)))
    draws *= np.sqrt(variance[moved])
    if len(moved) == len(variance):
        return draws
    noise = np.zeros((n, len(variance)))
    noise[:, moved] = draws
    return noise


def _cluster_noise(moves: FloatArray, n_clusters: int, n: int, rng: Generator) -> FloatArray:
    """Draw noise of the residual totals, shape (n, cells).

    It is t-distributed, not normal, since variances are estimated from so many clusters only.
    """
    noise, drawn = np.zeros((n, moves.shape[1])), rng.standard_normal((n, len(moves)))
    # Most of very many cells hold no rows.
    (moved,) = np.nonzero(moves.any(axis=0))
    drawn *= np.sqrt((n_clusters - 1) / rng.chisquare(n_clusters - 1, (n, 1)))
    noise[:, moved] = drawn @ moves[:, moved]
    return noise


@dataclass(frozen=True)
class Interval:
    """An interval for the population value of an error.

    Attributes
    ----------
    low, high
        Its ends.
    centre
        The error without the effect of noise, median-unbiased, inside the interval.
    """

    low: float
    high: float
    centre: float


@dataclass(frozen=True, eq=False)
class View:
    """A measure of a sample, as a norm of an image of its cells' residual totals."""

    value: float  # the norm, from the measure computed exactly: cells serve for the noise alone
    cells: Cells  # the sample
    image: LinearImage  # the linear function of their residual totals, and its norm

    @classmethod
    def of(
        cls, measure: Measure, problem: Problem, value: float, clusters: Clusters | None = None
    ) -> View:
        """Return a measure, whose value is known, of a problem."""
        image = measure.image(problem, value)
        norm = value ** (1 / image.power)
        cells = Cells.gather(problem, image.cell_of, image.n_cells, clusters)
        if image.of_filled is None:
            return cls(norm, cells, image)
        (filled,) = np.nonzero(cells.weight)
        return cls(norm, cells.some(filled), image.of_filled(filled))

    def at_scale(self, scale: float) -> View:
        """Return the norm at another scale, for a measure that is a scale."""
        assert self.image.at_scale is not None
        return replace(self, image=self.image.at_scale(scale))

    def of_noise(self, totals: FloatArray) -> FloatArray:
        """Return the image of noise added to residual totals."""
        return self.image.of_totals(totals, self.cells.weight)

    @cached_property
    def offset(self) -> FloatArray | float:
        """The image of the population if it is perfectly calibrated."""
        offset_of = self.image.offset_of
        return 0.0 if offset_of is None else offset_of(self.cells.weight)

    @cached_property
    def observed(self) -> FloatArray:
        """The image of the sample."""
        return self.of_noise(self.cells.residual) + self.offset

    @cached_property
    def observed_norm(self) -> float:
        """The norm of the observed image."""
        return float(self.image.norm.of(self.observed))

    @property
    def size(self) -> int:
        """The number of numbers in a resample, or in its image."""
        return max(len(self.cells.weight), len(self.observed))


@dataclass(frozen=True, eq=False)
class Question:
    """The interval asked for: confidence level, number of resamples, clusters."""

    level: float
    n_resamples: int
    rng: Generator
    clusters: Clusters | None = None

    def interval(self, measure: Measure, problem: Problem, value: float) -> Interval:
        """Return the interval for a measure whose value is known."""
        view = View.of(measure, problem, value, self.clusters)
        of_view = norm_interval if view.image.at_scale is None else fixed_point_interval
        found = of_view(view, self.level, self._draws(view), self.rng)
        power = view.image.power
        return Interval(found.low**power, found.high**power, found.centre**power)

    def _draws(self, view: View) -> int:
        """Return how many draws to make: no fewer than the quantiles of the level need."""
        usual, most = (numbers // view.size for numbers in (_NUMBERS, _MOST_NUMBERS))
        needed = min(validation.min_resamples(1 - _PART * (1 - self.level)), most)
        return max(min(self.n_resamples, max(usual, _FEWEST_DRAWS)), needed)


def check_has_interval(name: str, measure: Measure) -> None:
    """Refuse a measure that is not a norm of residuals summed over scores known beforehand."""
    if measure.no_interval:
        raise CalibrantError(f"estimate has no interval for {name} {measure.no_interval}")


@dataclass(frozen=True, eq=False)
class Noise:
    """Simulated noise of the sample."""

    # Totals, images: simulated noise of the residual totals, one row per resample, and its images.
    totals: FloatArray
    images: FloatArray
    calibrated: bool  # whether perfect calibration is not rejected
    sd: float  # standard deviation of the mean residual

    @classmethod
    def around(cls, view: View, tail: float, n: int, rng: Generator) -> Noise:
        """Test for perfect calibration, and draw the noise around what the test leaves.

        It has the shape it has under perfect calibration as long as that is not refuted.
        """
        cells = view.cells
        sd = math.sqrt(cells.variance) / cells.total
        few = math.ceil(_DRAWS_PER_TAIL / tail)
        if few < n and not cells.has_one_distribution and _is_far_from_calibrated(view, few, rng):
            totals = cells.noise(n, rng)
            return cls(totals, view.of_noise(totals), False, sd)
        totals = cells.calibrated_noise(n, rng)
        images = view.of_noise(totals)
        null = shifted_norms(view.image.norm, images, view.offset)
        calibrated = view.value <= weibull_quantile(null, 1 - tail) + _TIE * sd
        if cells.has_one_distribution:
            return cls(totals, images, calibrated, sd)
        expected = float(cells.calibrated_variance.sum())
        if calibrated and cells.is_normal and expected > 0:
            # The same distribution but for its scale: no need to draw again.
            scale = math.sqrt(cells.variance / expected)
            return cls(totals * scale, images * scale, calibrated, sd)
        totals = cells.noise(n, rng, calibrated=calibrated)
        return cls(totals, view.of_noise(totals), calibrated, sd)

    @cached_property
    def spread(self) -> FloatArray:
        """The standard deviation at each coordinate of the image."""
        return np.asarray(self.images.std(axis=0))


def _is_far_from_calibrated(view: View, n: int, rng: Generator) -> bool:
    """Return whether few resamples suffice to reject perfect calibration."""
    images = view.of_noise(view.cells.calibrated_noise(n, rng))
    return view.value > float(shifted_norms(view.image.norm, images, view.offset).max())


def norm_interval(view: View, level: float, n_resamples: int, rng: Generator) -> Interval:
    """Return the interval for an error that is a norm."""
    tail = (1 - level) / 2
    noise = Noise.around(view, tail, n_resamples, rng)
    low = 0.0 if noise.calibrated else view.value - _added(view, noise.images, tail)
    return _interval(low, _highest(view, noise, tail), _centre(view, noise))


def fixed_point_interval(view: View, level: float, n_resamples: int, rng: Generator) -> Interval:
    """Return the interval for an error that is the scale at which its norm equals the scale."""
    tail = (1 - level) / 2
    noise = Noise.around(view, tail, n_resamples, rng)
    # At scales near the observed one the high end allows for as much noise as there.
    high = _highest_scale(view, _highest(view, noise, tail) - view.value)
    low = 0.0 if noise.calibrated else _lowest_scale(view, noise.totals, tail)
    return _interval(low, high, _centre(view, noise))


def _interval(low: float, high: float, centre: float) -> Interval:
    # No residual is larger than 1.
    high = min(high, 1.0)
    low = min(max(low, 0.0), high)
    return Interval(low, high, min(max(centre, low), high) + 0.0)  # never -0.0


def _added(view: View, images: FloatArray, tail: float) -> float:
    """Return the most that noise adds to the norm, but for a probability `tail`."""
    norm, sd = view.image.norm, images.std(axis=0)
    if norm.is_isotropic:
        paths = norm.paths(view.observed, sd)
        ends = (_inverted(view, images, *path, 1 - tail, view.value) for path in paths)
        return view.value - min(ends)
    ways = [(norm, view.observed, images)]
    observed, drawn = (norm.linear_bounds(of, sd) for of in (view.observed, images))
    ways += [(MaxNorm(), *family) for family in zip(observed, drawn, strict=True)]
    spreads = [sd, *(noise.std(axis=0) for *_, noise in ways[1:])]
    kappa = _kappa([noise for *_, noise in ways], spreads, 1 - _PART * tail)
    # The norm has half of what is left of the tail, all linear bounds together the other half.
    rest = (1 - _PART) * tail
    tails = [rest / 2, *(rest / 2 / len(drawn) for _ in drawn)] if drawn else [rest]
    return min(
        view.observed_norm
        - float(kind.of(h))
        + weibull_quantile(kind.most_added(h, kappa * sd, noise), 1 - own)
        for (kind, h, noise), sd, own in zip(ways, spreads, tails, strict=True)
    )


def _kappa(noises: list[FloatArray], spreads: list[FloatArray], level: float) -> float:
    """Return the quantile of the largest coordinate of all images, in standard deviations."""
    largest = np.zeros(len(noises[0]))
    for noise, sd in zip(noises, spreads, strict=True):
        # Coordinates that do not move have no noise either.
        scaled = noise / np.where(sd > 0, sd, 1.0)
        np.maximum(largest, scaled.max(axis=1), out=largest)
        np.maximum(largest, -scaled.min(axis=1), out=largest)
    return weibull_quantile(largest, level)


def _lowest_scale(view: View, totals: FloatArray, tail: float) -> float:
    """Return the smallest s that N_s of the sample, less what noise adds to it, does not exceed.

    That excess decreases with s: at the observed scale it is negative, and a secant leads on.
    """
    upper, short = view.value, _added(view, view.of_noise(totals), tail)
    s = upper - short
    for _ in range(_MOST_SCALES):
        if s * view.image.n_cells < 1:
            return s
        finer = view.at_scale(s)
        # Cells show how N_s changes with s; at the observed scale it is known exactly.
        norm = view.value + finer.observed_norm - view.observed_norm
        excess = norm - _added(finer, finer.of_noise(totals), tail) - s
        if excess >= 0:
            return s + (upper - s) * excess / (excess + short) if excess > 0 else s
        upper, short = s, -excess
        s += 2 * excess
    return s


def _highest_scale(view: View, allowance: float) -> float:
    """Return the s at which the sample's N_s and the allowance make s."""
    value = view.value
    if value == 0:
        return allowance
    finest = min(value, 1 / view.image.n_cells)
    low, high = sorted((value, max(value + allowance, finest)))

    def above(s: float) -> float:
        # Cells show how N_s changes with s; at the observed scale it is known exactly.
        norm = value + view.at_scale(s).observed_norm - view.observed_norm
        return s - norm - allowance

    return monotone_root(above, low, high, _PRECISION * high)


def _highest(view: View, noise: Noise, tail: float) -> float:
    """Return the largest error that a norm this small does not refute."""
    norm, growth = view.image.norm, view.cells.growth
    paths = [path for path in norm.paths(view.observed, noise.spread) if path[1].any()]
    if not paths or noise.sd == 0:
        # Predictions of 0 and 1, all of them right: as for a count of which none was seen.
        return view.value + float(ndtri(tail)) ** 2 * growth
    if view.cells.events < _FEW_EVENTS:
        return max(_by_duality(view, noise, base + rise, tail) for base, rise in paths)
    ends = []
    for base, rise in paths:
        start = np.where(base == 0, view.offset, base)
        # A norm below the median norm of noise refutes no more than that median does: without
        # this, one calibrated sample in forty had the interval [0, 0].
        value = max(view.value, weibull_quantile(shifted_norms(norm, noise.images, start), 0.5))
        variance = noise.sd * noise.sd
        per_sd = growth / variance if variance > 0 else 0.0
        ends.append(_inverted(view, noise.images, start, rise, tail, value, per_sd))
    return max(ends)


def _by_duality(view: View, noise: Noise, image: FloatArray, tail: float) -> float:
    """Return T + d with d = -Q_a <s, e>, whose variance grows with d."""
    short = -weibull_quantile(noise.images @ view.image.norm.slope(image), tail)
    growth = (short / noise.sd) ** 2 * view.cells.growth / 2
    return view.value + growth + math.hypot(growth, short)


def _centre(view: View, noise: Noise) -> float:
    """Return the norm of the image g_x for which T is the median of N(g_x + e); 0 if there is none.

    g_x is a multiple of the image's shape, or where that is too small all of it and more of the
    rest.
    """
    norm, images, value = view.image.norm, noise.images, view.value
    base, rise = norm.shape(view.observed, noise.spread)
    if not rise.any() or weibull_quantile(shifted_norms(norm, images, base), 0.5) >= value:
        base, rise = np.zeros_like(base), base
    return min(_inverted(view, images, base, rise, 0.5, value), value) if rise.any() else 0.0


def _inverted(
    view: View,
    images: FloatArray,
    base: FloatArray,
    rise: FloatArray,
    level: float,
    value: float,
    growth: float = 0.0,
) -> float:
    """Return the norm of the image base + x rise for which Q_level N(base + x rise + e) = value.

    The variance of e grows with the norm, as far as that exceeds the value.
    """
    norm = view.image.norm
    size = float(norm.of(rise))
    if size == 0:
        # Squares that underflow have no norm.
        return float(norm.of(base))
    unit = rise / size
    sd = math.sqrt(view.cells.variance) / view.cells.total

    def above(x: float) -> float:
        image = base + x * unit
        factor = math.sqrt(1 + growth * max(float(norm.of(image)) - value, 0.0))
        return weibull_quantile(shifted_norms(norm, images, image, factor), level) - value

    beyond = value + 2 * sd
    # No error is more than 1, nor is the norm of the offset: a norm of 2 is beyond all.
    while beyond < 2 and above(beyond) < 0:
        beyond *= 1.5
    return float(
        norm.of(base + monotone_root(above, 0.0, beyond, _PRECISION * (sd or value)) * unit)
    )
