"""compare: columns of one file, or several files."""

import json

import numpy as np
import pytest

from calibrant import compare
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


def test_intervals_are_those_of_python(run, forecasts):
    y, p, q = columns()
    done = run("compare", forecasts, "--prob", "p", "--prob", "q", "--json")
    assert json.loads(done.out) == json.loads(json.dumps(compare(y, {"p": p, "q": q}).to_dict()))


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


@pytest.mark.parametrize(
    ("column", "option"), [("weights", "--weight"), ("clusters", "--clusters")]
)
def test_files_of_other_weights_or_clusters_are_refused(run, write, column, option):
    for name, value in (("one", 1), ("two", 2)):
        rows = (f"{i % 2},0.{i + 1},{value if i == 4 else i // 2 + 1}\n" for i in range(8))
        write(f"{name}.csv", "y,p,c\n" + "".join(rows))
    done = run("compare", "one.csv", "two.csv", "--label", "y", "--prob", "p", option, "c", *QUICK)
    assert done.code == 2
    assert f"on the same {column}; in row 5 one has 1" in done.err
    assert "and two has 2" in done.err


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


def three_classes(seed, order="cat car dog", n=200):
    """Return rows of three classes as CSV, with the same labels and other predictions a seed."""
    labels = np.random.default_rng(0).integers(0, 3, n)
    p = dict(zip(("cat", "car", "dog"), np.random.default_rng(seed).dirichlet([1, 1, 1], n).T))  # noqa: B905
    names = order.split()
    rows = [
        ",".join([("cat", "car", "dog")[label], *(repr(float(p[name][i])) for name in names)])
        for i, label in enumerate(labels)
    ]
    return "y," + ",".join(f"p_{name}" for name in names) + "\n" + "\n".join(rows) + "\n"


def test_classes_are_matched_by_name(run, write):
    one, two = write("one.csv", three_classes(1)), write("two.csv", three_classes(2))
    other = write("other.csv", three_classes(2, "dog cat car"))
    options = ("--label", "y", "--classes", "p_*", *QUICK, "--json")
    expected = json.loads(run("compare", one, two, *options).out)
    found = json.loads(run("compare", one, other, *options).out)
    assert found["pairs"][0]["difference"] == expected["pairs"][0]["difference"]


def test_models_of_other_classes_are_refused(run, write):
    fewer = three_classes(2).replace("p_dog", "q")
    one, two = write("one.csv", three_classes(1)), write("two.csv", fewer)
    done = run("compare", one, two, "--label", "y", "--classes", "p_*")
    assert done.code == 2
    assert "in 'one' they are 'cat', 'car', 'dog' and in 'two' 'cat', 'car'" in done.err


def test_clusters_and_percentages(run, forecasts, write):
    y, p, q = np.loadtxt(forecasts, delimiter=",", skiprows=1, usecols=(0, 1, 2)).T
    day = np.arange(len(y)) // 5
    expected = compare(y, {"p": p, "q": q}, clusters=day, n_resamples=50).to_dict()
    options = ("--label", "y", "--prob", "p", "--prob", "q", "--clusters", "day", *QUICK, "--json")
    for unit, more in ((1, ()), (100, ("--percent",))):
        columns = zip(y, unit * p, unit * q, day, strict=True)
        rows = "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in columns)
        done = run("compare", write("rows.csv", "y,p,q,day\n" + rows), *options, *more)
        assert_nearly_equal(json.loads(done.out), expected)


def test_several_files_take_one_column_each(run, forecasts, write):
    other = write("other.csv", forecasts.read_text())
    done = run("compare", forecasts, other, "--label", "y", "--prob", "p", "--prob", "q")
    assert (done.code, done.out) == (2, "")
    assert "each of several files is a model: give one --prob, or --classes" in done.err
