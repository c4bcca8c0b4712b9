"""compare: columns of one file, or several files."""

import json

import numpy as np
import pytest

from calibrant.inference.compare import compare
from tests.cli.conftest import table
from tests.tolerances import assert_nearly_equal

pytest.importorskip("typer")
pytest.importorskip("duckdb")

QUICK = ("--resamples", "50")


def columns():
    lines = [line.split(",")[:3] for line in table().splitlines()[1:]]
    return np.array(lines, dtype=float).T


def test_columns_are_models(run, forecasts):
    y, p, q = columns()
    expected = compare(y, {"p": p, "squared": q}, n_resamples=50)
    done = run("compare", forecasts, "--prob", "p", "--prob", "squared=q", *QUICK, "--json")
    assert done.code == 0
    assert_nearly_equal(json.loads(done.out), expected.to_dict())


def test_all_columns_that_fit_are_taken(run, write):
    path = write("f.csv", "A,B,rain\n0.5,0.4,1\n0.25,0.3,0\n0.75,0.8,1\n")
    done = run("compare", path, *QUICK)
    assert done.code == 0
    assert done.err == "calibrant: taking --prob 'A', 'B' and --label 'rain'\n"
    assert "A - B" in done.out
    assert "rank" in done.out


def test_files_are_models(run, write):
    y, p, q = columns()
    for name, values in (("one", p), ("two", q)):
        rows = [f"{int(a)},{b}\n" for a, b in zip(y, values, strict=True)]
        write(f"{name}.csv", "y,p\n" + "".join(rows))
    options = ("--measure", "brier_score", "--label", "y", "--prob", "p", "--json")
    done = run("compare", "one.csv", "two.csv", *options)
    expected = compare(y, {"one": p, "two": q}, measure="brier_score")
    assert_nearly_equal(json.loads(done.out), expected.to_dict())


def test_files_of_the_same_name_go_by_their_folders(run, write, tmp_path):
    content = table(50)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(f"{folder}/model.csv", content)
    done = run("compare", "a/model.csv", "b/model.csv", "--label", "y", "--prob", "p", *QUICK)
    assert "a/model.csv - b/model.csv" in done.out


def test_sketches_are_refused(run, forecasts):
    named = ("--label", "y", "--prob", "p")
    assert run("sketch", forecasts, *named, "--out", "f.sketch").code == 0
    done = run("compare", "f.sketch", forecasts)
    assert done.code == 2
    assert "is a sketch: give the rows" in done.err


def test_long_names_are_whole_and_come_first(run, forecasts):
    names = ("a_model_with_a_long_name_one", "a_model_with_a_long_name_two")
    models = [f"--prob={name}={column}" for name, column in zip(names, "pq", strict=True)]
    lines = run("compare", forecasts, "--label", "y", *models, *QUICK).out.splitlines()
    assert lines[0].split()[:2] == ["model", "rank"]
    assert sorted(line.split()[0] for line in lines[1:3]) == list(names)
