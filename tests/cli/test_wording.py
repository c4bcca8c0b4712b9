"""Sentences in words of columns and options, whatever columns and files are called."""

import pytest

pytest.importorskip("typer")
pytest.importorskip("duckdb")

# Names of columns and files that are also names of arguments.
NAMES = ("y_true", "y_prob", "level", "sample_weight", "method", "y_true_prob", "cv must be")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", ["assess", "sketch"])
def test_probabilities_under_any_name(run, write, command, name):
    path = write("rows.csv", f"{name},y\n0.5,1\n7,0\n0.2,1\n")
    out = ("--out", "x.sketch") if command == "sketch" else ()
    done = run(command, path, "--label", "y", "--prob", name, *out)
    assert done.code == 2
    assert f"calibrant: prob column '{name}' must lie in [0, 1]; got 7.0 in row 2 of" in done.err


@pytest.mark.parametrize("name", NAMES)
def test_outcomes_under_any_name(run, write, name):
    path = write("rows.csv", f"p,{name}\n0.5,1\n0.25,0\n0.1,2\n")
    done = run("assess", path, "--label", name, "--prob", "p")
    assert done.err == (
        f"calibrant: label column '{name}' must be 0 or 1 (or soft) for one column of "
        "probabilities; got 3 labels such as 2 in row 3: name the columns of all classes with "
        "--classes\n"
    )


@pytest.mark.parametrize("name", NAMES)
def test_weights_under_any_name(run, write, name):
    path = write("rows.csv", f"p,y,{name}\n0.5,1,0\n0.25,0,0\n")
    done = run("assess", path, "--label", "y", "--prob", "p", "--weight", name)
    assert done.err == (
        f"calibrant: weight column '{name}' must not be zero everywhere; got 2 zeros\n"
    )


@pytest.mark.parametrize("name", NAMES)
def test_features_under_any_name(run, write, name):
    rows = "".join(f"{i % 2},0.5,{'inf' if i == 3 else i}\n" for i in range(40))
    path = write("rows.csv", f"y,p,{name}\n{rows}")
    options = ("--label", "y", "--prob", "p", "--along", name, "--out", "x.svg")
    done = run("plot", path, *options)
    assert f"calibrant: along column '{name}' must be finite; got inf in row 4" in done.err


@pytest.mark.parametrize("name", ["y_true", "y_prob", "level"])
def test_files_under_any_name(run, write, name):
    path = write(f"{name}.csv", "p,y\n0.5,1\nhigh,0\n")
    done = run("assess", path.name, "--label", "y", "--prob", "p")
    assert done.err.startswith(f"calibrant: {name}.csv: prob column 'p' must hold numbers; got the")


@pytest.mark.parametrize(
    ("one", "two"),
    [("level", "y_prob"), ("a", "level"), ("method", "score"), ("{pos_label}", "{y_true} {0}")],
)
@pytest.mark.parametrize("command", ["assess", "sketch"])
def test_labels_under_any_name(run, write, command, one, two):
    path = write("rows.csv", f"p,y\n0.5,{one}\n0.25,{two}\n")
    out = ("--out", "x.sketch") if command == "sketch" else ()
    options = (path, "--label", "y", "--prob", "p", *out)
    if command == "assess":
        assert run(command, *options).err == (
            "calibrant: label column 'y' must be 0 or 1 (or soft, in [0, 1]); got the labels "
            f"{one!r} and {two!r}: name the positive one with --pos-label\n"
        )
    assert run(command, *options, "--pos-label", two).code == 0
    done = run(command, *options, "--pos-label", "cv must be")
    assert done.err == (
        "calibrant: --pos-label must be one of the labels in label column 'y' "
        f"({one!r}, {two!r}); got 'cv must be'\n"
    )


@pytest.mark.parametrize("positive", ["method", "score", "level", "y_prob"])
def test_a_positive_label_under_any_name_among_several(run, write, positive):
    path = write("rows.csv", f"p,y\n0.5,{positive}\n0.25,measure\n0.1,cv\n")
    done = run("assess", path, "--label", "y", "--prob", "p", "--pos-label", positive)
    present = ", ".join(map(repr, sorted([positive, "measure", "cv"])))
    assert done.err == (
        "calibrant: label column 'y' must have two labels where --pos-label is given; got 3 "
        f"({present}): name the columns of all classes with --classes\n"
    )


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("report rows.csv --by g --out x.html", "--by takes one --prob; got 'level', 'method'"),
        ("plot rows.csv --by g --out x.svg", "--by takes one --prob; got 'level', 'method'"),
        (
            "plot rows.csv --kind assessment --out x.svg",
            "--kind assessment takes one --prob; got 'level', 'method'",
        ),
    ],
)
def test_models_under_any_name(run, write, line, end):
    write("rows.csv", "level,method,y,g\n0.5,0.25,1,a\n0.1,0.2,0,b\n")
    done = run(*line.split(), "--label", "y", "--prob", "level", "--prob", "method")
    assert done.code == 2
    assert done.err == f"calibrant: {end}\n"
