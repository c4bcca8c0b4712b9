"""Forest plots."""

import numpy as np
import pytest

import calibrant as cb


@pytest.fixture(scope="module")
def result():
    y, p = cb.datasets.simulate("perfect", 900, rng=1)
    return cb.heterogeneity(
        y, p, np.array(["a", "b", "a long name of a hospital in town"])[np.arange(900) % 3]
    )


@pytest.mark.parametrize("measure", ["o_e", "intercept", "slope"])
def test_rows_and_marks(result, measure):
    ax = cb.plot.forest(result, measure=measure)
    names = [label.get_text() for label in ax.get_yticklabels()]
    first, pooled = result.centres[0], getattr(result, measure)
    assert names[:2] == ["events/rows", f"a  {first.n_events}/300"]
    assert names[-2:] == [f"mean of 3, τ = {pooled.tau:.2f}", "new centre, prediction"]
    (squares,) = (c for c in ax.collections if c.get_offsets().size == 6)
    drawn = np.asarray(squares.get_offsets())[:, 0].tolist()
    # Centres are in the order of their names.
    assert drawn == pytest.approx([getattr(row, measure).value for row in result.centres])
    (diamond,) = ax.patches
    corners = diamond.get_xy()[:, 0]
    assert (corners.min(), corners.max()) == pytest.approx((pooled.low, pooled.high))
    assert ax.get_xscale() == ("log" if measure == "o_e" else "linear")
    texts = [text.get_text().replace("−", "-") for text in ax.texts]
    assert f"{pooled.prediction_low:.2f} to {pooled.prediction_high:.2f}" in texts
    ax.figure.draw_without_rendering()


def test_on_a_given_axes_and_without_a_fit():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    y = [0, 1, 0, 1, 1, 0, 0, 0, 0, 0]
    found = cb.heterogeneity(y, np.linspace(0.1, 0.9, 10), [0] * 3 + [1] * 4 + [2] * 3)
    assert cb.plot.forest(found, ax=ax, color="red") is ax
    cb.plot.forest(found, measure="slope").figure.draw_without_rendering()


def test_refusals(result):
    with pytest.raises(cb.CalibrantError, match="measure must be one of"):
        cb.plot.forest(result, measure="ici")
    with pytest.raises(cb.CalibrantError, match="result must be what heterogeneity returned"):
        cb.plot.forest([1, 2])
