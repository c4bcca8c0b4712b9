"""Pages hold no more of a curve than can be seen, and that exactly."""

from dataclasses import replace

import numpy as np
import pytest

from calibrant import CalibrantError, assess
from calibrant.reporting.figures import read_models


def with_curve(found, *, x, y, **more):
    nothing = np.full(len(x), np.nan)
    curve = replace(
        found.curve("isotonic"),
        x=x,
        y=y,
        density=x,
        **({"low": nothing, "high": nothing} | more),
    )
    return replace(found, curves=(*found.curves[:2], curve))


def test_jumps_of_long_curves_are_kept(found):
    x = np.linspace(0, 1, 50_001)
    y = np.floor(8 * x) / 8
    (model,) = read_models(with_curve(found, x=x, y=y))
    kept = model.views["isotonic"].curve
    assert len(kept.x) < 1000
    np.testing.assert_allclose(np.interp(x, kept.x, kept.y), y, atol=1e-4)


def test_models_share_the_points(found):
    x = np.linspace(0, 1, 50_001)
    long = with_curve(found, x=x, y=np.round(x))
    sizes = {
        n: len(read_models({str(k): long for k in range(n)})[0].views["isotonic"].curve.x)
        for n in (1, 12)
    }
    assert 400 < sizes[1] <= 1000
    assert 200 < sizes[12] <= 500


def test_points_have_six_digits_and_bins_all(found):
    (model,) = read_models(found)
    for values in (model.views["smooth"].curve.y, model.assessment.cumulative.deviation):
        assert values.tolist() == [float(f"{value:.6g}") for value in values]
    assert model.views["binned"].curve is found.curve("binned")
    assert model.assessment.estimates is found.estimates


def test_a_model_knows_which_bin_a_point_is_in(model):
    bins, smooth = model.assessment.bins, model.views["smooth"].curve
    at = model.bins_of(smooth)
    assert (at[0], at[np.searchsorted(smooth.x, 0.5)], at[-1]) == (0, 7, 14)
    np.testing.assert_array_equal(
        model.bins_of(model.views["binned"].curve), np.flatnonzero(bins.n)
    )
    assert model.in_bin(3) == f"{bins.n[3]} rows in bin 0.2 to 0.267"


def test_words_for_confidence():
    prob = np.random.default_rng(0).dirichlet([1, 1, 1], 100)
    (model,) = read_models(assess(np.arange(100) % 3, prob, n_resamples=39))
    assert (model.score_name, model.outcome_name) == ("confidence", "accuracy")


def test_what_is_refused(found):
    with pytest.raises(CalibrantError, match="at least one assessment"):
        read_models({})
    with pytest.raises(CalibrantError, match="results of assess; got float at 'b'"):
        read_models({"a": found, "b": 0.3})
