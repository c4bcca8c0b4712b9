"""The shell lines of the README run as they stand, one after the other, from a clone."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```bash\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMANDS = [
    line
    for block in _BLOCK.findall((ROOT / "README.md").read_text())
    for line in block.splitlines()
]


@pytest.fixture
def clone(tmp_path):
    """Return a folder with the examples, and `calibrant` on the path."""
    for name in ("typer", "duckdb", "plotly", "jinja2", "sklearn"):
        pytest.importorskip(name)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "calibrant").write_text(f'#!/bin/sh\nexec {sys.executable} -m calibrant "$@"\n')
    (programs / "calibrant").chmod(0o755)
    path = os.pathsep.join([str(programs), sysconfig.get_path("scripts"), os.environ["PATH"]])
    return tmp_path, os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "src")}


def test_commands_are_found():
    assert len(COMMANDS) == 12


def test_commands_run(clone):
    # One test, since some read what others have written.
    folder, environment = clone
    for command in COMMANDS:
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
