"""Where files go: never in the place of what was read, of a pipe or of a device."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

import calibrant as cb
from tests import PATIENCE

pytest.importorskip("typer")
pytest.importorskip("duckdb")

NAMED = ("--label", "y", "--prob", "p")
QUICK = ("--resamples", "50")
RECALIBRATE = (*NAMED, "--method", "platt", *QUICK)


# What is not a regular file is written to.


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("linked", [False, True], ids=["itself", "through a link"])
@pytest.mark.parametrize("command", ["plot", "recalibrate"])
def test_a_named_pipe_is_written_to_and_stays(run, forecasts, tmp_path, command, linked):
    pytest.importorskip("sklearn")
    ending, start = {"plot": (".svg", b"<?xml"), "recalibrate": (".csv", b"y,p,q,w,g,p_recal")}[
        command
    ]
    out = tmp_path / f"out{ending}"
    pipe = tmp_path / "pipe" if linked else out
    os.mkfifo(pipe)
    if linked:
        out.symlink_to("pipe")
    options = NAMED if command == "plot" else RECALIBRATE
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        try:
            done = run(command, forecasts, *options, *QUICK, "--out", out.name)
            assert done.code == 0
            assert stat.S_ISFIFO(pipe.stat().st_mode)
            content, _ = reader.communicate(timeout=PATIENCE)
        finally:
            reader.kill()
    assert content.startswith(start)


@pytest.mark.parametrize(
    ("command", "start"),
    [("plot", b"\x89PNG"), ("report", b"<!DOCTYPE html>"), ("recalibrate", b"y,p,q,w,g,p_recal")],
)
def test_a_pipe_of_any_name_takes_the_first_format(run, forecasts, tmp_path, command, start):
    pytest.importorskip("jinja2")
    pytest.importorskip("sklearn")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    options = RECALIBRATE if command == "recalibrate" else (*NAMED, *QUICK)
    with (
        (tmp_path / "read").open("wb") as copy,
        subprocess.Popen(["cat", pipe], stdout=copy) as cat,
    ):
        try:
            done = run(command, forecasts, *options, "--out", "pipe")
            assert (done.code, pipe.is_fifo()) == (0, True)
            assert cat.wait(timeout=PATIENCE) == 0
        finally:
            cat.kill()
    assert (tmp_path / "read").read_bytes().startswith(start)


# What is read is not written to.


def test_merged_sketches_do_not_count_what_was_merged_before(run, forecasts, tmp_path):
    (tmp_path / "days").mkdir()
    for day in "ab":
        assert run("sketch", forecasts, *NAMED, "--out", f"days/{day}.sketch").code == 0
    assert run("merge", "days/*.sketch", "--out", "days/all.sketch").code == 0
    (tmp_path / "link.sketch").symlink_to("days/all.sketch")
    for out in ("days/all.sketch", "days/../days/all.sketch", "link.sketch"):
        done = run("merge", "days/*.sketch", "--out", out)
        assert done.code == 2
        assert f"--out must not be a file that is read; {out!r} is" in done.err
    assert cb.Sketch.load(tmp_path / "days/all.sketch").n == 800
    assert (tmp_path / "link.sketch").is_symlink()


def test_a_table_is_not_recalibrated_in_place(run, forecasts):
    pytest.importorskip("sklearn")
    before = forecasts.read_bytes()
    for out in ("forecasts.csv", forecasts):
        done = run("recalibrate", forecasts, *RECALIBRATE, "--out", out)
        assert done.code == 2
        assert "--out must not be a file that is read" in done.err
        assert done.out == ""
    assert run("recalibrate", forecasts, *RECALIBRATE, "--save", "m.json").code == 0
    using = ("--using", "m.json", "--prob", "p")
    assert run("recalibrate", forecasts, *using, "--out", "forecasts.csv").code == 2
    assert forecasts.read_bytes() == before


@pytest.mark.parametrize(
    ("command", "option", "ending"),
    [
        ("plot", "--out", ".svg"),
        ("report", "--out", ".html"),
        ("sketch", "--out", ".sketch"),
        ("recalibrate", "--save", ".json"),
        ("recalibrate", "--report", ".html"),
        ("recalibrate", "--out", ".parquet"),
    ],
)
def test_no_command_writes_to_what_it_reads(run, forecasts, tmp_path, command, option, ending):
    before = forecasts.read_bytes()
    (tmp_path / f"link{ending}").symlink_to("forecasts.csv")
    done = run(command, forecasts, *NAMED, option, f"link{ending}")
    assert done.code == 2
    assert f"{option} must not be a file that is read; 'link{ending}' is" in done.err
    assert forecasts.read_bytes() == before


def test_sketches_of_groups_do_not_replace_what_is_read(run, forecasts, tmp_path):
    (tmp_path / "in a.sketch").symlink_to("forecasts.csv")
    done = run("sketch", forecasts, *NAMED, "--by", "g", "--out", "in {}.sketch")
    assert done.code == 2
    assert "--out must not be a file that is read; 'in a.sketch' is" in done.err
    assert not list(tmp_path.glob("in [bc].sketch"))


# Who is to blame.


@pytest.mark.parametrize("option", ["--out", "--save", "--report"])
def test_the_option_is_named_whose_path_is_wrong(run, forecasts, option):
    done = run("recalibrate", forecasts, *RECALIBRATE, option, "x.txt")
    assert done.err.startswith(f"calibrant: {option} must end in .")
    done = run("recalibrate", forecasts, *RECALIBRATE, option, "no/x.json")
    assert done.err.startswith(f"calibrant: {option} must ")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no full device here")
@pytest.mark.parametrize("command", ["plot", "recalibrate"])
def test_a_full_disk_is_the_fault_of_no_input(run, forecasts, tmp_path, command):
    pytest.importorskip("sklearn")
    out = f"full{'.svg' if command == 'plot' else '.csv'}"
    # The owner of the machine's own device could lose it if it were replaced.
    device = Path("/dev/full")
    if os.geteuid() == 0:
        device = tmp_path / "device"
        try:
            os.mknod(device, stat.S_IFCHR | 0o666, device=os.makedev(1, 7))
            device.write_bytes(b"")
        except PermissionError:
            pytest.skip("devices cannot be made here")
    (tmp_path / out).symlink_to(device)
    options = NAMED if command == "plot" else RECALIBRATE
    done = run(command, forecasts, *options, *QUICK, "--out", out)
    assert done.code == 2
    assert done.err == f"calibrant: {out}: No space left on device\n"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_folder_that_may_not_be_written_to(run, forecasts, tmp_path, ending):
    pytest.importorskip("sklearn")
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    done = run("recalibrate", forecasts, *RECALIBRATE, "--out", f"closed/x.{ending}")
    assert done.code == 2
    assert done.err == f"calibrant: closed/x.{ending}: Permission denied\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_too_large_to_write_is_the_fault_of_no_input(run, forecasts, tmp_path, ending):
    pytest.importorskip("sklearn")
    resource = pytest.importorskip("resource")
    before = set(tmp_path.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        done = run("recalibrate", forecasts, *RECALIBRATE, "--out", f"x.{ending}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert done.code == 2
    assert done.err == f"calibrant: x.{ending}: File too large\n"
    assert set(tmp_path.iterdir()) == before
