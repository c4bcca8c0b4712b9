"""The table on the page of clinical validation is the one that its code prints."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "clinical.md"


def rows(text):
    return [
        [cell.strip() for cell in line.split("|")]
        for line in re.findall(r"^\|.*", text, re.MULTILINE)
    ]


def test_the_table_is_what_the_code_prints():
    code, shown = re.search(
        r"```python\n(.*?)```\s*((?:\|[^\n]*\n)+)", PAGE.read_text(), re.DOTALL
    ).groups()
    space = {}
    exec(code, space)
    printed = rows(space["table"].to_markdown())
    assert rows(shown)[2:] == printed[2:]
