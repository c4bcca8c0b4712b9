"""An assessment in a notebook: small, complete, and in need of nothing."""

import sys
from dataclasses import replace


def test_it_says_what_was_found(found):
    text = found._repr_html_()
    assert "<strong>Over-confident.</strong> Miscalibration detected" in text
    assert text.count("<tr>") == 1 + len(found.estimates)
    assert "2000 rows" in text
    assert len(text) < 5000


def test_it_needs_no_optional_package(found, odd, monkeypatch):
    for name in ("jinja2", "plotly"):
        monkeypatch.setitem(sys.modules, name, None)
    for one in (found, *odd.values()):
        assert one._repr_html_().startswith("<div")


def test_notes_are_escaped(found):
    assert "<li>1 &lt; 2</li>" in replace(found, notes=("1 < 2",))._repr_html_()
