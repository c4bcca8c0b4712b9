"""Exit codes and messages: results go to standard output, all else to standard error.

Errors of the library name arguments of Python. Here they name columns and options instead, and
count rows from 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from calibrant.errors import CalibrantError, Position

if TYPE_CHECKING:
    from calibrant.io.columns import Columns

# As in sysexits.h, and as in shells for processes that a signal ended.
DONE = 0
EXCEEDED = 1
BAD_INPUT = 2
OWN_FAULT = 70
INTERRUPTED = 130
OUTPUT_CLOSED = 141

# Options by the arguments of the library.
_NAMES = {
    "source": "FILE",
    "y_true": "--label",
    "y_prob": "--prob",
    "labels": "--classes",
    "sample_weight": "--weight",
    "groups": "--by",
    "clusters": "--clusters",
    "feature": "--along",
    "label": "--label",
    "prob": "--prob",
    "classes": "--classes",
    "weight": "--weight",
    "by": "--by",
    "along": "--along",
    "pos_label": "--pos-label",
    "multiclass": "--multiclass",
    "on_invalid": "--on-invalid",
    "n_bins": "--bins",
    "n_resamples": "--resamples",
    "n_cells": "--cells",
    "level": "--level",
    "threshold": "--threshold",
    "tolerance": "--tolerance",
    "cv": "--folds",
    "score": "--score",
    "measure": "--measure",
    "method": "--method",
    "in_percent": "give --percent",
    "dropping": "--on-invalid drop",
    "as_models": "give each as --prob",
}
# Hints that name options, by argument and rule.
_NAME_CLASSES = "name the columns of all classes with --classes"
_HINTS = {
    ("label", "must hold numbers"): "name the positive outcome with {pos_label}",
    ("y_true", "must be 0 or 1 (or soft) for one column of probabilities"): _NAME_CLASSES,
    ("y_true", "must have two labels where pos_label is given"): _NAME_CLASSES,
    ("multiclass", "needs one column of probabilities per class"): _NAME_CLASSES,
}


class OutputClosedError(Exception):
    """The reader of standard output is gone, as when ``head`` has read enough."""


def say(sentence: str) -> None:
    """Write a sentence to standard error."""
    if sys.stderr is not None:  # None if closed
        print(f"calibrant: {sentence}", file=sys.stderr)  # noqa: T201


def error_sentence(problem: CalibrantError, columns: Columns | None = None, whole: str = "") -> str:
    """Return the sentence of an error, with the names of columns and options.

    `whole` follows the number of a row where no file is named, such as " of all files".
    """

    def in_row(position: Position) -> str:
        if isinstance(position, tuple):
            return f"in row {position[0] + 1}, column {position[1] + 1}{whole}"
        return f"in row {position + 1}{whole}"

    hint = _HINTS.get((problem.argument or "", problem.rule))
    return problem.sentence(_NAMES | _columns(columns), in_row, hint)


def _columns(columns: Columns | None) -> dict[str, str]:
    if columns is None:
        return {}
    roles = {
        "y_true": ("label", columns.label),
        "y_prob": ("prob", columns.probs[0]),
        "sample_weight": ("weight", columns.weight),
        "groups": ("by", columns.by),
        "feature": ("along", columns.along),
    }
    names = {argument: f"{role} column {name!r}" for argument, (role, name) in roles.items()}
    if len(columns.probs) > 1:
        names["y_prob"] = "the columns of classes"
    if columns.by is None:
        del names["groups"]
    return names | ({"in_percent": "100 is the maximum"} if columns.is_percent else {})


@contextmanager
def in_columns(columns: Columns | None, whole: str = "") -> Iterator[None]:
    """Name columns and options in errors."""
    try:
        yield
    except CalibrantError as problem:
        source, problem.source = problem.source, None
        sentence = error_sentence(problem, columns, whole)
        raise type(problem)(sentence, source=source) from problem


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream, None if closed, is a terminal."""
    return stream is not None and stream.isatty()


def write(text: str) -> None:
    """Write text to standard output, replacing characters that its encoding lacks."""
    with _open_output() as output:
        encoding = output.encoding or "utf-8"
        output.write(text.encode(encoding, "replace").decode(encoding))


def write_bytes(content: bytes) -> None:
    """Write bytes to standard output, unless it is a terminal, which cannot show them."""
    if is_terminal(sys.stdout):
        raise CalibrantError("--out - is for pipes: a terminal cannot show a sketch")
    with _open_output() as output:
        output.buffer.write(content)


@contextmanager
def _open_output() -> Iterator[TextIO]:
    if sys.stdout is None:
        raise OutputClosedError
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        raise OutputClosedError from None


def write_json(content: Any) -> None:
    """Write plain values as JSON, nan and infinite numbers as null."""
    from calibrant._base import json_text

    write(json_text(content) + "\n")


def discard_output() -> None:
    """Discard unwritten output, which Python would try to write when it ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
