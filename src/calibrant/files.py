"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from calibrant.errors import CalibrantError


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path`: whoever looks there finds the old file or all of the new one."""
    target = Path(path)
    # A link keeps pointing where it did: what it points to is replaced.
    target = target.resolve() if target.is_symlink() else target
    if not target.parent.is_dir():
        raise CalibrantError(f"{path} must be in a folder that exists; there is no {target.parent}")
    draft = target.with_name(f".draft-{secrets.token_hex(8)}")
    handle = os.open(
        draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
