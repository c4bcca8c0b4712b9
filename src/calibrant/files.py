"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibrant.errors import CalibrantError


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path`: whoever looks there finds the old file or all of the new one."""
    with draft_of(path) as draft:
        draft.write_bytes(content)


@contextmanager
def draft_of(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path to write to; once all is written, it takes the place of the file at `path`.

    A link keeps pointing where it did: the file that it points to is replaced. What is no regular
    file, such as a pipe or a device, is written to and never replaced.
    """
    try:
        with _draft(Path(path)) as draft:
            yield draft
    except OSError as problem:
        if problem.errno is not None:  # the name of the draft tells nobody anything
            problem.filename, problem.filename2 = os.fspath(path), None
        raise


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    if target.exists() and not target.is_file():
        with tempfile.TemporaryDirectory(prefix="calibrant-") as folder:
            draft = Path(folder, "draft")
            yield draft
            with draft.open("rb") as content, target.open("wb") as file:
                shutil.copyfileobj(content, file)
        return
    path, target = target, target.resolve() if target.is_symlink() else target
    if not target.parent.is_dir():
        raise CalibrantError(f"{path} must be in a folder that exists; there is no {target.parent}")
    draft = target.with_name(f".draft-{secrets.token_hex(8)}")
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        if target.exists():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
