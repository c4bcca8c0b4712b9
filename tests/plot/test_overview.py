"""An assessment is drawn from its results."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.datasets import load_flares, simulate
from calibrant.plot import assessment
from tests.plot.drawn import written

FLARES = load_flares()
FOUND = cb.assess(*FLARES)


def test_parts_are_the_results():
    ax = assessment(FOUND)
    reliability, cumulative, estimates = ax.child_axes
    line = max(cumulative.lines, key=lambda one: len(one.get_xdata()))
    assert np.array_equal(line.get_ydata(), FOUND.cumulative.deviation)
    corrected, raw = estimates.lines
    assert list(corrected.get_xdata()) == [one.bias_corrected for one in FOUND.estimates]
    assert list(raw.get_xdata()) == [one.value for one in FOUND.estimates]
    ends = np.array(estimates.collections[0].get_segments())[:, :, 0]
    assert ends.tolist() == [[one.low, one.high] for one in FOUND.estimates]
    assert f"smECE {FOUND['smooth_ece'].bias_corrected:.3f}" in written(reliability)


def test_the_verdict_is_written_whole():
    words = " ".join(text.get_text().replace("\n", " ") for text in assessment(FOUND).texts)
    assert words == str(FOUND.verdict)


def test_a_long_heading_stays_within_the_figure():
    found = cb.assess([1, 1, 1], [0, 1, 1], n_resamples=100)
    ax = assessment(found)
    figure = ax.figure.figure
    figure.draw_without_rendering()
    heading, rest, *_ = ax.texts
    words = f"{heading.get_text()} {rest.get_text()}".replace("\n", " ")
    assert words == str(found.verdict)
    assert heading.get_window_extent().x1 < figure.bbox.x1
    # Words beyond the figure would press the diagrams together.
    assert ax.get_position().width > 0.8
    assert rest.get_window_extent().y1 < heading.get_window_extent().y0


def test_data_are_assessed_first():
    ax = assessment(*FLARES, level=0.9)
    assert "90% interval" in ax.child_axes[2].get_xlabel()


def test_confidences_and_soft_labels():
    rows = simulate("softmax", 300, rng=0)
    p = np.column_stack((rows.y_prob, (1 - rows.y_prob) / 2, (1 - rows.y_prob) / 2))
    assert assessment(np.where(rows.y_true, 0, 1), p).child_axes[0].get_xlabel() == "confidence"
    soft = np.clip(rows.y_prob + 0.05, 0, 1)
    assert "ECCE-R" in written(assessment(soft, rows.y_prob).child_axes[1])


def test_an_assessment_is_drawn_as_it_is():
    with pytest.raises(cb.CalibrantError, match="drawn as it is"):
        assessment(FOUND, level=0.9)
