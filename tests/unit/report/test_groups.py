"""What a page says of groups."""

from dataclasses import replace

import numpy as np
import pytest

from calibrant import by_group, report
from calibrant.reporting.sections import group_section


def table(n_groups, n=3000):
    rng = np.random.default_rng(1)
    p, group = rng.random(n), rng.integers(0, n_groups, n)
    y = rng.random(n) < np.where(group == 1, p**2, p)
    labels = np.where(group == 0, "<b>zero</b>", group.astype(str)).astype(object)
    return by_group(y, p, labels, n_resamples=39)


@pytest.fixture(scope="module")
def groups():
    return table(3)


def test_lines_and_dots_are_those_of_the_table(groups):
    section = group_section(groups)
    assert section.summary.startswith("Miscalibration detected in 1 of 3 groups")
    assert [line.label for line in section.lines] == [row.group for row in groups]
    assert [line.detected for line in section.lines] == [row.group == "1" for row in groups]
    assert [line.p_adjusted.value for line in section.lines] == [row.p_adjusted for row in groups]
    errors = [text for line in section.lines for text in (line.smooth_ece.value, line.ece)]
    assert {len(text.partition(".")[2]) for text in errors} == {4}
    intervals, dots = section.figure["data"]
    assert dots["x"] == [row.smooth_ece.bias_corrected for row in groups]
    assert intervals["x"][:2] == [groups.rows[0].smooth_ece.low, groups.rows[0].smooth_ece.high]
    assert dots["marker"]["color"].count("--series-1") == 1
    assert "&lt;b&gt;zero&lt;/b&gt;" in section.figure["layout"]["yaxis"]["ticktext"]


def test_the_least_p_value_of_simulated_samples_is_a_bound(groups):
    row = groups.rows[0]
    simulated = replace(row, test=replace(row.test, p_value=0.01, n_resamples=99), p_adjusted=0.03)
    (line,) = group_section(replace(groups, rows=(simulated,))).lines
    assert (line.p_value, line.p_adjusted) == ("≤ 0.01", "≤ 0.03")


def test_of_very_many_groups_the_worst_are_drawn():
    many = table(70, n=2000)
    section = group_section(many)
    shown = section.figure["data"][1]["x"]
    assert len(section.lines) == 70
    assert sorted(shown) == sorted(row.smooth_ece.bias_corrected for row in many)[-60:]
    assert "The 60 groups with the largest errors" in section.caption


def test_groups_are_held_to_the_tolerance_of_the_report():
    pytest.importorskip("plotly")
    rng = np.random.default_rng(2)
    p, group = rng.random(400), rng.integers(0, 2, 400)
    text = report(rng.random(400) < p, p, groups=group, tolerance=0.5, n_resamples=39)
    assert text.count('"answer":"within tolerance"') == 3  # all rows, and each group


def test_the_verdict_tells_of_groups_whose_errors_cancel():
    pytest.importorskip("plotly")
    rng = np.random.default_rng(0)
    p, group = rng.beta(2, 2, 2000), np.arange(2000) % 2
    y = rng.random(2000) < np.clip(p + np.where(group, 0.15, -0.15), 0, 1)
    text = report(y, p, groups=group, n_resamples=199)
    assert "No miscalibration detected overall, but miscalibrated in 2 of 2 groups</h2>" in text
    assert '<article class="verdict detected">' in text
    assert '<article class="verdict unknown">' in report(rng.random(300) < 0.5, p[:300] * 0 + 0.5)
