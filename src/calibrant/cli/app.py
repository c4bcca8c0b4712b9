"""``calibrant`` itself: version and help."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from calibrant._version import __version__
from calibrant.cli import messages
from calibrant.cli.messages import OutputClosedError, discard_output, say, spoken, write
from calibrant.errors import CalibrantError

__all__ = ["main"]


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


# The front door of the command line: commands, errors as sentences, exit codes.
#
# ==== ==========================================================
# code meaning
# ==== ==========================================================
# 0    done
# 1    done, and a threshold given with ``--fail-if`` is exceeded
# 2    bad input: a command line, a file, a column, a value
# 70   a fault in calibrant itself
# 130  interrupted from the keyboard
# 141  whoever read the output stopped reading
# ==== ==========================================================
#
# Nothing heavy is imported before a command runs: ``calibrant --help`` answers at once.

_DEBUG = "--debug"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = given[: given.index("--")] if "--" in given else given
    debug = _DEBUG in options
    if debug:
        # It may stand anywhere, because it is added to a line that has just failed.
        given.remove(_DEBUG)
    try:
        return _run(given)
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001  # each gets its sentence
        if debug:
            traceback.print_exc()
        return _explained(problem)
    except SystemExit as end:
        # Typer ends with 1, which is for thresholds, where help meets a closed pipe.
        if isinstance(end.__context__, BrokenPipeError):
            return _explained(end.__context__)
        raise


def application() -> typer.Typer:
    """Return the commands, none of which has loaded anything heavy yet."""
    import typer

    app = typer.Typer(
        # Panels and colours would triple the time that help takes to appear.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback(invoke_without_command=True)(root)
    for command in _commands():
        # In raw strings the mark that keeps lines of examples apart is two characters.
        text = cleandoc(command.__doc__ or "").replace("\\b", "\b")
        app.command(cls=Command, help=text)(command)
    return app


def _commands() -> tuple[Callable[..., Any], ...]:
    from calibrant.cli.draw_commands import demo, plot, report
    from calibrant.cli.measure_commands import assess, compare
    from calibrant.cli.recalibrate_command import recalibrate
    from calibrant.cli.sketch_commands import merge, sketch

    return (assess, report, plot, compare, sketch, merge, recalibrate, demo)


def _run(arguments: list[str]) -> int:
    """Run a command line; errors are the caller's."""
    try:
        import typer
    except ModuleNotFoundError as problem:
        say(f"the command line needs {problem.name}: pip install 'calibrant[cli]'")
        return messages.BAD_INPUT
    command = typer.main.get_command(application())
    with _warnings_as_sentences():
        code = command.main(arguments, prog_name="calibrant", standalone_mode=False)
    return code if isinstance(code, int) else messages.DONE


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Say what the library warns of, each thing once, without the line of code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_, **__: say(str(message))
        yield


def _explained(problem: BaseException) -> int:
    """Say what went wrong in one sentence, and return the exit code."""
    if _was_interrupted(problem):
        return messages.INTERRUPTED
    if isinstance(problem, OutputClosedError | BrokenPipeError):
        discard_output()
        return messages.OUTPUT_CLOSED
    sentence = _sentence(problem)
    if sentence is None:
        said = " ".join(str(problem).split())
        kind = type(problem).__name__
        say(f"this is a fault in calibrant, {kind}: {said:.160}; {_DEBUG} shows where")
        return messages.OWN_FAULT
    say(sentence)
    return messages.BAD_INPUT


def _was_interrupted(problem: BaseException | None) -> bool:
    """Tell whether Ctrl-C is behind an error: DuckDB and typer have errors of their own for it."""
    while problem is not None:
        if isinstance(problem, KeyboardInterrupt) or str(problem) == "Query interrupted":
            return True
        if type(problem).__name__ in ("Abort", "InterruptException"):
            return True
        problem = problem.__cause__
    return False


def _sentence(problem: BaseException) -> str | None:
    """Return what is wrong with the input, or None where it is not to blame."""
    if isinstance(problem, CalibrantError):
        return " ".join(spoken(problem).split())
    if isinstance(problem, OSError):
        place = f"{problem.filename}: " if problem.filename else ""
        return f"{place}{problem.strerror or problem}"
    if isinstance(problem, MemoryError):
        return "there is not enough memory: make a sketch of the file first, with calibrant sketch"
    # Errors in the command line itself are of a class that depends on the version of typer.
    if hasattr(problem, "format_message"):
        context = getattr(problem, "ctx", None)
        command = "calibrant" if context is None else context.command_path
        return f"{problem.format_message().strip().rstrip('.')}; see {command} --help"
    return None
