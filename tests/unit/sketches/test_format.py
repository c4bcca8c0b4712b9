"""Sketches as bytes and files: what goes in comes out, and nothing else gets in."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys

import numpy as np
import pytest

import calibrant as cb
from calibrant import SketchError
from calibrant.data import sketch_format


def some_sketches():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p
    yield cb.Sketch()
    yield cb.Sketch(60).update(y, p)
    yield cb.Sketch(60, scale="logit").update(y, np.where(p < 0.1, 0.0, p))
    yield cb.Sketch(60).update(y, p, rng.random(300))
    yield cb.Sketch(60).update(rng.random(300), p)
    yield cb.Sketch(60).update(y, p).update(y, p, rng.random(300))


@pytest.mark.parametrize("sketch", list(some_sketches()), ids=str)
def test_there_and_back(sketch):
    data = sketch.to_bytes()
    again = cb.Sketch.from_bytes(data)
    assert again == sketch
    assert again.to_bytes() == data
    assert cb.Sketch.from_bytes(bytearray(data)) == sketch


@pytest.mark.parametrize("scale", ["probability", "logit"])
@pytest.mark.parametrize("n_cells", [2520, 50_400])
def test_rows_on_the_edges_of_cells_are_read_back(n_cells, scale):
    # Next to 1, doubles are so far apart that their logits lie beyond the edge of their cell.
    sketch = cb.Sketch(n_cells, scale=scale)
    for edge in np.asarray(sketch.cells.edges)[:: n_cells // 60].tolist():
        for p in (edge, np.nextafter(edge, 0), min(np.nextafter(edge, 2), 1.0)):
            alone = cb.Sketch(n_cells, scale=scale).update([1], [p])
            assert cb.Sketch.from_bytes(alone.to_bytes()) == alone


def test_empty_cells_cost_nothing():
    assert len(cb.Sketch().update([0, 1], [0.25, 0.75]).to_bytes()) < 200


def test_bytes_of_version_1_stay_readable():
    # Written by hand from the table in the module's docstring.
    header = struct.pack("<8sHBBIId", b"calibrnt", 1, 0, 0, 10, 1, 0.0)
    body = struct.pack("<I2q4d", 7, 2, 1, 0.25, 0.125, -0.5, 0.25)
    content = header + body
    sketch = cb.Sketch.from_bytes(content + sketch_format._checksum(content))
    assert sketch.n == 3
    assert sketch.table.counts[:, 7].tolist() == [2, 1]
    assert sketch.table.offsets[:, 7].tolist() == [0.25 + 0.125j, -0.5 + 0.25j]


def test_ten_thousand_damaged_copies():
    rng = np.random.default_rng(1)
    originals = [sketch.to_bytes() for sketch in some_sketches()]
    for i in range(10_000):
        data = bytearray(originals[i % len(originals)])
        kind = i % 5
        if kind == 0:
            data = data[: rng.integers(len(data))]
        elif kind == 1:
            data[rng.integers(len(data))] ^= int(rng.integers(1, 256))
        elif kind == 2:
            at = rng.integers(len(data))
            data[at:at] = rng.bytes(int(rng.integers(1, 20)))
        elif kind == 3:
            first = int(rng.integers(len(data)))
            del data[first : first + int(rng.integers(1, 40))]
        else:
            data = bytearray(rng.bytes(int(rng.integers(0, 200))))
        with pytest.raises(SketchError):
            cb.Sketch.from_bytes(bytes(data))


def test_damage_under_a_fresh_checksum_is_refused_or_harmless():
    rng = np.random.default_rng(2)
    originals = [sketch.to_bytes()[:-16] for sketch in some_sketches()]
    refused = 0
    for i in range(2_000):
        content = bytearray(originals[i % len(originals)])
        content[rng.integers(8, len(content))] ^= int(rng.integers(1, 256))
        data = bytes(content) + sketch_format._checksum(bytes(content))
        try:
            sketch = cb.Sketch.from_bytes(data)
        except SketchError:
            refused += 1
            continue
        if sketch.n and sketch.scale == "probability":
            for measure in (cb.ecce_mad, cb.brier_score, cb.smooth_ece):
                assert 0 <= measure(sketch) <= 1
    assert refused > 500


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a sketch"),
        (b"PK\x03\x04 a zip file", "not a sketch"),
        (b"calibrnt", "cut short"),
        (struct.pack("<8sHBBIId", b"calibrnt", 9, 0, 0, 10, 0, 0.0) + bytes(16), "version 9"),
    ],
)
def test_foreign_bytes_are_named(data, words):
    with pytest.raises(SketchError, match=words):
        cb.Sketch.from_bytes(data)


def test_files(tmp_path):
    sketch = cb.Sketch().update([0, 1], [0.25, 0.75])
    path = tmp_path / "week.sketch"
    sketch.save(path)
    assert cb.Sketch.load(str(path)) == sketch
    assert [entry.name for entry in tmp_path.iterdir()] == ["week.sketch"]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SketchError, match=r"week\.sketch: sketch bytes"):
        cb.Sketch.load(path)
    with pytest.raises(SketchError, match="none: No such file or directory"):
        cb.Sketch.load(tmp_path / "none")
    with pytest.raises(cb.CalibrantError, match="must be in a folder that exists; there is no"):
        sketch.save(tmp_path / "none" / "week.sketch")


KILLED = """
import os, sys
import calibrant as cb

os.fsync = lambda handle: os._exit(9)
cb.Sketch().update([1], [0.5]).save(sys.argv[1])
"""


def test_killed_in_the_middle_of_saving(tmp_path):
    path = tmp_path / "day.sketch"
    old = cb.Sketch().update([0, 1], [0.25, 0.75])
    old.save(path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == 9
    assert len(list(tmp_path.iterdir())) == 2  # the draft lies beside it
    assert cb.Sketch.load(path) == old


def test_failure_leaves_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "day.sketch"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        cb.Sketch().save(path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "day.sketch", tmp_path / "link"
    cb.Sketch().save(path)
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()
    path.chmod(0o640)
    link.symlink_to(path)
    cb.Sketch().update([1], [0.5]).save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert cb.Sketch.load(path).n == 1


@pytest.mark.parametrize(
    "forge",
    [
        {"weighed_rows": 1, "weight": 0.0},
        {"weighed_rows": -9, "counts": 10, "weight": 1.0},
        {"counts": 2**62, "weighed_rows": 1, "weight": 1.0},
        {"weighed_rows": 1, "weight": 1.0, "true_squared": 1e300},
        {"weighed_rows": 1, "weight": float("nan")},
        {"version": 0, "weighed_rows": 1, "weight": 1.0},
    ],
)
def test_forged_numbers_are_refused(forge):
    given = {"version": 1, "counts": 0, "true_squared": 0.0} | forge
    header = (b"calibrnt", given["version"], 0, 3, 10, 1, given["true_squared"])
    content = struct.pack("<8sHBBIId", *header)
    content += struct.pack("<I2q4d", 3, given["counts"], given["counts"], 0, 0, 0, 0)
    content += struct.pack("<q3d", given["weighed_rows"], 0.0, given["weight"], given["weight"])
    with pytest.raises(SketchError, match="make no sense"):
        cb.Sketch.from_bytes(content + sketch_format._checksum(content))


def forged(flags=3, rows=2, counts=(0, 0), true_squared=1.0, **fields):
    """Return the bytes, with their checksum, of one cell with two rows of weight 1 at the centre.

    Written by hand from the table in the module's docstring; each field can be replaced.
    """
    numbers = {"d0": 0.1, "e0": 0.01, "d1": -0.1, "e1": 0.01, "w0": 1.0, "w1": 1.0, "squares": 2.0}
    numbers |= fields
    d0, e0, d1, e1, w0, w1, squares = numbers.values()
    content = struct.pack("<8sHBBIId", b"calibrnt", 1, 0, flags, 10, 1, true_squared)
    content += struct.pack("<I2q4d", 3, *counts, d0, e0, d1, e1)
    content += struct.pack("<q3d", rows, w0, w1, squares)
    return content + hashlib.blake2b(content, digest_size=16).digest()


def test_numbers_that_rows_can_have_given_are_read():
    sketch = cb.Sketch.from_bytes(forged())
    assert sketch.n == sketch.weight == 2
    soft = cb.Sketch.from_bytes(forged(flags=5, true_squared=0.5))
    assert cb.brier_score(soft) > 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"squares": 1e-30},  # an interval would be searched for ever
        {"squares": 0.0},
        {"squares": 1.9},  # less than W^2 / n
        {"squares": 4.1},  # more than W^2
        {"squares": 1e200},
        {"w1": 1e30},  # of which the squares know nothing
        {"w0": -1e-3},
        {"w1": 1e150, "squares": 1e300, "true_squared": 1e150},  # beyond the range of weights
        {
            "w0": 1e-120,
            "w1": 1e-120,
            "d0": 0,
            "d1": 0,
            "e0": 0,
            "e1": 0,
            "squares": 2e-240,
            "true_squared": 1e-120,
        },
        {"flags": 1, "w1": 2.0, "true_squared": 2.0, "squares": 5.0},  # no weights, but not 1 each
        {"rows": 5, "flags": 5},
        {"d0": 0.6, "e0": 0.25},  # farther than half a cell from the centre
        {"d0": 0.1, "e0": 0.3},
        {"e0": -1e-9},
        {"d0": 0.3, "e0": 0.01},  # (sum w d)^2 > W sum w d^2
        {"d1": float("inf")},
        {"counts": (-1, 3)},
        {"true_squared": 0.5},  # soft labels, but the flag says that there are none
        {"flags": 5, "true_squared": 0.4},  # less than (sum w y)^2 / W
        {"flags": 5, "true_squared": 1.1},
    ],
    ids=str,
)
def test_sums_that_no_rows_have_are_refused(wrong):
    with pytest.raises(SketchError, match="no rows could have given these numbers"):
        cb.Sketch.from_bytes(forged(**wrong))


def test_outer_cells_have_no_offsets():
    data = cb.Sketch(10, scale="logit").update([0, 1], [0.0, 1.0]).to_bytes()
    content = bytearray(data[:-16])
    struct.pack_into("<2d", content, 28 + 2 * 4 + 2 * 2 * 8, 0.1, 0.01)
    with pytest.raises(SketchError, match="no rows could have given these numbers"):
        cb.Sketch.from_bytes(content + hashlib.blake2b(content, digest_size=16).digest())


def test_only_bytes_are_read():
    for wrong in ("calibrnt", None, 3):
        with pytest.raises(SketchError, match="data must be bytes; got"):
            cb.Sketch.from_bytes(wrong)


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
