"""The code on every page runs: fenced `python` blocks as they stand, `pycon` ones as doctests.

The blocks of one page share a namespace, in order, and run in an empty folder.
"""

import doctest
import re
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>python|pycon)\b[^\n]*\n(?P<code>.*?)^(?P=indent)```",
    re.DOTALL | re.MULTILINE,
)
# Left out of environments where it would be too large: see tools/cpu_torch.py.
_TORCH = re.compile(r"^\s*(import|from) (torch|calibrant\.integrations\.torch)", re.MULTILINE)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    language: str
    code: str
    line: int


def blocks(text):
    """List the runnable blocks of a page, with the line on which the code of each begins."""
    found = []
    for match in _FENCE.finditer(text):
        indent = len(match["indent"])
        code = "".join(line[indent:] or "\n" for line in match["code"].splitlines(keepends=True))
        found.append(Block(match["language"], code, text[: match.start("code")].count("\n") + 1))
    return found


def run(page, text, left_out=()):
    """Run the blocks of a page, but for some; say page:line of the first that fails."""
    namespace = {"__name__": "__main__"}
    for block in blocks(text):
        if block in left_out:
            continue
        if block.language == "python":
            _run_python(page, block, namespace)
        else:
            _run_session(page, block, namespace)


def _run_python(page, block, namespace):
    # Blank lines before the code make line numbers in tracebacks those of the page.
    padded = "\n" * (block.line - 1) + block.code
    try:
        exec(compile(padded, str(page), "exec"), namespace)
    except Exception as error:
        line = _line_on_page(error, page) or block.line
        raise AssertionError(f"{page}:{line}: {type(error).__name__}: {error}") from error


def _line_on_page(error, page):
    if isinstance(error, SyntaxError) and error.filename == str(page):
        return error.lineno
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(page):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _run_session(page, block, namespace):
    test = doctest.DocTestParser().get_doctest(
        block.code, namespace, str(page), str(page), block.line - 1
    )
    test.globs = namespace  # get_doctest copies; later blocks need what this one defines
    said = []
    result = doctest.DocTestRunner(optionflags=_FLAGS, verbose=False).run(
        test, out=said.append, clear_globs=False
    )
    if result.failed:
        raise AssertionError(
            f"{page}:{block.line}: the session prints something else\n{''.join(said)}"
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_on_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    left_out = [] if find_spec("torch") else [b for b in blocks(text) if _TORCH.search(b.code)]
    run(page, text, left_out)
    if left_out:
        lines = ", ".join(str(block.line) for block in left_out)
        pytest.skip(f"torch is not installed: the code on line {lines} was not run")


def test_there_is_code_to_run():
    assert sum(len(blocks(page.read_text())) for page in PAGES) >= 5


def test_a_failing_line_is_named_by_page_and_line():
    with pytest.raises(AssertionError, match=r"^p\.md:4: ZeroDivisionError"):
        run("p.md", "# Title\n```python\nx = 1\nx / 0\n```\n")


def test_a_syntax_error_is_named_by_page_and_line():
    with pytest.raises(AssertionError, match=r"^p\.md:2: SyntaxError"):
        run("p.md", "```python\nx =\n```\n")


def test_a_wrong_session_is_named_by_page_and_line():
    with pytest.raises(AssertionError, match=r"(?s)^p\.md:2: .*Expected:\s+3.*Got:\s+2"):
        run("p.md", "```pycon\n>>> 1 + 1\n3\n```\n")


def test_blocks_share_a_namespace_and_other_languages_are_left_alone():
    text = "```python\nx = 1\n```\n```pycon\n>>> y = x + 1\n```\n```bash\nfalse\n```\n"
    run("p.md", text + "1. In a list:\n\n    ```python\n    assert y == 2\n    ```\n")
    with pytest.raises(AssertionError, match=r"^p\.md:13: AssertionError"):
        run("p.md", text + "1. In a list:\n\n    ```python\n    assert y == 3\n    ```\n")
