"""Parameters of temperature, vector, matrix and quadratic scaling as probmetrics 1.3 finds them.

`data/probmetrics.json` holds the rows, the parameters and how they were made.
"""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

from calibrant import recalibration as rc

FOUND = json.loads((Path(__file__).parent / "data" / "probmetrics.json").read_text())
P, Y = np.array(FOUND["prob"]), np.array(FOUND["label"])
# Where the searches of either side end.
SAME = 1e-5


def test_temperature():
    fitted = rc.TemperatureCalibrator(mix=True).fit(P, Y)
    assert 1 / fitted.map_.inner.temperature == pytest.approx(
        FOUND["inverse_temperature"], abs=SAME
    )
    assert fitted.predict(P[:5]) == pytest.approx(np.array(FOUND["predict_ts-mix"]), abs=SAME)


@pytest.mark.parametrize(
    ("name", "calibrator"), [("svs", rc.VectorCalibrator()), ("sms", rc.MatrixCalibrator())]
)
def test_vector_and_matrix(name, calibrator):
    found = calibrator.fit(P, Y).map_
    expected = np.array(FOUND[name])
    assert np.column_stack((found.weights, found.bias)) == pytest.approx(expected, abs=SAME)


def test_quadratic():
    found = rc.QuadraticCalibrator().fit(FOUND["binary_prob"], FOUND["binary_label"]).map_
    assert (found.a, found.b, found.c) == pytest.approx(FOUND["quadratic"], abs=SAME)
