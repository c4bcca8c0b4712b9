"""Calibrators and maps as files: what goes in comes out, and nothing else gets in."""

import json
import os

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

from calibrant import CalibrantError
from calibrant import recalibration as rc
from calibrant.recalibration import storage

RNG = np.random.default_rng(0)
P = RNG.random(80)
Y = (RNG.random(80) < P**2).astype(int)
CLASSES = RNG.dirichlet(np.ones(3), 60)
LABELS = RNG.integers(0, 3, 60)
CALIBRATORS = [
    *(make() for make in rc.METHODS.values()),
    rc.IdentityCalibrator(),
    rc.HistogramCalibrator(n_bins="sqrt", strategy="uniform"),
    rc.HistogramCalibrator(strategy=(0.0, 0.3, 1.0)),
    rc.DensityCalibrator(bandwidth=np.float64(0.1), kernel="triweight"),
]


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=str)
def test_there_and_back(calibrator, tmp_path):
    path = tmp_path / "calibrator.json"
    for prob, outcome in ((P, Y), (CLASSES, LABELS)):
        fitted = calibrator.fit(prob, outcome)
        fitted.save(path)
        again = rc.load(path)
        assert type(again) is type(fitted)
        assert again.get_params() == {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in fitted.get_params().items()
        }
        assert again.maps_ == fitted.maps_
        assert again.predict(prob).tolist() == fitted.predict(prob).tolist()
        again.fit(prob, outcome)
        assert again.maps_ == fitted.maps_


@pytest.mark.parametrize(
    "map_",
    [
        rc.PiecewiseLinearMap([0.1, 0.7], [0.2, 1 / 3]),
        rc.StepMap([0.5], [0.1, 0.9]),
        rc.LogisticMap(0.1, 0.2, -3.0),
        rc.NoisyMap(0.1, [0.5], [0.5]),
        rc.TemperatureMap(1.5),
    ],
    ids=lambda map_: type(map_).__name__,
)
def test_maps_there_and_back(map_, tmp_path):
    map_.save(tmp_path / "map.json")
    assert rc.load(str(tmp_path / "map.json")) == map_
    assert len(list(tmp_path.iterdir())) == 1


def saved(tmp_path):
    path = tmp_path / "calibrator.json"
    rc.IsotonicCalibrator().fit(P, Y).save(path)
    return path


def test_a_version_1_file_stays_readable(tmp_path):
    path = tmp_path / "old.json"
    path.write_text(
        '{"format": "calibrant.recalibration", "version": 1, "content": {"calibrator": '
        '"IsotonicCalibrator", "params": {}, "n_classes": 2, "maps": [{"map": '
        '"PiecewiseLinearMap", "x": [0.25, 0.75], "y": [0.0, 1.0]}]}, '
        '"checksum": "697c346638a93b9714ef6dfe78a77b8e"}'
    )
    assert rc.load(path).predict([0.5]).tolist() == [0.5]


def test_damaged_copies_are_refused(tmp_path):
    path = saved(tmp_path)
    data, rng = path.read_bytes(), np.random.default_rng(1)
    for i in range(500):
        broken = bytearray(data)
        at = int(rng.integers(len(broken)))
        if i % 3 == 0:
            broken = broken[:at]
        elif i % 3 == 1:
            broken[at] = int((broken[at] + rng.integers(1, 256)) % 256)
        else:
            broken[at:at] = rng.bytes(3)
        path.write_bytes(bytes(broken))
        if is_same_json(broken, data):  # a space more, or another space
            continue
        with pytest.raises(CalibrantError, match=r"calibrator\.json: "):
            rc.load(path)


def is_same_json(one, other):
    try:
        return json.loads(bytes(one)) == json.loads(other)
    except ValueError:
        return False


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is not valid JSON"),
        (b"\x80\x04\x95 a pickle", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b'{"format": NaN}', "is not valid JSON"),
        (b'{"format": 1e999}', "is not valid JSON"),
        (b"[1, 2]", "JSON of another format"),
        (b'{"format": "other"}', "JSON of another format"),
        (b'{"format": "calibrant.recalibration", "version": 9}', "version 9, newer than"),
        (b'{"format": "calibrant.recalibration", "version": "1"}', "impossible version"),
        (b'{"format": "calibrant.recalibration", "version": 1}', "impossible version or content"),
        (
            b'{"format": "calibrant.recalibration", "version": 1, "content": {}, "checksum": 3}',
            "checksum does not match",
        ),
    ],
)
def test_foreign_files_are_named(data, words, tmp_path):
    path = tmp_path / "other.json"
    path.write_bytes(data)
    with pytest.raises(CalibrantError, match=rf"other\.json: .*{words}"):
        rc.load(path)


LEVEL = {"map": "StepMap", "cuts": [], "values": [0.5]}


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"map": "os.system"},
        {"map": ["StepMap"]},
        {"map": "StepMap"},
        {"map": "StepMap", "cuts": [], "values": [2.0]},
        {"map": "StepMap", "cuts": [], "values": ["a"]},
        {"map": "StepMap", "cuts": [], "values": [0.5], "more": 1},
        {"map": "LogisticMap", "a": "b", "b": 1.0, "c": 0.0},
        {"map": "LogisticMap", "a": 10**400, "b": 1.0, "c": 0.0},
        {"calibrator": "Calibrator", "params": {}, "n_classes": 2, "maps": [LEVEL]},
        {"calibrator": "PlattCalibrator", "params": {"x": 1}, "n_classes": 2, "maps": [LEVEL]},
        {"calibrator": "PlattCalibrator", "params": [], "n_classes": 2, "maps": [LEVEL]},
        {"calibrator": "PlattCalibrator", "params": {}, "n_classes": 1, "maps": [LEVEL]},
        {"calibrator": "PlattCalibrator", "params": {}, "n_classes": 1e9, "maps": [LEVEL]},
        {"calibrator": "PlattCalibrator", "params": {}, "n_classes": 2, "maps": []},
        {"calibrator": "PlattCalibrator", "params": {}, "n_classes": 2, "maps": [LEVEL, LEVEL]},
        {"calibrator": "PlattCalibrator", "params": {}, "n_classes": 3, "maps": [LEVEL, LEVEL]},
        {"calibrator": "PlattCalibrator", "params": {}, "n_classes": 2, "maps": "no"},
        {
            "calibrator": "VectorCalibrator",
            "params": {},
            "n_classes": 3,
            "maps": [
                {
                    "map": "SoftmaxMap",
                    "temperature": 1.0,
                    "mix": 0.0,
                    "weights": [1.0, 1.0],
                    "bias": [0.0, 0.0],
                }
            ],
        },
        {"map": "AdjustedMap", "inner": {"map": "AdjustedMap"}},
        {"map": "AdjustedMap", "inner": LEVEL, "strength": 2.0},
        {"calibrator": "NoisyCalibrator", "params": {"rng": "x"}, "n_classes": 2, "maps": [LEVEL]},
    ],
    ids=str,
)
def test_forged_content_is_refused(content, tmp_path):
    path = tmp_path / "forged.json"
    storage.write(path, content)
    with pytest.raises(CalibrantError, match=r"forged\.json: not a valid calibrator"):
        rc.load(path)


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = saved(tmp_path)
    old = path.read_bytes()

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        rc.PlattCalibrator().fit(P, Y).save(path)
    assert path.read_bytes() == old
    assert len(list(tmp_path.iterdir())) == 1


def test_a_generator_cannot_be_kept(tmp_path):
    fitted = rc.NoisyCalibrator(rng=np.random.default_rng(0)).fit(P, Y)
    with pytest.raises(CalibrantError, match="rng is a generator"):
        fitted.save(tmp_path / "noisy.json")
    fitted.set_params(rng=3).save(tmp_path / "noisy.json")
    assert rc.load(tmp_path / "noisy.json").rng == 3


def test_a_file_of_any_size_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_MAX_BYTES", 10)
    with pytest.raises(CalibrantError, match="bytes are too many"):
        rc.load(saved(tmp_path))


def test_no_file(tmp_path):
    with pytest.raises(CalibrantError, match=r"none\.json: No such file"):
        rc.load(tmp_path / "none.json")
