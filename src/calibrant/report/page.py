"""page: assessments as one self-contained page of HTML."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from calibrant._version import __version__
from calibrant.assessment.group_result import GroupTable
from calibrant.assessment.result import Assessment
from calibrant.errors import MissingDependencyError
from calibrant.files import write_atomically
from calibrant.inference.compare_result import Comparison
from calibrant.report.differences import difference_section
from calibrant.report.groups import group_section
from calibrant.report.library import packed, packed_library, script_hash
from calibrant.report.meanings import headline
from calibrant.report.methods import Trials, method_section
from calibrant.report.models import Model, read_models
from calibrant.report.numbers import count, fixed, p_value, percent, share, typeset
from calibrant.report.tables import bin_rows, measure_rows, ranged, setting_rows
from calibrant.report.views import views

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Page", "page", "write_page"]

_TITLE = "Calibration report"


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
    shown, measured = list(views(models)), list(measure_rows(models))
    names = models[0].assessment.mean_names
    grouped = None if extras.groups is None else group_section(extras.groups, names)
    comparison, trials = extras.comparison, extras.trials
    drawn = {view.key: view.figure for view in shown}
    if grouped is not None:
        drawn["groups"] = grouped.figure
    return {
        "title": extras.title,
        "source": extras.source,
        "models": models,
        "several": len(models) > 1,
        "views": shown,
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
        loader=PackageLoader("calibrant.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = (bin_rows, count, fixed, headline, p_value, percent, ranged, share, typeset)
    for function in shown:
        environment.globals[function.__name__] = function
    return environment


def _asset(name: str) -> str:
    return (files("calibrant.report") / "templates" / name).read_text("utf-8")
