"""Models assessed and compared on one self-contained page, and a fragment of it for notebooks.

The page holds plotly's JavaScript and the diagrams, compressed: the full build of 4.8 MB is 2.0 MB
in base64. The page decompresses it, and its security policy allows this very script and no other.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from numpy.typing import ArrayLike

from calibrant._base import HTML_ENDINGS, check_path, write_atomically, written
from calibrant._version import __version__
from calibrant.assessment.assess import Assessment, assess
from calibrant.assessment.groups import GroupTable, by_group
from calibrant.data.classes import rows_by_model
from calibrant.data.rows import read_columns
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator
from calibrant.errors import CalibrantError, required
from calibrant.formatting import (
    count,
    decimals,
    fixed,
    p_statement,
    p_value,
    percent,
    proportion,
)
from calibrant.inference.compare import Comparison, compare
from calibrant.progress import steps
from calibrant.reporting.figures import Model, decision_figure, murphy_figure, read_models
from calibrant.reporting.sections import (
    DECISION_CAPTIONS,
    bin_rows,
    diagrams,
    group_section,
    measure_meaning,
    measure_rows,
    ranged,
    regret_text,
    setting_rows,
)

if TYPE_CHECKING:
    from jinja2 import Environment

    from calibrant.recalibration.selection import Recalibration  # layers: the type alone

_CELL = "padding: 2px 12px; text-align: left; font-variant-numeric: tabular-nums;"


class Page(str):
    """The text of a page, which a prompt does not print in full."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<page of {len(self)} characters>"


class PageOptions(TypedDict, total=False):
    """Options of :func:`calibrant.reporting.page`."""

    title: str
    source: Mapping[str, str] | str
    groups: GroupTable | None
    comparison: Comparison | None
    recalibration: Recalibration | None


def page(
    assessments: Mapping[str, Assessment] | Assessment,
    *,
    title: str = "Calibration report",
    source: Mapping[str, str] | str = "",
    groups: GroupTable | None = None,
    comparison: Comparison | None = None,
    recalibration: Recalibration | None = None,
) -> Page:
    """Return one page of HTML that shows assessments and needs no network.

    Parameters
    ----------
    assessments : Assessment or mapping of them
        A result of :func:`calibrant.assess`, or several by name: models to compare, or the same
        model before and after recalibration.
    title : str
        Heading of the page.
    source : str or mapping of str
        Description of the data, such as ``{"File": "rain.csv", "Date": "2024-05-01"}``.
    groups : GroupTable, optional
        A result of :func:`calibrant.by_group`.
    comparison : Comparison, optional
        A result of :func:`calibrant.compare` on the same models.
    recalibration : Recalibration, optional
        A result of :func:`calibrant.recalibration.recalibrate`, for a table of methods.

    Returns
    -------
    Page
        The text, a `str`: verdicts, interactive diagrams, tables, and the numbers to download. The
        same results give the same page.

    See Also
    --------
    write_page : Write the page to a file.

    Notes
    -----
    About 2 MB, most of it plotly's JavaScript. Curves are thinned to what can be seen.

    Examples
    --------
    >>> from calibrant.assessment.assess import assess
    >>> from calibrant.datasets import load_rain
    >>> text = page(assess(*load_rain()), title="Rain in Tampere")
    >>> "Predictions are too high" in text
    True
    """
    if not isinstance(title, str):
        raise CalibrantError("must be text", argument="title", value=title)
    if not isinstance(source, str | Mapping):
        raise CalibrantError("must be text, or texts by name", argument="source", value=source)
    models = read_models(assessments)
    about = {"Data": source} if isinstance(source, str) else dict(source)
    about = {name: value for name, value in about.items() if value}
    methods = None if recalibration is None else recalibration.candidates
    results = {
        "title": title,
        "source": about,
        "calibrant": __version__,
        "assessments": [{"name": one.name, **one.assessment.to_dict()} for one in models],
        "groups": None if groups is None else groups.to_dict(),
        "comparison": None if comparison is None else comparison.to_dict(),
        "methods": None if methods is None else [one.to_dict() for one in methods],
    }
    content = {
        "title": title,
        "source": about,
        "comparison": comparison,
        "recalibration": recalibration,
        "results": embedded(results),
        **_sections(models, groups),
        **_scripts(),
    }
    text = _environment().get_template("page.html.jinja").render(content)
    # Names of files may hold what is no text: half a surrogate for a byte that is not UTF-8.
    return Page(text.encode("utf-8", "replace").decode("utf-8"))


def write_page(
    path: str | os.PathLike[str],
    assessments: Mapping[str, Assessment] | Assessment,
    **options: Unpack[PageOptions],
) -> None:
    """Write a page to a file, all of it or nothing: an existing file is replaced only on success.

    Parameters
    ----------
    path : str or path
        File to write.
    assessments : Assessment or mapping of them
        A result of :func:`calibrant.assess`, or several by name.
    **options
        Explained in :func:`calibrant.reporting.page`: `title`, `source`, `groups`, `comparison`
        and `recalibration`.

    See Also
    --------
    page : Return the page as text.
    """
    check_path(path, HTML_ENDINGS)
    write_atomically(path, page(assessments, **options).encode())


def report(
    y_true: ArrayLike | Sketch | Mapping[str, Sketch],
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    data: Any = None,
    groups: ArrayLike | Mapping[str, ArrayLike] | None = None,
    title: str = "Calibration report",
    source: Mapping[str, str] | str = "",
    level: float = 0.95,
    tolerance: float = 0.01,
    n_bins: int = 15,
    threshold: float | None = None,
    n_resamples: int = 1000,
    rng: int | Generator = 0,
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    multiclass: Any = None,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    align: bool = True,
) -> Page:
    """Assess one model or several, and return one self-contained page about them.

    Parameters
    ----------
    y_true : array_like, Sketch or mapping of sketches
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes. Or in place of both
        arrays a sketch, or for several models a mapping from names to sketches.
    y_prob : array_like or mapping of array_like, optional
        Probabilities, (n,) to (n, C), or a mapping from models to them; none for sketches, results.
    path : path, optional
        The file to write, as a whole or not at all.
    data : dataframe, optional
        Table of pandas, polars or pyarrow; other arguments may then name its columns, or list them.
    groups : array_like, dataframe or mapping, optional
        Groups of one model, as :func:`calibrant.by_group` takes them, for a section of their own.
    title : str
        Heading of the page.
    source : str or mapping of str
        Description of the data, such as ``{"File": "rain.csv", "Date": "2024-05-01"}``.
    level : float
        Confidence level.
    tolerance : float
        The largest acceptable smooth calibration error, for the verdicts and the groups.
    n_bins : int
        Number of bins.
    threshold : float, optional
        A decision threshold: adds what recalibration would save at it.
    n_resamples : int
        Number of resamples, at least 39.
    rng : int or numpy.random.Generator
        Seed or generator; the same seed gives the same result.
    clusters : array_like, optional
        One label per row, such as a patient: rows of a cluster may be dependent. Use 20 or more.
    sample_weight : array_like independent of the outcome given `y_prob`, optional
        Non-negative weights; rows of weight 0 are ignored.
    multiclass : "confidence" or class label, optional
        Of (n, C): the predicted class is right (default for C > 2), or one class against the rest.
    labels : sequence, optional
        Class of each column of `y_prob`; by default the names of the columns, or else 0 to C - 1.
    pos_label : label, optional
        Label that `y_prob` is the probability of, unless labels are 0/1, no/yes or false/true.
    align : bool
        Whether pandas objects with different indexes are refused; False pairs rows by position.

    Returns
    -------
    Page
        The text, a `str` of about 2 MB that needs no network: verdicts, interactive diagrams,
        tables, and the numbers to download. Models that are given as rows are compared with each
        other.

    See Also
    --------
    assess, compare, by_group : The numbers in it.
    calibrant.reporting.page : A page of results that are there already.

    Examples
    --------
    >>> from calibrant.datasets import load_flares
    >>> days = load_flares("DAFFS")
    >>> models = {"DAFFS": days.y_prob, "NOAA": load_flares("NOAA").y_prob}
    >>> report(days.y_true, models, n_resamples=100).startswith("<!DOCTYPE html>")
    True
    """
    if path is not None:
        check_path(path, HTML_ENDINGS)  # before anything is measured
    y_true, y_prob, groups, sample_weight, clusters = read_columns(
        *(data, align),
        y_true=y_true,
        y_prob=y_prob,
        groups=groups,
        sample_weight=sample_weight,
        clusters=clusters,
    )
    models = rows_by_model(y_true, y_prob)
    asked: dict[str, Any] = {"level": level, "n_resamples": n_resamples, "rng": rng}
    asked |= {"sample_weight": sample_weight, "multiclass": multiclass, "labels": labels}
    asked |= {"pos_label": pos_label, "clusters": clusters}
    if groups is not None and len(models) > 1:
        raise CalibrantError("must be left out for several models", argument="groups")
    limits: dict[str, Any] = {"n_bins": n_bins, "tolerance": tolerance}
    assessed = [partial(assess, *rows, threshold=threshold, **limits) for rows in models.values()]
    beside: dict[str, Any] = {}
    if groups is not None:
        beside["groups"] = partial(by_group, *assessed[0].args, groups, **limits)
    elif len(models) > 1 and not isinstance(y_true, Mapping):
        beside["comparison"] = partial(
            compare, cast("ArrayLike", y_true), cast("ArrayLike", y_prob)
        )
    results = [work(**asked) for work in steps([*assessed, *beside.values()])]
    found = results[: len(models)]
    shown = dict(zip(models, found, strict=True)) if len(models) > 1 else found[0]
    sections = dict(zip(beside, results[len(models) :], strict=True))
    text = page(shown, title=title, source=source, **sections)
    written(path, text)
    return text


def _sections(models: Sequence[Model], groups: GroupTable | None) -> dict[str, Any]:
    """Return what the template shows of the models, by name."""
    shown, measured = list(diagrams(models)), list(measure_rows(models))
    figures = {diagram.key: diagram.figure for diagram in shown}
    figures |= {"murphy": murphy_figure(models), "decision": decision_figure(models)}
    grouped = None
    if groups is not None:
        grouped = group_section(groups, models[0].assessment.mean_names)
        figures["groups"] = grouped.figure
    return {
        "models": models,
        "several": len(models) > 1,
        "diagrams": shown,
        "measures": measured,
        "decision_captions": DECISION_CAPTIONS,
        "groups": grouped,
        "classified": [model for model in models if model.assessment.classes],
        "settings": list(setting_rows(models)),
        "definitions": [row.about for row in measured],
        "packed_figures": packed(embedded(figures)),
    }


def embedded(value: Any) -> str:
    """Return a value as JSON that cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, default=str, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _scripts() -> dict[str, Any]:
    """Return the style and scripts of the page, and the policy that allows these and no others."""
    library = packed_library()
    scripts = {name: _asset(f"{name}.js") for name in ("page", "diagrams")}
    hashes = [*map(script_hash, scripts.values()), library.hash]
    allowed = " ".join(f"'{one}'" for one in hashes)
    return {
        "library": library,
        "scripts": scripts,
        "style": _asset("page.css"),
        "policy": (
            f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
            "img-src data: blob:; base-uri 'none'; form-action 'none'"
        ),
        "versions": {
            "calibrant": __version__,
            "Python": platform.python_version(),
            "numpy": version("numpy"),
            "scipy": version("scipy"),
            "plotly.js": library.version,
        },
    }


def _environment() -> Environment:
    """Return jinja2's environment, which escapes everything that is not marked as safe."""
    with required("a report", "report", "jinja2"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
    environment = Environment(
        loader=PackageLoader("calibrant.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    formats = (count, decimals, fixed, p_value, percent, proportion)
    for function in (bin_rows, measure_meaning, ranged, regret_text, *formats):
        environment.globals[function.__name__] = function
    return environment


def _asset(name: str) -> str:
    return (files("calibrant.reporting") / "templates" / name).read_text("utf-8")


@dataclass(frozen=True)
class Library:
    """A compressed script, its hash and its version."""

    script: str
    hash: str
    version: str


@cache
def packed_library() -> Library:
    """Return plotly's JavaScript; compressed once, which takes half a second."""
    with required("a report", "report", "plotly"):
        from plotly.offline import get_plotlyjs, get_plotlyjs_version
    script = get_plotlyjs()
    return Library(packed(script), script_hash(script), get_plotlyjs_version())


def packed(text: str) -> str:
    """Return text compressed in the zlib format, in base64."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode("ascii")


def script_hash(script: str) -> str:
    """Return the hash of an inline script for a Content-Security-Policy."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def fragment(assessment: Assessment) -> str:
    """Return verdict and measures as a few kilobytes of HTML that need nothing else."""
    verdict, level = assessment.verdict, percent(assessment.settings.level)
    head = "".join(
        f'<th scope="col" style="{_CELL}">{name}</th>'
        for name in ("", "estimate", f"{level} interval", "raw value")
    )
    rows = ""
    for one in assessment.estimates:
        about, cell = measure_meaning(one.measure), ranged(one)
        rows += f'<tr><th scope="row" title="{escape(about.meaning)}" style="{_CELL}">'
        rows += f"{escape(about.label)}</th>"
        for text in (cell.value, f"{cell.low} to {cell.high}", cell.raw):
            rows += f'<td style="{_CELL}">{text}</td>'
        rows += "</tr>"
    observed, predicted = assessment.mean_names
    facts = [
        f"{count(assessment.n)} rows",
        f"{observed} {proportion(assessment.prevalence)}",
        f"{predicted} {proportion(assessment.mean_prediction)}",
        f"Brier score {fixed(assessment.brier_score, 4)}",
    ]
    if (test := assessment.test) is not None:
        facts.append(escape(p_statement(test.p_combined, is_bound=test.is_least)))
    notes = "".join(f"<li>{escape(note)}</li>" for note in assessment.notes)
    return (
        '<div class="calibrant-assessment" style="max-width: 46em;">'
        f"<p><strong>{escape(verdict.heading)}.</strong> {escape(verdict.details)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>{' · '.join(facts)}</p>" + (f"<ul>{notes}</ul>" if notes else "") + "</div>"
    )
