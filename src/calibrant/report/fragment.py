"""fragment: an assessment in a notebook, in a few lines of HTML that need nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from calibrant.assessment.result import Assessment
from calibrant.report.meanings import headline, measure_meaning
from calibrant.report.numbers import count, fixed, percent, said_p_value, share, typeset
from calibrant.report.tables import ranged

__all__ = ["fragment"]

_CELL = "padding: 2px 12px 2px 0; text-align: left; font-variant-numeric: tabular-nums;"


def fragment(assessment: Assessment) -> str:
    """Return verdict and measures as HTML of a few kilobytes; the page is another matter."""
    verdict, level = assessment.verdict, percent(assessment.settings.level)
    head = "".join(
        f'<th scope="col" style="{_CELL}">{name}</th>'
        for name in ("", "value", f"{level} interval", "corrected")
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in assessment.notes)
    return (
        '<div class="calibrant-assessment" style="max-width: 46em;">'
        f"<p><strong>{escape(headline(verdict))}.</strong> {escape(typeset(verdict.text))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(_rows(assessment))}</tbody></table>"
        f"<p>{' · '.join(_facts(assessment))}</p>"
        + (f"<ul>{notes}</ul>" if notes else "")
        + "</div>"
    )


def _rows(assessment: Assessment) -> Iterator[str]:
    for one in assessment.estimates:
        about, cell = measure_meaning(one.measure), ranged(one)
        texts = (cell.value.text, f"{cell.low.text} to {cell.high.text}", cell.corrected.text)
        yield (
            f'<tr><th scope="row" title="{escape(about.meaning)}" style="{_CELL}">'
            f"{escape(about.label)}</th>"
            + "".join(f'<td style="{_CELL}">{text}</td>' for text in texts)
            + "</tr>"
        )


def _facts(assessment: Assessment) -> Iterator[str]:
    yield f"{count(assessment.n).text} rows"
    observed, predicted = assessment.mean_names
    yield f"{observed} {share(assessment.prevalence).text}"
    yield f"{predicted} {share(assessment.mean_prediction).text}"
    yield f"Brier score {fixed(assessment.brier_score, 4).text}"
    if assessment.test is not None:
        yield escape(said_p_value(assessment.test))
