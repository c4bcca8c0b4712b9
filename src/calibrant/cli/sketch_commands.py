"""``calibrant sketch`` and ``merge``: files of any size as sketches, and sketches merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from calibrant.cli import options
from calibrant.cli.messages import in_columns, say, write_bytes, write_json
from calibrant.cli.options import Request, check_out, option, reads
from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from calibrant.data.sketch import Sketch

_PLACE = "{}"

Out = Annotated[
    str,
    option(
        "--out",
        "The file to write: *.sketch; - for standard output. {} is replaced by the group, class or "
        "model.",
        "PATH",
    ),
]
Cells = Annotated[
    int | None,
    option(
        "--cells",
        "Number of cells. Binned errors are exact where the number of bins divides it.",
        "N",
        default="50400, and 2520 for classes",
    ),
]


@reads(options.Tables, without=["clusters", "multiclass"])
def sketch(
    out: Out,
    request: Request,
    cells: Cells = None,
    json: options.Json = False,
) -> None:
    r"""Summarize files of any size in a sketch of a few megabytes.

    One pass, in constant memory. All commands that do not need single rows take the sketch, and
    merge adds several. With --by, --classes or several --prob there is one sketch per group, class
    or model.

    \b
    calibrant sketch 'logs/monday/*.parquet' --label clicked --prob p --out monday.sketch
    calibrant sketch logs.csv --label clicked --prob p --by country --out 'in-{}.sketch'
    """
    from calibrant.cli.tables import open_table

    files, by = request.files, request.by
    if len(by) > 1:
        raise CalibrantError("sketch takes one --by: rows of several columns are not sketched")
    if by or _PLACE not in out:
        _check(out, files, several=bool(by))
    made: dict[Any, Sketch] = {}
    with open_table(request, "a sketch is no table: sketches are added up by merge") as table:
        models = table.each()
        if by and len(models) > 1:
            raise CalibrantError(f"--by takes one --prob; got {', '.join(map(repr, models)):.100}")
        _check(out, files, several=bool(by or table.columns.is_multiclass or len(models) > 1))
        for name, columns in models.items():
            with in_columns(columns):
                found = table.sketches(columns, cells)
            made |= found if isinstance(found, dict) else {name if len(models) > 1 else None: found}
    _save(made, out, files, json=json)


def merge(files: options.Sketches, out: Out, json: options.Json = False) -> None:
    r"""Merge sketches into one, that of all their rows.

    \b
    calibrant merge monday.sketch tuesday.sketch --out week.sketch
    calibrant merge 'day-*.sketch' --out - | calibrant assess -
    """
    from calibrant.cli.inputs import is_sketch, local_files
    from calibrant.cli.tables import merged

    _check(out, files, several=False)
    with local_files(Request(files)) as paths:
        for path in paths:
            if not is_sketch(path):
                raise CalibrantError(
                    "the file is not called *.sketch",
                    hint="make one of it with calibrant sketch",
                    source=str(path),
                )
        _save({None: merged(paths)}, out, files, json=json)


def _check(out: str, files: Sequence[str], *, several: bool) -> None:
    if several != (_PLACE in out):
        raise CalibrantError(
            f"--out must have {_PLACE} in place of the group, class or model; got {out!r:.80}"
            if several
            else f"--out must have no {_PLACE}: there is one sketch to write; got {out!r:.80}"
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
    paths = {key: check_out(out.replace(_PLACE, _file_name(key)), files=files) for key in made}
    if len(set(paths.values())) < len(paths):
        raise CalibrantError("two groups would be written to one file: rename one of them")
    from calibrant.formatting import counted

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
            say(f"wrote {paths[key]}: {counted(one.n, 'row')}")


def _file_name(key: Any) -> str:
    """Return a key as part of the name of a file: letters of all alphabets are kept."""
    name = "null" if key is None else str(key)
    return "".join(c if c.isalnum() else quote(c, safe=" ,+=@") for c in name)
