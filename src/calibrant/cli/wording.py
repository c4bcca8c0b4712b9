"""Wording: the library's sentences in words of columns and options.

The library speaks of its arguments: y_prob, pos_label. Whoever gave a file and options knows
columns and options, and counts rows from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from calibrant.sources.columns import Columns

_OPTIONS = {
    "pos_label": "--pos-label",
    "multiclass": "--multiclass",
    "on_invalid": "--on-invalid",
    "n_bins": "--bins",
    "n_resamples": "--resamples",
    "n_cells": "--cells",
    "level": "--level",
    "cv": "--folds",
    "score": "--score",
    "measure": "--measure",
    "method": "--method",
}
# What only makes sense in Python, as patterns.
_PHRASES = {
    r"y_prob of shape \(n, classes\)(; got \(\d+,\))?": "one --prob a class",
    r"; the order is \(y_true, y_prob\)": ": swap --label and --prob",
    r"open it with duckdb and give the relation": "download it first",
    r", or give the relation that duckdb\.read_csv.*returns": "",
    r"\bsource (?=must|cannot)": "FILE ",
    r"\bconvert it to 0 and 1 first": "name the positive outcome with --pos-label",
    r"y_prob must have shape \(n,\) or \(n, 2\), as in fit; got .*": "--prob must name one column "
    "or two, as when it was learnt",
    r"y_prob must have shape \(n, (\d+)\), as in fit; got .*": r"--prob must name \1 columns, as "
    "when it was learnt",
    r"\bgive y_prob one column a class with labels": "give one --prob a class",
    r"\bkey prob by the values of the label column": "name classes with --prob CLASS=COLUMN",
    r"\bprob must be keyed by the values": "--prob CLASS=COLUMN must name the values",
    r"\by_probs\[(.+?)\]": r"model \1",
}
# Commands measure one thing at a time.
_MANY_PROBLEMS = "'confidence', 'classwise', 'top_label' or a class"
_GIVEN = re.compile(rf"\b({'|'.join(_OPTIONS)})=(?:'([^']*)'|([^\s,;:)]+))")
# Words of the library: no part of a longer name or of a path, and no value of an option.
_ALONE = r"(?<![-\w./\\])(?<!-label )(?<!-multiclass )({})(?![-\w./\\])"
_NAMED = re.compile(_ALONE.format("|".join(_OPTIONS)) + "(?= must| is | has no say|,|;|$)")
_ARGUMENT = re.compile(_ALONE.format("y_prob|y_true|sample_weight|feature"))
_INDEX = re.compile(r"\bat index (\d+)( of)?")
_SUM = re.compile(r"\brow (\d+) sums to")
# What is quoted is a name or a value of somebody's. An apostrophe opens no quotation.
_QUOTED = re.compile(r"""(?<![\w=])'(?:[^'\\]|\\.)*'|(?<![\w=])"(?:[^"\\]|\\.)*\"""")
_KEPT = re.compile("\0(\\d+)\0")


@contextmanager
def plainly(columns: Columns | None, whole: str = "") -> Iterator[None]:
    """Say what is refused inside in words of columns and options.

    `whole` tells of what rows are counted, where no file is named.
    """
    try:
        yield
    except CalibrantError as problem:
        raise type(problem)(reworded(str(problem), columns, whole)) from problem


def reworded(sentence: str, columns: Columns | None = None, whole: str = "") -> str:
    """Return a sentence of the library as the command line says it; names and values stay."""
    kept: list[str] = []

    def keep(text: str) -> str:
        kept.append(text)
        return f"\0{len(kept) - 1}\0"

    sentence = sentence.replace(_MANY_PROBLEMS, "confidence or a class")
    sentence = _GIVEN.sub(lambda m: f"{_OPTIONS[m[1]]} {keep(m[2] or m[3])}", sentence)
    sentence = _QUOTED.sub(lambda m: keep(m[0]), sentence)
    for phrase, words in _PHRASES.items():
        sentence = re.sub(phrase, words, sentence)
    sentence = _NAMED.sub(lambda m: _OPTIONS[m[1]], sentence)
    sentence = _INDEX.sub(lambda m: f"in row {int(m[1]) + 1}{m[2] or whole}", sentence)
    sentence = _SUM.sub(lambda m: f"the sum of row {int(m[1]) + 1}{whole} is", sentence)
    names = _arguments(columns)
    sentence = _ARGUMENT.sub(lambda m: names.get(m[1], m[1]), sentence)
    return _KEPT.sub(lambda m: kept[int(m[1])], sentence)


def _arguments(columns: Columns | None) -> dict[str, str]:
    """Return what the arguments of the library are called here."""
    if columns is None:
        return {}
    several = len(columns.probs) > 1
    along = {} if columns.along is None else {"feature": f"along column {columns.along!r}"}
    return along | {
        "y_prob": "the prob columns" if several else f"prob column {columns.probs[0]!r}",
        "y_true": f"label column {columns.label!r}",
        "sample_weight": f"weight column {columns.weight!r}",
    }
