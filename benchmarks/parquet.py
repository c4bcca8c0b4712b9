"""Compare the sketch of a Parquet file with DuckDB's own count and sums, in time and memory.

Run as ``python -m benchmarks.parquet FILE`` to sketch one and print the peak of memory in MiB.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.contest import Referee
from benchmarks.memory import peak
from benchmarks.results import OURS, Contest
from calibrant import sketch

SUMS = "DuckDB's count and sums"
_CHUNK = 10**6


def contest(referee: Referee, n_rows: int) -> Contest:
    """Write a file of so many rows, sketch it, and delete it; a row takes ten bytes or so."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        _write(path, n_rows)
        calls = {OURS: lambda: _sketch(path), SUMS: lambda: _sums(path)}
        found = referee.compare("parquet", n_rows, calls)
        ours = replace(found.entry(OURS), memory=_peak_of(path))
    return replace(found, entries=(ours, found.entry(SUMS)))


def _write(path: Path, n_rows: int) -> None:
    """Write overconfident predictions of as many events."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([("p", pa.float64()), ("y", pa.int8())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, n_rows, _CHUNK):
            p = rng.beta(0.9, 0.7, min(_CHUNK, n_rows - start))
            y = (rng.random(len(p)) < 0.5 + 0.8 * (p - 0.5)).astype(np.int8)
            writer.write_table(pa.table({"p": p, "y": y}, schema))


def _sketch(path: Path) -> object:
    return sketch(path, label="y", prob="p")


def _sums(path: Path) -> object:
    import duckdb

    with duckdb.connect() as connection:
        rows = connection.read_parquet(str(path))
        return rows.aggregate("count(*), sum(p), sum(y)").fetchall()


def _peak_of(path: Path) -> float:
    """Return the peak of memory, in MiB, of a process that does nothing but sketch the file."""
    command = [sys.executable, "-m", "benchmarks.parquet", str(path)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1]
    )
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    _sketch(Path(sys.argv[1]))
    print(peak())
