"""The study of size and power, quickly."""

import pytest

from studies import power


@pytest.fixture(scope="module")
def run(quickly):
    return quickly("power")


def test_the_joint_test_finds_what_single_tests_miss(run):
    rejected = {(r.population, r.test): r.rejected / r.repetitions for r in run.tables["power"]}
    name = "p + 0.1 sin(6 pi p)"
    assert rejected[name, "joint"] >= 0.8
    assert rejected[name, "cumulative_test"] <= 0.5
    assert rejected["stated confidences, 0.85 at 1", "joint"] == 1


def test_the_whole_study_has_every_cell():
    size, strength, clusters = power.parts(False)
    assert len(size.cells) >= 17
    assert {n for _, n in size.cells} >= {30, 100_000}
    assert len(strength.cells) == len(power.ALTERNATIVES)
    assert len(clusters.cells) == len(power.CLUSTERED)


def test_the_page(run):
    text = run.page.read_text()
    assert "| population | n | joint | level |" in text
    assert "| calibration_test |" in text.partition("## Clusters")[2]
