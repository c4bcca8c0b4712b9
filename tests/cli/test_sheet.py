"""Sheets: tables that fit, with the names of rows before everything else."""

import io

import pytest

from calibrant.cli.screen import Sheet
from calibrant.formatting import TextTable

console = pytest.importorskip("rich.console")

LONG = "Department of Internal Medicine, North Wing"


def sheet(*names):
    cells = {"n": "100000", "smooth_ece": "0.0123", "P adjusted": "0.04 *"}
    columns = {heading: [cell] * len(names) for heading, cell in cells.items()}
    return Sheet(TextTable({"group": names, **columns}), spare=("n", "P adjusted"))


def drawn(made, width, **options):
    """Return the lines of a sheet in a terminal of a width."""
    page = io.StringIO()
    console.Console(file=page, width=width, markup=False, highlight=False).print(
        *made.parts(width, **options), sep="\n"
    )
    return [line.rstrip() for line in page.getvalue().splitlines()]


def test_all_of_it_where_there_is_room():
    assert drawn(sheet("a", LONG), 80) == [
        "group                                              n   smooth_ece   P adjusted",
        "a                                             100000       0.0123       0.04 *",
        f"{LONG}   100000       0.0123       0.04 *",
    ]


def test_names_lose_their_middle_before_columns_go():
    header, line = drawn(sheet(LONG), 60)
    assert header.split() == ["group", "n", "smooth_ece", "P", "adjusted"]
    assert line.startswith("Department of\u2026e, North Wing  100000 ")


def test_columns_go_before_names():
    header, line, note = drawn(sheet(LONG), 42)
    assert header.split() == ["group", "smooth_ece", "P", "adjusted"]
    assert line.startswith("Departmen\u2026rth Wing  ")
    assert note == "Too narrow here for n; --json has all."


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
def test_nothing_is_wrapped_or_cut_without_a_sign(width):
    lines = drawn(sheet("a", LONG, f"{LONG} - {LONG}"), width)
    names = [line for line in lines if "0.0123" in line]
    assert len(names) == 3
    assert max(map(len, lines)) <= width
    assert names[0].startswith("a ")


def test_both_names_of_a_difference_are_shortened():
    _, line = drawn(sheet(f"{LONG} - short"), 60)
    assert line.startswith("Department\u2026orth Wing - short  ")


def test_plain_terminals():
    _, line = drawn(sheet(LONG), 60, plain=True)
    assert line.isascii()
    assert "..." in line
