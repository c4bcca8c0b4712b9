"""The diagram in characters: dots where they belong."""

import pytest

import calibrant as cb
from calibrant.cli.screen import Dots, diagram
from calibrant.curves.reliability_view import Window
from calibrant.datasets import simulate

pytest.importorskip("rich")


def test_dots_of_a_character():
    dots = Dots(1, 1)
    assert dots.rows() == ["\u2800"]
    dots.mark(0, 0)
    assert dots.rows() == ["\u2840"]  # dot 7, at the lower left
    dots.mark(1, 1)
    assert dots.rows() == ["\u2848"]  # and dot 4, at the upper right
    dots.mark(1.5, 0)
    assert dots.rows() == ["\u2848"]


def test_a_line_has_no_gaps():
    dots = Dots(10, 5)
    dots.line((0, 0), (1, 1))
    assert {x for x, _ in dots.dots} == set(range(20))
    assert {y for _, y in dots.dots} == set(range(20))
    assert dots.plain_rows("*")[-1].startswith("**")


def drawn(y_true, y_prob, *, plain=True):
    return diagram(cb.assess(y_true, y_prob, n_resamples=39), plain=plain).plain.splitlines()


def places(lines, mark):
    return [(row, line.index(mark)) for row, line in enumerate(lines) if mark in line]


@pytest.mark.parametrize(("scenario", "side"), [("overconfident", -1), ("underconfident", 1)])
def test_the_curve_lies_on_the_side_that_it_should(scenario, side):
    rows = simulate(scenario, 20_000, rng=1)
    lines = drawn(rows.y_true, rows.y_prob)
    # In the fourth row, high up: an over-confident curve is right of the diagonal there.
    line = lines[4]
    assert (line.index(".") - line.index("*")) * side > 0


@pytest.mark.parametrize(
    ("y_true", "y_prob"),
    [
        ([0, 1, 0, 0] * 50, [0.1, 0.4, 0.7, 0.2] * 50),
        ([0, 0, 0, 1] * 50, [0.01, 0.02, 0.03, 0.15] * 50),
        ([0] * 199 + [1], [0.003] * 200),
        ([1] * 190 + [0] * 10, [0.93, 0.97] * 100),
    ],
)
def test_the_window_is_that_of_all_diagrams(y_true, y_prob):
    found = cb.assess(y_true, y_prob, n_resamples=39)
    window = Window.around([found.reliability_view("smooth")])
    lines = diagram(found, plain=True).plain.splitlines()
    beside = [line.partition("|")[0].strip() for line in lines if "|" in line]
    labels = [float(label) for label in beside if label]
    assert labels == pytest.approx([window.high, (window.low + window.high) / 2], rel=1e-5)
    assert [float(number) for number in lines[-2].split()] == pytest.approx(
        [window.low, labels[1], window.high], rel=1e-5
    )
    # Numbers beside the picture do not push its frame to the side.
    assert len({line.index("|") for line in lines if "|" in line}) == 1


def test_braille_and_plain_pictures_have_the_same_shape():
    rows = simulate("overconfident", 1000, rng=1)
    plain = drawn(rows.y_true, rows.y_prob)
    fine = drawn(rows.y_true, rows.y_prob, plain=False)
    assert len(plain) == len(fine)
    assert all(line.isascii() for line in plain)
    filled = [[c != " " for c in line] for line in fine[1:16]]
    assert filled == [[c != " " for c in line] for line in plain[1:16]]


def test_no_line_is_drawn_where_there_are_no_scores():
    y_true, y_prob = [0] * 9000 + [1] * 10_000 + [0] * 1000, [0.3] * 10_000 + [0.9] * 10_000
    lines = drawn(y_true, y_prob)
    # Left of the lowest score there is neither a line nor a density.
    assert not any("*" in line[8:15] for line in lines[1:16])
    assert any("*" in line for line in lines[1:16])
    assert "%" in lines[17]
    assert lines[17][8:15].isspace()
