"""Requests: what a command line says about its input, before anything is read."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np

from calibrant._base import AnyArray
from calibrant.cli.messages import is_terminal, say
from calibrant.data.validation import check_choice
from calibrant.errors import CalibrantError
from calibrant.io.columns import Columns, inventory
from calibrant.io.files import Reader, paths_of
from calibrant.io.formats import OpenFile
from calibrant.io.frames import key_of

if TYPE_CHECKING:
    from calibrant.io.invalid_rows import OnInvalid


@dataclass(frozen=True)
class Wanted:
    """The columns that the command line names: all, some or none."""

    label: str | None = None
    probs: tuple[str, ...] = ()
    weight: str | None = None
    by: str | None = None
    along: str | None = None


@dataclass(frozen=True)
class Request:
    """What a command line says about its input.

    With `each`, every column of probabilities is a model of its own; otherwise several are classes
    of one. `on_invalid` is None where the command knows nothing but refusal.
    """

    files: tuple[str, ...]
    wanted: Wanted = field(default_factory=Wanted)
    pos_label: str | None = None
    multiclass: str | None = None
    on_invalid: OnInvalid | None = None
    form: str | None = None
    each: bool = False

    def source(self) -> dict[str, str]:
        """Return what a page made for this request is about."""
        names = {
            "File": ", ".join(Path(file).name for file in self.files),
            "Outcomes": self.wanted.label or "",
            "Predictions": ", ".join(self.wanted.probs),
            "Weights": self.wanted.weight or "",
            "Groups": self.wanted.by or "",
            "Date": date.today().isoformat(),
        }
        return {name: words for name, words in names.items() if words}

    def check_speaks_of_no_column(self) -> None:
        """Refuse to be about a sketch and about columns, which it has no more."""
        about = {
            "--label": self.wanted.label,
            "--prob": self.wanted.probs,
            "--weight": self.wanted.weight,
            "--by": self.wanted.by,
            "--along": self.wanted.along,
            "--pos-label": self.pos_label,
            "--multiclass": self.multiclass,
        }
        given = [option for option, value in about.items() if value]
        if given:
            raise CalibrantError(f"a sketch has no columns: leave out {', '.join(given)}")


# Outcomes and classes as they are written: options are text, so what they name must be, too.

# What a group is called whose rows say nothing about it.
_NO_GROUP = "(none)"


def as_text(values: AnyArray) -> AnyArray:
    """Return labels as text: whole numbers without a point, truth values as true and false."""
    if values.dtype.kind == "O":
        return values.astype(str)
    present, inverse = np.unique(values, return_inverse=True)
    words = [word_of(value) for value in present]
    return np.array(words, dtype=str)[inverse.reshape(len(values))]


def word_of(value: object) -> str:
    """Return one label as text."""
    value = key_of(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def label_named(text: str, present: Collection[str]) -> str:
    """Return the label that an option names: 1.0 names 1, and true names True."""
    same = [word for word in present if _is_same(word, text)]
    return same[0] if len(same) == 1 and text not in present else text


def as_groups(values: AnyArray) -> list[object]:
    """Return the group of each row: whole numbers whole, and None where there is none."""
    if values.dtype.kind == "O":
        return list(values)
    present, inverse = np.unique(values, return_inverse=True)
    keys = np.array([key_of(value) for value in present], dtype=object)
    return list(keys[inverse.reshape(len(values))])


def _is_same(word: str, text: str) -> bool:
    try:
        return float(word) == float(text)
    except ValueError:
        return word.lower() == text.lower()


def group_name(group: object) -> str:
    """Return what people read of a group."""
    return _NO_GROUP if group is None else str(group)


# Columns: which columns of a table are meant, as told, or as is obvious and then said.
#
# A column that was not named is taken where just one can be meant: the one with a usual name, or
# else the one whose contents fit. Where several could be meant, they are listed with the option that
# names one.

_PATTERN = re.compile(r"[*?\[]")
Named = tuple[tuple[str, ...], tuple[str, ...]]
# So many rows tell what a column holds.
_PEEK_ROWS = 10_000
_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*")


class Role(NamedTuple):
    """What a column may be for, the option that names it, and the names it usually has."""

    what: str
    option: str
    names: frozenset[str]


_LABEL = Role(
    "outcomes",
    "--label",
    frozenset(
        (
            *("y", "y_true", "label", "labels", "true_label", "target", "truth", "ground_truth"),
            *("outcome", "observed", "observation", "actual", "event", "correct", "class"),
        )
    ),
)
_PROB = Role(
    "probabilities",
    "--prob",
    frozenset(
        (
            *("p", "prob", "probability", "proba", "y_prob", "y_proba", "p_hat", "y_score"),
            *("score", "confidence", "forecast", "prediction", "predicted", "pred", "y_pred"),
        )
    ),
)


class Look(NamedTuple):
    """What a look at the first rows of a column shows."""

    name: str
    kind: str
    is_share: bool
    is_binary: bool


def look_at(file: OpenFile, names: Sequence[str]) -> list[Look]:
    """Return what the first rows of some columns show."""
    kinds = [kind_of(file.all_types[name]) for name in names]
    asked = []
    for name, kind in zip(names, kinds, strict=True):
        # What is no number after all is said when the column is read.
        value = f"TRY({file.sql(name)})"
        if kind == "number":
            asked += [f"min({value}) >= 0 AND max({value}) <= 1", f"bool_and({value} IN (0, 1))"]
        else:
            asked += ["false", str(kind == "boolean").lower()]
    found = file.rows.limit(_PEEK_ROWS).aggregate(", ".join(asked)).fetchall()[0]
    shares, binaries = map(bool, found[::2]), map(bool, found[1::2])
    return [Look(*each) for each in zip(names, kinds, shares, binaries, strict=True)]


def choose(request: Request, file: OpenFile) -> Columns:
    """Return the columns that are meant."""
    wanted = request.wanted
    names = list(file.all_types)
    classes, probs = expanded(wanted.probs, names, each=request.each)
    taken = {wanted.label, wanted.weight, wanted.by, wanted.along, *probs}
    guessed = {}
    if not probs:
        probs = _obvious(file, taken, _PROB, several=request.each)
        guessed["prob"] = ", ".join(map(repr, probs))
    label = wanted.label
    if label is None:
        any_label = request.pos_label is not None or (len(probs) > 1 and not request.each)
        (label,) = _obvious(file, {*taken, *probs}, _LABEL, any_label=any_label)
        guessed["label"] = repr(label)
    if guessed:
        say("taking " + " and ".join(f"--{option} {name}" for option, name in guessed.items()))
    columns = Columns(label, probs, classes, wanted.weight, wanted.by, along=wanted.along)
    is_multiclass = len(probs) > 1 and (
        not request.each or (request.pos_label is None and _are_classes(file, columns))
    )
    return replace(columns, is_multiclass=is_multiclass)


def class_names(columns: Columns, present: Collection[str]) -> list[str]:
    """Return what the columns of probabilities are called by the labels that are present.

    That is what was given as CLASS=COLUMN; or the names of the columns, less as much of what they
    all begin and end with as makes them labels that are present; or the numbers from 0.
    """
    if columns.classes:
        return [str(name) for name in columns.classes]
    names = list(columns.probs)
    front, back = _n_shared(names), _n_shared([name[::-1] for name in names])
    candidates = [
        [name[start : len(name) - stop] for name in names]
        for start in range(front + 1)
        for stop in range(back + 1)
    ]
    candidates.append([str(i) for i in range(len(names))])
    # Of equally good ones the first.
    return max(candidates, key=lambda each: len(set(present).intersection(each)))


def _are_classes(file: OpenFile, columns: Columns) -> bool:
    """Tell whether labels are no outcomes but names of what the columns are the classes of."""
    if columns.label not in file.all_types:
        return False  # which is said when it is read
    values = (
        file.rows.limit(_PEEK_ROWS).project(f"TRY({file.sql(columns.label)}) AS label").distinct()
    )
    present = [key_of(value) for (value,) in values.filter("label IS NOT NULL").fetchall()]
    if all(isinstance(value, int | float) and 0 <= value <= 1 for value in present):
        return False
    words = {word_of(value) for value in present}
    return words <= set(class_names(columns, words))


def _n_shared(names: Sequence[str]) -> int:
    """Return how many characters all names begin with."""
    return sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, zip(*names, strict=False)))


def expanded(given: Sequence[str], names: Sequence[str], *, each: bool) -> Named:
    """Return the names given to columns, if any, and the columns that options stand for."""
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
                known = inventory(dict.fromkeys(names))
                raise CalibrantError(f"no column matches --prob {one!r:.80}; {known}")
            found += matching
    columns = tuple(column for _, column in found)
    if len(set(columns)) < len(columns):
        given = ", ".join(map(repr, columns))
        raise CalibrantError(f"--prob must name each column once; got {given:.100}")
    if not any(name for name, _ in found):
        return (), columns
    if not each and not all(name for name, _ in found):
        raise CalibrantError("--prob must be CLASS=COLUMN for every class, or for none")
    return tuple(name or column for name, column in found), columns


def _obvious(
    file: OpenFile,
    taken: Collection[str | None],
    role: Role,
    *,
    several: bool = False,
    any_label: bool = False,
) -> tuple[str, ...]:
    """Return the one column that can be meant, or `several`, or ask for its name."""
    names = list(file.all_types)
    free = [name for name in names if name not in taken]
    usual = [name for name in free if name.lower() in role.names]
    looks = look_at(file, usual or free) if free else []
    fitting = [look.name for look in looks if _fits(look, role, any_label=any_label)]
    for candidates in (fitting, usual):
        if len(candidates) == 1 or (several and candidates):
            return tuple(candidates)
        if candidates:
            hint = f", or all, as classes, with {_all(candidates, names)}" * (role is _PROB)
            raise CalibrantError(
                f"{role.what} may be in {_listed(candidates)}: name one with {role.option}{hint}"
            )
    raise CalibrantError(
        f"no column looks like {role.what}: name one with {role.option}; "
        f"{inventory(dict.fromkeys(names))}"
    )


def _fits(look: Look, role: Role, *, any_label: bool) -> bool:
    if role is _PROB:
        return look.is_share and not look.is_binary
    return look.is_binary or (any_label and look.kind == "text")


def _all(some: Sequence[str], names: Sequence[str]) -> str:
    """Return the shortest way to name some columns."""
    front = some[0][: _n_shared(some)]
    fits = front and all(name in some for name in names if name.startswith(front))
    return f"--prob '{front}*'" if fits else "one --prob each"


def kind_of(sql_type: str) -> str:
    """Return what a column of an SQL type holds: number, boolean, text, date or other."""
    if _NUMBER.fullmatch(sql_type):
        return "number"
    if sql_type == "DATE" or sql_type.startswith("TIMESTAMP"):
        return "date"
    return {"BOOLEAN": "boolean", "VARCHAR": "text", "ENUM": "text"}.get(
        sql_type.partition("(")[0], "other"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:8]) + (", ..." if len(names) > 8 else "")


# Standard input as a file: what comes through a pipe is kept in a temporary file while it is read.
#
# Its format is told by its first bytes, unless an option names it.

# What --format takes, and the ending that the file then gets.
FORMATS = {
    "csv": ".csv",
    "tsv": ".tsv",
    "json": ".json",
    "jsonl": ".jsonl",
    "parquet": ".parquet",
    "sketch": ".sketch",
}
STEM = "standard input"
# How files begin.
_GZIP, _ZSTD, _PARQUET, _SKETCH = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1", b"calibrnt"
_PEEK_BYTES = 1 << 16


@contextmanager
def spooled(form: str | None) -> Iterator[Path]:
    """Give the path of a file that holds all of standard input, and remove it afterwards."""
    if form is not None:
        check_choice(form, "--format", FORMATS)
    if is_terminal(sys.stdin):
        raise CalibrantError("- is standard input, which is the terminal here: pipe a file into it")
    with tempfile.TemporaryDirectory(prefix="calibrant-") as folder:
        draft = Path(folder, STEM)
        with draft.open("wb") as file:
            if sys.stdin is not None:
                shutil.copyfileobj(sys.stdin.buffer, file)
        if draft.stat().st_size == 0:
            raise CalibrantError("standard input is empty")
        path = draft.rename(draft.with_name(STEM + _ending(draft, form)))
        try:
            yield path
        except CalibrantError as problem:
            # Where it was kept in the meantime is nobody's business.
            if problem.source == str(path):
                problem.source = path.name
            raise


def _ending(path: Path, form: str | None) -> str:
    """Return the ending that says what is in a file."""
    with path.open("rb") as file:
        start = file.read(_PEEK_BYTES)
    if start.startswith(_GZIP):
        # The rest may be cut off at any byte, and still what comes before can be looked at.
        try:
            inner = zlib.decompressobj(wbits=31).decompress(start, _PEEK_BYTES)
        except zlib.error as problem:
            raise CalibrantError(f"standard input begins like gzip but is not: {problem}") from None
        return (FORMATS[form] if form else _plain_ending(inner)) + ".gz"
    if start.startswith(_ZSTD):
        return FORMATS[form or "csv"] + ".zst"
    return FORMATS[form] if form else _plain_ending(start)


def _plain_ending(start: bytes) -> str:
    if start.startswith(_PARQUET):
        return ".parquet"
    if start.startswith(_SKETCH):
        return ".sketch"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        return ".json"
    return ".jsonl" if text.startswith(b"{") else ".csv"


# Files: the paths that a command line stands for, and a first look into them.


@contextmanager
def local_files(request: Request) -> Iterator[list[Path]]:
    """Give the paths of all files that names and patterns stand for; - is standard input."""
    names = request.files
    if names.count("-") > 1:
        raise CalibrantError("- is standard input, which can be read only once")
    if request.form is not None and "-" not in names:
        raise CalibrantError("--format is for standard input: files tell it by their names")
    with ExitStack() as stack:
        yield [
            stack.enter_context(spooled(request.form)) if name == "-" else Path(name)
            for name in named_files(names)
        ]


def named_files(names: Sequence[str]) -> list[str]:
    """Return the names of files that names and patterns stand for."""
    return [
        file for name in names for file in ([name] if name == "-" else map(str, paths_of(name)))
    ]


def is_sketch(path: Path) -> bool:
    """Tell whether a file is called like a sketch."""
    return path.suffix == ".sketch"


def columns_of(reader: Reader, paths: Sequence[Path], request: Request) -> Columns:
    """Return the columns that are meant, by the first file that has rows."""
    for path in paths:
        with reader.saying(path):
            file = reader.file(path)
            if file is not None:
                return choose(request, file)
    raise CalibrantError(f"{paths[0].name} has no rows")


# Outputs: where files go, looked at before any work is done.

HOLE = "{}"


def check_out(
    out: str, endings: Sequence[str] = (), files: Sequence[str] = (), option: str = "--out"
) -> Path:
    """Return a path that can be written to and is none of the `files` that are read."""
    path = Path(out)
    if endings and path.suffix.lower() not in endings:
        raise CalibrantError(f"{option} must end in {', '.join(endings)}; got {out!r:.80}")
    if path.is_dir():
        raise CalibrantError(f"{option} must be a file; {out!r:.80} is a folder")
    if not path.parent.is_dir():
        raise CalibrantError(f"{option} must be in a folder that exists; there is no {path.parent}")
    if path.exists() and any(path.samefile(file) for file in named_files(files) if file != "-"):
        raise CalibrantError(f"{option} must not be a file that is read; {out!r:.80} is")
    return path


def path_of_each(out: str, keys: Sequence[Any], files: Sequence[str]) -> dict[Any, Path]:
    """Return a path for each group or class: its name takes the place of {} in `out`."""
    paths = {key: check_out(out.replace(HOLE, _in_a_name(key)), files=files) for key in keys}
    if len(set(paths.values())) < len(paths):
        raise CalibrantError("two groups would be written to one file: give one of them a new name")
    return paths


def _in_a_name(key: Any) -> str:
    """Return a key as part of the name of a file: letters of all alphabets stay what they are."""
    name = "null" if key is None else str(key)
    return "".join(c if c.isalnum() else quote(c, safe=" ,+=@") for c in name)
