"""Sample: rows in memory, and the exact answers they give.

The arrays are kept as they came, whatever their dtype: work is done in float64 block by block, so
that reading ten million float32 predictions copies none of them. Measures that need order ask for
:attr:`Sample.atoms`, which sorts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant import checks, pooling
from calibrant.arrays import AnyArray, FloatArray
from calibrant.binning import UniformBins
from calibrant.lines import Blocks, Line, Quantity, line_of_rows
from calibrant.numerics import passes, smoothing
from calibrant.numerics.probability import logit
from calibrant.problem import Assignment, Atoms, Block, Index

# Small enough for a block and its temporaries to stay in cache, and for the allocator to keep them.
BLOCK_ROWS = 1 << 14
_LANES = 4
# From so many rows on, finding the decisive ones is faster than sorting all.
_WORTH_NOT_SORTING = 1 << 17
# A part of a sample is a sixty-fourth of it, in stretches that fill pages of memory; no less, and
# no more, than so many of them.
_STRETCH, _FEWEST_STRETCHES, _MOST_STRETCHES, _ONE_IN = 1 << 9, 1 << 5, 1 << 8, 64
_TURNS = np.arange(BLOCK_ROWS) % _LANES
# The parts of 1, y and p in what is summed over rows that count once each.
_PARTS: dict[Quantity, tuple[float, float, float]] = {
    "rows": (1.0, 0.0, 0.0),
    "weight": (1.0, 0.0, 0.0),
    "pred": (0.0, 0.0, 1.0),
    "true": (0.0, 1.0, 0.0),
    "residual": (0.0, 1.0, -1.0),
}
# Where sums over uniform bins have what: of rows that count once each.
_UNIFORM_SUMS: dict[Quantity, int] = {"rows": 0, "weight": 0, "pred": 1, "true": 2, "residual": 3}


@dataclass(frozen=True, eq=False)
class Sample:
    """One binary calibration problem held as rows.

    The constructor trusts its arguments: :func:`calibrant.reading.read_sample` is the way in for
    arrays from outside.

    Attributes
    ----------
    y
        Outcomes in [0, 1], shape (n,), any real dtype.
    p
        Predictions in [0, 1], shape (n,), any real dtype.
    w
        Positive weights, or None when every row counts once.
    lowest
        The least score that could be: 1/C for the top class of C, else 0.
    """

    y: AnyArray
    p: AnyArray
    w: AnyArray | None = None
    lowest: float = 0.0

    def weighted(self, w: AnyArray | None) -> Sample:
        """Return the same rows under weights `w`, without those of weight 0."""
        if w is None:
            return self
        if w.min() > 0:
            return Sample(self.y, self.p, w)
        kept = np.flatnonzero(w)
        return Sample(self.y[kept], self.p[kept], w[kept])

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.p)

    @cached_property
    def weight(self) -> float:
        """The total weight W."""
        return float(self.n) if self.w is None else float(self.w.sum(dtype=np.float64))

    @property
    def is_weighted(self) -> bool:
        """Whether rows carry weights of their own."""
        return self.w is not None

    @cached_property
    def is_soft(self) -> bool:
        """Whether any outcome lies strictly between 0 and 1."""
        if self.y.dtype.kind != "f":
            return False
        starts = range(0, self.n, BLOCK_ROWS)
        blocks = (self.y[start : start + BLOCK_ROWS] for start in starts)
        return not all(checks.all_zero_or_one(y) for y in blocks)

    def blocks(self) -> Iterator[Block]:
        """Yield the rows as float64 (p, y, w) blocks of at most BLOCK_ROWS."""
        for start in range(0, self.n, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            w = None if self.w is None else _float64(self.w[rows])
            yield _float64(self.p[rows]), _float64(self.y[rows]), w

    def part(self) -> Sample:
        """Return the sample of some of many rows."""
        w = None if self.w is None else self._some(self.w)
        return Sample(self._some(self.y), self._some(self.p), w, self.lowest)

    def _some(self, column: AnyArray) -> AnyArray:
        """Return stretches taken from all of a column."""
        usual = self.n // (_ONE_IN * _STRETCH)
        n_stretches = min(max(usual, _FEWEST_STRETCHES), _MOST_STRETCHES)
        starts = range(0, self.n, max(self.n // n_stretches, _STRETCH))
        return np.concatenate([column[start : start + _STRETCH] for start in starts])

    def columns(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return all rows as float64 (p, y, w), copied only where the dtype differs."""
        w = np.ones(self.n) if self.w is None else _float64(self.w)
        return _float64(self.p), _float64(self.y), w

    def rows(self, which: slice | Index) -> Sample:
        """Return the sample of some of the rows."""
        w = None if self.w is None else self.w[which]
        return Sample(self.y[which], self.p[which], w, self.lowest)

    def totals(self, assignment: Assignment, *quantities: Quantity) -> FloatArray:
        """Return one row of sums over bins for each quantity."""
        if isinstance(assignment, UniformBins) and assignment.closed == "left":
            found = self._uniform_sums(assignment)
            if found is not None:
                return found[[_UNIFORM_SUMS[quantity] for quantity in quantities]]
        # Neighbouring rows often share a bin, and an addition must wait for the one before it to
        # the same place; taking turns over a few copies of the bins keeps additions flowing.
        has_lanes = self.n > BLOCK_ROWS
        lanes = _TURNS * assignment.n_bins if has_lanes else None
        sums = np.zeros((len(quantities), (_LANES if has_lanes else 1) * assignment.n_bins))
        for p, y, w in self.blocks():
            values = [_per_row(quantity, p, y, w) for quantity in quantities]
            for index, share in assignment.shares(p):
                place = index if lanes is None else index + lanes[: len(index)]
                for total, value in zip(sums, values, strict=True):
                    total += np.bincount(place, _times(value, share), minlength=len(total))
        if has_lanes:
            sums = sums.reshape(len(quantities), _LANES, -1).sum(axis=1)
        return sums

    def _uniform_sums(self, bins: UniformBins) -> FloatArray | None:
        """Return the rows of each bin and their sums of p, y and y - p, if compiled code can."""
        columns = self._to_pass_over()
        return None if columns is None else passes.bin_sums(*columns, bins.n_bins)

    def spectrum(self, scale: float, *quantities: Quantity) -> FloatArray:
        """Return the cosine coefficients of each quantity's measure, for smoothing at `scale`."""
        n_cells, n_moments = smoothing.resolution(self.n, scale)
        moments = self._compiled_moments(n_cells, n_moments, quantities)
        if moments is None:
            blocks = (
                (p, [_filled(_per_row(quantity, p, y, w), p) for quantity in quantities])
                for p, y, w in self.blocks()
            )
            moments = smoothing.cell_moments(blocks, len(quantities), n_cells, n_moments)
        return smoothing.coefficients(moments, smoothing.n_modes(scale))

    def _compiled_moments(
        self, n_cells: int, n_moments: int, of: tuple[Quantity, ...]
    ) -> FloatArray | None:
        """Return the moments of each quantity in each cell, if compiled code can."""
        columns = self._to_pass_over()
        if columns is None or n_moments != passes.N_MOMENTS:
            return None
        found = []
        for quantity in of:
            moments = passes.moments(*columns, n_cells, _PARTS[quantity])
            if moments is None:
                return None
            found.append(moments)
        return np.array(found)

    def _to_pass_over(self) -> tuple[AnyArray, AnyArray] | None:
        """Return p and y for compiled passes, which find out whether all rows are sound."""
        if self.w is not None or not passes.is_worth_while(self.p, self.y):
            return None
        return self.p, self.y

    def logit_line(self, tails: float) -> Line:
        """Return the rows at their logits, with room for noise of scale `tails` around them."""

        def blocks(*quantities: Quantity) -> Blocks:
            for p, y, w in self.blocks():
                values = [_filled(_per_row(quantity, p, y, w), p) for quantity in quantities]
                inside = (p > 0) & (p < 1)
                if not inside.all():
                    p, values = p[inside], [value[inside] for value in values]
                yield logit(p), values

        def in_order(*quantities: Quantity) -> tuple[FloatArray, list[FloatArray]]:
            atoms = self.atoms
            inside = (atoms.score > 0) & (atoms.score < 1)
            values = [getattr(atoms, quantity)[inside] for quantity in quantities]
            return logit(atoms.score[inside]), values

        def ends(quantity: Quantity) -> tuple[float, float]:
            sums = np.zeros(2)
            for p, y, w in self.blocks():
                value = _filled(_per_row(quantity, p, y, w), p)
                sums += value[p == 0].sum(), value[p == 1].sum()
            return float(sums[0]), float(sums[1])

        return line_of_rows(blocks, in_order, ends, self._finite_logits(), self.n, tails)

    def _finite_logits(self) -> tuple[float, float] | None:
        """Return the least and the greatest finite logit, if there is any."""
        inner = (p[(p > 0) & (p < 1)] for p, _, _ in self.blocks())
        ends = np.array([(p.min(), p.max()) for p in inner if len(p)])
        if not len(ends):
            return None
        low, high = logit(np.array([ends[:, 0].min(), ends[:, 1].max()])).tolist()
        return low, high

    def squared_error(self) -> float:
        """Return the sum of w (p - y)^2."""
        total = 0.0
        for p, y, w in self.blocks():
            squares = np.square(y - p)
            total += float(squares.sum() if w is None else (w * squares).sum())
        return total

    @cached_property
    def atoms(self) -> Atoms:
        """The rows pooled by score."""
        if self.w is None and not self.is_soft:
            return pooling.joined(pooling.pooled_keys(pooling.sorted_keys(self.blocks(), self.n)))
        return pooling.pooled_rows(*self.columns())

    def decisive_steps(self) -> Atoms:
        """Return steps whose walk strays as far as that of the atoms."""
        if self.n < _WORTH_NOT_SORTING or self.w is not None or self.is_soft:
            return self.atoms
        return pooling.decisive(self.blocks)

    @property
    def steps(self) -> Atoms:
        """The rows pooled by score."""
        return self.atoms

    @property
    def step_spread(self) -> FloatArray:
        """Return 0 for each step."""
        return np.zeros(len(self.atoms.score))

    # Rows answer exactly.
    is_exact = True
    cell_width = 0.0
    sum_error = 0.0
    walk_error = 0.0
    finest_scale = smoothing.FINEST_SCALE

    def spectrum_error(self, scale: float, quantity: Quantity) -> float:
        """Return 0."""
        return 0.0


def _per_row(
    quantity: Quantity, p: FloatArray, y: FloatArray, w: FloatArray | None
) -> FloatArray | None:
    if quantity == "rows":
        return None
    if quantity == "weight":
        return w
    value = {"pred": p, "true": y}[quantity] if quantity != "residual" else y - p
    return value if w is None else w * value


def _filled(value: FloatArray | None, p: FloatArray) -> FloatArray:
    return np.ones(len(p)) if value is None else value


def _times(value: FloatArray | None, share: FloatArray | None) -> FloatArray | None:
    if value is None or share is None:
        return share if value is None else value
    return value * share


def _float64(array: AnyArray) -> FloatArray:
    return np.asarray(array, dtype=np.float64)
