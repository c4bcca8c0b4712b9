"""Standard input as a file: what comes through a pipe is kept in a temporary file while it is read.

Its format is told by its first bytes, unless an option names it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibrant.checks import check_choice
from calibrant.cli.messages import is_terminal
from calibrant.errors import CalibrantError

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
_A_LOOK = 1 << 16


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
        start = file.read(_A_LOOK)
    if start.startswith(_GZIP):
        # The rest may be cut off at any byte, and still what comes before can be looked at.
        try:
            inner = zlib.decompressobj(wbits=31).decompress(start, _A_LOOK)
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
