"""``calibrant`` itself: version and help."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from calibrant._version import __version__
from calibrant.cli.messages import write


def _show_version(asked: bool) -> None:
    if asked:
        write(f"calibrant {__version__}\n")
        raise typer.Exit


class Command(TyperCommand):
    """A command whose help names measures: those of the registry, once the help is asked for."""

    def format_help_text(self, *arguments: Any) -> None:
        """Write the help."""
        from calibrant.measures.registry import assessed, comparable

        for chosen in (assessed, comparable):
            names = ", ".join(info.name for info in chosen())
            self.help = (self.help or "").replace(f"{{{chosen.__name__}}}", names)
        super().format_help_text(*arguments)


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
