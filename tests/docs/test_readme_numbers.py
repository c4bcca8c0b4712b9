"""The numbers that the README prints beside its code are those that the code gives."""

import ast
import re
import tracemalloc
from pathlib import Path

import calibrant as cb

README = (Path(__file__).parents[2] / "README.md").read_text()
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")


def statements():
    """Yield each statement of the README with the comment behind it."""
    for code in _BLOCK.findall(README):
        lines = code.splitlines()
        for node in ast.parse(code).body:
            _, _, comment = lines[node.end_lineno - 1].partition("  # ")
            yield node, comment


def numbers_of(result):
    """Return the numbers of a result: that itself, or an estimate with its interval."""
    if isinstance(result, float):
        return [result]
    return [result.value, 100 * result.level, result.low, result.high]


def as_written(number, like):
    """Return a number with as many digits as one that is written."""
    if "e" in like:
        return f"{number:.0e}"
    return f"{number:.{len(like.partition('.')[2])}f}"


def test_numbers_beside_code(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, seen = {}, 0
    for node, comment in statements():
        if not isinstance(node, ast.Expr):
            exec(compile(ast.Module([node], []), "README.md", "exec"), names)
            continue
        result = eval(compile(ast.Expression(node.value), "README.md", "eval"), names)
        printed = capsys.readouterr().out
        if printed:
            assert comment.endswith("...")
            assert printed.startswith(comment[:-3])
        elif _NUMBER.search(comment):
            found = numbers_of(result)
            for written in _NUMBER.findall(comment):
                assert written in [as_written(number, written) for number in found], comment
                seen += 1
    assert seen >= 8


def test_the_size_of_a_sketch():
    (written,) = re.findall(r"`Sketch` .*?\((\d\.\d) MB", README, re.DOTALL)
    cb.Sketch()  # whatever is loaded once
    tracemalloc.start()
    try:
        sketch = cb.Sketch()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sketch.n == 0
    # What Python itself takes is kilobytes.
    assert abs(size / 1e6 - float(written)) < 0.1
