"""What an error is made of, and how Python and other speakers put it into words."""

import copy
import pickle
import threading

import numpy as np
import pytest

import calibrant as cb

Y, P = [0, 1, 0, 1], [0.1, 0.7, 0.2, 0.9]
P3 = np.array([[0.5, 0.3, 0.2]] * 4)


def refused(function, *given, **options):
    with pytest.raises(cb.CalibrantError) as caught:
        function(*given, **options)
    return caught.value


# What the errors of calibrant are made of.


@pytest.mark.parametrize(
    ("call", "argument", "rule", "value", "position", "hint"),
    [
        (
            lambda: cb.ece(Y, [0.1, 70, 20, 90]),
            *("y_prob", "must lie in [0, 1]", 70, 1, "percentages? divide by 100"),
        ),
        (
            lambda: cb.ece([0, 1, 2, 1], np.where(P3 > 0.4, -0.5, P3)),
            *("y_prob", "must lie in [0, 1]", -0.5, (0, 0)),
            (
                "logits or scores? convert them to probabilities first, for example by "
                "scipy.special.softmax over columns"
            ),
        ),
        (
            lambda: cb.ece(["dry", "wet", "dry", "wet"], P),
            *("y_true", "must be 0 or 1 (or soft, in [0, 1])", "wet", None),
            "name the positive one with pos_label",
        ),
        (
            lambda: cb.ece(["no", "yes", "no", "yes"], P, pos_label="ja"),
            *("pos_label", "must be one of the labels in y_true ('no', 'yes')", "ja", None, None),
        ),
        (
            lambda: cb.ece(Y, P, sample_weight=[1, 1, -1, 1]),
            *("sample_weight", "must not be negative", -1, 2, None),
        ),
        (
            lambda: cb.ece(Y, P, n_bins=0),
            *("n_bins", "must be a whole number of at least 1", 0, None, None),
        ),
        (
            lambda: cb.ece(Y, P, norm="l3"),
            *("norm", "must be one of 'l1', 'l2', 'max'", "l3", None, None),
        ),
        (
            lambda: cb.estimate("ece", Y, P, level=95),
            *("level", "must lie between 0 and 1", 95, None, "0.95 is 95%"),
        ),
        (lambda: cb.ece(Y, None), "y_prob", "is missing", None, None, "give (y_true, y_prob)"),
        (
            lambda: cb.compare(Y, {"a": P, "b": [0.1, 7, 0.2, 0.9]}),
            *("y_prob", "must lie in [0, 1]", 7, 1, "only probabilities can be calibrated"),
        ),
        (
            lambda: cb.ece(cb.Sketch(60).update(Y, P), n_bins=7),
            *("n_bins", "must divide the 60 cells of the sketch", 7, None),
            "use another number, or give the rows",
        ),
        (
            lambda: cb.Sketch.from_bytes(b"hello"),
            None,
            "not a sketch: its first bytes are b'hello', not b'calibrnt'",
            *(None, None, None),
        ),
    ],
)
def test_the_parts_of_an_error(call, argument, rule, value, position, hint):
    error = refused(call)
    assert (error.argument, error.rule, error.hint) == (argument, rule, hint)
    assert (error.value, error.position) == (value, position)
    # Together they are the sentence.
    sentence = str(error)
    assert all(str(part) in sentence for part in (argument or "", rule, hint or ""))
    assert "\n" not in sentence


def test_the_parts_of_an_error_about_a_column():
    pytest.importorskip("narwhals")
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"y_true": [0, 1, 1], "{prob}": [0.5, 0.25, 7]})
    error = refused(cb.sketch, table, label="y_true", prob="{prob}")
    assert (error.argument, error.rule, error.value, error.position) == (
        "prob",
        "must lie in [0, 1]",
        7,
        2,
    )
    assert str(error) == (
        "prob column '{prob}' must lie in [0, 1]; got 7.0 at index 2: percentages? divide by 100, "
        "or leave such rows out with on_invalid='drop'"
    )


def test_a_model_of_several_is_named():
    error = refused(cb.compare, Y, {"a": P, "b{c}": [0.1, 7, 0.2, 0.9]})
    assert str(error).startswith("model 'b{c}': y_prob must lie in [0, 1]; got 7.0 at index 1")
    # What all models have in common is the fault of none.
    assert str(refused(cb.compare, [0, 1, 2, 3], {"a": P, "b": P})).startswith("y_true must be")


# How they are put into words.


def test_a_plain_sentence():
    error = cb.CalibrantError("no {braces} are read\n  here")
    assert str(error) == "no {braces} are read here"
    assert (error.argument, error.value, error.position, error.hint) == (None,) * 4
    assert str(cb.CalibrantError()) == ""


def test_values_are_never_read_as_text_with_names():
    error = cb.CalibrantError(
        "must be one of {known}",
        argument="level",
        value="{level} {0} {hint!r:>10}",
        hint="{known}, or leave out {level}",
        known="'{value}', '{}'",
    )
    assert str(error) == (
        "level must be one of '{value}', '{}'; got '{level} {0} {hint!r:>10}': '{value}', '{}', or "
        "leave out level"
    )
    assert "leave out --level" in error.sentence({"level": "--level"})


def test_a_speaker_has_names_of_its_own():
    error = cb.CalibrantError(
        "must lie in [0, 1]", argument="y_prob", value=1.7, position=1, count=3, hint="see {labels}"
    )
    assert str(error) == "y_prob must lie in [0, 1]; got 1.7 at index 1 (3 such values): see labels"

    def in_row(position):
        return f"in row {position + 1}"

    # Who does not have an argument is not advised to use it.
    said = error.sentence({"y_prob": "prob column 'y_true'"}, in_row)
    assert said == "prob column 'y_true' must lie in [0, 1]; got 1.7 in row 2 (3 such values)"
    said = error.sentence({"labels": "--classes"}, in_row)
    assert said == "y_prob must lie in [0, 1]; got 1.7 in row 2 (3 such values): see --classes"
    assert error.sentence({}, in_row, "look").endswith("(3 such values): look")


def test_places():
    places = {
        "at row 1, column 2": {"position": (1, 2)},
        "at index 3 of rows.csv": {"position": 3, "within": "rows.csv"},
        "in rows.csv (2 such values)": {"within": "rows.csv", "count": 2},
    }
    for words, given in places.items():
        error = cb.CalibrantError("must be 0", argument="a", value=1, **given)
        assert str(error) == f"a must be 0; got 1 {words}"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"),
        (np.float32(0.5), "0.5"),
        (np.array(3), "3"),
        (np.ones((2, 3)), "ndarray of shape (2, 3)"),
        (dict, "dict"),
        ("x" * 200, "'" + "x" * 59 + "..."),
        (10**5000, "int too long to show"),
    ],
    ids=["none", "numpy", "no axes", "array", "class", "text", "digits"],
)
def test_values_as_they_are_shown(value, shown):
    assert str(cb.CalibrantError("must be", argument="a", value=value)) == f"a must be; got {shown}"


# How they travel.

ERRORS = [
    cb.CalibrantError("a plain {sentence}"),
    cb.CalibrantError("must be", argument="a", value=None, position=(0, 1), hint="{b}", count=4),
    cb.CalibrantError("is {kind}", argument="a", found="{n} of {value}", value=2, n=1, kind="odd"),
    cb.SketchError("the sketch is empty", hint="update it", source="a.sketch"),
    cb.MissingDependencyError("a report needs plotly", hint="pip install plotly"),
]


@pytest.mark.parametrize("error", ERRORS, ids=str)
@pytest.mark.parametrize(
    "travel",
    [copy.copy, copy.deepcopy]
    + [lambda e, p=p: pickle.loads(pickle.dumps(e, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)],
)
def test_errors_are_copied_and_pickled_whole(error, travel):
    again = travel(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    names = {"a": "--a", "b": "--b"}
    assert again.sentence(names) == error.sentence(names)


def test_a_value_that_cannot_be_pickled_is_kept_as_text():
    error = cb.CalibrantError("must be a number", argument="a", value=threading.Lock())
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.value.startswith("<unlocked _thread.lock")
