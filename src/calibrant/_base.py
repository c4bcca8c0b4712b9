"""What all results share: frozen, printed well, turned into dictionaries and frames."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import CalibrantError, MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd


class Result:
    """What all results share: fields that do not change, arrays included."""

    def __post_init__(self) -> None:
        """Lock the arrays, so that a result stays what was measured."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                # A view, so that the array of whoever made the result is not locked with it.
                locked = value.view()
                locked.flags.writeable = False
                object.__setattr__(self, field.name, locked)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values, arrays as lists, dates as text, nan as None."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]


def frame(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return columns as a pandas table."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependencyError("to_frame needs pandas", hint="pip install pandas") from None
    return pd.DataFrame(dict(columns))


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, date):
        return value.isoformat()
    return None if isinstance(value, float) and np.isnan(value) else value


# Whatever people hold their numbers in, as a numpy array.
#
# Only containers are converted here: nothing looks at the values, nothing is cast to float64, and an
# array that numpy can already see is never copied. Value checks live in :mod:`calibrant.data.validation`.

AnyArray = npt.NDArray[Any]


FloatArray = npt.NDArray[np.float64]


IntArray = npt.NDArray[np.int64]

# Files that are written whole or not at all.


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
