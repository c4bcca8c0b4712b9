"""Compare the sketch of a Parquet file with DuckDB's own count and sums, in time and memory.

Run as ``python benchmarks/parquet.py [rows]``, with the extras ``files`` and ``fast`` and pyarrow
installed; a hundred million rows, the default, take a gigabyte of disk for the while.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from compare import Ratio, ratio

from calibrant.sources.sketching import sketch

_CHUNK = 1_000_000


def write(path: Path, n_rows: int) -> None:
    """Write overconfident predictions of as many events."""
    rng = np.random.default_rng(0)
    schema = pa.schema([("p", pa.float64()), ("y", pa.int8())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, n_rows, _CHUNK):
            p = rng.beta(0.9, 0.7, min(_CHUNK, n_rows - start))
            y = (rng.random(len(p)) < 0.5 + 0.8 * (p - 0.5)).astype(np.int8)
            writer.write_table(pa.table({"p": p, "y": y}, schema))


def time_of(path: Path, n_rows: int) -> Ratio:
    """Compare a sketch with the sums that DuckDB takes of the same columns."""
    connection = duckdb.connect()

    def sums() -> object:
        return connection.read_parquet(str(path)).aggregate("count(*), sum(p), sum(y)").fetchall()

    task = f"sketch of Parquet, n = {n_rows:.0e}"
    ours = lambda: sketch(path, label="y", prob="p")  # noqa: E731
    return ratio(task, ours, "DuckDB's count and sums", sums, 3)


def peak_of(path: Path) -> float:
    """Return the peak memory, in GiB, of a process that does nothing but sketch the file."""
    code = (
        "import sys; from calibrant.sources.sketching import sketch; "
        "sketch(sys.argv[1], label='y', prob='p')"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20


def main() -> None:
    """Print the ratio of times, and the peak of memory."""
    n_rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**8
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        write(path, n_rows)
        print(time_of(path, n_rows), flush=True)
        print(f"{'peak memory of that sketch':<44} {peak_of(path):9.2f} GiB")


if __name__ == "__main__":
    main()
