"""``calibrant sketch`` and ``merge``: files of any size as sketches, and sketches as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.inputs import HOLE, Request, Wanted, check_out, path_of_each
from calibrant.cli.messages import in_columns, say, write_bytes, write_json
from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from calibrant.data.sketch import Sketch

Out = Annotated[
    str,
    typer.Option(
        "--out",
        metavar="PATH",
        show_default=False,
        help="Where to write, ending in .sketch; - for a pipe. Groups and classes go where {} is.",
    ),
]
Cells = Annotated[
    int | None,
    typer.Option(
        "--cells",
        metavar="N",
        show_default=False,
        help="How many cells: 50400, or 2520 for classes. Bins are exact where they divide it.",
    ),
]


def sketch(
    files: options.Tables,
    out: Out,
    label: options.Label = None,
    prob: options.Prob = None,
    weight: options.Weight = None,
    by: options.By = None,
    pos_label: options.PosLabel = None,
    cells: Cells = None,
    on_invalid: options.OnInvalid = "raise",
    form: options.Form = None,
    json: options.Json = False,
) -> None:
    r"""Keep what matters of files of any size: a few megabytes.

    One pass, in memory that does not grow. The file can be given to all commands that do not need
    single rows, and to merge. With --by, or with one --prob a class, there is a sketch for each.

    \b
    calibrant sketch 'logs/monday/*.parquet' --label clicked --prob p --out monday.sketch
    calibrant sketch logs.csv --label clicked --prob p --by country --out 'in-{}.sketch'
    """
    from calibrant.cli.inputs import columns_of, is_sketch, local_files
    from calibrant.cli.tables import sketched
    from calibrant.io.files import connected

    wanted = Wanted(label, tuple(prob or ()), weight, by)
    request = Request(tuple(files), wanted, pos_label, on_invalid=on_invalid, form=form)
    if by is not None or HOLE not in out:
        _check(out, files, several=by is not None)
    with local_files(request) as paths, connected() as reader:
        if any(is_sketch(path) for path in paths):
            raise CalibrantError("a sketch is no table: sketches are put together by merge")
        columns = columns_of(reader, paths, request)
        _check(out, files, several=by is not None or columns.is_multiclass)
        with in_columns(columns):
            made = sketched(reader, paths, columns, request, cells)
    _save(made if isinstance(made, dict) else {None: made}, out, files, json=json)


def merge(files: options.Sketches, out: Out, json: options.Json = False) -> None:
    r"""Merge sketches into one.

    The result is that of one pass over all their rows.

    \b
    calibrant merge monday.sketch tuesday.sketch --out week.sketch
    calibrant merge 'day-*.sketch' --out - | calibrant assess -
    """
    from calibrant.cli.inputs import is_sketch, local_files
    from calibrant.cli.tables import merged

    _check(out, files, several=False)
    with local_files(Request(tuple(files))) as paths:
        for path in paths:
            if not is_sketch(path):
                raise CalibrantError(
                    "the file is not called *.sketch",
                    hint="make one of it with calibrant sketch",
                    source=str(path),
                )
        _save({None: merged(paths)}, out, files, json=json)


def _check(out: str, files: Sequence[str], *, several: bool) -> None:
    if several != (HOLE in out):
        raise CalibrantError(
            f"--out must have {HOLE} where the name of each group or class goes; got {out!r:.80}"
            if several
            else f"--out must have no {HOLE}: there is one sketch to write; got {out!r:.80}"
        )
    if out != "-":
        check_out(out, (".sketch",), files)


def _save(made: Mapping[Any, Sketch], out: str, files: Sequence[str], *, json: bool) -> None:
    if out == "-":
        if json:
            raise CalibrantError("--json and --out - would both be written to standard output")
        for one in made.values():
            write_bytes(one.to_bytes())
        return
    paths = path_of_each(out, list(made), files)
    for key, one in made.items():
        one.save(paths[key])
    if json:
        written = [
            {"path": str(paths[key]), "key": key, "n": one.n, "weight": one.weight}
            for key, one in made.items()
        ]
        write_json({"sketches": written})
    else:
        for key, one in made.items():
            say(f"wrote {paths[key]}: {one.n} rows")
