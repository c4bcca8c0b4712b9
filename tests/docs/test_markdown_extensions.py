"""Formulas become MathML, roles become links, and code is left as it is."""

import re

import pytest

markdown = pytest.importorskip("markdown", reason="needs the docs tools")
pytest.importorskip("latex2mathml", reason="needs the docs tools")

EXTENSIONS = ["tools.mathml", "tools.docstring_roles", "fenced_code"]


def html(text):
    return markdown.markdown(text, extensions=EXTENSIONS)


def test_formula_in_a_line():
    assert "<msub><mi>p</mi><mi>i</mi></msub>" in html("the score $p_i$ of a row")
    assert 'display="inline"' in html("$x$")


def test_formula_on_its_own():
    assert 'display="block"' in html("$$x$$")


def test_bars_open_and_close():
    forms = ("prefix", "postfix", "prefix", "postfix")
    found = re.findall('<mo form="([a-z]+)" stretchy="false">', html(r"$\lvert x \rvert + |y|$"))
    assert tuple(found) == forms


def test_names_of_functions_have_thin_spaces_around_them():
    assert '<mo lspace="0.17em" rspace="0.17em">max</mo>' in html(r"$2 \max(x, y)$")


def test_primes_are_not_raised_twice():
    assert "<msup>" not in html("$f'(x)$")
    assert "<msup>" in html("$x^2$")


@pytest.mark.parametrize("text", ["costs $5 or $6", "`$x$`", "```\n$x$\n```", "a $ b $ c"])
def test_other_dollars_stay(text):
    assert "<math" not in html(text)


def test_unknown_command_stops_the_build():
    with pytest.raises(ValueError, match=r"unknown LaTeX command \\nonsense"):
        html(r"$\nonsense{x}$")


def test_roles_become_references():
    text = "see :func:`ece` and :class:`~calibrant.results.BinTable`"
    references = "\n\n[ece]: #e\n[calibrant.results.BinTable]: #b\n"
    result = html(text + references)
    assert '<a href="#e"><code>ece</code></a>' in result
    assert '<a href="#b"><code>BinTable</code></a>' in result


def test_roles_in_code_stay():
    assert ":func:`x`" in html("```\n:func:`x`\n```")


def test_entries_of_see_also_are_a_list():
    result = html("estimate : One measure.\nby_group : Each of many groups.")
    assert result.count("<li>") == 2
    assert "<code>estimate</code>: One measure." in result
