"""plot and report: the files that they write."""

import importlib

import numpy as np
import pytest

from calibrant import compare
from calibrant.cli import tables
from tests.tolerances import assert_nearly_equal

pytest.importorskip("typer")
pytest.importorskip("duckdb")

QUICK = ("--resamples", "39")
NAMED = ("--label", "y", "--prob", "p", *QUICK)
BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("form", BEGINNINGS)
def test_pictures_in_the_format_of_their_names(run, forecasts, tmp_path, form):
    done = run("plot", forecasts, *NAMED, "--out", f"f.{form}")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"calibrant: wrote f.{form}\n"
    assert (tmp_path / f"f.{form}").read_bytes().startswith(BEGINNINGS[form])


def test_the_same_picture_is_the_same_bytes(run, forecasts, tmp_path):
    for name in ("one.svg", "two.svg"):
        assert run("plot", forecasts, *NAMED, "--kind", "cumulative", "--out", name).code == 0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--prob", "p", "--prob", "other=q"), ["other"]),
        (("--prob", "p", "--by", "g"), ["<!-- a -->", "<!-- b -->", "<!-- c -->"]),
        (("--prob", "p", "--kind", "bins"), ["bins"]),
        (("--prob", "p", "--kind", "assessment"), ["cumulative deviation"]),
    ],
    ids=["models", "groups", "bins", "assessment"],
)
def test_what_is_drawn(run, forecasts, tmp_path, options, shown):
    assert run("plot", forecasts, "--label", "y", *options, *QUICK, "--out", "f.svg").code == 0
    # Words are drawn as shapes, with the text in a comment.
    text = (tmp_path / "f.svg").read_text()
    assert all(one in text for one in shown)


def dated(write, y="01"):
    days = [
        f"{y[i % 2]},{0.2 + 0.05 * (i % 9)},{0.3},2024-{1 + i % 12:02}-01\n" for i in range(120)
    ]
    return write("days.csv", "y,p,q,day\n" + "".join(days))


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--along", "g"), ["<!-- a -->", "<!-- g -->", "<!-- observed − predicted -->"]),
        (("--along", "w"), ["<!-- 2 -->", "<!-- w -->", "<!-- rows -->"]),
        (("--along", "w", "--prob", "other=q"), ["<!-- other -->", "95% simultaneous intervals"]),
    ],
    ids=["names", "numbers", "models"],
)
def test_bias_along_a_column(run, forecasts, tmp_path, options, shown):
    assert run("plot", forecasts, *NAMED, *options, "--out", "f.svg").code == 0
    text = (tmp_path / "f.svg").read_text()
    assert [one for one in shown if one not in text] == []


def test_bias_along_dates(run, write, tmp_path):
    days = dated(write)
    days.write_text(days.read_text() + "1,0.5,0.5,\n")
    assert run("plot", days, *NAMED, "--along", "day", "--out", "f.svg").code == 0
    text = (tmp_path / "f.svg").read_text()
    # Months, written as matplotlib writes dates; a row without a day is apart.
    assert all(f"<!-- {one} -->" in text for one in ("Mar", "2024", "missing", "day"))


def test_bias_along_truth_values_with_nulls(run, write, tmp_path):
    rows = "".join(f"{i % 2},0.5,{('true', 'false', '')[i % 3]}\n" for i in range(60))
    path = write("f.csv", "y,p,flag\n" + rows)
    assert run("plot", path, *NAMED, "--along", "flag", "--out", "f.svg").code == 0
    text = (tmp_path / "f.svg").read_text()
    assert all(f"<!-- {one} -->" in text for one in ("true", "false", "missing"))


def test_times_with_a_zone(run, write, tmp_path):
    # On the first of March in Tokyo it is still February in Greenwich.
    rows = "".join(f"{i % 2},0.5,2024-03-01T01:00:00+09:00\n" for i in range(60))
    path = write("f.csv", "y,p,at\n" + rows)
    assert run("assess", path, *NAMED, *QUICK).code == 0
    assert run("plot", path, *NAMED, "--along", "at", "--out", "f.svg").code == 0
    assert "<!-- 2024-02-29 -->" in (tmp_path / "f.svg").read_text()


def test_along_keeps_rows_however_many(run, forecasts, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 399)
    assert run("plot", forecasts, *NAMED, "--along", "g", "--out", "f.png").code == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--kind", "bins"), "leave out --kind"),
        (("--by", "g"), "leave out --by"),
        (("--along", "h"), "there is no column 'h'"),
        (("--along", "y"), "--along must not be the column of --label; got 'y'"),
    ],
)
def test_what_does_not_go_with_along(run, forecasts, options, sentence):
    done = run("plot", forecasts, *NAMED, "--along", "g", *options, "--out", "f.svg")
    assert done.code == 2
    assert sentence in done.err


def test_along_columns_of_different_kinds(run, forecasts, write):
    done = run(
        "plot",
        dated(write),
        write("b.csv", "y,p,day\n1,0.5,never\n0,0.4,often\n"),
        *NAMED,
        "--along",
        "day",
        "--out",
        "f.svg",
    )
    assert done.code == 2
    assert "along column 'day' must hold the same type in all files" in done.err


def test_what_is_refused_along_is_said_of_the_column(run, write):
    rows = "".join(f"{i % 2},0.5,{'inf' if i == 3 else i}\n" for i in range(40))
    done = run("plot", write("f.csv", "y,p,x\n" + rows), *NAMED, "--along", "x", "--out", "f.svg")
    assert done.code == 2
    assert "along column 'x' must be finite; got inf in row 4" in done.err


def test_sketches_are_drawn(run, forecasts, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 399)
    for options in (("--prob", "p", "--prob", "q"), ("--prob", "p", "--by", "g")):
        assert run("plot", forecasts, "--label", "y", *options, *QUICK, "--out", "f.png").code == 0


def test_a_report(run, forecasts, tmp_path):
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    options = ("--by", "g", "--title", "Much <rain>", "--out", "f.html")
    done = run("report", forecasts, *NAMED, *options)
    assert (done.code, done.out, done.err) == (0, "", "calibrant: wrote f.html\n")
    assert "Much &lt;rain&gt;" in (tmp_path / "f.html").read_text()


def test_a_report_of_several_models(run, forecasts, tmp_path):
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    models = ("--prob", "plain=p", "--prob", "squared=q", *QUICK)
    assert run("report", forecasts, "--label", "y", *models, "--out", "f.html").code == 0
    page = (tmp_path / "f.html").read_text()
    assert "plain" in page
    assert "squared" in page
    # What it is about, and how the models differ.
    assert "forecasts.csv" in page
    assert "<bdi>plain</bdi> − <bdi>squared</bdi>" in page


def test_resamples_of_a_report_are_those_of_its_comparison(run, forecasts, monkeypatch):
    written = {}
    module = importlib.import_module("calibrant.reporting.html_page")
    monkeypatch.setattr(module, "page", lambda *_, **parts: written.update(parts) or "page")
    models = ("--prob", "p", "--prob", "q", *QUICK)
    assert run("report", forecasts, "--label", "y", *models, "--out", "f.html").code == 0
    y, p, q = np.loadtxt(forecasts, delimiter=",", skiprows=1, usecols=(0, 1, 2)).T
    expected = compare(y.astype(int), {"p": p, "q": q}, n_resamples=39)
    assert_nearly_equal(written["comparison"].to_dict(), expected.to_dict())


# Classes.


@pytest.fixture
def classes(write):
    """Return the path of a table of three classes."""
    names, rows = ("cat", "car", "dog"), ""
    for i in range(90):
        shift = 0.01 * (i % 7)
        rows += f"{names[i % 3]},{i % 3},{0.5 + shift},0.25,{0.25 - shift}\n"
    return write("classes.csv", "animal,number,p_cat,p_car,p_dog\n" + rows)


@pytest.mark.parametrize("label", ["animal", "number"])
@pytest.mark.parametrize("command", ["plot", "report"])
def test_columns_of_classes_are_classes(run, classes, tmp_path, command, label):
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    ending = {"plot": "svg", "report": "html"}[command]
    options = (command, classes, "--label", label, "--classes", "p_*", *QUICK)
    done = run(*options, "--out", f"a.{ending}")
    assert (done.code, done.err) == (0, f"calibrant: wrote a.{ending}\n")
    assert run(*options, "--multiclass", "confidence", "--out", f"b.{ending}").code == 0
    assert (tmp_path / f"a.{ending}").read_text() == (tmp_path / f"b.{ending}").read_text()


@pytest.mark.parametrize(("label", "value"), [("animal", "'dog'"), ("number", "2")])
@pytest.mark.parametrize("command", ["plot", "report"])
def test_columns_of_classes_given_as_models(run, classes, command, label, value):
    out = {"plot": "a.svg", "report": "a.html"}[command]
    done = run(command, classes, "--label", label, "--prob", "p_*", "--out", out, *QUICK)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"calibrant: label column '{label}' must be 0 or 1 (or soft) for one column of "
        f"probabilities; got 3 labels such as {value} in row 3 (30 such values): name the columns "
        "of all classes with --classes\n"
    )


def test_columns_of_classes_are_no_models(run, classes):
    done = run("compare", classes, "--label", "animal", "--classes", "p_*", *QUICK)
    assert done.code == 2
    assert "there must be two models to compare; got 'classes' alone" in done.err


def test_columns_under_names_of_outcomes_are_models(run, write):
    rows = "".join(f"{i % 2},{0.3 + 0.1 * (i % 3)},0.5\n" for i in range(60))
    path = write("f.csv", "y,p_0,p_1\n" + rows)
    done = run("plot", path, *NAMED[:2], "--prob", "p_*", "--kind", "assessment", "--out", "f.svg")
    assert done.code == 2
    assert "--kind assessment takes one --prob; got 'p_0', 'p_1'" in done.err
