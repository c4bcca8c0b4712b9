"""The input of a command line: its files, and the columns that are meant.

A column that is not named is inferred where there is just one candidate: the one with a usual
name, or else the one whose values fit. Where there are several, they are listed with the option
that names one. Standard input is kept in a temporary file, its format detected by its first bytes.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibrant._base import AnyArray
from calibrant.cli.messages import is_terminal, say
from calibrant.cli.options import Request
from calibrant.data.labels import class_names, n_common
from calibrant.data.validation import check_choice, check_not_label
from calibrant.errors import CalibrantError
from calibrant.io.columns import Columns, inventory
from calibrant.io.files import Reader, paths_of
from calibrant.io.formats import OpenFile, ending_of, kind_of
from calibrant.io.frames import key_of

# The number of rows, and of bytes, from which types and formats are inferred.
_PEEK_ROWS, _PEEK_BYTES = 10_000, 1 << 16
_PATTERN = re.compile(r"[*?\[]")
# What --format takes, and the ending that the temporary file gets.
_ENDINGS = {name: f".{name}" for name in ("csv", "tsv", "json", "jsonl", "parquet", "sketch")}
_STDIN = "standard input"


# Labels as text: options are text, so the labels that they name must be, too.


def as_text(values: AnyArray) -> AnyArray:
    """Return labels as text: integers without a point, truth values as true and false."""
    if values.dtype.kind == "O":
        return values.astype(str)
    present, inverse = np.unique(values, return_inverse=True)
    return np.array(list(map(label_text, present)), dtype=str)[inverse.reshape(len(values))]


def label_text(value: object) -> str:
    """Return one label as text."""
    value = key_of(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def label_named(text: str, present: Collection[str]) -> str:
    """Return the label that an option names: 1.0 names 1, and true names True."""

    def is_same(label: str) -> bool:
        try:
            return float(label) == float(text)
        except ValueError:
            return label.lower() == text.lower()

    same = [label for label in present if is_same(label)]
    return same[0] if len(same) == 1 and text not in present else text


def classes_of(columns: Columns, present: Collection[str]) -> list[str]:
    """Return the class of each column: as given by CLASS=COLUMN, or else by the column's name."""
    return [str(name) for name in columns.classes] or class_names(columns.probs, present)


# Columns.


class _Role(NamedTuple):
    """What a column holds, the option that names it, and its usual names as a pattern."""

    what: str
    option: str
    names: str


_LABEL = _Role(
    "outcomes",
    "--label",
    "y|y_true|labels?|true_label|target|truth|ground_truth|outcome|observed|observation|actual|"
    "event|correct|class",
)
_PROB = _Role(
    "probabilities",
    "--prob",
    "p|prob|probability|proba|y_prob|y_proba|p_hat|y_score|score|confidence|forecast|prediction|"
    "predicted|pred|y_pred",
)


def chosen_columns(reader: Reader, paths: Sequence[Path], request: Request) -> Columns:
    """Return the columns that are meant, by the first file that has rows."""
    for path in paths:
        with reader.errors_in(path):
            file = reader.file(path)
            if file is not None:
                return _chosen(request, file)
    raise CalibrantError(f"{paths[0].name} has no rows")


def _chosen(request: Request, file: OpenFile) -> Columns:
    """Return the columns that are named or inferred, and report those that are inferred."""
    option = "--classes" if request.classes else "--prob"
    names, probs = expanded(request.classes or request.probs, list(file.all_types), option)
    if request.classes and len(probs) < 2:
        raise CalibrantError(f"--classes must name a column for each class; got {probs[0]!r:.80}")
    labels = (*request.by, *(() if request.clusters is None else (request.clusters,)))
    taken = {request.label, request.weight, request.along, *labels, *probs}
    label, inferred = request.label, {}
    if not probs:
        most = 100 if request.is_percent else 1
        probs = _inferred(file, taken, _PROB, several=request.all, most=most)
        inferred["--prob"] = ", ".join(map(repr, probs))
    if label is None:
        any_label = request.pos_label is not None or bool(request.classes)
        (label,) = _inferred(file, {*taken, *probs}, _LABEL, any_label=any_label)
        inferred["--label"] = repr(label)
    others = {
        "classes" if request.classes else "prob": probs,
        "weight": [request.weight],
        "by": request.by,
        "clusters": [request.clusters],
        "along": [request.along],
    }
    check_not_label([label], others, "label")
    if inferred:
        say("taking " + " and ".join(f"{option} {name}" for option, name in inferred.items()))
    # Sketches are made by one column of groups; of several, rows are held in memory.
    by = request.by[0] if len(request.by) == 1 else None
    return Columns(
        *(label, probs, names, request.weight, by),
        is_multiclass=bool(request.classes),
        along=request.along,
        keys=labels[len(request.by) * (by is not None) :],
        is_percent=request.is_percent,
    )


def expanded(
    given: Sequence[str], names: Sequence[str], option: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names given to columns, if any, and the columns that the values of an option mean.

    Classes are all named, or none is.
    """
    found: list[tuple[str, str]] = []
    for one in given:
        name, equals, column = one.rpartition("=")
        if one in names or not (equals or _PATTERN.search(one)):
            found.append(("", one))
        elif column in names:
            found.append((name, column))
        else:
            matching = [("", column) for column in names if fnmatchcase(column, one)]
            if not matching:
                raise CalibrantError(f"no column matches {option} {one!r:.80}; {inventory(names)}")
            found += matching
    columns = tuple(column for _, column in found)
    if len(set(columns)) < len(columns):
        repeated = ", ".join(map(repr, columns))
        raise CalibrantError(f"{option} must name each column once; got {repeated:.100}")
    if not any(name for name, _ in found):
        return (), columns
    if option == "--classes" and not all(name for name, _ in found):
        raise CalibrantError("--classes must be CLASS=COLUMN for every class, or for none")
    return tuple(name or column for name, column in found), columns


def _inferred(
    file: OpenFile,
    taken: Collection[str | None],
    role: _Role,
    *,
    several: bool = False,
    any_label: bool = False,
    most: int = 1,
) -> tuple[str, ...]:
    """Return the only candidate, or `several`, or ask for a name; probabilities go up to `most`."""
    names = list(file.all_types)
    free = [name for name in names if name not in taken]
    usual = [name for name in free if re.fullmatch(role.names, name.lower())]
    fitting = _fitting(file, usual or free, role, most, any_label=any_label)
    for candidates in (fitting, usual):
        if len(candidates) == 1 or (several and candidates):
            return tuple(candidates)
        if candidates:
            front = candidates[0][: n_common(candidates)]
            is_all = {name for name in names if name.startswith(front)} <= set(candidates)
            shortest = f"--classes '{front}*'" if front and is_all else "one --classes each"
            hint = f", or all, as classes, with {shortest}" * (role is _PROB)
            listed = ", ".join(map(repr, candidates[:8])) + ", ..." * (len(candidates) > 8)
            raise CalibrantError(
                f"{role.what} may be in {listed}: name one with {role.option}{hint}"
            )
    raise CalibrantError(
        f"no column looks like {role.what}: name one with {role.option}; {inventory(names)}"
    )


def _fitting(
    file: OpenFile, names: Sequence[str], role: _Role, most: int, *, any_label: bool
) -> list[str]:
    """Return the columns whose first rows look like outcomes or probabilities."""
    conditions = []
    for name in names:
        kind = kind_of(file.all_types[name])
        value = f"TRY({file.sql(name)})"  # text among numbers is reported when the column is read
        is_binary = f"bool_and({value} IN (0, 1))" if kind == "number" else str(kind == "boolean")
        if role is _LABEL:
            conditions.append("true" if any_label and kind == "text" else is_binary)
        else:
            in_range = f"min({value}) >= 0 AND max({value}) <= {most} AND NOT {is_binary}"
            conditions.append(in_range if kind == "number" else "false")
    if not names:
        return []
    found = file.rows.limit(_PEEK_ROWS).aggregate(", ".join(conditions)).fetchall()[0]
    return [name for name, fits in zip(names, found, strict=True) if fits]


# Files.


@contextmanager
def local_files(request: Request) -> Iterator[list[Path]]:
    """Give the paths of all files of a request; that of standard input is temporary."""
    names = request.files
    if list(names).count("-") > 1:
        raise CalibrantError("- is standard input, which can be read only once")
    if request.form is not None and "-" not in names:
        raise CalibrantError("--format is for standard input: the format of a file is in its name")
    with ExitStack() as stack:
        yield [
            stack.enter_context(_spooled(request.form)) if name == "-" else Path(name)
            for name in named_files(names)
        ]


def named_files(names: Sequence[str]) -> list[str]:
    """Return the files that names and patterns mean, each of which must be meant once."""
    files = [
        file for name in names for file in ([name] if name == "-" else map(str, paths_of(name)))
    ]
    seen: dict[Path, str] = {}
    for file in files:
        path = Path(file).resolve()
        if path in seen and file != "-":
            raise CalibrantError(f"each file must be given once; {file!r} is {seen[path]!r} again")
        seen[path] = file
    return files


def is_sketch(path: Path) -> bool:
    """Tell whether the name of a file is that of a sketch."""
    return path.suffix == ".sketch"


@contextmanager
def _spooled(form: str | None) -> Iterator[Path]:
    """Give the path of a file that holds all of standard input, and remove it afterwards."""
    if form is not None:
        check_choice(form, "--format", _ENDINGS)
    if is_terminal(sys.stdin):
        raise CalibrantError("- is standard input, which is the terminal here: pipe a file into it")
    with tempfile.TemporaryDirectory(prefix="calibrant-") as folder:
        draft = Path(folder, _STDIN)
        with draft.open("wb") as file:
            if sys.stdin is not None:
                shutil.copyfileobj(sys.stdin.buffer, file)
        if draft.stat().st_size == 0:
            raise CalibrantError("standard input is empty")
        path = draft.rename(draft.with_name(_STDIN + _ending(draft, form)))
        try:
            yield path
        except CalibrantError as problem:
            if problem.source == str(path):
                problem.source = _STDIN
            raise


def _ending(path: Path, form: str | None) -> str:
    """Return the ending that the name of a file with such content has."""
    with path.open("rb") as file:
        start = file.read(_PEEK_BYTES)
    ending = ending_of(start)
    if ending == ".gz":
        try:
            inner = zlib.decompressobj(wbits=31).decompress(start, _PEEK_BYTES)
        except zlib.error as problem:
            raise CalibrantError(f"standard input begins like gzip but is not: {problem}") from None
        return (_ENDINGS[form] if form else ending_of(inner)) + ".gz"
    if ending == ".zst":
        return _ENDINGS[form or "csv"] + ".zst"
    return _ENDINGS[form] if form else ending
