"""Markdown extension: formulas between dollar signs become MathML while the site is built.

``$...$`` is inline, ``$$...$$`` is displayed. Browsers render MathML themselves, so that a page
needs no script and no fonts. An unknown LaTeX command stops the build.
"""

import re
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert_to_element
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

# Display comes first: `$$x$$` must not be read as an empty formula, x, and an empty formula. A
# dollar before a space or after one is money, not mathematics.
_FORMULA = r"\$\$(?P<display>[^$]+)\$\$|\$(?P<inline>[^\s$](?:[^$]*[^\s$])?)\$(?![0-9])"
# Before backslash escapes (180) and links, after code spans (190).
_PRIORITY = 185
_BAR, _PRIME = "&#x0007C;", "&#x02032;"


class _Formula(InlineProcessor):
    # The names are Markdown's own.
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:  # noqa: N802
        display = m["display"] is not None
        latex = m["display"] if display else m["inline"]
        element = convert_to_element(latex, display="block" if display else "inline")
        unknown = [text for text in element.itertext() if text.startswith("\\")]
        if unknown:
            raise ValueError(f"unknown LaTeX command {unknown[0]} in the formula {latex}")
        _adjust(element)
        if display:
            # Formulas wider than a small screen scroll by themselves.
            wide = Element("span", {"style": "display: block; overflow: auto hidden"})
            wide.append(element)
            element = wide
        return element, m.start(0), m.end(0)


def _adjust(formula: Element) -> None:
    """Say what MathML cannot know of operators, so that they are spaced as in LaTeX."""
    n_bars = 0
    for one in formula.iter():
        text = one.text or ""
        if one.tag == "mo" and text == _BAR and "form" not in one.attrib:
            # Bars enclose what lies between each pair of them.
            one.attrib |= {"form": ("prefix", "postfix")[n_bars % 2], "stretchy": "false"}
            n_bars += 1
        elif one.tag == "mo" and text.isalpha():
            # Names such as max.
            one.attrib |= {"lspace": "0.17em", "rspace": "0.17em"}
        elif one.tag == "msup" and one[1].text == _PRIME:
            # It is raised by itself.
            one.tag = "mrow"


class _Formulas(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.inlinePatterns.register(_Formula(_FORMULA, md), "mathml", _PRIORITY)


def makeExtension(**options: Any) -> Extension:  # noqa: N802
    return _Formulas(**options)
