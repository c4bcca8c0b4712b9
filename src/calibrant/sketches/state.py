"""Sketch: constant-size, mergeable knowledge of any number of rows."""

from __future__ import annotations

import copy
import math
import os
from pathlib import Path
from typing import Any, Self

from calibrant import checks
from calibrant.errors import CalibrantError, SketchError
from calibrant.files import write_atomically
from calibrant.sketches.cells import DEFAULT_CELLS, MOST_CELLS, Cells, Scale, make_cells
from calibrant.sketches.deposit import add_rows
from calibrant.sketches.format import HEADER_SIZE, check_header, from_bytes, to_bytes
from calibrant.sketches.table import MOST_ROWS, CellTable

__all__ = ["Sketch"]


class Sketch:
    """Constant-size, mergeable knowledge of one binary calibration problem.

    For each cell of scores and each outcome it keeps the weight of the rows and the sums of their
    offsets from the cell's centre and of the offsets' squares: counts are whole numbers held
    exactly, and offsets are small and centred, so nothing is lost however many rows there are.

    A sketch stands in for the pair ``(y_true, y_prob)`` in measures, curves and tests. Binned
    errors, at any number of bins that divides `n_cells`, and the Brier score are exact; smooth and
    cumulative measures come within a bound that :func:`calibrant.error_bound` gives; what a sketch
    cannot answer is refused with a :class:`calibrant.SketchError`.

    Parameters
    ----------
    n_cells
        How many cells divide the scores. A sketch takes 48 bytes a cell, 2.4 MB unless told
        otherwise (80 bytes once rows carry weights or are soft). For class-wise work, one sketch a
        class, take fewer: with 2520 cells a thousand classes are 120 MB.
    scale
        "probability": cells of equal width from 0 to 1. "logit": of equal width in logits from
        -20 to 20, for :func:`calibrant.logit_smoothed_ece` and the logit scale of
        :func:`calibrant.smooth_ece`, with four more cells for what lies outside.

    Notes
    -----
    Equality is of state, bit for bit; the last bits of sums depend on batches, cores and whether
    numba is at hand, so that the same rows are better compared with :meth:`allclose`. One sketch
    is not for several threads at once: give each its own, and add them.

    Examples
    --------
    >>> monday = Sketch().update([0, 1], [0.25, 0.75])
    >>> tuesday = Sketch().update([1], [0.5])
    >>> week = monday + tuesday
    >>> week.n
    3
    >>> week.allclose(sum([tuesday, monday]))
    True
    """

    def __init__(self, n_cells: int = DEFAULT_CELLS, scale: Scale = "probability") -> None:
        checks.check_choice(scale, "scale", ("probability", "logit"))
        n_cells = checks.as_count(n_cells, "n_cells", maximum=MOST_CELLS)
        self._cells: Cells = make_cells(n_cells, scale)
        self._table = CellTable.empty(self._cells.size)

    @classmethod
    def of_table(cls, cells: Cells, table: CellTable) -> Self:
        """Return a sketch that holds a table, which it takes over."""
        if table.size != cells.size:
            raise SketchError(f"a table of {table.size} cells does not fit {cells.size} of them")
        made = cls.__new__(cls)
        made._cells, made._table = cells, _with_room(table)
        return made

    def update(
        self, y_true: Any, y_prob: Any, sample_weight: Any = None, *, pos_label: Any = None
    ) -> Self:
        """Take in rows.

        Parameters
        ----------
        y_true
            Outcomes: 0/1, bool, soft labels in [0, 1], or two labels with `pos_label`.
        y_prob
            Predicted probabilities, shape (n,).
        sample_weight
            Non-negative weights, 0 or from 1e-100 to 1e100; a row of weight 0 is ignored.
        pos_label
            The label that `y_prob` speaks of, where the two labels are not 0 and 1.

        Returns
        -------
        Sketch
            Itself. Where rows are refused, none of them has been taken in.
        """
        if isinstance(y_true, Sketch):
            raise SketchError("sketches are merged with +: update takes rows")
        add_rows(self._cells, self._table, y_true, y_prob, sample_weight, pos_label)
        return self

    def __add__(self, other: object) -> Sketch:
        # sum() starts from 0, and so do the sums of parts that have no rows.
        if isinstance(other, int) and other == 0:
            return copy.copy(self)
        if not isinstance(other, Sketch):
            return NotImplemented
        if self._cells != other._cells:
            raise SketchError(
                f"sketches must have the same cells to be merged; got {self._cells_in_words()} "
                f"and {other._cells_in_words()}"
            )
        return Sketch.of_table(self._cells, self._table + other._table)

    __radd__ = __add__

    def __copy__(self) -> Sketch:
        return Sketch.of_table(self._cells, self._table.copy())

    def __deepcopy__(self, memo: object) -> Sketch:
        return copy.copy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Between processes it travels as the bytes that it has in files.
        return Sketch.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        return self._cells == other._cells and self._table.same(other._table)

    __hash__ = None  # type: ignore[assignment]  # it changes as rows come in

    def allclose(self, other: Sketch, *, rtol: float = 1e-12) -> bool:
        """Tell whether two sketches hold the same rows, up to rounding of their sums.

        Counts must be equal; sums of weights and of scores (logits, on that scale) may differ by
        `rtol` of the weight in their cell, as they do when the same rows were merged in another
        order or on another processor. Rows given weights of 1 are not the same as rows given none.
        """
        if not isinstance(other, Sketch):
            raise SketchError("must be a Sketch", argument="other", value=type(other))
        if not 0 <= checks.as_float(rtol) < math.inf:
            raise CalibrantError("must be a number of at least 0", argument="rtol", value=rtol)
        return self._cells == other._cells and self._table.close(
            other._table, float(rtol), self._cells.width
        )

    @property
    def n_cells(self) -> int:
        """How many cells divide the scores."""
        return self._cells.n_cells

    @property
    def scale(self) -> Scale:
        """Where the cells are of equal width."""
        return self._cells.scale

    @property
    def cells(self) -> Cells:
        """The cells themselves."""
        return self._cells

    @property
    def table(self) -> CellTable:
        """The numbers kept for each cell; they change as rows come in."""
        return self._table

    @property
    def n(self) -> int:
        """The number of rows taken in."""
        return self._table.n

    @property
    def weight(self) -> float:
        """Their total weight."""
        return float(self._table.weight.sum())

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes, which :meth:`from_bytes` reads anywhere."""
        return to_bytes(self._cells, self._table)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the sketch that :meth:`to_bytes` wrote; damaged bytes raise SketchError."""
        return cls.of_table(*from_bytes(data))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sketch to a file, all of it or nothing: a file there before stays whole."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a sketch from a file; a missing, damaged or foreign one raises SketchError."""
        try:
            with Path(path).open("rb") as file:
                # Only what begins like a sketch and has its size is read to the end.
                check_header(file.read(HEADER_SIZE), os.fstat(file.fileno()).st_size)
                file.seek(0)
                return cls.from_bytes(file.read())
        except SketchError as problem:
            problem.source = str(path)
            raise
        except OSError as problem:
            raise SketchError(problem.strerror or str(problem), source=str(path)) from problem

    def _cells_in_words(self) -> str:
        return f"{self.n_cells} cells on the {self.scale} scale"

    def __repr__(self) -> str:
        return f"Sketch(n={self.n}, weight={self.weight:.10g}, {self._cells_in_words()})"


def _with_room(table: CellTable) -> CellTable:
    """Return the table unless its counts are no longer exact."""
    if table.n > MOST_ROWS:
        raise SketchError(f"a sketch counts up to 2^53 rows exactly; this would make {table.n}")
    return table
