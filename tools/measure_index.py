"""Write docs/measures/index.md: every measure, its definition, its paper and its page.

    python tools/measure_index.py

Rows come from the registry of measures, for those in the reference, which they link to; papers from
the references of their docstrings.
"""

import re
from inspect import getdoc
from pathlib import Path

import calibrant
from calibrant.measures.registry import MeasureInfo, measures

PAGE = Path(__file__).parents[1] / "docs" / "measures" / "index.md"
HEAD = """# Every measure

What is each measure, who defined it, and where is it explained? Here $w$, $p$ and $y$ are weight,
prediction and outcome of a row, and $W$ is the total weight; 0 is perfect for errors, and scores
also reward sharpness.
[Which measure should I use?](../which-measure.md) helps to choose.

| function | definition | paper | explained on |
|---|---|---|---|
"""
_PAPER = re.compile(r"([^\d\"]+?),? (?:\"[^\"]+\" )?\((\d{4})\)")


def text() -> str:
    """Return the page."""
    listed = (info for info in measures().values() if info.name in calibrant.__all__)
    return HEAD + "".join(map(_row, listed))


def _row(info: MeasureInfo) -> str:
    family = info.function.__module__.rpartition(".")[2]
    link = f"[`{info.name}`](../api.md#calibrant.{info.name})"
    definition = info.definition.rstrip(".").replace("|", r"\|")
    return f"| {link} | {definition} | {_paper(info)} | [{family}]({family}.md) |\n"


def _paper(info: MeasureInfo) -> str:
    """Return the authors and the year of the first reference."""
    references = (getdoc(info.function) or "").partition("References\n----------\n")[2]
    found = _PAPER.match(" ".join(references.partition("\n\n")[0].split()))
    if found is None:
        raise ValueError(f"the docstring of {info.name} names no paper")
    return f"{found[1]} ({found[2]})"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
