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


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Return a folder with the examples, and `calibrant` on the path."""
    for name in ("typer", "duckdb", "plotly", "jinja2", "sklearn"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples", folder / "examples")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "calibrant").write_text(f'#!/bin/sh\nexec {sys.executable} -m calibrant "$@"\n')
    (programs / "calibrant").chmod(0o755)
    path = os.pathsep.join([str(programs), sysconfig.get_path("scripts"), os.environ["PATH"]])
    return folder, os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "src")}


def test_ten_lines():
    assert len(COMMANDS) == 10


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(clone, command):
    folder, environment = clone
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
