"""The tables of docs/recalibration-results.md say what is measured."""

from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

import calibrant as cb
from calibrant import recalibration as rc

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "recalibration-results.md"
MEASURES = {
    "smooth_ece": cb.smooth_ece,
    "log_score": cb.log_score,
    "brier_score": cb.brier_score,
}


def documented(measure, column):
    """Return the cells of one column by method."""
    text = PAGE.read_text().partition(f"### {measure}, held out\n\n")[2].partition("\n\n")[0]
    head, _, *rows = [
        [cell.strip(" *") for cell in line.strip("|").split("|")] for line in text.splitlines()
    ]
    place = head.index(column)
    return {row[0]: float(row[place].replace("∞", "inf")) for row in rows}


@pytest.mark.parametrize("measure", MEASURES)
def test_the_rain_is_as_documented(measure):
    y_true, y_prob = cb.datasets.load_rain()
    calibrators = {"as given": rc.IdentityCalibrator, **rc.METHODS}
    measured = {
        name: MEASURES[measure](y_true, rc.cross_fitted(make(), y_prob, y_true))
        for name, make in calibrators.items()
    }
    assert documented(measure, "rain") == pytest.approx(measured, abs=2e-4)


def test_every_method_is_documented():
    text, classes = PAGE.read_text(), (DOCS / "recalibration.md").read_text()
    for name, make in rc.METHODS.items():
        assert f"| {name} |" in text
        assert type(make()).__name__ in classes
