"""The pages of the site are what the tables beside them say."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import studies
from studies import coverage, estimating_ece
from studies.frame import measured, read_csv
from tests.tolerances import assert_same_text

DOCS = Path(__file__).parents[2] / "docs" / "papers"


def fail(*cell):
    raise AssertionError(f"{cell} is not in the table")


def report(name):
    """Make the report from the tables of the site, which must be complete."""
    study = import_module(f"studies.{name.replace('-', '_')}").STUDY
    if name == "coverage":
        # The site has one line per cell of this study, all blocks pooled.
        return study.report({"blocks": read_csv(DOCS / name / "pooled.csv", coverage.Block)})
    if name == "estimating-ece":
        # The site has summaries of this study, not its rounds.
        return study.report(estimating_ece.tables_in(DOCS / name))
    tables = {
        part.name: measured(
            replace(part, measure=fail), DOCS / name / f"{part.name}.csv", lambda *_: None
        )
        for part in study.parts(False)
    }
    return study.report(tables)


@pytest.mark.parametrize("name", studies.TITLES)
def test_the_page_is_what_the_tables_say(name):
    found = report(name)
    assert_same_text(found.text, (DOCS / f"{name}.md").read_text())
    for figure in found.figures:
        assert (DOCS / name / f"{figure}.png").exists()


@pytest.mark.parametrize(
    "name", [name for name in studies.TITLES if name not in ("coverage", "clinical")]
)
def test_every_remarkable_deviation_has_its_reason(name):
    comparisons = report(name).tables["comparisons"]
    assert [c for c in comparisons if c.is_remarkable and not c.note] == []
