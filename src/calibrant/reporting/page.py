"""Assessments as one self-contained page of HTML, and as a fragment of one for notebooks.

The page holds plotly's JavaScript and the diagrams packed: the full build of 4.8 MB is 2.0 MB
compressed and in base64. The page unpacks it, and its security policy lets this very script run and
no other.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from calibrant._base import write_atomically
from calibrant._version import __version__
from calibrant.assessment.assess import Assessment
from calibrant.assessment.groups import GroupTable
from calibrant.errors import MissingDependencyError
from calibrant.formatting import count, fixed, p_statement, p_value, percent, proportion, typeset
from calibrant.inference.compare import Comparison
from calibrant.reporting.models import Model, read_models
from calibrant.reporting.sections import (
    Trials,
    bin_rows,
    diagrams,
    difference_section,
    group_section,
    headline,
    measure_meaning,
    measure_rows,
    method_section,
    ranged,
    setting_rows,
)

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Page", "fragment", "page", "write_page"]

_TITLE = "Calibration report"
_CELL = "padding: 2px 12px 2px 0; text-align: left; font-variant-numeric: tabular-nums;"


class Page(str):
    """The text of a page, which a prompt does not print in full."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<page of {len(self)} characters>"


def page(
    assessments: Mapping[str, Assessment] | Assessment,
    *,
    title: str = _TITLE,
    source: Mapping[str, str] | str = "",
    groups: GroupTable | None = None,
    comparison: Comparison | None = None,
    trials: Trials | None = None,
) -> Page:
    """Return one page of HTML that shows assessments and needs no network.

    Parameters
    ----------
    assessments
        A result of :func:`calibrant.assess`, or several by name: models to compare, or the same
        model before and after recalibration.
    title
        The heading of the page.
    source
        What the page is about, for its head: a few words, or several by name, such as
        ``{"File": "rain.csv", "Outcomes": "rain", "Predictions": "p", "Date": "2024-05-01"}``.
    groups
        A result of :func:`calibrant.by_group`.
    comparison
        A result of :func:`calibrant.compare` on the same models.
    trials
        A result of :func:`calibrant.recalibrate`, for a table of methods and gains.

    Returns
    -------
    Page
        The text, a `str`: verdicts, interactive diagrams, tables, and the numbers to download. The
        same results give the same page.

    Notes
    -----
    About 2 MB, most of it the drawing library. Curves are reduced to what can be seen.

    Examples
    --------
    >>> from calibrant.assessment.assess import assess
    >>> from calibrant.datasets import load_rain
    >>> text = page(assess(*load_rain()), title="Rain in Tampere")
    >>> "Over-confident" in text
    True
    """
    about = {"Data": source} if isinstance(source, str) else dict(source)
    extras = Extras(title, {k: v for k, v in about.items() if v}, groups, comparison, trials)
    content = _content(read_models(assessments), extras)
    text = _environment().get_template("page.html.jinja").render(content)
    # Names of files may hold what is no text: half a surrogate for a byte that is not UTF-8.
    return Page(text.encode("utf-8", "replace").decode("utf-8"))


def write_page(
    path: str | os.PathLike[str],
    assessments: Mapping[str, Assessment] | Assessment,
    **options: Any,
) -> None:
    """Write what `page` returns to a file, all of it or nothing: a file there before stays whole.

    Parameters
    ----------
    path
        Where to.
    assessments, **options
        As in `page`.
    """
    write_atomically(path, page(assessments, **options).encode())


def embedded(value: Any) -> str:
    """Return a value as JSON that cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, default=str, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


@dataclass(frozen=True)
class Extras:
    """What a page shows beside assessments: see `page`."""

    title: str
    source: dict[str, str]
    groups: GroupTable | None
    comparison: Comparison | None
    trials: Trials | None


def _content(models: Sequence[Model], extras: Extras) -> dict[str, Any]:
    """Return what the template fills in, by name."""
    shown, measured = list(diagrams(models)), list(measure_rows(models))
    names = models[0].assessment.mean_names
    grouped = None if extras.groups is None else group_section(extras.groups, names)
    comparison, trials = extras.comparison, extras.trials
    drawn = {diagram.key: diagram.figure for diagram in shown}
    if grouped is not None:
        drawn["groups"] = grouped.figure
    return {
        "title": extras.title,
        "source": extras.source,
        "models": models,
        "several": len(models) > 1,
        "diagrams": shown,
        "measures": measured,
        "groups": grouped,
        "differences": None if comparison is None else difference_section(comparison),
        "methods": None if trials is None else method_section(trials),
        "classified": [model for model in models if model.assessment.classes],
        "settings": list(setting_rows(models)),
        "definitions": [row.about for row in measured],
        "results": embedded(_results(models, extras)),
        "packed_figures": packed(embedded(drawn)),
        "style": _asset("page.css"),
        **_programs(),
    }


def _results(models: Sequence[Model], extras: Extras) -> dict[str, Any]:
    """Return all numbers of the page."""
    groups, comparison, trials = extras.groups, extras.comparison, extras.trials
    return {
        "title": extras.title,
        "source": extras.source,
        "calibrant": __version__,
        "assessments": [{"name": one.name, **one.assessment.to_dict()} for one in models],
        "groups": None if groups is None else groups.to_dict(),
        "comparison": None if comparison is None else comparison.to_dict(),
        "methods": None if trials is None else [one.to_dict() for one in trials.candidates],
    }


def _programs() -> dict[str, Any]:
    """Return the scripts of the page, and the policy that lets them run and nothing else."""
    library = packed_library()
    scripts = {name: _asset(f"{name}.js") for name in ("page", "diagrams")}
    hashes = [*map(script_hash, scripts.values()), library.hash]
    return {
        "library": library,
        "scripts": scripts,
        "policy": _policy(hashes),
        "versions": _versions(library.version),
    }


def _versions(library: str) -> dict[str, str]:
    """Return what the page was made with."""
    return {
        "calibrant": __version__,
        "Python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "plotly.js": library,
    }


def _policy(hashes: Sequence[str]) -> str:
    """Return a Content-Security-Policy: these scripts, and nothing from anywhere else."""
    scripts = " ".join(f"'{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _environment() -> Environment:
    """Return jinja2's environment, which escapes everything that is not marked as safe."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingDependencyError(
            "a report needs jinja2", hint="pip install 'calibrant[report]'"
        ) from None
    environment = Environment(
        loader=PackageLoader("calibrant.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = (bin_rows, count, fixed, headline, p_value, percent, proportion, ranged, typeset)
    for function in shown:
        environment.globals[function.__name__] = function
    return environment


def _asset(name: str) -> str:
    return (files("calibrant.reporting") / "templates" / name).read_text("utf-8")


@dataclass(frozen=True)
class Library:
    """A packed script, its hash, and which version it is."""

    script: str
    hash: str
    version: str


@cache
def packed_library() -> Library:
    """Return plotly's JavaScript; packed once, because that takes half a second."""
    try:
        from plotly.offline import get_plotlyjs, get_plotlyjs_version
    except ImportError:
        raise MissingDependencyError(
            "a report needs plotly: pip install 'calibrant[report]'"
        ) from None
    script = get_plotlyjs()
    return Library(packed(script), script_hash(script), get_plotlyjs_version())


def packed(text: str) -> str:
    """Return text in the zlib format, in base64."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode("ascii")


def script_hash(script: str) -> str:
    """Return what a Content-Security-Policy calls an inline script by."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def fragment(assessment: Assessment) -> str:
    """Return verdict and measures as a few kilobytes of HTML that need nothing else."""
    verdict, level = assessment.verdict, percent(assessment.settings.level)
    head = "".join(
        f'<th scope="col" style="{_CELL}">{name}</th>'
        for name in ("", "value", f"{level} interval", "bias-corrected")
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in assessment.notes)
    return (
        '<div class="calibrant-assessment" style="max-width: 46em;">'
        f"<p><strong>{escape(headline(verdict))}.</strong> {escape(typeset(verdict.text))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(_fragment_rows(assessment))}</tbody></table>"
        f"<p>{' · '.join(_facts(assessment))}</p>"
        + (f"<ul>{notes}</ul>" if notes else "")
        + "</div>"
    )


def _fragment_rows(assessment: Assessment) -> Iterator[str]:
    for one in assessment.estimates:
        about, cell = measure_meaning(one.measure), ranged(one)
        texts = (cell.value, f"{cell.low} to {cell.high}", cell.corrected)
        yield (
            f'<tr><th scope="row" title="{escape(about.meaning)}" style="{_CELL}">'
            f"{escape(about.label)}</th>"
            + "".join(f'<td style="{_CELL}">{text}</td>' for text in texts)
            + "</tr>"
        )


def _facts(assessment: Assessment) -> Iterator[str]:
    yield f"{count(assessment.n)} rows"
    observed, predicted = assessment.mean_names
    yield f"{observed} {proportion(assessment.prevalence)}"
    yield f"{predicted} {proportion(assessment.mean_prediction)}"
    yield f"Brier score {fixed(assessment.brier_score, 4)}"
    if assessment.test is not None:
        test = assessment.test
        yield escape(p_statement(test.p_value, is_bound=test.is_least))
