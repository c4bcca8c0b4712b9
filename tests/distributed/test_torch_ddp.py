"""Two processes with different rows compute what one process computes from all of them.

The processes run this file as a script, and talk over gloo on the loopback device alone.
"""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from calibrant import Sketch

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")

from calibrant.integrations.torch import (  # noqa: E402
    BinnedCalibrationError,
    CumulativeCalibrationError,
    SmoothCalibrationError,
)

if not torch.distributed.is_available():
    pytest.skip("this torch cannot do distributed work", allow_module_level=True)

RANKS = (0, 1)
SIZES = {0: (700, 900, 33), 1: (1200,)}
# As in the other tests, which this file cannot import where it is a script.
PATIENCE = timedelta(minutes=10)


def batches(rank):
    """Return the batches that one process sees: as different in number as in size."""
    rng = np.random.default_rng(rank)
    for size in SIZES[rank]:
        p = rng.beta(0.5, 1 + rank, size)
        y = rng.random(size) < 0.2 + 0.6 * p
        yield torch.tensor(p), torch.tensor(y)


def class_batch(rank):
    generator = torch.Generator().manual_seed(rank)
    logits = 2 * torch.randn(500 + rank, 4, generator=generator)
    return logits, torch.randint(-1, 4, (500 + rank,), generator=generator)


def collection():
    return torchmetrics.MetricCollection(
        {
            "smooth": SmoothCalibrationError(),
            "binned": BinnedCalibrationError(),
            "max": CumulativeCalibrationError(statistic="max"),
            "range": CumulativeCalibrationError(statistic="range", normalize=True),
        }
    )


def class_metric():
    return BinnedCalibrationError("multiclass", num_classes=4, from_logits=True, ignore_index=-1)


def measured(metrics, by_class, lonely):
    """Return every value, as plain numbers."""
    values = {**metrics.compute(), "classes": by_class.compute(), "lonely": lonely.compute()}
    return {name: float(value) for name, value in values.items()}


def work(rank, folder):
    """Be one of two processes: write down values and the synchronised sketch."""
    torch.distributed.init_process_group(
        "gloo",
        init_method=(folder / "rendezvous").as_uri(),
        rank=rank,
        world_size=len(RANKS),
        timeout=PATIENCE,
    )
    metrics, by_class, lonely = collection(), class_metric(), BinnedCalibrationError()
    for batch in batches(rank):
        metrics.update(*batch)
    by_class.update(*class_batch(rank))
    if rank == 0:  # the other process sees no row of this one
        lonely.update(*next(batches(0)))
    values = measured(metrics, by_class, lonely)
    smooth = metrics["smooth"]
    with smooth.sync_context():
        smooth.sketch().save(folder / f"all-{rank}")
    smooth.sketch().save(folder / f"own-{rank}")
    torch.save(values, folder / f"values-{rank}")
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Run both processes and return the folder of what they found."""
    folder = tmp_path_factory.mktemp("two-processes")
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, str(rank), str(folder)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in RANKS
    ]
    try:
        said = [process.communicate(timeout=PATIENCE.total_seconds())[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], "\n".join(said)
    return folder


@pytest.mark.slow
class TestTwoProcesses:
    def test_sketches_are_those_of_all_rows(self, folder):
        first, second = (Sketch.load(folder / f"all-{rank}") for rank in RANKS)
        assert first == second
        whole = Sketch()
        for rank in RANKS:
            for p, y in batches(rank):
                whole.update(y.numpy(), p.numpy())
        np.testing.assert_array_equal(first.table.counts, whole.table.counts)
        assert first.allclose(whole)
        assert first.n == sum(map(sum, SIZES.values()))

    def test_values_are_those_of_one_process(self, folder):
        first, second = (torch.load(folder / f"values-{rank}") for rank in RANKS)
        assert first == second
        metrics, by_class, lonely = collection(), class_metric(), BinnedCalibrationError()
        for rank in RANKS:
            for batch in batches(rank):
                metrics.update(*batch)
            by_class.update(*class_batch(rank))
        lonely.update(*next(batches(0)))
        assert first == pytest.approx(measured(metrics, by_class, lonely), abs=1e-12)

    def test_each_goes_on_with_its_own_rows(self, folder):
        sketches = {rank: Sketch.load(folder / f"own-{rank}") for rank in RANKS}
        assert {rank: sketch.n for rank, sketch in sketches.items()} == {
            rank: sum(sizes) for rank, sizes in SIZES.items()
        }


if __name__ == "__main__":
    work(int(sys.argv[1]), Path(sys.argv[2]))
