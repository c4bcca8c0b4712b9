"""Outputs: where files go, looked at before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from calibrant.errors import CalibrantError

HOLE = "{}"


def check_out(
    out: str, endings: Sequence[str] = (), files: Sequence[str] = (), option: str = "--out"
) -> Path:
    """Return a path that can be written to and is none of the `files` that are read."""
    from calibrant.cli.files import named_files

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
