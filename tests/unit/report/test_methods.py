"""What a page says of methods of recalibration."""

import json
import re

import pytest

from calibrant.datasets import load_rain
from calibrant.reporting.sections import method_section

pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def fitted():
    from calibrant.recalibration import recalibrate

    rain = load_rain()
    return recalibrate(rain.y_true, rain.y_prob, method=["temperature", "platt"], n_resamples=39)


def test_lines_are_those_of_the_trial(fitted):
    section = method_section(fitted)
    assert (section.score, section.parts, section.any_helps) == ("Brier", 5, True)
    assert section.before.value == fitted.score_before
    for line, one in zip(section.lines, fitted.candidates, strict=True):
        assert (line.name, line.chosen) == (one.method, one.method == fitted.method)
        assert (line.gain.value, line.error.value) == (one.improvement, one.standard_error)
        assert (line.score.value, line.p_value.value) == (one.score, one.p_value)


def test_a_recalibration_shows_its_methods_and_what_it_is_about(fitted):
    pytest.importorskip("jinja2")
    pytest.importorskip("plotly")
    text = fitted.to_html(source={"File": "rain.csv"})
    table = re.search(r'<table class="methods">.*?</table>', text, re.DOTALL)[0]
    assert re.findall(r'<th scope="row">(\w+(?: \w+)?)', table) == [
        "as given",
        "temperature",
        "platt",
    ]
    assert table.count("chosen</small>") == 1
    assert "<bdi>rain.csv</bdi>" in text
    numbers = re.search(r'id="results">(.*?)</script>', text, re.DOTALL)[1]
    assert json.loads(numbers)["methods"] == [one.to_dict() for one in fitted.candidates]
