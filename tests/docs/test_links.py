"""What the pages point to is there in a clone, before anything is built."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\((?P<target>[^)#:\s]+)(?:#[^)]*)?\)")
_INSTALL = re.compile(r"pip install '\.\[([^\]]*)\]'")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def kept():
    """Return all files that are not products of a build."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a repository")
    return {(ROOT / line).resolve() for line in done.stdout.splitlines()}


def test_links_lead_to_files_that_are_kept(kept):
    pages = [path for path in kept if path.suffix == ".md" and path.is_file()]
    assert ROOT / "README.md" in pages
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in _LINK.findall(_FENCE.sub("", page.read_text()))
        if (page.parent / target).resolve() not in kept and not (page.parent / target).is_dir()
    ]
    assert broken == []


def test_there_is_one_way_to_install_from_a_clone():
    pages = [ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "cli.md"]
    assert [_INSTALL.findall(page.read_text()) for page in pages] == [
        ["cli,files,report,sklearn"]
    ] * 3


def test_the_tables_of_the_first_page_are_bundled():
    named = re.findall(
        r"^calibrant \w+ (\S+\.csv)", (ROOT / "docs" / "index.md").read_text(), re.MULTILINE
    )
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_exit_code_is_on_its_page():
    pytest.importorskip("typer")
    from calibrant.cli import messages

    codes = [value for value in vars(messages).values() if type(value) is int]
    assert len(codes) >= 4
    page = (ROOT / "docs" / "cli.md").read_text()
    assert [code for code in codes if f"| {code} |" not in page] == []
