"""Fitted calibrators and maps as JSON text that is checked when it is read, never as pickles.

One object with the members

==========  ==============================================================================
format      "calibrant.recalibration"
version     1
content     what is kept: a map, {"map": name, fields...}, or a calibrator,
            {"calibrator": name, "params": {...}, "n_classes": C, "maps": [map, ...]}
checksum    BLAKE2b, 16 bytes in hexadecimal, of the content as JSON without spaces and with
            sorted keys
==========  ==============================================================================

Numbers are written so that they are read back bit for bit.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

from calibrant._base import write_atomically
from calibrant.errors import CalibrantError

_FORMAT = "calibrant.recalibration"
_VERSION = 1
# A map of every knot that one can have takes a few megabytes.
_MOST_BYTES = 1 << 28


def write(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write content to a file, all of it or nothing."""
    write_atomically(path, to_bytes(content))


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a file, or refuse it in one sentence that names it."""
    try:
        size = Path(path).stat().st_size
        if size > _MOST_BYTES:
            raise CalibrantError(f"not a calibrator: {size} bytes are too many")
        return from_bytes(Path(path).read_bytes())
    except CalibrantError as problem:
        problem.source = str(path)
        raise
    except OSError as problem:
        raise CalibrantError(problem.strerror or str(problem), source=str(path)) from problem


def to_bytes(content: dict[str, Any]) -> bytes:
    """Return content as bytes."""
    whole = {
        "format": _FORMAT,
        "version": _VERSION,
        "content": content,
        "checksum": _checksum(content),
    }
    return (json.dumps(whole, allow_nan=False) + "\n").encode()


def from_bytes(data: bytes) -> dict[str, Any]:
    """Return the content that bytes hold, or refuse them in one sentence."""
    try:
        whole = json.loads(data, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        raise CalibrantError(
            "not a calibrator, or a damaged one: it cannot be read as JSON"
        ) from None
    if not isinstance(whole, dict) or whole.get("format") != _FORMAT:
        raise CalibrantError("not a calibrator: it is JSON of another kind")
    version, content = whole.get("version"), whole.get("content")
    if isinstance(version, int) and version > _VERSION:
        raise CalibrantError(
            f"this calibrator is of version {version}, newer than this calibrant reads "
            f"({_VERSION}): upgrade calibrant"
        )
    if version != _VERSION or not isinstance(content, dict):
        raise CalibrantError("this calibrator makes no sense: impossible version or content")
    if whole.get("checksum") != _checksum(content):
        raise CalibrantError("this calibrator is damaged: its checksum does not match")
    return content


def _checksum(content: dict[str, Any]) -> str:
    text = json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(digits)
    return value
