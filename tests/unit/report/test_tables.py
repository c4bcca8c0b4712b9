"""Tables show what results hold."""

import numpy as np

from calibrant.formatting import UNKNOWN
from calibrant.reporting.figures import read_models
from calibrant.reporting.sections import bin_rows, measure_rows, setting_rows


def test_measures_of_several_models(found, sketched):
    rows = {row.name: row for row in measure_rows(read_models({"a": found, "b": sketched}))}
    smooth = rows["smooth_ece"].cells[0]
    one = found["smooth_ece"]
    assert (smooth.value.value, smooth.low.value, smooth.high.value) == (
        one.bias_corrected,
        one.low,
        one.high,
    )
    assert smooth.raw.value == one.value
    # A sketch does not know the logit scale.
    assert [cell.value == UNKNOWN for cell in rows["logit_smoothed_ece"].cells] == [False, True]
    assert "logit_smoothed_ece" not in [row.name for row in measure_rows(read_models(sketched))]
    assert rows["p_value"].cells[0].value.value == found.test.p_combined
    assert rows["bias"].cells[1].low.value == sketched.bias.low
    assert rows["brier_score"].cells[0].low == UNKNOWN


def test_bins_with_the_limits_of_their_curve(banded):
    (model,) = read_models(banded)
    rows = list(bin_rows(model))
    bins, curve = banded.bins, banded.curve("binned")
    assert [row.n.value for row in rows] == bins.n.tolist()
    assert [row.gap.value for row in rows if row.gap != UNKNOWN] == bins.gap[bins.n > 0].tolist()
    assert [row.low.value for row in rows if row.low != UNKNOWN] == curve.low.tolist()
    assert max(abs(row.relative_gap) for row in rows) == 1


def test_empty_bins_have_no_means(odd):
    rows = list(bin_rows(read_models(odd["one score"])[0]))
    assert [row.n.value for row in rows if row.gap != UNKNOWN] == [100]


def test_settings(found, odd):
    rows = dict(setting_rows(read_models({"a": found, "b": odd["soft"]})))
    assert rows["Test"] == ["joint, simulated"] * 2
    assert rows["Tolerance"] == ["0.01", "0.01"]
    assert rows["Confidence level"] == ["95%", "95%"]
    assert rows["Seed"] == ["0", "0"]
    assert np.all([len(values) == 2 for values in rows.values()])
