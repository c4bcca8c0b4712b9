"""Messages: results go to standard output, everything else is said on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from calibrant.errors import CalibrantError


class OutputClosedError(Exception):
    """Nobody reads our output any more, as when ``head`` has seen enough."""


def say(sentence: str) -> None:
    """Say a sentence to the person at the terminal, whatever else is being written."""
    if sys.stderr is not None:  # it is None where it was closed
        print(f"calibrant: {sentence}", file=sys.stderr)  # noqa: T201


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal; it is None where it was closed."""
    return stream is not None and stream.isatty()


def write(text: str) -> None:
    """Write text to standard output, in what characters it has."""
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
    """Write plain values as JSON, which knows no nan and no infinity: they are null."""
    write(json.dumps(_finite(content), allow_nan=False) + "\n")


def discard_output() -> None:
    """Throw away what nobody reads, so that it is not tried again when Python ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
