"""An assessment in a notebook: small, complete, and in need of nothing."""

import sys
from dataclasses import replace
from html import escape

from calibrant import assess
from calibrant.formatting import p_statement


def test_it_says_what_was_found(found):
    text = found._repr_html_()
    assert "<strong>Predictions are over-confident.</strong> Where it says " in text
    assert text.count("<tr>") == 1 + len(found.estimates)
    assert "2,000 rows" in text
    assert len(text) < 5000


def test_the_p_value_is_that_of_the_verdict():
    found = assess([0, 1] * 100, [0.9, 0.1] * 100, n_resamples=99)
    assert found.test.p_value == 0.01
    assert found.test.is_least
    assert f"{escape(p_statement(found.verdict.p_value))}</p>" in found._repr_html_()


def test_a_wrong_certainty_is_not_called_well():
    # A prediction of 0 came true, which no calibrated sample has.
    refuted = assess([1, 0, 1], [0, 0.4, 0.6], n_resamples=39)
    assert refuted.verdict.detected
    assert "No miscalibration detected" not in refuted._repr_html_()


def test_it_needs_no_optional_package(found, odd, monkeypatch):
    for name in ("jinja2", "plotly"):
        monkeypatch.setitem(sys.modules, name, None)
    for one in (found, *odd.values()):
        assert one._repr_html_().startswith("<div")


def test_notes_are_escaped(found):
    assert "<li>1 &lt; 2</li>" in replace(found, notes=("1 < 2",))._repr_html_()
