"""Single places that hold many rows are marked with what they hold; all else stays quiet."""

import numpy as np
import pytest
from matplotlib.collections import PathCollection

import calibrant as cb
from calibrant.datasets import load_flares, load_rain
from calibrant.plot import reliability
from tests.plot.drawn import written
from tests.tolerances import nearly

RNG = np.random.default_rng(0)


def with_masses(n=2000):
    """Return rows of which three tenths have score 0 and one tenth 1; the rest are spread."""
    p = RNG.random(n)
    p[: 3 * n // 10], p[-n // 10 :] = 0, 1
    return (RNG.random(n) < 0.1 + 0.8 * p).astype(float), p


ROWS = with_masses()


def discs(ax):
    return [one for one in ax.get_children() if isinstance(one, PathCollection)]


def expected(y, p, scores):
    return [(score, y[p == score].mean()) for score in scores]


@pytest.mark.parametrize("method", ["smooth", "isotonic"])
def test_a_point_mass_is_a_disc_at_its_mean_outcome(method):
    y, p = ROWS
    ax = reliability(y, p, method=method)
    (marks,) = discs(ax)
    assert np.allclose(marks.get_offsets(), expected(y, p, (0, 1)), atol=1e-12)
    area = marks.get_sizes()
    assert area[0] / area[1] == pytest.approx(3, rel=0.1)
    assert "discs: 30% at 0, 10% at 1" in written(ax)


def test_deviations_have_discs_and_show_them():
    p = RNG.random(2000)
    p[:200] = 0.4
    y = RNG.random(2000) < p
    y[:200] = True
    ax = reliability(y, p, deviation=True, bandwidth=0.2, band=None)
    (marks,) = discs(ax)
    ((_, height),) = marks.get_offsets()
    assert height == pytest.approx(0.6, abs=0.02)
    assert ax.get_ylim()[1] > height


def test_sketches_have_the_same_discs():
    (rows,), (sketched,) = (
        discs(reliability(*data)) for data in (ROWS, (cb.Sketch().update(*ROWS),))
    )
    assert np.allclose(rows.get_offsets(), sketched.get_offsets(), atol=1e-3)
    assert np.allclose(rows.get_sizes(), sketched.get_sizes(), rtol=1e-3)


def test_several_models_have_discs_without_words():
    y, p = ROWS
    ax = reliability(y, {"a": p, "b": p / 2})
    first, second = discs(ax)
    assert np.allclose(second.get_offsets()[:, 0], [0, 0.5], atol=0.01)
    assert tuple(first.get_facecolor()[0]) != tuple(second.get_facecolor()[0])
    assert "discs" not in written(ax)


def test_many_discs_are_described_by_their_range():
    rng = np.random.default_rng(0)
    p = np.r_[np.linspace(0.5, 0.56, 7).repeat(60), rng.random(600)]
    ax = reliability(rng.random(len(p)) < p, p, band=None)
    (marks,) = discs(ax)
    assert len(marks.get_offsets()) == 7
    assert "discs: 6% of rows each" in written(ax)


def test_circles_at_bundled_data():
    (marks,) = discs(reliability(*load_rain()))
    assert len(marks.get_offsets()) == 11
    assert not discs(reliability(*load_flares()))


@pytest.mark.parametrize("shape", [lambda u: 10 ** (-8 * u), lambda u: 1e-5 * u])
def test_scores_that_are_only_close_have_none(shape):
    rng = np.random.default_rng(0)
    p = shape(rng.random(20_000))
    y = (rng.random(len(p)) < p).astype(float)
    assert not discs(reliability(y, p, band=None, note=False))
    assert not discs(reliability(cb.Sketch().update(y, p), band=None, note=False))


def test_a_circle_of_all_rows_does_not_hide_the_curve():
    ax = reliability([0, 1, 0, 0] * 50, [0.3] * 200)
    (marks,) = discs(ax)
    ax.figure.draw_without_rendering()
    wide = 2 * np.sqrt(marks.get_sizes()[0] / np.pi) * ax.figure.dpi / 72
    assert wide < 0.08 * ax.get_window_extent().width


def test_the_picture_of_an_assessment_marks_the_same():
    found = cb.assess(*ROWS, n_resamples=39)
    (marks,) = discs(found.plot().child_axes[0])
    (own,) = discs(reliability(*ROWS))
    assert np.array(marks.get_offsets()) == nearly(np.array(own.get_offsets()))


def test_a_table_of_few_bins_has_circles_and_one_of_many_has_none():
    curve = cb.reliability_curve(*ROWS)
    (marks,) = discs(reliability(curve, table=cb.bin_table(*ROWS, n_bins=10)))
    assert len(marks.get_offsets()) == 10
    assert not discs(reliability(curve, table=cb.bin_table(*ROWS, n_bins=1000)))


def test_what_lies_beyond_the_limits_is_not_marked():
    (marks,) = discs(reliability(*load_rain(), limits=(0.4, 1)))
    x, y = marks.get_offsets().T
    assert x.min() >= 0.4 - 1e-9
    assert y.min() >= 0.4 - 1e-9


def test_weights_count_and_rows_of_no_weight_do_not():
    y, p = ROWS
    weight = np.where(p == 0, 2.0, 1.0) * (p < 1)
    ax = reliability(y, p, sample_weight=weight)
    (marks,) = discs(ax)
    assert marks.get_offsets()[:, 0].tolist() == [0]
    assert f"discs: {100 * weight[p == 0].sum() / weight.sum():.0f}% at 0" in written(ax)
