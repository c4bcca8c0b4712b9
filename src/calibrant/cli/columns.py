"""Columns: which columns of a table are meant, as told, or as is obvious and then said.

A column that was not named is taken where just one can be meant: the one with a usual name, or
else the one whose contents fit. Where several could be meant, they are listed with the option that
names one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import NamedTuple

from calibrant.cli.messages import say
from calibrant.cli.outcomes import word_of
from calibrant.cli.request import Request
from calibrant.errors import CalibrantError
from calibrant.sources.columns import Columns, inventory
from calibrant.sources.formats import OpenFile
from calibrant.sources.groups import key_of

_PATTERN = re.compile(r"[*?\[]")
Named = tuple[tuple[str, ...], tuple[str, ...]]
# So many rows tell what a column holds.
_A_LOOK = 10_000
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
    found = file.rows.limit(_A_LOOK).aggregate(", ".join(asked)).fetchall()[0]
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
    values = file.rows.limit(_A_LOOK).project(f"TRY({file.sql(columns.label)}) AS label").distinct()
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
