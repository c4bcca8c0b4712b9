"""plot and report: the files that they write."""

import pytest

from calibrant.cli import tables

pytest.importorskip("typer")
pytest.importorskip("duckdb")

QUICK = ("--resamples", "20")
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
