"""sketch and merge: files of sketches, by group and class, through pipes."""

import json

import pytest

import calibrant as cb
from tests.cli.conftest import table

pytest.importorskip("typer")
pytest.importorskip("duckdb")

NAMED = ("--label", "y", "--prob", "p")


@pytest.fixture
def halves(write):
    """Return the paths of the halves of a table, and a sketch of the whole."""
    header, *lines = table().splitlines(keepends=True)
    paths = [write(f"{i}.csv", header + "".join(lines[i::2])) for i in (0, 1)]
    y, p = zip(*(map(float, line.split(",")[:2]) for line in lines), strict=True)
    return paths, cb.Sketch().update(list(map(int, y)), list(p))


def test_a_sketch_of_several_files(run, halves, tmp_path):
    paths, expected = halves
    done = run("sketch", *paths, *NAMED, "--out", "s.sketch")
    assert (done.code, done.out) == (0, "")
    assert done.err == "calibrant: wrote s.sketch: 400 rows\n"
    assert cb.Sketch.load(tmp_path / "s.sketch").allclose(expected)


def test_merged_sketches_are_those_of_all_rows(run, halves, tmp_path):
    paths, expected = halves
    for i, path in enumerate(paths):
        assert run("sketch", path, *NAMED, "--out", f"{i}.sketch").code == 0
    done = run("merge", "*.sketch", "--out", "all.sketch", "--json")
    assert json.loads(done.out) == {
        "sketches": [{"path": "all.sketch", "key": None, "n": 400, "weight": 400.0}]
    }
    assert cb.Sketch.load(tmp_path / "all.sketch").allclose(expected)


def test_groups_have_files_of_their_own(run, write, tmp_path):
    path = write("g.csv", "p,y,g\n0.5,1,a/b\n0.25,0,..\n0.75,1,\n0.5,1,Süd\n")
    done = run("sketch", path, *NAMED, "--by", "g", "--cells", "100", "--out", "in {}.sketch")
    assert done.code == 0
    names = sorted(path.name for path in tmp_path.glob("*.sketch"))
    assert names == ["in ...sketch", "in Süd.sketch", "in a%2Fb.sketch", "in null.sketch"]
    assert cb.Sketch.load(tmp_path / "in null.sketch").n == 1
    assert cb.Sketch.load(tmp_path / "in null.sketch").n_cells == 100


def test_groups_that_would_share_a_file(run, write, tmp_path):
    path = write("g.jsonl", '{"p":0.5,"y":1,"g":"null"}\n{"p":0.25,"y":0,"g":null}\n')
    done = run("sketch", path, *NAMED, "--by", "g", "--out", "{}.sketch")
    assert done.code == 2
    assert "two groups would be written to one file" in done.err
    assert not list(tmp_path.glob("*.sketch"))


def test_one_sketch_per_class(run, write, tmp_path):
    path = write("c.csv", "animal,cat,dog\ncat,0.7,0.3\ndog,0.2,0.8\n")
    done = run(
        "sketch",
        path,
        "--classes",
        "cat",
        "--classes",
        "dog",
        "--label",
        "animal",
        "--out",
        "{}.sketch",
    )
    assert done.code == 0
    assert cb.Sketch.load(tmp_path / "dog.sketch") == cb.Sketch(2520).update([0, 1], [0.3, 0.8])


def test_rows_that_make_no_sense_can_be_left_out(run, write):
    path = write("holes.csv", "p,y\n0.5,1\n,0\n")
    done = run("sketch", path, *NAMED, "--on-invalid", "drop", "--out", "s.sketch")
    assert done.code == 0
    assert "1 row of 2 left out" in done.err


@pytest.mark.parametrize(
    ("labels", "positive"),
    [("ja nein", "ja"), ("yes no", "yes"), ("True False", "true"), ("2 1", "2.0")],
)
def test_outcomes_under_other_names(run, halves, write, tmp_path, labels, positive):
    paths, expected = halves
    yes, no = labels.split()
    for path in paths:
        header, *lines = path.read_text().splitlines(keepends=True)
        renamed = [(yes if line[0] == "1" else no) + line[1:] for line in lines]
        path.write_text(header + "".join(renamed))
    options = (*NAMED, "--pos-label", positive, "--out", "s.sketch")
    assert run("sketch", *paths, *options).code == 0
    assert cb.Sketch.load(tmp_path / "s.sketch").allclose(expected)


def test_a_third_label_in_another_file(run, write):
    paths = write("a.csv", "p,y\n0.5,ja\n0.1,nein\n"), write("b.csv", "p,y\n0.5,ja\n0.1,no\n")
    done = run("sketch", *paths, *NAMED, "--pos-label", "ja", "--out", "s.sketch")
    assert done.code == 2
    assert "got 3 ('ja', 'nein', 'no'): name the columns of all classes with --classes" in done.err


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("animal,p_cat,p_dog\ncat,0.7,0.3\ndog,0.2,0.8\n", "cat dog"),
        ("animal,p_1,p_2\n1,0.7,0.3\n2,0.2,0.8\n", "1 2"),
        ("animal,p_x,p_y\n0,0.7,0.3\n1,0.2,0.8\n", "0 1"),
        ("animal,p_no,p_yes\nno,0.7,0.3\nyes,0.2,0.8\n", "no yes"),
    ],
)
def test_classes_are_called_as_their_columns_end(run, write, tmp_path, content, names):
    path = write("c.csv", content)
    options = ("--classes", "p_*", "--label", "animal", "--out", "{}.sketch")
    assert run("sketch", path, *options).code == 0
    first, second = (cb.Sketch.load(tmp_path / f"{name}.sketch") for name in names.split())
    assert first == cb.Sketch(2520).update([1, 0], [0.7, 0.2])
    assert second == cb.Sketch(2520).update([0, 1], [0.3, 0.8])
