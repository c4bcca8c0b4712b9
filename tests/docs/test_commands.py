"""Every command is documented."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_every_command_is_on_its_page():
    typer = pytest.importorskip("typer")
    from calibrant.cli.app import application

    names = typer.main.get_command(application()).commands
    page = (ROOT / "docs" / "cli.md").read_text()
    assert len(names) >= 8
    assert [name for name in names if f"`calibrant {name}" not in page] == []
