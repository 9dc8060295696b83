"""Reads and prepares ratings files of growing size, and measures time and memory.

    python experiments/data_benchmark.py --rows 1000000 4000000 --out DIR

Writes made-up ratings in MovieLens' CSV form (ids and values are drawn; popularity falls off as a power), and
in a process of its own imports the package, reads, and prepares, each with its seconds, those of the CPU
(which tell more where other programs run), and the peak of resident memory so far; then it prepares again,
from the cache. Prints a table, and writes it to `DIR/data_benchmark.md` and as JSON to
`DIR/data_benchmark.json`. Bytes a row are the growth of the peak over that of the imports, over the rows.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

GENRES = 18
ROWS = 2**18  # written at once


def write_ratings(folder: Path, rows: int, users: int, movies: int, seed: int = 0) -> None:
    """`ratings.csv` and `movies.csv` of that size; every user and movie occurs."""
    rng = np.random.default_rng(seed)
    with (folder / "movies.csv").open("w", encoding="utf-8") as file:
        file.write("movieId,title,genres\n")
        for movie in range(1, movies + 1):
            own = rng.choice(GENRES, rng.integers(1, 4), replace=False)
            year = rng.integers(1930, 2020)
            file.write(f'{movie},"Film, {movie} ({year})",{"|".join(f"Genre{g}" for g in sorted(own))}\n')
    with (folder / "ratings.csv").open("w", encoding="utf-8") as file:
        file.write("userId,movieId,rating,timestamp\n")
        for start in range(0, rows, ROWS):
            number = np.arange(start, min(start + ROWS, rows))
            user = np.where(number < users, number, rng.integers(0, users, len(number)))
            movie = (movies * rng.random(len(number)) ** 3).astype(np.int64)
            movie = np.where(number < movies, number, movie)
            stars = rng.integers(1, 11, len(number)) / 2
            moments = rng.integers(800_000_000, 1_600_000_000, len(number))
            columns = (user + 1, movie + 1, stars, moments)
            rows_of_text = zip(*(column.tolist() for column in columns), strict=True)
            file.writelines(f"{u},{m},{s},{t}\n" for u, m, s, t in rows_of_text)


class Step(NamedTuple):
    """What a step took: seconds, those of the CPU (all threads), and the peak of memory so far, in bytes."""

    name: str
    seconds: float
    cpu: float
    peak: int


def measure(folder: Path, dim: int) -> list[Step]:
    """Import, read, prepare, prepare again."""
    steps: list[Step] = []
    start, cpu = time.perf_counter(), time.process_time()

    def done(step: str) -> None:
        nonlocal start, cpu
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        steps.append(Step(step, time.perf_counter() - start, time.process_time() - cpu, peak))
        start, cpu = time.perf_counter(), time.process_time()

    import pandas  # noqa: F401
    import sklearn.decomposition  # noqa: F401

    from conbandit_torch import MovieLens, prepare

    done("import")
    reader = MovieLens(folder)
    reader.read()
    done("read")
    prepare(reader, dim=dim, cache=folder / "cache")
    done("read and prepare")
    prepare(reader, dim=dim, cache=folder / "cache")
    done("from the cache")
    return steps


def measure_apart(folder: Path, dim: int) -> list[Step]:
    """What `measure` gives in a new process, whose memory is this measurement's alone."""
    fresh = multiprocessing.get_context("spawn")
    receiving, sending = fresh.Pipe(duplex=False)
    process = fresh.Process(target=_send, args=(folder, dim, sending))
    process.start()
    sending.close()
    try:
        steps: list[Step] = receiving.recv()
    except EOFError:
        sys.exit(f"{folder}: the measurement did not end")
    finally:
        process.join()
    return steps


def _send(folder: Path, dim: int, results: Connection) -> None:
    results.send(measure(folder, dim))


def run(rows: int, dim: int) -> dict[str, Any]:
    """All measurements of one size."""
    users, movies = max(2, rows // 150), max(40, min(60_000, rows // 100))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_ratings(folder, rows, users, movies)
        steps = measure_apart(folder, dim)
        size = (folder / "ratings.csv").stat().st_size
        cache = sum(path.stat().st_size for path in (folder / "cache").iterdir())
    return {"rows": rows, "users": users, "movies": movies, "bytes": size, "cache": cache, "steps": steps}


def table(results: list[dict[str, Any]]) -> str:
    """For people."""
    lines = ["| rows | file, MB | step | seconds | CPU seconds | peak memory, MB | bytes per row |"]
    lines += ["|---:|---:|---|---:|---:|---:|---:|"]
    for found in results:
        base, rows = found["steps"][0].peak, found["rows"]
        for step, seconds, cpu, peak in found["steps"]:
            each = "" if step == "import" else f"{(peak - base) / rows:.0f}"
            size = f"{found['bytes'] / 1e6:.1f}"
            times = f"{seconds:.2f} | {cpu:.2f}"
            lines.append(f"| {rows:,} | {size} | {step} | {times} | {peak / 1e6:.0f} | {each} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--dim", type=int, default=20)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    options = parser.parse_args(arguments)
    if min(options.rows) < 500:
        parser.error(f"--rows must be at least 500, got {min(options.rows)}")
    options.out.mkdir(parents=True, exist_ok=True)
    results = [run(rows, options.dim) for rows in options.rows]
    text = table(results)
    (options.out / "data_benchmark.md").write_text(text + "\n", encoding="utf-8")
    (options.out / "data_benchmark.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
