"""The command line as a process: start-up, pipes, Ctrl-C, and what happens without typer."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import calibrant as cb
from tests import PATIENCE
from tests.cli.conftest import table

pytest.importorskip("typer")
pytest.importorskip("duckdb")

COMMAND = [sys.executable, "-m", "calibrant"]
NAMED = ["--label", "y", "--prob", "p"]
HEAVY = ("numpy", "scipy", "duckdb", "matplotlib", "narwhals", "pandas", "rich", "pydantic")


@pytest.fixture
def process(tmp_path):
    """Return a function that runs a command line as a process, in an empty folder."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cb.__file__).parents[1])}

    def process(*arguments, command=COMMAND, **options):
        return subprocess.run(
            [*command, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            **options,
        )

    return process


def test_help_loads_nothing_heavy(process):
    code = (
        "import sys; from calibrant.cli.app import main; main(['--help']);"
        f"print('LOADED', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = process("-c", code, command=[sys.executable])
    assert b"Usage: calibrant" in done.stdout
    assert done.stdout.strip().endswith(b"LOADED []")


def test_version(process):
    done = process("--version")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == f"calibrant {cb.__version__}\n"


def test_completion(process):
    # What --show-completion prints, whatever shell the tests were started from.
    done = process(command=["env", "_CALIBRANT_COMPLETE=source_bash", *COMMAND])
    assert done.returncode == 0
    assert b"_CALIBRANT_COMPLETE=complete_bash" in done.stdout


def test_without_typer_it_says_what_to_install(process):
    code = (
        "import sys; sys.modules['typer'] = None; from calibrant.cli.app import main; exit(main())"
    )
    done = process("-c", code, command=[sys.executable])
    assert done.returncode == 2
    assert done.stderr == b"calibrant: the command line needs typer: pip install 'calibrant[cli]'\n"


def test_a_pipeline_of_sketches(process, forecasts, tmp_path):
    sketched = process("sketch", "-", *NAMED, "--out", "-", input=forecasts.read_bytes())
    assert (sketched.returncode, sketched.stderr) == (0, b"")
    assert process("merge", "-", "--out", "m.sketch", input=sketched.stdout).returncode == 0
    assert cb.Sketch.load(tmp_path / "m.sketch").n == 400


def test_a_reader_that_leaves_early(process, forecasts):
    script = (
        f"{{ sleep 1; {' '.join(COMMAND)} assess {forecasts} {' '.join(NAMED)} --json; }} | true"
    )
    done = process("-c", f"set -o pipefail; {script}", command=["bash"])
    assert done.returncode == 141
    assert done.stderr == b""


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    # A pipe that never ends keeps it waiting in the middle of its work.
    old = tmp_path / "s.sketch"
    old.write_bytes(b"old")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(cb.__file__).parents[1]),
        "TMPDIR": str(temporary),
    }
    running = subprocess.Popen(
        [*COMMAND, "sketch", "-", *NAMED, "--out", "s.sketch"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Where tests run in the background, a shell has told them to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    running.stdin.write(table().encode())
    running.stdin.flush()
    wait_for(lambda: any(temporary.rglob("standard input")))
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert (out, err) == (b"", b"")
    assert sorted(tmp_path.iterdir()) == [old, temporary]
    assert old.read_bytes() == b"old"
    assert not list(temporary.iterdir())


def wait_for(condition):
    """Wait until something is so."""
    for _ in range(20 * PATIENCE):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never was so")
