"""What tests of the command line share: a way to run one, and files to give to it."""

import io
import sys
from typing import NamedTuple

import numpy as np
import pytest

from calibrant.cli.app import main


class Run(NamedTuple):
    code: int
    out: str
    err: str


class Pipe(io.TextIOWrapper):
    """Standard input as a pipe has it."""

    def __init__(self, content):
        super().__init__(io.BytesIO(content))


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Return a function that runs a command line in an empty folder, 80 characters wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", Pipe(stdin))
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Run(code, *capsys.readouterr())

    return run


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def table(n=400, seed=0):
    """Return rows of outcomes y, predictions p and q, weights w and groups g as CSV."""
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(3)
    y = (rng.random(n) < p**2).astype(int)
    q = (p**2).round(3)
    rows = [f"{y[i]},{p[i]},{q[i]},{1 + i % 3},{'abc'[i % 3]}\n" for i in range(n)]
    return "y,p,q,w,g\n" + "".join(rows)


@pytest.fixture
def forecasts(write):
    """Return the path of a table of which p is over-confident and q is not."""
    return write("forecasts.csv", table())
