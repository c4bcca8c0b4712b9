"""The command ``calibrant``: its commands, errors as sentences, and exit codes.

==== ==========================================================
code meaning
==== ==========================================================
0    done
1    done, and a condition given with ``--fail-if`` holds
2    bad input: a command line, a file, a column, a value
70   a fault in calibrant itself
130  interrupted from the keyboard
141  the reader of the output closed it
==== ==========================================================

Nothing heavy is imported before a command runs, so that ``calibrant --help`` answers at once.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING

from calibrant._version import __version__
from calibrant.cli import messages
from calibrant.cli.messages import OutputClosedError, discard_output, error_sentence, say, write
from calibrant.errors import CalibrantError

if TYPE_CHECKING:
    from typer import Typer

_DEBUG = "--debug"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = given[: given.index("--")] if "--" in given else given
    debug = _DEBUG in options
    if debug:
        given.remove(_DEBUG)  # typer would accept it before the command only
    try:
        return _run(given)
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001  # each has its sentence
        if debug:
            traceback.print_exc()
        return _explained(problem)
    except SystemExit as end:
        # Typer exits with 1, the code of thresholds, when help is written to a closed pipe.
        if isinstance(end.__context__, BrokenPipeError):
            return _explained(end.__context__)
        raise


def application() -> Typer:
    """Return the commands, without importing anything heavy."""
    import typer

    from calibrant.cli.draw_commands import demo, plot, report
    from calibrant.cli.measure_commands import assess, compare
    from calibrant.cli.options import Command
    from calibrant.cli.recalibrate_command import recalibrate
    from calibrant.cli.sketch_commands import merge, sketch

    def show_version(asked: bool) -> None:
        if asked:
            write(f"calibrant {__version__}\n")
            raise typer.Exit

    def root(
        version: bool = typer.Option(
            False, "--version", is_eager=True, callback=show_version, help="Print the version."
        ),
        debug: bool = typer.Option(
            False, _DEBUG, help="Show the traceback of an error; may be given anywhere."
        ),
    ) -> None:
        """Measure the calibration of predicted probabilities, with intervals and tests.

        Exit codes: 0 done, 1 a condition of --fail-if holds, 2 bad input.
        """

    app = typer.Typer(
        # Panels and colours would triple the time of help.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(root)
    for command in (assess, report, plot, compare, sketch, merge, recalibrate, demo):
        # Docstrings are raw: the mark that keeps lines of examples apart is two characters there.
        text = cleandoc(command.__doc__ or "").replace("\\b", "\b")
        app.command(cls=Command, help=text)(command)
    return app


def _run(arguments: list[str]) -> int:
    """Run a command line, without handling errors."""
    try:
        import typer
    except ModuleNotFoundError as problem:
        say(f"the command line needs {problem.name}: pip install 'calibrant[cli]'")
        return messages.BAD_INPUT
    command = typer.main.get_command(application())
    # Warnings of the library are sentences, each written once.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_, **__: say(str(message))
        code = command.main(arguments or ["--help"], prog_name="calibrant", standalone_mode=False)
    return code if isinstance(code, int) else messages.DONE


def _explained(problem: BaseException) -> int:
    """Write an error as a sentence, and return the exit code."""
    if _was_interrupted(problem):
        return messages.INTERRUPTED
    if isinstance(problem, OutputClosedError | BrokenPipeError):
        discard_output()
        return messages.OUTPUT_CLOSED
    sentence = _sentence(problem)
    if sentence is None:
        text, kind = " ".join(str(problem).split()), type(problem).__name__
        say(f"this is a fault in calibrant, {kind}: {text:.160}; {_DEBUG} shows where")
        return messages.OWN_FAULT
    say(sentence)
    return messages.BAD_INPUT


def _was_interrupted(problem: BaseException | None) -> bool:
    """Tell whether Ctrl-C caused an error: DuckDB and typer have errors of their own for it."""
    while problem is not None:
        if isinstance(problem, KeyboardInterrupt) or str(problem) == "Query interrupted":
            return True
        if type(problem).__name__ in ("Abort", "InterruptException"):
            return True
        problem = problem.__cause__
    return False


def _sentence(problem: BaseException) -> str | None:
    """Return what is wrong with the input, or None where the input is not the cause."""
    if isinstance(problem, CalibrantError):
        return " ".join(error_sentence(problem).split())
    if isinstance(problem, OSError):
        place = f"{problem.filename}: " if problem.filename else ""
        return f"{place}{problem.strerror or problem}"
    if isinstance(problem, MemoryError):
        return "there is not enough memory: make a sketch of the file first, with calibrant sketch"
    # The class of errors in the command line depends on the version of typer.
    if hasattr(problem, "format_message"):
        context = getattr(problem, "ctx", None)
        command = "calibrant" if context is None else context.command_path
        text = problem.format_message().replace("Value error, ", "").strip()
        return f"{text.rstrip('.')}; see {command} --help"
    return None
