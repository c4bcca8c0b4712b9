"""Fitted calibrators and maps as JSON files that are checked when they are read, never as pickles.

One object with the members

==========  ==============================================================================
format      "calibrant.recalibration"
version     1
content     a map, {"map": name, fields...}, or a calibrator,
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
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._base import write_atomically
from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from calibrant.recalibration.calibrator import Calibrator
    from calibrant.recalibration.maps import ProbabilityMap

_FORMAT = "calibrant.recalibration"
_VERSION = 1
# The largest maps take a few megabytes.
_MAX_BYTES = 1 << 28
# What impossible values of fields may raise.
_INVALID = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def load(path: str | os.PathLike[str]) -> Calibrator | ProbabilityMap:
    """Read a fitted calibrator, or a map, from a file written by its `save`.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Calibrator or ProbabilityMap
        What was saved: its predictions are the same to the last bit.

    Raises
    ------
    CalibrantError
        Where the file is missing, damaged, of another format or of a newer version. Nothing in a
        file is executed, so that files from untrusted sources can be read.

    See Also
    --------
    Calibrator.save, ProbabilityMap.save : Write such a file.

    Examples
    --------
    >>> import tempfile, os
    >>> from calibrant.recalibration import IsotonicCalibrator
    >>> fitted = IsotonicCalibrator().fit([0.1, 0.4, 0.6], [0, 1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fitted.save(os.path.join(folder, "isotonic.json"))
    ...     again = load(os.path.join(folder, "isotonic.json"))
    >>> again.predict([0.25]) == fitted.predict([0.25])
    array([ True])
    """
    try:
        content = _content(Path(path))
    except CalibrantError as problem:
        problem.source = str(path)
        raise
    except OSError as problem:
        raise CalibrantError(problem.strerror or str(problem), source=str(path)) from problem
    try:
        return _calibrator(content) if "calibrator" in content else _map(content)
    except _INVALID as problem:
        raise CalibrantError(f"not a valid calibrator: {problem}", source=str(path)) from None


def write(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write content to a file, all of it or nothing."""
    whole = {
        "format": _FORMAT,
        "version": _VERSION,
        "content": content,
        "checksum": _checksum(content),
    }
    write_atomically(path, (json.dumps(whole, allow_nan=False) + "\n").encode())


def _content(path: Path) -> dict[str, Any]:
    """Return the content of a file whose format, version and checksum are right."""
    size = path.stat().st_size
    if size > _MAX_BYTES:
        raise CalibrantError(f"not a calibrator: {size} bytes are too many")
    try:
        whole = json.loads(path.read_bytes(), parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        raise CalibrantError("not a calibrator, or a damaged one: it is not valid JSON") from None
    if not isinstance(whole, dict) or whole.get("format") != _FORMAT:
        raise CalibrantError("not a calibrator: it is JSON of another format")
    version, content = whole.get("version"), whole.get("content")
    if isinstance(version, int) and version > _VERSION:
        raise CalibrantError(
            f"this calibrator is of version {version}, newer than this calibrant reads "
            f"({_VERSION}): upgrade calibrant"
        )
    if version != _VERSION or not isinstance(content, dict):
        raise CalibrantError("not a valid calibrator: impossible version or content")
    if whole.get("checksum") != _checksum(content):
        raise CalibrantError("this calibrator is damaged: its checksum does not match")
    return content


def _calibrator(content: dict[str, Any]) -> Calibrator:
    calibrator: Calibrator = _class("Calibrator", content["calibrator"])(**content["params"])
    n_classes, maps = content["n_classes"], tuple(_map(one) for one in content["maps"])
    if type(n_classes) is not int or n_classes < 2:
        raise ValueError(f"it has {n_classes!r} classes")
    if len(maps) != 1 and (len(maps) != n_classes or n_classes == 2):
        raise ValueError(f"it has {len(maps)} maps")
    calibrator.n_classes_, calibrator.maps_ = n_classes, maps
    # Maps that do not fit the calibrator are found here rather than in use.
    example = np.full(1, 0.5) if n_classes == 2 else np.full((1, n_classes), 1 / n_classes)
    calibrator.predict(example)
    return calibrator


def _map(content: dict[str, Any]) -> ProbabilityMap:
    fields = dict(content)
    if "inner" in fields:
        fields["inner"] = _map(fields["inner"])
    made: ProbabilityMap = _class("ProbabilityMap", fields.pop("map"))(**fields)
    return made


def _class(base: str, name: str) -> type[Any]:
    """Return a public class of this package by its name, if it is derived from a base class."""
    from calibrant import recalibration

    known = getattr(recalibration, name, None) if name in recalibration.__all__ else None
    if not isinstance(known, type) or getattr(recalibration, base) not in known.__mro__[1:]:
        raise ValueError(f"{name!r} is not a {base}")
    return known


def _checksum(content: dict[str, Any]) -> str:
    text = json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(digits)
    return value
