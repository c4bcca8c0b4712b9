"""`sketch`: tables and files of any size read into sketches, in one pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack, get_args, overload

import narwhals.stable.v2 as nw
from narwhals import Expr
from narwhals.exceptions import NarwhalsError

from calibrant.data import validation
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_cells import DEFAULT_CELLS, Cells, Scale
from calibrant.errors import CalibrantError
from calibrant.io.columns import Columns, InvalidRows, OnInvalid
from calibrant.io.frames import SketchBuilder, in_order, sketch_in_engine
from calibrant.progress import shown

# One sketch per class: a thousand of these are 120 MB.
CLASSWISE_CELLS = 2520

Found = tuple[dict[Any, Sketch], InvalidRows]


class _Options(TypedDict, total=False):
    weight: str | None
    where: Expr | None
    on_invalid: OnInvalid
    n_cells: int | None
    scale: Scale


@overload
def sketch(
    source: Any, *, label: str, prob: str, by: None = None, **options: Unpack[_Options]
) -> Sketch: ...
@overload
def sketch(
    source: Any,
    *,
    label: str,
    prob: str | Sequence[str] | Mapping[Any, str],
    by: str | None = None,
    **options: Unpack[_Options],
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
    """Return a sketch of a table or of files of any size, read in one pass.

    Tables in memory and files are read in chunks; lazy tables are summed by their own engine, and
    only cells come back. Counts are the same whatever the engine, and sums agree to rounding.

    Parameters
    ----------
    source : path or table
        A path or a glob of CSV, TSV, Parquet or JSON lines files, plain, ``.gz`` or ``.zst``
        (needs the extra ``files``); or a table: pandas, polars (lazy, too), pyarrow, a DuckDB
        relation, PySpark, Dask, Ibis.
    label : str
        The column of outcomes: 0/1, bool or soft labels in [0, 1]; with several columns in `prob`,
        the class of each row.
    prob : str, sequence of str or mapping to str
        The column of probabilities, such as that of the positive class or the confidence in the
        predicted one (then `label` is whether the prediction was correct). For class-wise sketches
        one column per class: a mapping from the values of `label` to columns, or a sequence, where
        the values of `label` are the numbers 0, 1, ... of the columns or their names.
    weight : str, optional
        The column of non-negative weights, 0 or from 1e-100 to 1e100; rows of weight 0 are ignored.
    by : str, optional
        The column of groups, one sketch per group. Take fewer cells for many groups: a sketch of
        50 400 is 2.4 MB.
    where : narwhals.Expr, optional
        A condition on the rows to read, such as ``narwhals.col("country") == "FR"``.
    on_invalid : {"raise", "drop"}
        What to do with rows that have a null, a nan or a value out of range: "raise" refuses them
        all in one sentence, "drop" leaves them out and warns how many there were, unless most rows
        are out of range.
    n_cells : int, optional
        The number of cells of each sketch: 50 400 by default, 2520 for class-wise sketches.
    scale : {"probability", "logit"}
        "logit" for measures on the logit scale; see :class:`calibrant.Sketch`.

    Returns
    -------
    Sketch or dict
        A sketch; with `by` one per group, by its value, None for null; with several columns in
        `prob` one per class.

    See Also
    --------
    Sketch : Rows as a summary of constant size; update, merge, save and load.
    error_bound : How far a measure of a sketch may be from that of its rows.

    Notes
    -----
    One pass over the data, in constant memory; class-wise sketches of lazy tables take one pass per
    class, over the columns of that class. Whether the probabilities of a row sum to 1 is not
    checked. Files are read in the order of their names, each by its own header. Folders called
    ``site=a`` add a column to the files in them, unless these have it. In text files an empty field
    is null, and so are words such as NA in columns of numbers.

    Examples
    --------
    >>> import polars
    >>> table = polars.DataFrame({"p": [0.1, 0.8, 0.7], "y": [0, 1, 1], "site": ["a", "a", "b"]})
    >>> sketch(table, label="y", prob="p")
    Sketch(n=3, weight=3, 50400 cells on the probability scale)
    >>> sketch(table.lazy(), label="y", prob="p", by="site")["a"].n
    2
    """
    validation.check_choice(on_invalid, "on_invalid", get_args(OnInvalid))
    columns = Columns.read(label, prob, weight, by)
    if where is not None and not isinstance(where, Expr):
        raise CalibrantError(
            "must be a narwhals expression such as narwhals.col('country') == 'FR'",
            argument="where",
            value=where,
        )
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
    """Return what `read` returns for `n_cells`, if it has rows and none must be refused."""
    if n_cells is None:
        n_cells = CLASSWISE_CELLS if columns.is_multiclass else DEFAULT_CELLS
    cells = Sketch(n_cells, scale).cells  # refuses what cannot be
    try:
        with shown("reading"):
            sketches, invalid = read(cells)
    except NarwhalsError as problem:
        reason = str(problem).partition("\n")[0]
        raise CalibrantError(
            "cannot be read as asked: {reason}", argument="source", reason=reason
        ) from problem
    n = sum(one.n for one in sketches.values()) // len(columns.probs)
    invalid.refuse(n, on_invalid)
    invalid.warn(n, stacklevel=stacklevel + 1)
    if n == 0:
        raise CalibrantError(
            "must have at least one {valid}row{left}",
            argument="source",
            value=0,
            found="none",
            valid="valid " * bool(invalid.total),
            left=left,
        )
    if columns.is_multiclass:
        return sketches
    return sketches[None] if columns.by is None else in_order(sketches)


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
    builder = SketchBuilder(columns, cells)
    builder.begin(None if where is None else "the rows kept by where")
    builder.update(frame)
    return builder.sketches, builder.invalid
