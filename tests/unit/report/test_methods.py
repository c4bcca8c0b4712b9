"""The table of recalibration methods on a page."""

import json
import re

import pytest

from calibrant.datasets import load_rain

pytest.importorskip("sklearn")
pytest.importorskip("jinja2")
pytest.importorskip("plotly")


@pytest.fixture(scope="module")
def fitted():
    from calibrant.recalibration import recalibrate

    rain = load_rain()
    return recalibrate(rain.y_true, rain.y_prob, method=["temperature", "platt"], n_resamples=39)


@pytest.fixture(scope="module")
def text(fitted):
    return fitted.to_html(source={"File": "rain.csv"})


def test_rows_are_those_of_the_candidates(fitted, text):
    (table,) = re.findall(r'<table class="methods">.*?</table>', text, re.DOTALL)
    names = re.findall(r'<th scope="row">(\w+(?: \w+)?)', table)
    assert names == ["as given", *(one.method for one in fitted.candidates)]
    (chosen,) = re.findall(r'class=chosen><th scope="row">(\w+) <small>chosen', table)
    assert chosen == fitted.method
    numbers = [
        (one.score, one.improvement, one.standard_error, one.p_value) for one in fitted.candidates
    ]
    shown = [float(value) for value in re.findall(r'<data value="([^"]+)"', table)]
    assert shown == [fitted.score_before, *(number for row in numbers for number in row)]
    assert "whose Brier score on held-out rows is within one standard error" in text
    assert "a cross-validation with 5 folds" in text


def test_results_hold_the_methods_and_the_source(fitted, text):
    assert "<bdi>rain.csv</bdi>" in text
    (numbers,) = re.findall(r'id="results">(.*?)</script>', text, re.DOTALL)
    assert json.loads(numbers)["methods"] == [one.to_dict() for one in fitted.candidates]
