"""The frame of studies: tables that go on where they stopped, and numbers set side by side."""

import math
import sys
from dataclasses import dataclass

import pytest

import studies
from studies.__main__ import main
from studies.frame import (
    Part,
    Report,
    Study,
    StudyRun,
    compared,
    figure,
    from_zero,
    grid,
    legend_below,
    read_csv,
    reasons,
    run_study,
    side_by_side,
    to_csv,
)


@dataclass(frozen=True)
class Square:
    name: str
    x: int
    half: float
    note: str


CELLS = [("a", 3), ("b", 1), ("a", 2)]


def square(name, x):
    yield Square(name, x, x / 2, "first")
    yield Square(name, x, x / 3, 'a "quoted", note')


def toy(measure=square, cells=CELLS):
    return Study(
        "toy",
        parts=lambda quick: [Part("squares", Square, cells[:1] if quick else cells, measure)],
        report=lambda tables: Report(
            text=f"{len(tables['squares'])} rows\n",
            tables={"halves": [row for row in tables["squares"] if row.note == "first"]},
            figures={"empty": _figure},
        ),
    )


def _figure():
    from matplotlib.figure import Figure

    return Figure(figsize=(1, 1))


def quiet(table, done, total):
    """Show nothing."""


def test_a_run_writes_page_tables_and_figures(tmp_path):
    done = run_study(toy(), tmp_path, False, quiet)
    assert done.page.read_text() == "6 rows\n"
    folder = tmp_path / "toy"
    assert list(done.files) == [folder / f for f in ("squares.csv", "halves.csv", "empty.png")]
    assert all(path.stat().st_size for path in done.files)
    assert [(row.name, row.x) for row in done.tables["halves"]] == CELLS
    assert "toy" in repr(done)
    assert sorted(p.name for p in tmp_path.rglob("*")) == sorted(
        ["toy", "toy.md", "squares.csv", "halves.csv", "empty.png"]
    )


def test_the_same_bytes_twice(tmp_path):
    first, second = (run_study(toy(), tmp_path / name, False, quiet) for name in "ab")
    for one, other in zip(first.files, second.files, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_quick_run_keeps_to_itself(tmp_path):
    run_study(toy(), tmp_path, True, quiet)
    assert (tmp_path / "quick" / "toy.md").read_text() == "2 rows\n"
    assert not (tmp_path / "toy").exists()


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    def interrupted(name, x):
        if (name, x) == CELLS[2]:
            raise KeyboardInterrupt
        return square(name, x)

    with pytest.raises(KeyboardInterrupt):
        run_study(toy(interrupted), tmp_path, False, quiet)
    kept = read_csv(tmp_path / "toy" / "squares.csv", Square)
    assert [(row.name, row.x) for row in kept[::2]] == CELLS[:2]

    measured, steps = [], []

    def counted(name, x):
        measured.append((name, x))
        return square(name, x)

    def progress(table, done, total):
        steps.append((table, done, total))

    went_on = run_study(toy(counted), tmp_path, False, progress)
    assert measured == CELLS[2:]
    assert steps == [("squares", 2, 3), ("squares", 3, 3)]
    whole = run_study(toy(), tmp_path / "whole", False, quiet)
    assert went_on.tables == whole.tables


def test_rows_come_in_the_order_of_cells_whatever_was_measured_first(tmp_path):
    run_study(toy(cells=CELLS[::-1]), tmp_path, False, quiet)
    again = run_study(toy(measure=None), tmp_path, False, quiet)
    assert [(row.name, row.x) for row in again.tables["halves"]] == CELLS


@pytest.mark.parametrize("rows", [[], [Square("b", 3, 1.0, "")]])
def test_rows_that_could_not_be_found_again_are_refused(tmp_path, rows):
    with pytest.raises(ValueError, match="rows of squares must start with their cell"):
        run_study(toy(lambda name, x: rows), tmp_path, False, quiet)


def test_rows_survive_csv(tmp_path):
    rows = [Square("é, ü", 2**60, 0.1 + 0.2, 'say "no"'), Square("", -1, math.inf, "line\nbreak")]
    path = tmp_path / "rows.csv"
    path.write_bytes(to_csv(rows))
    assert read_csv(path, Square) == rows
    assert read_csv(tmp_path / "none.csv", Square) == []


def test_a_file_with_other_columns_is_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("name,x\na,1\n")
    with pytest.raises(ValueError, match="name,x,half,note; got name,x: remove it"):
        read_csv(path, Square)


def test_a_comparison_counts_noise_and_rounding_in_print():
    exact = compared("T", "r", "c", "0.25", 0.252, noise=0.0)
    assert exact.error == pytest.approx(0.01 / math.sqrt(12))
    assert exact.deviation == pytest.approx(0.002 / exact.error)
    noisy = compared("T", "r", "c", "7.1e-08", 7.2e-08, noise=3e-9)
    assert noisy.error == pytest.approx(math.hypot(3e-9, 1e-9 / math.sqrt(12)))
    assert not noisy.is_remarkable
    # A number that rounds to the printed one is never remarkable.
    assert abs(compared("T", "r", "c", "0.25", 0.25499, noise=0.0).deviation) < math.sqrt(3)


def test_side_by_side():
    places = [
        compared("T", "A", "x", "0.5", 0.5, noise=0.1),
        compared("T", "B", "x", "7.1e-08", 9.14e-08, noise=1e-9, note="It is so."),
        compared("T", "A", "y", "2", 2.5, noise=1.0),
    ]
    assert side_by_side(places, "model").splitlines() == [
        "| model | x | y |",
        "| --- | ---: | ---: |",
        "| A | 0.5\u00a0·\u00a00.5 (0) | 2\u00a0·\u00a02 (+0.5) |",
        "| B | 7.1e-08\u00a0·\u00a09.1e-08 **(+19.6)** |  |",
    ]
    assert reasons(places) == ("- T, B, x: 7.1e-08 published, 9.1e-08 here (+19.6). It is so.")
    assert "No number" in reasons(places[:1])
    assert grid(["a"], [["b"]]) == "| a |\n| --- |\n| b |"


def test_an_unknown_study():
    with pytest.raises(ValueError, match=r"name must be one of soft-label-ece, .*; got 'smece'"):
        studies.run("smece")


def test_the_command_lists_and_runs(tmp_path, monkeypatch, capsys):
    asked = []

    def measured(name, *, out, quick):
        asked.append((name, out, quick))
        return StudyRun(name, tmp_path / f"{name}.md", (), {})

    monkeypatch.setattr("studies.__main__.run", measured)
    main([])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(
        studies.TITLES
    )
    main(["all", "--quick", "--out", "here"])
    main(["ecce"])
    assert asked == [(name, "here", True) for name in studies.TITLES] + [
        ("ecce", studies.OUT, False)
    ]
    assert f"wrote {tmp_path / 'ecce.md'} and 0 tables and figures" in capsys.readouterr().out


def test_the_command_refuses_unknown_names_and_files_as_folders(tmp_path, capsys):
    (tmp_path / "taken").touch()
    for arguments, said in (
        (["smece"], "there is no study 'smece'; there are soft-label-ece, ecce"),
        (["ecce", "--out", str(tmp_path / "taken")], "--out must be a folder"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
        assert said in capsys.readouterr().err


def test_a_bar_on_a_terminal(tmp_path, monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    run_study(toy(), tmp_path, False, None)
    assert "toy squares" in capsys.readouterr().err


def test_no_bar_elsewhere(tmp_path, capsys):
    run_study(toy(), tmp_path, False, None)
    assert capsys.readouterr() == ("", "")


def test_figures_leave_global_state_alone(tmp_path):
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    before, open_figures = dict(mpl.rcParams), plt.get_fignums()
    drawn = figure(1, 2, 4, 2, sharey=True)
    for axes in drawn.axes:
        axes.plot([1, 2], [0.5, 0.25], label="line")
        from_zero(axes)
    legend_below(drawn, drawn.axes[0], 1)
    drawn.savefig(tmp_path / "figure.png")
    assert drawn.axes[0].get_ylim() == (0, 0.54)
    assert plt.get_fignums() == open_figures
    assert dict(mpl.rcParams) == before
