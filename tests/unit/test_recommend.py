"""Which estimator is recommended for which data."""

import csv
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

import calibrant as cb
from calibrant.measures.recommendation import ESTIMATORS
from tests.tolerances import assert_nearly_equal


def some_classes(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_classes, n), rng.dirichlet(np.ones(n_classes), n)


def test_the_recommended_estimator_has_the_smallest_error():
    found = cb.recommend(*some_classes(210, 5))
    assert found.best == found.alternatives[0]
    errors = [one.expected_error for one in found.alternatives]
    assert errors == sorted(errors)
    assert len(errors) == len(ESTIMATORS)
    assert (found.n, found.n_classes) == (210, 5)
    near = found.similar
    assert (near.setting, near.n, near.n_classes) == ("confidence", 224, 5)
    assert near.sharpness_from <= found.sharpness < near.sharpness_to
    table = files("calibrant.measures").joinpath("data/estimators.csv").read_text()
    group = ("confidence", "5", f"{near.sharpness_from}", "224")
    expected = [
        float(line["expected"])
        for line in csv.DictReader(table.splitlines())
        if (line["setting"], line["n_classes"], line["sharpness_from"], line["n"]) == group
    ]
    assert min(expected) == found.best.expected_error


@pytest.mark.parametrize(
    ("n_classes", "multiclass", "setting", "known_classes"),
    [
        (3, None, "confidence", 2),
        (4, "confidence", "confidence", 5),
        (6, "classwise", "classwise", 7),
        (9, 2, "classwise", 7),
        (2, "confidence", "confidence", 2),
        (2, None, "classwise", 2),
    ],
)
def test_what_is_taken_to_be_similar(n_classes, multiclass, setting, known_classes):
    y, table = some_classes(60, n_classes)
    found = cb.recommend(y, table, multiclass=multiclass)
    assert (found.similar.setting, found.similar.n_classes) == (setting, known_classes)
    assert_every_call_works(found, y, table)


def assert_every_call_works(found, y, p):
    for one in found.alternatives:
        assert 0 <= eval(one.call, {"calibrant": cb, "y_true": y, "y_prob": p}) <= 1


def test_calls_repeat_what_was_said_of_labels():
    y, table = some_classes(60, 3)
    words = np.array(["a", "b", "c"])[y]
    assert_every_call_works(cb.recommend(words, table, labels=["a", "b", "c"]), words, table)
    found = cb.recommend(words == "b", table[:, 1], pos_label=True)
    assert found.best.call.endswith("pos_label=True)")


def test_estimators_that_refuse_the_scores_are_left_out():
    # Ten rows of one score and one apart: a bin of one row, which cannot be debiased.
    y, p = np.arange(11) % 2, np.append(np.full(10, 0.3), 0.8)
    found = cb.recommend(y, p)
    assert not [one for one in found.alternatives if ("debias", True) in one.options]
    assert_every_call_works(found, y, p)


def test_binary_columns_are_class_wise_with_two_classes():
    y, table = some_classes(80, 2)
    assert_nearly_equal(cb.recommend(y, table[:, 1]), cb.recommend(y, table))


@pytest.mark.parametrize(("n", "size"), [(5, 30), (36, 30), (37, 45), (500, 500), (20_000, 500)])
def test_sizes_are_matched_on_a_logarithmic_scale(n, size):
    y, table = some_classes(n, 2)
    found = cb.recommend(y, table[:, 1])
    assert found.similar.n == size
    assert (f"{n} rows are beyond the study: 30 to 500." in repr(found)) == (
        n not in range(30, 501)
    )


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_sharpness_at_the_ends(p):
    y = np.arange(40) % 2
    found = cb.recommend(y, np.full(40, p))
    assert found.sharpness == (2 * p - 1) ** 2
    assert found.similar.distributions > 0


def test_a_recommendation_can_be_read_and_kept():
    found = cb.recommend(*some_classes(100, 5))
    text = repr(found)
    assert text.startswith(f"Recommendation: {found.best.call}\n")
    assert f"medians over {found.similar.distributions} simulated score distributions" in text
    assert found.to_dict()["best"]["function"] == found.best.function
    assert found == cb.recommend(*some_classes(100, 5))
    hopeless = replace(found, best=replace(found.best, expected_error=1.2))
    assert "even 0 would be as good an estimate" in repr(hopeless)


def test_more_classes_than_were_studied():
    text = repr(cb.recommend(*some_classes(60, 9)))
    assert "9 classes are beyond the study: 2 to 7." in text
    assert "rows are beyond" not in text


def test_what_was_not_studied_is_refused():
    y, table = some_classes(50, 3)
    with pytest.raises(cb.CalibrantError, match="others were not studied; got 'top_label'"):
        cb.recommend(y, table, multiclass="top_label")
    sketch = cb.Sketch().update(y == 1, table[:, 1])
    with pytest.raises(cb.CalibrantError, match="a sketch does not keep"):
        cb.recommend(sketch, None)
