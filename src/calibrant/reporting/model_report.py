"""report: one model or several, assessed, compared, and written as one page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from numpy.typing import ArrayLike

from calibrant._base import written
from calibrant.assessment.assess import assess
from calibrant.assessment.groups import by_group
from calibrant.data.classes import rows_by_model
from calibrant.data.rows import read_columns
from calibrant.data.sketch import Sketch
from calibrant.data.validation import Generator
from calibrant.errors import CalibrantError
from calibrant.inference.compare import compare
from calibrant.progress import steps
from calibrant.reporting.html_page import Page, page


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
    y_true : array_like, Sketch, result or mapping of them
        Outcomes: 0/1, bool, yes/no, soft in [0, 1], two labels or classes. Or in place of both
        arrays a sketch or a result, or for several models a mapping from names to these.
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
        The largest acceptable smooth calibration error, for the verdicts.
    n_bins : int
        Number of bins.
    threshold : float, optional
        A decision threshold: adds what recalibration would save at it.
    n_resamples : int
        Number of draws of the noise, at least 39.
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
    of_all: dict[str, Any] = {"n_bins": n_bins, "tolerance": tolerance, "threshold": threshold}
    assessed = [partial(assess, *rows, **of_all) for rows in models.values()]
    beside: dict[str, Any] = {}
    if groups is not None:
        beside["groups"] = partial(by_group, *assessed[0].args, groups, n_bins=n_bins)
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
