"""Columns by name, classes by name, words as outcomes, and rows that pair by index."""

import numpy as np
import pytest

import calibrant as cb
from tests.tolerances import nearly

RNG = np.random.default_rng(3)
N = 300
P = RNG.random(N)
Y = RNG.random(N) < P
SITE, YEAR = RNG.choice(["north", "south"], N), RNG.choice([2020, 2021, 2022], N)
WEIGHT = RNG.integers(1, 4, N)
DAY = np.arange(N) // 5
COLUMNS = {"rain": np.where(Y, "Yes", "No"), "p": P, "q": P**2, "w": WEIGHT}
COLUMNS |= {"site": SITE, "year": YEAR, "day": DAY}
FEW = {"n_resamples": 99}
CLASSES = RNG.dirichlet([0.5, 0.5, 0.5], N)
ANIMAL = np.array(["cat", "cow", "dog"])[[RNG.choice(3, p=row) for row in CLASSES]]


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def make(request):
    """Return a function that makes a dataframe of columns."""
    library = pytest.importorskip(request.param)
    if request.param == "pyarrow":
        return library.table
    return library.DataFrame


@pytest.fixture
def frame(make):
    return make(COLUMNS)


@pytest.fixture(scope="module")
def pandas():
    return pytest.importorskip("pandas")


def same(one, other):
    """Tell whether two results have the same numbers."""
    return one.to_dict() == other.to_dict()


def test_assess_takes_names_of_columns(frame):
    found = cb.assess(data=frame, y_true="rain", y_prob="p", sample_weight="w", **FEW)
    assert same(found, cb.assess(Y, P, sample_weight=WEIGHT, **FEW))


def test_estimate_takes_names_of_columns(frame):
    found = cb.estimate("ece", "rain", "p", data=frame, clusters="day", **FEW)
    assert same(found, cb.estimate("ece", Y, P, clusters=DAY, **FEW))


def test_names_and_arrays_may_be_mixed(frame):
    found = cb.estimate("ece", Y, "p", data=frame, sample_weight=WEIGHT, **FEW)
    assert same(found, cb.estimate("ece", Y, P, sample_weight=WEIGHT, **FEW))


def test_compare_takes_names_of_columns_or_a_frame(frame, make):
    expected = cb.compare(Y, {"p": P, "q": P**2}, clusters=DAY, **FEW)
    assert same(cb.compare("rain", ["p", "q"], data=frame, clusters="day", **FEW), expected)
    assert same(cb.compare(Y, make({"p": P, "q": P**2}), clusters=DAY, **FEW), expected)
    named = cb.compare("rain", {"p": "p", "q": P**2}, data=frame, clusters="day", **FEW)
    assert same(named, expected)


def test_models_of_several_classes_by_lists_of_names(make):
    flat = 0.5 * CLASSES + 0.5 / 3
    names = ["cat", "cow", "dog"]
    columns = {f"a_{name}": CLASSES[:, i] for i, name in enumerate(names)}
    columns |= {f"b_{name}": flat[:, i] for i, name in enumerate(names)}
    models = {"a": [f"a_{name}" for name in names], "b": [f"b_{name}" for name in names]}
    found = cb.compare("animal", models, data=make(columns | {"animal": ANIMAL}), **FEW)
    assert same(found, cb.compare(ANIMAL, {"a": CLASSES, "b": flat}, labels=names, **FEW))


def test_groups_of_several_columns(frame, make):
    found = cb.by_group("rain", "p", ["site", "year"], data=frame, **FEW)
    assert found.by == ("site", "year")
    expected = [(site, year) for site in ("north", "south") for year in (2020, 2021, 2022)]
    assert [row.group for row in found] == expected
    rows = (SITE == "south") & (YEAR == 2021)
    assert found["south", 2021].n == rows.sum()
    alone = cb.estimate("smooth_ece", Y[rows], P[rows], **FEW)
    assert found["south", 2021].smooth_ece.value == nearly(alone.value)
    assert same(found, cb.by_group(Y, P, make({"site": SITE, "year": YEAR}), **FEW))
    assert repr(found).splitlines()[0].split()[:3] == ["site", "year", "n"]
    assert list(found._columns())[:2] == ["site", "year"]


def test_groups_of_one_column_of_a_frame(frame, make):
    expected = cb.by_group(Y, P, SITE, **FEW)
    for found in (
        cb.by_group("rain", "p", "site", data=frame, **FEW),
        cb.by_group(Y, P, make({"site": SITE}), **FEW),
    ):
        assert [row.to_dict() for row in found] == [row.to_dict() for row in expected]


def test_clusters_of_groups_by_name(frame):
    found = cb.by_group("rain", "p", "site", data=frame, clusters="day", **FEW)
    assert same(found, cb.by_group(Y, P, SITE, clusters=DAY, **FEW))


def test_a_missing_label_of_one_column_of_groups(make):
    site = [None, *SITE[1:].tolist()]
    found = cb.by_group(Y, P, make({"site": site, "year": YEAR}), **FEW)
    assert found.rows[-1].group == (None, YEAR[0])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda frame: cb.assess("rain", "p"), "to name a column give the dataframe as data"),
        (
            lambda frame: cb.assess("rian", "p", data=frame),
            r"y_true must name columns of data \('rain', 'p', .*\); got 'rian'",
        ),
        (
            lambda frame: cb.assess("rain", ["p", "r"], data=frame),
            "y_prob must name columns of data .* got 'r'",
        ),
        (lambda frame: cb.assess("rain", "p", data=[1]), "data must be a dataframe in memory"),
        (lambda frame: cb.compare("rain", "p", data=frame), "at least two models by name"),
        (
            lambda frame: cb.assess("rain", "rain", data=frame),
            "y_prob must not be the column of y_true; got 'rain'",
        ),
        (
            lambda frame: cb.compare("rain", {"a": "p", "b": "rain"}, data=frame),
            "y_prob must not be the column of y_true",
        ),
        (
            lambda frame: cb.estimate("ece", "rain", "p", data=frame, clusters="rain"),
            "clusters must not be the column of y_true",
        ),
        (
            lambda frame: cb.clinical_summary("rain", "p", data=frame, sample_weight="rain"),
            "sample_weight must not be the column of y_true",
        ),
        (
            lambda frame: cb.by_group("rain", "p", "rain", data=frame),
            "groups must not be the column of y_true; got 'rain'",
        ),
        (
            lambda frame: cb.by_group("rain", "p", ["site", "rain"], data=frame),
            "groups must not be the column of y_true",
        ),
        (lambda frame: cb.assess("rain", "p", data=frame, align="no"), "align must be True or"),
    ],
)
def test_names_refused(frame, call, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        call(frame)


def test_a_lazy_frame_is_refused_with_what_to_do():
    polars = pytest.importorskip("polars")
    with pytest.raises(cb.CalibrantError, match="got LazyFrame: collect it first, or make a ske"):
        cb.assess("rain", "p", data=polars.LazyFrame(COLUMNS))


# Classes.


@pytest.mark.parametrize("names", [("cat", "cow", "dog"), ("p_cat", "p_cow", "p_dog")])
def test_columns_named_like_the_classes_are_matched_in_any_order(make, names):
    expected = cb.assess(ANIMAL, CLASSES, labels=["cat", "cow", "dog"], **FEW)
    order = [2, 0, 1]
    frame = make({names[i]: CLASSES[:, i] for i in order})
    found = cb.assess(ANIMAL, frame, **FEW)
    assert [row.label for row in found.classes] == ["dog", "cat", "cow"]
    assert found["smooth_ece"].value == nearly(expected["smooth_ece"].value)
    for row in found.classes:
        (other,) = (one for one in expected.classes if one.label == row.label)
        assert row.smooth_ece == nearly(other.smooth_ece)
    one = cb.smooth_ece(ANIMAL, frame, multiclass="cow")
    assert one == nearly(cb.smooth_ece(ANIMAL == "cow", CLASSES[:, 1]))


def test_given_labels_put_the_columns_into_their_order(make):
    frame = make({"dog": CLASSES[:, 2], "cat": CLASSES[:, 0], "cow": CLASSES[:, 1]})
    found = cb.assess(ANIMAL, frame, labels=["cat", "cow", "dog"], **FEW)
    assert same(found, cb.assess(ANIMAL, CLASSES, labels=["cat", "cow", "dog"], **FEW))


def test_numbers_in_the_names_of_columns_are_class_numbers(make):
    numbers = np.searchsorted(["cat", "cow", "dog"], ANIMAL)
    frame = make({f"class {i}": CLASSES[:, i] for i in (1, 2, 0)})
    assert cb.ece(numbers, frame) == nearly(cb.ece(numbers, CLASSES))
    # A class that does not occur has its column, too.
    kept = numbers != 2
    few = make({f"class {i}": CLASSES[kept, i] for i in (1, 2, 0)})
    expected = cb.ece(numbers[kept], CLASSES[kept])
    assert cb.ece(numbers[kept], few) == nearly(expected)
    assert {row.label for row in cb.assess(numbers[kept], few, **FEW).classes} == {0, 1, 2}


def test_other_names_leave_the_columns_in_their_order(make):
    numbers = np.searchsorted(["cat", "cow", "dog"], ANIMAL)
    frame = make({name: CLASSES[:, i] for i, name in enumerate("xyz")})
    assert cb.ece(numbers, frame) == nearly(cb.ece(numbers, CLASSES))
    with pytest.raises(cb.CalibrantError, match="name the columns in order with labels"):
        cb.ece(ANIMAL, frame)


@pytest.mark.parametrize("order", [("no", "yes"), ("yes", "no")])
def test_of_two_named_columns_the_positive_one_is_known(make, order):
    columns = {"no": 1 - P, "yes": P}
    frame = make({name: columns[name] for name in order})
    words = np.where(Y, "yes", "no")
    assert cb.assess(words, frame, **FEW).bias.value == nearly(np.mean(Y - P))
    numbered = make({str(int(name == "yes")): columns[name] for name in order})
    assert cb.assess(Y.astype(int), numbered, **FEW).bias.value == nearly(np.mean(Y - P))


def test_calibrators_refuse_named_columns_in_another_order(make):
    pytest.importorskip("sklearn")
    from calibrant.recalibration import PlattCalibrator, recalibrate

    frame = make({"yes": P, "no": 1 - P})
    words = np.where(Y, "yes", "no")
    for fit in (PlattCalibrator().fit, lambda p, y: recalibrate(y, p, n_resamples=99)):
        with pytest.raises(cb.CalibrantError, match="in the order of the classes, "):
            fit(frame, words)
    shuffled = make({"dog": CLASSES[:, 2], "cat": CLASSES[:, 0], "cow": CLASSES[:, 1]})
    with pytest.raises(cb.CalibrantError, match="in the order of the classes, "):
        PlattCalibrator().fit(shuffled, ANIMAL, labels=["cat", "cow", "dog"])


def test_panels_of_named_classes(make):
    frame = make({"dog": CLASSES[:, 2], "cat": CLASSES[:, 0], "cow": CLASSES[:, 1]})
    panels = cb.plot.small_multiples(ANIMAL, frame, multiclass="classwise", **FEW)
    assert [ax.get_title() for ax in panels] == ["dog", "cat", "cow"]
    frame = make({"yes": P, "no": 1 - P})
    by = cb.plot.small_multiples(np.where(Y, "yes", "no"), frame, by=SITE, **FEW)
    assert [ax.get_title() for ax in by] == ["north", "south"]


# Words.


@pytest.mark.parametrize(
    ("negative", "positive"),
    [("no", "yes"), ("NO", "Yes"), ("n", "y"), ("N", "Y"), ("false", "true"), ("False", "TRUE")],
)
def test_words_that_anybody_would_order(negative, positive):
    assert cb.ece(np.where(Y, positive, negative), P) == nearly(cb.ece(Y, P))
    assert cb.ece([negative] * 2, [0.25, 0.25]) == 0.25
    assert cb.ece([positive] * 2, [0.25, 0.25]) == 0.75


def test_categories_are_words(pandas):
    words = pandas.Series(np.where(Y, "yes", "no"), dtype="category")
    assert cb.ece(words, P) == nearly(cb.ece(Y, P))


def test_the_positive_label_goes_before_the_meaning_of_words():
    words = np.where(Y, "no", "yes")
    assert cb.ece(words, P, pos_label="no") == nearly(cb.ece(Y, P))


# Indexes.


def test_other_indexes_are_refused(pandas):
    y, p = pandas.Series(Y), pandas.Series(P)
    shuffled = p.sample(frac=1, random_state=1)
    for measure in (cb.ece, cb.smooth_ece, cb.brier_score, cb.cumulative_test):
        with pytest.raises(cb.CalibrantError, match=r"same index as y_true; got another.*to_numpy"):
            measure(y, shuffled)
    hint = "y_prob must have the same index as y_true; got another one: align=False pairs rows by"
    with pytest.raises(cb.CalibrantError, match=hint):
        cb.assess(y, shuffled)
    with pytest.raises(cb.CalibrantError, match="sample_weight must have the same index as y_true"):
        cb.estimate("ece", y, P, sample_weight=shuffled)
    with pytest.raises(cb.CalibrantError, match="groups must have the same index as y_prob"):
        cb.by_group(Y, p, pandas.Series(SITE, index=shuffled.index))
    with pytest.raises(cb.CalibrantError, match="y_prob must have the same index as y_true"):
        cb.compare(y, {"a": p, "b": shuffled})
    with pytest.raises(cb.CalibrantError, match="feature must have the same index as y_true"):
        cb.bias_along(y, p, shuffled)
    with pytest.raises(cb.CalibrantError, match="group must have the same index as y_true"):
        cb.subpopulation_test(y, p, group=shuffled > 0.5)


def test_rows_pair_by_position_if_asked(pandas):
    y, p = pandas.Series(Y), pandas.Series(P, index=range(N, 0, -1))
    found = cb.assess(y, p, align=False, **FEW)
    assert same(found, cb.assess(Y, P, **FEW))
    compared = cb.compare(y, {"p": p, "q": p**2}, align=False, **FEW)
    assert same(compared, cb.compare(Y, {"p": P, "q": P**2}, **FEW))
    classes = pandas.DataFrame(CLASSES, columns=["cat", "cow", "dog"], index=p.index)
    found = cb.assess(pandas.Series(ANIMAL), classes, align=False, **FEW)
    assert [row.label for row in found.classes] == ["cat", "cow", "dog"]


def test_other_numbers_of_rows_have_their_own_sentence(pandas):
    with pytest.raises(cb.CalibrantError, match="as many rows as y_true; got 299 and 300"):
        cb.assess(pandas.Series(Y), pandas.Series(P[1:]))
