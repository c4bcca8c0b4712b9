"""Results: read-only, printed with meaningful digits, as dataframes of any library, as HTML."""

import json
import re
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from matplotlib.text import Text

import calibrant as cb
from calibrant import _base
from calibrant.datasets import load_rain

FRAMES = ["pandas", "polars", "pyarrow"]


@pytest.fixture(scope="module")
def rows():
    y, p = load_rain()
    return np.asarray(y), np.asarray(p)


@pytest.fixture(scope="module")
def tables(rows):
    y, p = rows
    groups = [None, *(np.arange(len(y) - 1) % 3).tolist()]
    days = np.datetime64("2020-01-01") + np.arange(len(y))
    return {
        "bins": cb.bin_table(y, p, n_bins=5),
        "pairs": cb.compare(y, {"a": p, "<b>": p**2}, n_resamples=99),
        "curve": cb.reliability_curve(y, p, n_resamples=99),
        "groups": cb.by_group(y, p, groups, n_resamples=99),
        "dates": cb.bias_along(y, p, days),
        "differences": cb.cumulative_curve(y, p),
        "witness": cb.weak_calibration_witness(y, p),
        "recommendation": cb.recommend(y, p),
        "assessment": cb.assess(y, p, n_resamples=99),
    }


def columns(frame):
    """Return the columns of a frame of any library as lists."""
    import narwhals.stable.v2 as nw

    return nw.from_native(frame).to_dict(as_series=False)


@pytest.mark.parametrize("library", FRAMES)
def test_every_table_is_a_frame_of_any_library(tables, library):
    pytest.importorskip(library)
    for name, table in tables.items():
        frame = table.to_frame(backend=library)
        assert type(frame).__module__.partition(".")[0] == library, name
        found = columns(frame)
        assert all(len(column) == len(frame) > 0 for column in found.values()), name
    bins = columns(tables["bins"].to_frame(library))
    assert bins["n"] == tables["bins"].n.tolist()
    assert bins["gap"] == pytest.approx(tables["bins"].gap.tolist())
    assert columns(tables["groups"].to_frame(library))["group"] == [0, 1, 2, None]
    first = columns(tables["dates"].to_frame(library))["minimum"][0]
    assert str(first).startswith("2020-01-01")


@pytest.mark.parametrize("library", FRAMES)
def test_the_frame_is_of_the_library_that_is_installed(tables, monkeypatch, library):
    pytest.importorskip(library)
    monkeypatch.setattr(_base, "find_spec", lambda name: name == library or None)
    frame = tables["bins"].to_frame()
    assert type(frame).__module__.partition(".")[0] == library


def test_a_frame_needs_a_library(tables, monkeypatch):
    monkeypatch.setattr(_base, "find_spec", lambda name: None)
    sentence = "to_frame needs pandas, polars or pyarrow: pip install pandas"
    with pytest.raises(cb.MissingDependencyError, match=sentence):
        tables["bins"].to_frame()
    with pytest.raises(cb.MissingDependencyError, match="to_frame needs polars: pip install"):
        tables["bins"].to_frame("polars")
    with pytest.raises(cb.CalibrantError, match=r"backend must be one of .*; got 'excel'"):
        tables["bins"].to_frame("excel")


def test_results_of_a_few_numbers_are_no_tables(rows):
    assert not hasattr(cb.score_decomposition(*rows), "to_frame")


def test_numbers_are_printed_with_meaningful_digits(rows):
    parts = cb.score_decomposition(*rows)
    assert repr(parts) == (
        "ScoreDecomposition(score=0.1441, miscalibration=0.02505, discrimination=0.05989, "
        "uncertainty=0.1789)"
    )
    pair = cb.compare(rows[0], {"a": rows[1], "b": rows[1] ** 2}, n_resamples=99).pairs[0]
    assert "difference=0.093, " in repr(pair)
    assert "p_value=0.0" in repr(pair)
    assert len(repr(pair)) < 160


@dataclass(frozen=True, repr=False)
class Example(_base.Result):
    name: str
    values: np.ndarray
    p_value: float


def test_long_arrays_are_shortened():
    found = repr(Example("a", np.linspace(0, 1, 1001), 1e-310))
    expected = "Example(name='a', values=[0.   , 0.001, 0.002, ..., 0.998, 0.999, 1.   ] of 1001, "
    assert found == f"{expected}p_value=< 1e-300)"
    assert repr(Example("a", np.arange(2), float("nan"))) == (
        "Example(name='a', values=[0, 1], p_value=nan)"
    )


def test_long_tables_are_shortened():
    p = np.linspace(0, 1, 1001)
    lines = repr(cb.bin_table(np.round(p), p, n_bins=100)).splitlines()
    assert len(lines) == 22
    assert set(lines[11].split()) == {"..."}
    assert len({len(line) for line in lines}) == 1


def test_results_are_escaped_html_tables(tables, rows):
    for name, table in tables.items():
        assert "<table" in table._repr_html_(), name
    assert "<td>&lt;b&gt;</td>" in tables["pairs"]._repr_html_()
    text = cb.estimate("ece", *rows, n_resamples=99)._repr_html_()
    assert text.startswith("<p>Estimate(ece = 0.1")
    assert "<tr><td>n</td><td>347</td></tr>" in text


def test_pandas_is_not_loaded_for_other_frames(tables):
    pytest.importorskip("polars")
    before = "pandas" in sys.modules
    tables["bins"].to_frame("polars")
    assert ("pandas" in sys.modules) == before


def test_every_result_is_json_markdown_and_a_page(tables, rows, tmp_path):
    for name, table in {**tables, "estimate": cb.estimate("ece", *rows, n_resamples=99)}.items():
        assert json.loads(table.to_json()) == json.loads(json.dumps(table.to_dict())), name
        assert re.search(r"^\|( ---:? \|)+$", table.to_markdown(), re.MULTILINE), name
        if name != "assessment":  # whose page is the report
            page = table.to_html(tmp_path / "x.html", title="<T>")
            assert (tmp_path / "x.html").read_text() == page
            assert "<h1>&lt;T&gt;</h1>" in page
            assert ("<img" in page) == hasattr(table, "plot")
    assert tables["bins"].to_json(tmp_path / "x.json") == (tmp_path / "x.json").read_text()


def test_numbers_that_are_not_finite_are_null_in_json():
    found = Example("a", np.array([1.0, np.inf, np.nan]), float("inf"))
    assert json.loads(found.to_json()) == {
        "name": "a",
        "values": [1.0, None, None],
        "p_value": None,
    }


def test_markdown_shows_names_as_they_are(rows):
    y, p = rows
    found = cb.compare(y, {"a|b": p, "<b>*_": p**2}, n_resamples=99)
    assert r"| a\|b |" in found.to_markdown()
    assert r"| &lt;b&gt;\*\_ |" in found.to_markdown()
    assert "<b>" not in found.to_html()


def test_models_and_groups_are_drawn(tables):
    ax = tables["pairs"].plot()
    names = [f"{model.rank}. {model.name}" for model in tables["pairs"].models]
    assert [text.get_text() for text in ax.get_yticklabels()] == names
    ax = tables["groups"].plot()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0", "1", "2", "(none)"]
    assert tables["groups"].plot(ax=ax) is ax


def test_a_recalibration_is_drawn_before_and_after(rows):
    pytest.importorskip("sklearn")
    from calibrant import recalibration

    found = recalibration.recalibrate(*rows, n_resamples=99)
    assert found.helps
    ax = found.plot()
    texts = " ".join(text.get_text() for text in ax.figure.findobj(Text))
    assert "as given" in texts
    assert f"{found.method}, held out" in texts


def test_a_page_has_the_ending_of_one(tables, tmp_path):
    pytest.importorskip("plotly")
    sentence = r"path must end in .html, .htm; got '.*x.pdf'"
    for table in tables.values():
        with pytest.raises(cb.CalibrantError, match=sentence):
            table.to_html(str(tmp_path / "x.pdf"))
    with pytest.raises(cb.CalibrantError, match=sentence):
        cb.report([0, 1], [0.2, 0.7], tmp_path / "x.pdf")
    assert not (tmp_path / "x.pdf").exists()
