"""Every measure stands on the page of its family, described as the registry describes it."""

from pathlib import Path

import pytest

from calibrant.measures.registry import MeasureInfo, measures
from tools.measure_index import PAGE, text

PAGES = sorted((Path(__file__).parents[2] / "docs" / "measures").glob("*.md"))
HEAD = "| function | called | what it tells | interval | sketch |\n|---|---|---|---|---|\n"


def row(info: MeasureInfo) -> str:
    """Return a measure as a row of the table on its page."""
    interval = "yes" if info.has_interval else "by `compare`" if info.kind == "score" else "no"
    if info.make is None:
        interval = f"see `{info.special_case_of}`"
    sketch = {None: "no", "probability": "yes"}.get(info.sketch, f"on the {info.sketch} scale")
    return f"| `{info.name}` | {info.label} | {info.meaning} | {interval} | {sketch} |\n"


@pytest.mark.parametrize("info", measures().values(), ids=list(measures()))
def test_a_measure_is_in_the_table_of_one_page(info):
    expected = row(info)
    pages = [page.name for page in PAGES if HEAD in (text := page.read_text()) and expected in text]
    assert len(pages) == 1, f"one page of docs/measures should show:\n{HEAD}{expected}"


def test_the_tables_name_nothing_else():
    known = {row(info) for info in measures().values()}
    for page in PAGES:
        table = page.read_text().partition(HEAD)[2].partition("\n\n")[0]
        assert {f"{line}\n" for line in table.splitlines()} <= known, page.name


def test_the_index_is_what_the_registry_says():
    assert PAGE.read_text(encoding="utf-8") == text(), "run python tools/measure_index.py"
