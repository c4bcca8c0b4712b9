"""The registry: every measure declared once, and a new file enough for all that names measures."""

import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
import calibrant.measures
from calibrant.data.classes import one_problem
from calibrant.measures.registry import assessed, comparable, measures, with_interval
from tests.tolerances import nearly

RNG = np.random.default_rng(2)
P = RNG.random(400)
Y = (RNG.random(400) < P**1.5).astype(int)
EVERY = pytest.mark.parametrize("info", measures().values(), ids=list(measures()))
NAMED = [info for info in measures().values() if info.make is not None]

NEW = '''
from calibrant.measures.binned import read_binned_error
from calibrant.measures.registry import MeasureInfo
from calibrant.data.classes import one_problem


def halves_error(y_true, y_prob=None, *, closed="left", sample_weight=None, multiclass=None):
    """Return the ECE of two bins."""
    return make(closed=closed)(one_problem(y_true, y_prob, sample_weight, multiclass, None, None))


def make(*, closed="left"):
    return read_binned_error(n_bins=2, closed=closed)


MEASURES = (
    MeasureInfo(
        halves_error, "HE", "Error of halves (HE)", "Two bins.", "A sum.", make, in_assess=True
    ),
)
'''


@pytest.fixture
def new(tmp_path, monkeypatch):
    """Return a measure of which there is nothing but a file in the package."""
    (tmp_path / "halves.py").write_text(NEW)
    folders = [*calibrant.measures.__path__, str(tmp_path)]
    monkeypatch.setattr(calibrant.measures, "__path__", folders)
    measures.cache_clear()
    yield measures()["halves_error"]
    measures.cache_clear()
    for module, name in ((cb, "halves_error"), (calibrant.measures, "halves")):
        vars(module).pop(name, None)
    del sys.modules["calibrant.measures.halves"]


def test_all_measures_are_there():
    assert set(measures()) >= {
        "ace", "brier_score", "density_ece", "ecce_mad", "ecce_r", "ece", "interval_error",
        "laplace_kernel_error", "log_score", "logit_smoothed_ece", "mce", "smooth_ece",
        "soft_label_ece", "weak_calibration_error",
    }  # fmt: skip


@EVERY
def test_a_declaration_is_complete(info):
    assert getattr(cb, info.name) is info.function
    for text in (info.label, info.title, info.meaning, info.definition):
        assert text == text.strip() != ""
        assert "\n" not in text
    assert info.meaning.endswith(".")
    assert info.definition.endswith(".")
    assert not info.in_assess or info.has_interval
    assert (info.make is None) == (info.special_case_of in measures())


@pytest.mark.parametrize("info", NAMED, ids=[info.name for info in NAMED])
def test_a_measure_as_a_value_is_the_function(info):
    problem = one_problem(Y, P, None, None, None, None)
    measure = info.read({})
    assert measure(problem) == nearly(info.function(Y, P))
    assert measure.error_bound(problem, measure(problem)) == 0
    if info.sketch is not None:
        sketch = cb.Sketch(scale=info.sketch).update(Y, P)
        bound = cb.error_bound(sketch, info.name)
        assert info.function(sketch) == pytest.approx(info.function(Y, P), abs=bound + 1e-12)
    else:
        with pytest.raises(cb.SketchError):
            info.function(cb.Sketch().update(Y, P), None)


def test_what_is_measured_by_name():
    names = [info.name for info in with_interval()]
    assert names[:5] == ["smooth_ece", "ece", "ecce_r", "ecce_mad", "logit_smoothed_ece"]
    assert {info.name for info in comparable()} == {*names, "skce", "brier_score", "log_score"}
    assert [one.measure for one in cb.assess(Y, P, n_resamples=39).estimates] == [
        info.name for info in assessed()
    ]


def test_only_the_measure_asked_for_runs():
    files = set()
    cb.estimate("ece", Y, P, n_resamples=39)
    sys.setprofile(lambda frame, event, arg: files.add(Path(frame.f_code.co_filename)))
    try:
        cb.estimate("ece", Y, P, n_resamples=39)
    finally:
        sys.setprofile(None)
    run = {file.name for file in files if file.parent.name == "measures"}
    assert run == {"binned.py", "norms.py", "registry.py"}


def test_measures_without_an_interval_say_so():
    problem = one_problem(Y, P, None, None, None, None)
    for info in NAMED:
        if not info.has_interval:
            with pytest.raises(cb.CalibrantError, match="there is no interval for"):
                info.read({}).image(problem, 0.1)


def test_no_bound_is_made_up_for_a_sketch():
    problem = one_problem(cb.Sketch().update(Y, P), None, None, None, None, None)
    with pytest.raises(cb.SketchError, match="no bound is known"):
        measures()["log_score"].read({}).error_bound(problem, 0.1)


def test_special_cases_are_not_measured_by_name():
    with pytest.raises(cb.CalibrantError, match="mce is a special case of ece"):
        measures()["mce"].read({})


class TestOneFileIsEnough:
    def test_by_itself_and_with_its_interval(self, new):
        assert cb.halves_error is new.function
        assert "halves_error" in dir(cb)
        expected = cb.estimate("ece", Y, P, n_bins=2)
        for measure in ("halves_error", cb.halves_error):
            found = cb.estimate(measure, Y, P)
            assert (found.low, found.high) == nearly((expected.low, expected.high))
        with pytest.raises(cb.CalibrantError, match="no option 'n_bins'; there are: closed"):
            cb.estimate("halves_error", Y, P, n_bins=3)

    def test_in_comparisons(self, new):
        found = cb.compare(Y, {"p": P, "p squared": P**2}, measure="halves_error")
        assert found["p"].estimate.value == nearly(new.function(Y, P))

    def test_in_assessments(self, new):
        assessment = cb.assess(Y, P, n_resamples=39)
        assert assessment["halves_error"].value == nearly(cb.ece(Y, P, n_bins=2))
        # It says that it needs rows.
        assessment = cb.assess(cb.Sketch().update(Y, P), n_resamples=39)
        assert "No halves_error: it needs rows." in assessment.notes

    def test_on_the_command_line(self, new):
        pytest.importorskip("typer")
        from calibrant.cli.measure_commands import numbers_of, read_thresholds

        (threshold,) = read_thresholds(["halves_error.high > 0.5"], 0.01, in_groups=False)
        assert not threshold.holds(numbers_of(cb.assess(Y, P, n_resamples=39)))

    def test_in_pictures_and_reports(self, new):
        pytest.importorskip("jinja2")
        pytest.importorskip("plotly")
        from matplotlib.text import Text

        assessment = cb.assess(Y, P, n_resamples=39)
        assert "Error of halves (HE)" in assessment.to_html()
        ax = cb.plot.reliability(Y, P, note=assessment["halves_error"])
        notes = ax.findobj(Text)
        assert any(note.get_text().startswith("HE 0.") for note in notes)

    def test_as_a_scorer(self, new):
        pytest.importorskip("sklearn")
        from calibrant.integrations.sklearn import scorers

        assert scorers()["neg_halves_error"].measure is new.function
