"""Files that are written: whole or not at all, and never in the place of a device or a pipe."""

import os
import stat
import subprocess
from contextlib import contextmanager

import pytest

import calibrant as cb
from tests import PATIENCE

SKETCH = cb.Sketch(100).update([0, 1], [0.25, 0.75])


@contextmanager
def reader_of(path):
    """Make a named pipe and give the process that reads from it."""
    os.mkfifo(path)
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("through_link", [False, True])
def test_a_named_pipe_is_written_to_and_stays(tmp_path, through_link):
    pipe = target = tmp_path / "pipe"
    if through_link:
        target = tmp_path / "link"
        target.symlink_to("pipe")
    with reader_of(pipe) as process:
        SKETCH.save(target)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        content, _ = process.communicate(timeout=PATIENCE)
    assert cb.Sketch.from_bytes(content) == SKETCH
    assert target.is_symlink() == through_link


@pytest.mark.parametrize("through_link", [False, True])
def test_a_device_is_written_to_and_stays(tmp_path, through_link):
    device = target = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"anything")
    except (AttributeError, OSError):
        pytest.skip("devices cannot be made here")
    if through_link:
        target = tmp_path / "link"
        target.symlink_to("null")
    SKETCH.save(target)
    assert stat.S_ISCHR(device.stat().st_mode)
    assert {path.name for path in tmp_path.iterdir()} == {device.name, target.name}


def test_what_is_not_written_whole_is_not_written(tmp_path):
    target = tmp_path / "kept"
    target.write_bytes(b"before")
    target.with_name("link").symlink_to("nowhere/at/all")
    with pytest.raises(cb.CalibrantError, match="must be in a folder that exists"):
        SKETCH.save(tmp_path / "link")
    with pytest.raises(OSError, match="too long"):
        SKETCH.save(tmp_path / ("x" * 300))
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "link"}
