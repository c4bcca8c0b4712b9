"""``calibrant papers``: the experiments of the papers behind calibrant."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import options
from calibrant.cli.messages import say, write, write_json
from calibrant.errors import CalibrantError


def papers(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", show_default=False, help="Which papers; all for all of them."
        ),
    ] = None,
    out: Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where to write.")] = "papers",
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure far less, in seconds rather than hours.")
    ] = False,
    json: options.Json = False,
) -> None:
    r"""Run the experiments of the papers behind calibrant.

    Writes a page that sets published and reproduced numbers side by side, with tables and figures.
    A run that was interrupted goes on where it stopped. Without a name, prints names and titles.

    \b
    calibrant papers
    calibrant papers smece --quick --out build/papers
    """
    from calibrant import papers as experiments

    known = experiments.names()
    if not names:
        if json:
            write_json({"papers": list(known)})
        else:
            write("".join(f"{name:16}  {_title(name)}\n" for name in known))
        return
    wanted = list(known) if names == ["all"] else names
    for name in wanted:
        if name not in known:
            raise CalibrantError(f"there is no paper {name!r:.40}; there are {', '.join(known)}")
    if Path(out).exists() and not Path(out).is_dir():
        raise CalibrantError(f"--out must be a folder; {out!r:.80} is a file")
    pages = []
    for name in wanted:
        run = experiments.run(name, out=out, quick=quick)
        say(f"wrote {run.page} and {len(run.files)} tables and figures")
        pages.append(str(run.page))
    if json:
        write_json({"pages": pages})


def _title(name: str) -> str:
    """Return authors and title, with which a paper's module begins to speak of itself."""
    said = import_module(f"calibrant.papers.{name.replace('-', '_')}").__doc__ or ""
    return said.partition("\n")[0].partition(": ")[0].rstrip(".")
