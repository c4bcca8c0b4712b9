"""Arrieta-Ibarra et al., "Metrics of Calibration" (2022): published numbers and public data."""

import json
from pathlib import Path

import numpy as np
import pytest

from calibrant import cumulative_curve, cumulative_test, ecce_mad, ecce_r
from calibrant.datasets import load_flares, load_imagenet, load_rain
from calibrant.numerics.probability import brownian_max, brownian_range
from studies.staircase import cantor_staircase
from tests.tolerances import ROUNDING

VALUES = json.loads((Path(__file__).parent / "reference_values.json").read_text())
DATA = {
    "rain": load_rain,
    "flares_DAFFS": lambda: load_flares("DAFFS"),
    "flares_NOAA": lambda: load_flares("NOAA"),
    "resnet34": lambda: load_imagenet("resnet34"),
    "densenet161": lambda: load_imagenet("densenet161"),
}


@pytest.mark.parametrize(
    ("law", "x", "printed"),
    [
        (brownian_max, 5.512, "7.1e-08"),  # figure 7
        (brownian_max, 6.607, "7.8e-11"),  # figure 14
        (brownian_max, 5.446, "1.0e-07"),  # figure 18
        (brownian_max, 4.274, "3.8e-05"),  # figure 22
        (brownian_range, 6.780, "4.8e-11"),  # figure 14
        (brownian_range, 5.186, "8.6e-07"),  # figure 22
    ],
)
def test_p_values_as_printed(law, x, printed):
    assert f"{law.sf(x):.1e}" == printed


def test_p_values_where_the_paper_says_zero_to_double_precision():
    assert brownian_range.sf(10.16) == pytest.approx(1.196e-23, rel=5e-4)  # figure 7
    assert brownian_range.sf(8.267) == pytest.approx(5.49e-16, rel=1e-3)  # figure 18
    assert 0 < brownian_max.sf(10.14) < 1e-22  # figure 26


def test_figure_7():
    y, p = cantor_staircase(32768, "sqrt")
    maximum, span = (cumulative_test(y, p, statistic=s) for s in ("max", "range"))
    assert f"{maximum.statistic:.5f}" == "0.01243"
    assert f"{maximum.normalized:.3f}" == "5.512"
    assert f"{maximum.p_value:.1e}" == "7.1e-08"
    assert f"{span.statistic:.5f}" == "0.02291"
    assert f"{span.normalized:.2f}" == "10.16"
    assert 1.1e-23 < span.p_value < 1.3e-23


@pytest.mark.parametrize(
    ("transform", "mad", "mad_sigma", "span", "span_sigma"),
    [
        ("identity", 0.01086, 4.817, 0.02158, 9.568),
        ("square", 0.01099, 5.446, 0.01616, 8.013),
        ("sqrt", 0.01243, 5.512, 0.02291, 10.16),
    ],
)
def test_synthetic_example_with_every_transform(transform, mad, mad_sigma, span, span_sigma):
    # Only the last row is printed in the paper; the others are the plain formulas on its data.
    y, p = cantor_staircase(32768, transform)
    assert np.all(np.diff(p) > 0)
    walk = np.concatenate([[0], np.cumsum(y) - np.cumsum(p)]) / len(p)
    sigma = np.sqrt(np.sum(p * (1 - p))) / len(p)
    assert ecce_mad(y, p) == pytest.approx(np.abs(walk).max(), abs=ROUNDING)
    assert ecce_r(y, p) == pytest.approx(np.ptp(walk), abs=ROUNDING)
    assert ecce_mad(y, p) == pytest.approx(mad, abs=5e-6)
    assert ecce_r(y, p) == pytest.approx(span, abs=5e-6)
    assert ecce_mad(y, p, normalize=True) == pytest.approx(np.abs(walk).max() / sigma, rel=1e-10)
    assert ecce_mad(y, p, normalize=True) == pytest.approx(mad_sigma, abs=5e-4)
    assert ecce_r(y, p, normalize=True) == pytest.approx(span_sigma, abs=5e-3)


@pytest.mark.parametrize("name", DATA)
def test_public_data(name):
    y, p = DATA[name]()
    expected = VALUES[name]
    assert ecce_mad(y, p) == pytest.approx(expected["ecce_mad"], abs=ROUNDING)
    assert ecce_r(y, p) == pytest.approx(expected["ecce_r"], abs=ROUNDING)
    assert cumulative_curve(y, p).sigma == pytest.approx(expected["sigma_n"], rel=ROUNDING)
