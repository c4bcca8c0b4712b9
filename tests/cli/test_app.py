"""The front door: every command documented, errors explained, exit codes kept."""

import inspect
import json
import re
from functools import partial

import pytest

import calibrant as cb
from calibrant.cli import app as app_module

typer = pytest.importorskip("typer")
pytest.importorskip("duckdb")

COMMANDS = [
    "assess",
    "report",
    "plot",
    "compare",
    "sketch",
    "merge",
    "recalibrate",
    "demo",
]


def test_the_commands(run):
    done = run("--help")
    assert (done.code, done.err) == (0, "")
    listed = done.out.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == COMMANDS
    # Each in a sentence that fits.
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)
    assert run() == done


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(run, name):
    done = run(name, "--help")
    assert done.code == 0
    command = typer.main.get_command(app_module.application()).commands[name]
    options = [one for one in command.params if one.param_type_name == "option"]
    assert all(option.help for option in options)
    examples = [line for line in done.out.splitlines() if line.startswith("  calibrant ")]
    assert any(f"calibrant {name}" in line for line in examples) or name == "demo"


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("assess", "CSV, TSV, Parquet, JSON or JSON lines, also .gz or .zst; patterns; sketches;"),
        (
            "compare",
            "CSV, TSV, Parquet, JSON or JSON lines, also .gz or .zst; patterns; - for standard",
        ),
        ("merge", "Sketches; patterns; - for standard input."),
    ],
)
def test_commands_say_what_files_they_take(run, name, files):
    arguments = run(name, "--help").out.partition("Arguments:")[2]
    assert " ".join(arguments.split()).partition("> ")[2].startswith(files)


@pytest.mark.parametrize("name", ["assess", "report", "plot", "compare", "recalibrate"])
def test_one_number_of_resamples(run, name):
    functions = (cb.estimate, cb.assess, cb.by_group, cb.compare, cb.reliability_curve)
    numbers = {inspect.signature(one).parameters["n_resamples"].default for one in functions}
    (number,) = numbers
    text = " ".join(run(name, "--help").out.split())
    assert re.search(
        rf"Number of bootstrap resamples, at least 39\. \[default: \(?{number}\b", text
    )


def test_a_fault_of_our_own_is_not_bad_input(run, monkeypatch):
    def broken(arguments):
        raise TypeError("this\nand that")

    monkeypatch.setattr(app_module, "_run", broken)
    done = run("assess")
    assert done.code == 70
    assert done.err == (
        "calibrant: this is a fault in calibrant, TypeError: this and that; --debug shows where\n"
    )


@pytest.mark.parametrize(
    "problem",
    [KeyboardInterrupt(), RuntimeError("Query interrupted"), type("Abort", (RuntimeError,), {})()],
)
def test_every_kind_of_interruption(run, monkeypatch, problem):
    def interrupted(arguments):
        try:
            raise problem
        except RuntimeError as cause:
            raise cb.CalibrantError("it cannot be read") from cause

    monkeypatch.setattr(app_module, "_run", interrupted)
    assert run("assess") == (130, "", "")


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (MemoryError(), "there is not enough memory: make a sketch of the file first, with"),
        (PermissionError(13, "Permission denied", "x.csv"), "x.csv: Permission denied"),
        (OSError("strange"), "strange"),
    ],
)
def test_what_the_machine_refuses(run, monkeypatch, problem, sentence):
    def refused(arguments):
        raise problem

    monkeypatch.setattr(app_module, "_run", refused)
    done = run("assess")
    assert done.code == 2
    assert done.err.startswith(f"calibrant: {sentence}")


def test_debug_shows_the_traceback_wherever_it_stands(run):
    for line in (["--debug", "assess", "absent.csv"], ["assess", "absent.csv", "--debug"]):
        done = run(*line)
        assert done.code == 2
        assert "Traceback" in done.err
        assert done.err.endswith("calibrant: there is no file 'absent.csv'\n")


def test_debug_may_be_the_name_of_a_file(run):
    done = run("assess", "--", "--debug")
    assert done.err == "calibrant: there is no file '--debug'\n"


def test_without_duckdb_it_says_what_to_install(run, forecasts, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    done = run("assess", forecasts)
    assert done.code == 2
    assert done.err == "calibrant: reading files needs duckdb: pip install 'calibrant[files]'\n"


def test_the_demo(run, monkeypatch, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("plotly")
    quick = partial(cb.assess, n_resamples=39)
    monkeypatch.setattr("calibrant.assessment.assess.assess", quick)
    done = run("demo", "-o", "demo.html")
    assert (done.code, done.err) == (0, "")
    # A verdict, a diagram, the report, and what to try next.
    for part in ("Predictions are too high", "observed", str(tmp_path / "demo.html")):
        assert part in "".join(done.out.split("\n"))
    assert "Try next:\n  calibrant assess FILE.csv --label OUTCOME --prob PREDICTION\n" in done.out
    assert "SIDC" in (tmp_path / "demo.html").read_text()
    assert "demo.html" not in run("demo").out
    assert list(json.loads(run("demo", "--json").out)) == ["rain"]
