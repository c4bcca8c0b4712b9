"""Diagrams are drawn from the numbers of results, and say them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import PathCollection

from calibrant import DecisionCurve, assess
from calibrant.datasets import load_rain
from calibrant.plot import reliability
from calibrant.reporting.figures import (
    band,
    cumulative_figure,
    decision_figure,
    murphy_figure,
    plotly_text,
    read_models,
    reliability_figure,
    sticks,
)
from calibrant.reporting.sections import diagrams

METHODS = ("smooth", "binned", "isotonic")


def curves_of(figure):
    return [trace for trace in figure["data"] if trace.get("meta", {}).get("curve")]


@pytest.mark.parametrize("method", METHODS)
def test_lines_go_through_the_curve(model, method):
    (line,) = curves_of(reliability_figure([model], method))
    curve = model.views[method].curve
    assert line["x"] == curve.x.tolist()
    assert all(y is None or y == known for y, known in zip(line["y"], curve.y, strict=True))
    k = len(curve.x) // 2
    rows = model.in_bin(model.bins_of(curve)[k])
    assert line["text"][k] == f"score {curve.x[k]:.4g}<br>observed {curve.y[k]:.4g}<br>{rows}"


@pytest.mark.parametrize(("method", "fill"), [("smooth", "toself"), ("binned", None)])
def test_intervals_are_drawn_and_in_the_text_of_points(banded, method, fill):
    models = read_models(banded)
    figure = reliability_figure(models, method)
    limits = figure["data"][1]
    assert limits.get("fill") == fill
    curve = models[0].drawn(method)
    heights = {y for y in limits["y"] if y is not None}
    assert heights == {y for side in (curve.low, curve.high) for y in side if np.isfinite(y)}
    k = len(curve.x) // 2
    words = f"90% interval {curve.low[k]:.4g} to {curve.high[k]:.4g}"
    assert words in curves_of(figure)[0]["text"][k]
    caption = next(one.caption for one in diagrams(models) if one.key == method)
    kind = "intervals" if method == "binned" else "band"
    assert caption.endswith(f": 90% pointwise confidence {kind}.")


def test_bands_and_sticks_leave_gaps_where_nothing_is_known(model):
    x, nan = np.arange(5.0), np.nan
    lower, upper = np.array([0, 0, nan, 0, nan]), np.array([1, 1, 1, 1, nan])
    area = band(model, x, lower, upper)
    assert area["x"] == [0, 1, 1, 0, None, 3, 3, None]
    assert area["y"] == [0, 0, 1, 1, None, 0, 1, None]
    bars = sticks(model, x, lower, upper)
    assert bars["x"] == [0, 0, None, 1, 1, None, 3, 3, None]
    assert bars["y"] == [0, 1, None, 0, 1, None, 0, 1, None]


def test_a_smooth_curve_ends_where_rows_do(model):
    curve = model.views["smooth"].curve
    n, width = model.assessment.n, curve.bandwidth
    alone = np.exp(-(((curve.x - 0.5) / width) ** 2) / 2) / (n * width * np.sqrt(2 * np.pi))
    lonely = replace(curve, density=alone, of_residuals=False)
    assessment = replace(model.assessment, curves=(lonely,))
    seen = np.isfinite(replace(model, assessment=assessment).drawn("smooth").y)
    assert np.abs(curve.x[seen] - 0.5).max() == pytest.approx(width, abs=4 / 512)


def test_bars_are_the_darker_the_more_rows_they_hold(found, model):
    bins = model.assessment.bins
    (bars,) = [one for one in reliability_figure([model], "binned")["data"] if one["type"] == "bar"]
    assert bars["y"] == bins.mean_true.tolist()
    assert np.allclose(np.array(bars["x"]) - np.array(bars["width"]) / 2, bins.edges[:-1])
    names, opaque = zip(*(one.split(" / ") for one in bars["marker"]["color"]), strict=True)
    assert set(names) == {"--series-1"}
    assert np.array_equal(np.argsort(np.array(opaque, dtype=float)), np.argsort(bins.n))
    several = reliability_figure(read_models({"a": found, "b": found}), "binned")
    assert not [one for one in several["data"] if one["type"] == "bar"]


def test_level_runs_of_an_isotonic_curve_are_heavier(found):
    curve = replace(
        found.curve("isotonic"),
        x=np.array([0.1, 0.2, 0.3, 0.4, 0.8, 0.9]),
        **dict.fromkeys(("y", "density"), np.array([0.2, 0.2, 0.2, 0.5, 0.7, 0.7])),
        **dict.fromkeys(("low", "high"), np.full(6, np.nan)),
    )
    (model,) = read_models(replace(found, curves=(found.curve("smooth"), curve)))
    data = reliability_figure([model], "isotonic")["data"]
    line, heavy = (one for one in data if one.get("meta") and one.get("yaxis") != "y2")
    assert heavy["x"] == [0.1, 0.3, None, 0.8, 0.9, None]
    assert heavy["y"] == [0.2, 0.2, None, 0.7, 0.7, None]
    assert heavy["line"]["width"] > 1.5 * line["line"]["width"]
    assert heavy["hoverinfo"] == "skip"


@pytest.mark.parametrize("n", [500, 20_000])
def test_scores_that_many_rows_have_are_discs(n):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    p[: 3 * n // 10], p[-n // 10 :] = 0, 1
    y = (rng.random(n) < 0.1 + 0.8 * p).astype(float)
    model = read_models(assess(y, p, n_resamples=39))[0]
    figure = reliability_figure([model], "smooth")
    (discs,) = [one for one in figure["data"] if one["mode"] == "markers"]
    assert discs["x"] == [0, 1]
    assert discs["y"] == pytest.approx([y[p == 0].mean(), y[p == 1].mean()])
    first, second = discs["marker"]["size"]
    assert (first / second) ** 2 == pytest.approx(3, rel=0.02)
    share = float(discs["text"][0].split("<br>")[2].removesuffix("% of rows"))
    assert share == 30
    explained = {one.key: "Filled marks" in one.caption for one in diagrams([model])}
    assert explained == {"smooth": True, "binned": False, "isotonic": True, "cumulative": False}


def marks_of(figure):
    return [one for one in figure["data"] if one.get("mode") == "markers"]


def test_page_and_picture_have_the_same_marks():
    found = assess(*load_rain(), n_resamples=39)
    (model,) = read_models(found)
    for method in ("smooth", "isotonic"):
        (circles,) = marks_of(reliability_figure([model], method))
        ax = reliability(*load_rain(), method=method, n_resamples=39)
        (drawn,) = [one for one in ax.get_children() if isinstance(one, PathCollection)]
        assert np.array_equal(drawn.get_offsets(), np.transpose((circles["x"], circles["y"])))
        assert len(circles["x"]) == 11
        assert circles["marker"]["color"] == "--paper"
    assert not marks_of(reliability_figure([model], "binned"))
    assert "Marks are the mean outcome" in next(diagrams([model])).caption


def test_a_mark_of_all_rows_stays_small():
    (model,) = read_models(assess([0, 1, 0, 0] * 50, [0.3] * 200, n_resamples=39))
    (circle,) = marks_of(reliability_figure([model], "smooth"))
    assert circle["marker"]["size"] == [18.5]


def test_ordinary_scores_have_no_discs(model, odd):
    for one in (model, *(read_models(odd[name])[0] for name in ("one row", "tiny"))):
        assert not marks_of(reliability_figure([one], "smooth"))
    assert "Filled marks" not in next(diagrams([model])).caption
    assert "Marks are" not in next(diagrams([model])).caption


def test_the_window_keeps_to_scores_that_keep_to_a_part(found, odd):
    whole = reliability_figure(read_models(found), "smooth")["layout"]
    assert whole["xaxis"]["range"] == pytest.approx([-0.02, 1.02])
    rare = reliability_figure(read_models(odd["tiny"]), "binned")["layout"]
    assert 0.001 < rare["xaxis"]["range"][1] < 0.1
    assert rare["yaxis"]["range"] == rare["xaxis"]["range"]


def test_the_cumulative_diagram(model):
    figure = cumulative_figure([model])
    curve = model.assessment.cumulative
    (line,) = curves_of(figure)
    assert (line["x"], line["y"]) == (curve.fraction.tolist(), curve.deviation.tolist())
    end = f"{curve.deviation[-1]:.4g}".replace("-", "\N{MINUS SIGN}")
    words = f"up to score {curve.score[-1]:.4g}<br>100.0% of rows<br>deviation {end}"
    assert line["text"][-1] == words
    triangle = next(trace for trace in figure["data"] if trace.get("fill") == "toself")
    assert max(triangle["y"]) == 2 * curve.sigma
    (ends,) = [trace for trace in figure["data"] if trace["mode"] == "markers"]
    assert ends["y"][0] - ends["y"][1] == pytest.approx(model.assessment["ecce_r"].value, rel=1e-4)
    ticks = figure["layout"]["xaxis2"]
    assert ticks["ticktext"][0] == f"{curve.score[0]:.2g}"
    assert ticks["ticktext"][-1] == f"{curve.score[-1]:.2g}"


def test_models_differ_in_colour_dash_and_name(found, sketched):
    models = read_models({"a<b>": found, "B": sketched})
    lines = curves_of(reliability_figure(models, "smooth"))
    assert [line["line"]["color"] for line in lines] == ["--series-1", "--series-2"]
    assert [line["line"]["dash"] for line in lines] == ["solid", "dash"]
    assert lines[0]["text"][256].startswith("<b>a&lt;b&gt;</b><br>score ")
    # A sketch has no isotonic curve.
    assert len(curves_of(reliability_figure(models, "isotonic"))) == 1


def test_text_from_data_is_no_markup():
    assert plotly_text('<a href="x">&') == '&lt;a href="x"&gt;&amp;'


def test_whatever_can_be_assessed_can_be_drawn(odd):
    for models in (*map(read_models, odd.values()), read_models(odd)):
        for diagram in diagrams(models):
            json.dumps(diagram.figure, allow_nan=False)
            assert all(table.rows for table in diagram.tables)


def test_points_are_in_a_table(model):
    smooth, binned, _, cumulative = diagrams([model])
    assert len(smooth.tables[0].rows) == 20
    curve, bins = model.views["binned"].curve, model.assessment.bins
    rows = binned.tables[0].rows
    assert [row[0].value for row in rows] == curve.x.tolist()
    assert [row[-1].value for row in rows] == bins.n[bins.n > 0].tolist()
    assert cumulative.tables[0].rows[-1][2].value == model.assessment.cumulative.deviation[-1]


def test_losses_and_net_benefits(found):
    (model,) = read_models(found)
    curve = model.assessment.murphy
    area, thin, line = murphy_figure([model])["data"]
    assert line["x"] == curve.threshold.tolist()
    assert line["y"] == curve.loss.tolist()
    assert thin["y"] == curve.recalibrated_loss.tolist()
    assert area["fill"] == "toself"
    assert line["text"][5].startswith("threshold ")
    figure = decision_figure([model])
    _, everyone, _, thin, line = figure["data"]
    net = DecisionCurve.of(curve)
    assert (line["y"], thin["y"]) == (net.net_benefit.tolist(), net.recalibrated.tolist())
    assert everyone["y"] == net.treat_all.tolist()
    assert figure["layout"]["yaxis"]["range"][1] == pytest.approx(1.05 * net.recalibrated.max())
