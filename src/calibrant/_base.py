"""What all modules build on: array types, results, and files written as a whole or not at all."""

from __future__ import annotations

import base64
import html
import io
import json
import math
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import CalibrantError, MissingDependencyError
from calibrant.formatting import TextTable, field_text

AnyArray = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

HTML_ENDINGS = (".html", ".htm")
# Libraries that make the frames of results, in order of preference.
_FRAME_LIBRARIES = ("pandas", "polars", "pyarrow")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
img-src data:">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem}}
table {{ border-collapse: collapse; display: block; overflow-x: auto; margin: 1rem 0; }}
th, td {{ padding: 0.2rem 0.8rem 0.2rem 0; text-align: left; white-space: nowrap;
  font-variant-numeric: tabular-nums; border-bottom: 1px solid #8886; }}
img {{ background: #fff; height: auto; max-width: 100%; padding: 0.5rem; box-sizing: border-box; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
{picture}
</body>
</html>
"""


class Result:
    """Base of all results: frozen dataclasses whose arrays are read-only.

    What people see is the same everywhere: ``repr`` prints the paragraphs and tables of
    `_printed`; notebooks show them as HTML, with a table of the values where there is none.
    """

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for name, value in self._fields().items():
            if isinstance(value, np.ndarray):
                # A view, so that the caller's own array stays writeable.
                locked = value.view()
                locked.flags.writeable = False
                object.__setattr__(self, name, locked)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values, arrays as lists, dates as text, nan as None."""
        return {name: plain(value) for name, value in self._fields().items()}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return :meth:`to_dict` as JSON, and write it to `path` if that is given.

        Numbers that are not finite are null.
        """
        return written(path, json_text(self.to_dict()))

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return what is printed as Markdown, tables included, and write it to `path` if given."""
        parts = [part for part in self._parts() if part]
        texts = (one.to_markdown() if isinstance(one, TextTable) else one for one in parts)
        return written(path, "\n\n".join(texts) + "\n")

    def to_html(self, path: str | os.PathLike[str] | None = None, *, title: str = "") -> str:
        """Return one self-contained page of HTML, and write it to `path` if that is given.

        Parameters
        ----------
        path : path, optional
            The file to write, as a whole or not at all.
        title : str
            The heading of the page.

        Returns
        -------
        str
            The page, with a picture where the result has `plot`.
        """
        words = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(self).__name__)
        head = html.escape(title or words.capitalize())
        picture = _picture(self.plot()) if hasattr(self, "plot") else ""
        text = _PAGE.format(title=head, body=self._repr_html_(), picture=picture)
        return written(path, text, HTML_ENDINGS)

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _printed(self) -> Iterable[str | TextTable]:
        """Return the paragraphs and tables that people see."""
        values = (f"{name}={text}" for name, text in self._field_texts().items())
        return [f"{type(self).__name__}({', '.join(values)})"]

    def _field_texts(self) -> dict[str, str]:
        values = self._fields()
        interval = values.get("low"), values.get("high")
        return {name: field_text(name, value, interval) for name, value in values.items()}

    def _table(self) -> TextTable:
        """Return the values as a table, shown where `_printed` has none."""
        texts = self._field_texts()
        return TextTable({"field": [*texts], "value": [*texts.values()]})

    def __repr__(self) -> str:
        return "\n".join(map(str, self._printed()))

    def _repr_html_(self) -> str:
        return "".join(
            part.to_html() if isinstance(part, TextTable) else f"<p>{html.escape(part)}</p>"
            for part in self._parts()
            if part
        )

    def _parts(self) -> list[str | TextTable]:
        """Return what is printed, with a table of the values where it has none."""
        parts = [*self._printed()]
        has_table = any(isinstance(part, TextTable) for part in parts)
        return parts if has_table else [*parts, self._table()]


class TabularResult(Result):
    """A result with one row per bin, point, group, pair of models or method."""

    def _columns(self) -> Mapping[str, Any]:
        """Return the columns of the table; by default the fields that are arrays."""
        return {name: one for name, one in self._fields().items() if isinstance(one, np.ndarray)}

    def _table(self) -> TextTable:
        return TextTable.of(self._columns())

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the table as a dataframe.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            The library of the dataframe; by default the first of these that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            The table.
        """
        import narwhals.stable.v2 as nw

        library = _frame_library(backend)
        columns = {name: _column(values, library) for name, values in self._columns().items()}
        return nw.from_dict(columns, backend=library).to_native()


def json_text(content: Any) -> str:
    """Return plain values as JSON, numbers that are not finite as null."""
    return json.dumps(_finite(content), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _picture(ax: Any) -> str:
    """Return the figure of an Axes as an image of HTML."""
    buffer = io.BytesIO()
    ax.figure.figure.savefig(buffer, format="svg", metadata={"Date": None})
    content = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f'<img alt="" src="data:image/svg+xml;base64,{content}">'


def columns_of(rows: Iterable[Any], names: Iterable[str]) -> dict[str, list[Any]]:
    """Return the attributes of objects as columns, one row per object."""
    rows = list(rows)
    return {name: [getattr(row, name) for row in rows] for name in names}


def _frame_library(backend: str | None) -> Any:
    if backend is not None and backend not in _FRAME_LIBRARIES:
        known = ", ".join(map(repr, _FRAME_LIBRARIES))
        raise CalibrantError(
            "must be one of {known}", argument="backend", value=backend, known=known
        )
    wanted = _FRAME_LIBRARIES if backend is None else (backend,)
    for name in wanted:
        if find_spec(name):
            return name
    raise MissingDependencyError(
        "to_frame needs {libraries}",
        hint="pip install {first}",
        libraries=", ".join(wanted[:-1]) + " or " * (len(wanted) > 1) + wanted[-1],
        first=wanted[0],
    )


def _column(values: Any, library: str) -> Any:
    if isinstance(values, np.ndarray):
        return values
    values = list(values)
    if library == "pandas" and None in values:
        # Or pandas would make 1.0 and nan of 1 and None.
        return np.array(values, dtype=object)
    return values


def plain(value: Any) -> Any:
    """Return a value as plain Python, as JSON takes it: nan is None, dates are text."""
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, date):
        return value.isoformat()
    return None if isinstance(value, float) and np.isnan(value) else value


def check_path(path: Any, endings: Sequence[str] = ()) -> None:
    """Refuse what is no path of a file, or one of another ending; devices may have any."""
    if not isinstance(path, str | os.PathLike):
        raise CalibrantError("must be the path of a file", argument="path", value=path)
    if endings and Path(path).suffix.lower() not in endings and not is_stream(Path(path)):
        rule, known = "must end in {known}", ", ".join(endings)
        raise CalibrantError(rule, argument="path", value=os.fspath(path), known=known)


def is_stream(path: Path) -> bool:
    """Tell whether a path is that of a device or a pipe."""
    return path.exists() and not (path.is_file() or path.is_dir())


def written(path: str | os.PathLike[str] | None, text: str, endings: Sequence[str] = ()) -> str:
    """Return text, and write it to a file, as a whole or not at all, if there is a path."""
    if path is not None:
        check_path(path, endings)
        write_atomically(path, text.encode("utf-8", "replace"))
    return text


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file as a whole: readers find the old content or all of the new."""
    with draft_of(path) as draft:
        draft.write_bytes(content)


@contextmanager
def draft_of(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to, which replaces the file at `path` once all is written.

    Of a link, the file that it points to is replaced. What is no regular file, such as a pipe or a
    device, is written to and never replaced.
    """
    try:
        with _draft(Path(path)) as draft:
            yield draft
    except OSError as problem:
        if problem.errno is not None:  # the name of the draft would tell nothing
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
