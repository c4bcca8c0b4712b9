"""``calibrant`` itself: version and help."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant._version import __version__
from calibrant.cli.messages import write


def _show_version(asked: bool) -> None:
    if asked:
        write(f"calibrant {__version__}\n")
        raise typer.Exit


def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")
    ] = False,
) -> None:
    """Say whether predicted probabilities mean what they say, by how much not, where, how surely.

    Exit codes: 0 done, 1 a threshold of --fail-if is exceeded, 2 bad input.
    """
    if context.invoked_subcommand is None:
        write(f"{context.get_help()}\n")
