"""Single places that hold many rows are marked with what they hold; all else stays quiet."""

import numpy as np
import pytest
from matplotlib.collections import PathCollection

import calibrant as cb
from calibrant.datasets import load_flares, load_rain
from calibrant.plot import reliability
from calibrant.plot.places import marked_places

RNG = np.random.default_rng(0)


def with_masses(n=2000):
    """Return rows of which three tenths have score 0 and one tenth 1; the rest are spread."""
    p = RNG.random(n)
    p[: 3 * n // 10], p[-n // 10 :] = 0, 1
    return (RNG.random(n) < 0.1 + 0.8 * p).astype(float), p


ROWS = with_masses()


def discs(ax):
    return [one for one in ax.get_children() if isinstance(one, PathCollection)]


def shares_written(ax):
    return [text.get_text() for text in ax.texts if text.get_text().endswith("%")]


def expected(y, p, scores):
    return [(score, y[p == score].mean()) for score in scores]


@pytest.mark.parametrize("method", ["smooth", "isotonic"])
def test_a_point_mass_is_a_disc_at_its_mean_outcome(method):
    y, p = ROWS
    ax = reliability(y, p, method=method)
    (marks,) = discs(ax)
    assert np.allclose(marks.get_offsets(), expected(y, p, (0, 1)), atol=5e-3)
    area = marks.get_sizes()
    assert area[0] / area[1] == pytest.approx(3, rel=0.1)
    assert shares_written(ax) == ["30%", "10%"]


def test_a_mass_anywhere_is_marked_whatever_its_rounding():
    y, p = RNG.random(2000) < 0.5, RNG.random(2000)
    edge = cb.bin_table(y, p, n_bins=2000).edges[600]
    p[:200], p[200:400] = edge, np.nextafter(edge, 0)
    table = cb.bin_table(y, p, n_bins=2000)
    assert table.n[599:601].min() >= 200
    places = marked_places(table)
    assert places.score == pytest.approx([0.3], abs=1e-3)
    assert places.share == pytest.approx([0.2], abs=0.01)
    rows = np.abs(p - 0.3) < 1e-9
    assert places.outcome == pytest.approx([y[rows].mean()], abs=0.02)


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
    assert not shares_written(ax)


def test_words_lie_neither_on_the_curve_nor_beyond_the_frame():
    ax = reliability(*ROWS, bandwidth=0.03)
    ax.figure.draw_without_rendering()
    words = [text for text in ax.texts if text.get_text().endswith("%")]
    assert len(words) == 2
    (ribbon,) = [one for one in ax.collections if one.get_zorder() == 3]
    line = ax.transData.transform(np.concatenate(ribbon.get_segments()))
    left, foot = ax.transData.transform((0, 0))
    for box in (text.get_window_extent() for text in words):
        assert not box.count_contains(line)
        assert box.x0 >= left
        assert box.y0 >= foot
        assert ax.bbox.x1 >= box.x1
        assert ax.bbox.y1 >= box.y1


QUIET = {
    "uniform": lambda rng, n: rng.random(n),
    "arcsine": lambda rng, n: rng.beta(0.5, 0.5, n),
    "bathtub": lambda rng, n: rng.beta(0.2, 0.2, n),
    "rare": lambda rng, n: rng.beta(1, 50, n),
    "peaked": lambda rng, n: rng.beta(80, 40, n),
    "hundredths": lambda rng, n: rng.random(n).round(2),
}


@pytest.mark.parametrize("shape", QUIET)
def test_ordinary_scores_have_none(shape):
    rng = np.random.default_rng(1)
    for n in (20, 60, 200, 1000, 20_000):
        for _ in range(20):
            p = QUIET[shape](rng, n)
            table = cb.bin_table((rng.random(n) < p).astype(float), p, n_bins=2000)
            places = marked_places(table)
            assert places.is_all or not len(places.score), (n, places)


def test_bundled_data_have_circles_or_none():
    flares, rain = (
        marked_places(cb.bin_table(*rows, n_bins=2000)) for rows in (load_flares(), load_rain())
    )
    assert len(flares.score) == 0
    assert rain.is_all
    assert rain.share.sum() == pytest.approx(1)


def test_what_lies_beyond_the_limits_is_not_marked():
    (marks,) = discs(reliability(*load_rain(), limits=(0.4, 1)))
    x, y = marks.get_offsets().T
    assert x.min() >= 0.4 - 1e-9
    assert y.min() >= 0.4 - 1e-9


def test_weights_count_and_rows_of_no_weight_do_not():
    y, p = ROWS
    weight = np.where(p == 0, 2.0, 1.0) * (p < 1)
    table = cb.bin_table(y, p, n_bins=2000, sample_weight=weight)
    places = marked_places(table)
    assert places.share == pytest.approx([weight[p < 0.0005].sum() / weight.sum()])
