"""sketch: a table or files of any size, read once and kept as a sketch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, overload

import narwhals.stable.v2 as nw
from narwhals import Expr
from narwhals.exceptions import NarwhalsError

from calibrant.data import validation
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_cells import DEFAULT_CELLS, Cells, Scale
from calibrant.errors import CalibrantError
from calibrant.io.columns import Columns
from calibrant.io.frames import Tally, in_order, sketch_in_engine
from calibrant.io.invalid_rows import Faults, OnInvalid

__all__ = ["sketch"]

# Class-wise work takes one sketch a class: a thousand of these are 120 MB.
CLASSWISE_CELLS = 2520

Found = tuple[dict[Any, Sketch], Faults]


@overload
def sketch(
    source: Any,
    *,
    label: str,
    prob: str,
    weight: str | None = None,
    by: None = None,
    where: Expr | None = None,
    on_invalid: OnInvalid = "raise",
    n_cells: int | None = None,
    scale: Scale = "probability",
) -> Sketch: ...
@overload
def sketch(
    source: Any,
    *,
    label: str,
    prob: str | Sequence[str] | Mapping[Any, str],
    weight: str | None = None,
    by: str | None = None,
    where: Expr | None = None,
    on_invalid: OnInvalid = "raise",
    n_cells: int | None = None,
    scale: Scale = "probability",
) -> Sketch | dict[Any, Sketch]: ...
def sketch(
    source: Any,
    *,
    label: str,
    prob: str | Sequence[str] | Mapping[Any, str],
    weight: str | None = None,
    by: str | None = None,
    where: Expr | None = None,
    on_invalid: OnInvalid = "raise",
    n_cells: int | None = None,
    scale: Scale = "probability",
) -> Sketch | dict[Any, Sketch]:
    """Read a table or files of any size, once, and keep what calibration needs to know.

    Tables in memory and files are read in stretches; lazy tables are added up by the engine that
    holds them, and only cells come back. Counts are the same whatever the engine, and sums agree
    to rounding.

    Parameters
    ----------
    source
        A path or a glob of CSV, TSV, Parquet or JSON lines files, plain, ``.gz`` or ``.zst``
        (needs the extra ``files``); or a table: pandas, polars (lazy, too), pyarrow, a DuckDB
        relation, PySpark, Dask, Ibis.
    label
        The column of outcomes: 0/1, bool or soft labels in [0, 1]; with several columns in `prob`,
        the class of each row.
    prob
        The column of probabilities, such as that of the positive class or the confidence in the
        predicted one (then `label` tells whether that was correct). For class-wise sketches, one
        column a class: as a mapping from the values of `label` to columns, or as a list, where the
        values of `label` are the numbers 0, 1, ... of the columns or their names.
    weight
        The column of non-negative weights, 0 or from 1e-100 to 1e100; a row of weight 0 is ignored.
    by
        The column whose values make groups, each with a sketch of its own. Take fewer cells for
        many groups: a sketch of 50 400 is 2.4 MB.
    where
        A narwhals expression that tells which rows to read, such as
        ``narwhals.col("country") == "FR"``.
    on_invalid
        What to do about rows with a null, a nan or a value out of range: "raise" refuses them all
        in one sentence, "drop" leaves them out and warns how many there were, unless most rows are
        out of range.
    n_cells
        The number of cells of each sketch: 50 400 by default, 2520 for class-wise sketches.
    scale
        "probability", or "logit" for measures on the logit scale; see :class:`calibrant.Sketch`.

    Returns
    -------
    Sketch or dict
        A sketch; a dictionary of them by group with `by`, null being the group None; or one by
        class with several columns in `prob`.

    Notes
    -----
    One pass over the data, in memory that does not grow with it; class-wise sketches of lazy tables
    take a pass a class, over the columns of that class. Whether the probabilities of a row sum to 1
    is not looked at. Files are read in the order of their names, each by its own header. Folders
    called ``site=a`` add a column to the files in them, unless these have it. In text files an
    empty field is null, and so are words such as NA in columns of numbers.

    Examples
    --------
    >>> import polars
    >>> table = polars.DataFrame({"p": [0.1, 0.8, 0.7], "y": [0, 1, 1], "site": ["a", "a", "b"]})
    >>> sketch(table, label="y", prob="p")
    Sketch(n=3, weight=3, 50400 cells on the probability scale)
    >>> sketch(table.lazy(), label="y", prob="p", by="site")["a"].n
    2
    """
    validation.check_choice(on_invalid, "on_invalid", ("raise", "drop"))
    columns = Columns.read(label, prob, weight, by)
    _check_where(where)
    read = partial(_read, source, columns, where)
    left = " left by where" * (where is not None)
    return sketched(read, columns, n_cells, scale, on_invalid, left=left, stacklevel=2)


def sketched(
    read: Callable[[Cells], Found],
    columns: Columns,
    n_cells: int | None,
    scale: Scale,
    on_invalid: OnInvalid,
    *,
    left: str = "",
    stacklevel: int = 1,
) -> Sketch | dict[Any, Sketch]:
    """Return what is read with so many cells, if it has rows and none has to be refused."""
    if n_cells is None:
        n_cells = CLASSWISE_CELLS if columns.is_multiclass else DEFAULT_CELLS
    cells = Sketch(n_cells, scale).cells  # refuses what cannot be
    try:
        sketches, faults = read(cells)
    except NarwhalsError as problem:
        reason = str(problem).partition("\n")[0]
        raise CalibrantError(
            "cannot be read as asked: {reason}", argument="source", reason=reason
        ) from problem
    n = sum(one.n for one in sketches.values()) // len(columns.probs)
    faults.refuse(n, on_invalid)
    faults.warn(n, stacklevel=stacklevel + 1)
    if n == 0:
        left += " that can be counted" * bool(faults.total)
        raise CalibrantError(
            "must have at least one row{left}", argument="source", value=0, found="none", left=left
        )
    if columns.by is None and not columns.is_multiclass:
        return sketches[None]
    return sketches if columns.is_multiclass else in_order(sketches)


def _read(source: Any, columns: Columns, where: Expr | None, cells: Cells) -> Found:
    if isinstance(source, str | os.PathLike):
        from calibrant.io.files import connected, paths_of, sketch_files

        with connected() as reader:
            return sketch_files(reader, paths_of(source), columns, cells, where)
    frame = nw.from_native(source, pass_through=True)
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise CalibrantError(
            "must be a path, a glob or a table of pandas, polars, pyarrow, DuckDB, PySpark, Dask "
            "or Ibis",
            argument="source",
            value=type(source),
        )
    columns = columns.bound(frame.collect_schema())
    if where is not None:
        frame = frame.filter(where)
    if isinstance(frame, nw.LazyFrame):
        return sketch_in_engine(frame, columns, cells)
    tally = Tally(columns, cells)
    tally.begin(None if where is None else "the rows kept by where")
    tally.take(frame)
    return tally.sketches, tally.faults


def _check_where(where: object) -> None:
    if where is not None and not isinstance(where, Expr):
        raise CalibrantError(
            "must be a narwhals expression such as narwhals.col('country') == 'FR'",
            argument="where",
            value=where,
        )
