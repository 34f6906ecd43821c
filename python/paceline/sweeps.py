"""Sweeps: grids of settings whose jobs run on threads, on Dask or on Ray.

The rows of a job depend only on the sweep and the version, so threads, Dask and Ray give the same rows. The process that calls
`sweep` writes the folder; workers return rows and write nothing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from . import _paceline
from .controllers import Controller, _registered, with_registered
from .errors import SweepError
from .scenario import _Request, toml

__all__ = ["SweepFile", "sweep", "sweeps"]


class SweepFile:
    """A sweep made in code, from the keys of a sweep file."""

    def __init__(self, keys: Mapping[str, Any]) -> None:
        """Creates a sweep: `SweepFile({"id": …, "axis": [{"key": …, "values": […]}], "measure": [{…}]})`."""
        lines = [f"{key} = {toml(value)}" for key, value in keys.items()]
        self.text = "\n".join(lines) + "\n"


def sweeps() -> list[str]:
    """Returns the ids of the sweeps in the package."""
    listed: list[str] = json.loads(_paceline.catalogue([]))["sweeps"]
    return listed


def sweep(
    what: str | Path | SweepFile,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    engine: str = "threads",
    threads: int | None = None,
    client: Any = None,
    set: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    batch: int | None = None,
) -> dict[str, Any]:
    """Runs every job of a sweep and returns the result of each point, as `paceline sweep --json` prints it. If the file has
    `[refine]`, the best points are repeated on more seeds, as `refined`.

    `out` is a folder that stores each finished batch, and at the end `rows.parquet` and `points.parquet`; the same bytes with
    every engine. The refined sweep is in its subfolder `best`. `resume` continues an earlier sweep in the folder.

    `engine`: `threads` uses `threads` threads of this process (default: the number of cores). `dask` uses the workers of
    `client`, a `distributed.Client` (default: a new cluster on this machine). `ray` uses the cluster of `ray.init` (default:
    a new one on this machine). `batch` is the number of jobs that a worker gets at a time (default: chosen automatically).
    """
    text = what.text if isinstance(what, SweepFile) else None
    name = "sweep.toml" if isinstance(what, SweepFile) else str(what)
    settings = [f"{key}={toml(value)}" for key, value in (set or {}).items()]
    request = _Request(name, text, settings, None, None)
    into = None if out is None else Path(out)
    _check(engine, client, into)
    loaded = _paceline.Sweep(request, seeds, with_registered())

    def run(
        loaded: _paceline.Sweep, request: _Request, seeds: int | None, into: Path | None
    ) -> _paceline.FinishedSweep:
        if into is None:
            return loaded.run(threads)
        folder = loaded.open(into, resume)
        try:
            if engine == "threads":
                return loaded.run_into(folder, threads)
            loaded.verify(folder)
            job = Job(request, seeds, tuple(_registered.values()))
            for rows in _ENGINES[engine](job, loaded, folder, client, batch):
                folder.write(rows)
            return loaded.merge(folder)
        finally:
            # A traceback can keep the object alive.
            folder.close()

    finished = run(loaded, request, seeds, into)
    document: dict[str, Any] = json.loads(finished.document)
    refined = loaded.refined(finished)
    if refined is not None:
        best_request = _Request("best.sweep.toml", refined.text, [], None, None)
        best = run(refined, best_request, None, None if into is None else into / "best")
        document["refined"] = json.loads(best.document)
    return document


def _check(engine: str, client: Any, into: Path | None) -> None:
    """Raises an exception if the engine is not available."""
    if engine == "threads":
        return
    if engine not in _ENGINES:
        raise ValueError(f"no engine {engine!r}; known: threads, {', '.join(_ENGINES)}")
    if into is None:
        raise ValueError(f"the engine {engine!r} needs a folder: out=…")
    if engine == "ray" and client is not None:
        raise ValueError("`client` is for Dask; Ray uses the cluster of ray.init()")
    package = {"dask": "distributed", "ray": "ray"}[engine]
    try:
        import_module(package)
    except ImportError as missing:
        raise ImportError(f"the engine `{engine}` needs {package}: pip install 'paceline[{engine}]'") from missing


class Job:
    """Data for a worker: the text of the sweep, and the registered controllers that it names. Each worker loads it once."""

    def __init__(self, request: _Request, seeds: int | None, controllers: tuple[Controller, ...]) -> None:
        if request.text is None and Path(request.name).is_file():
            # The worker may be on another machine. Scenarios that the file names by path must exist there too.
            request = replace(request, text=Path(request.name).read_text(encoding="utf-8"))
        # Other controllers may be in modules that only this machine has.
        text = "\n".join([request.text or "", *request.settings])
        self.controllers = tuple(c for c in controllers if c.name in text)
        self.request, self.seeds = request, seeds
        self.token, self.version = uuid.uuid4().hex, _paceline.VERSION

    def rows(self, first: int, end: int) -> str:
        """Runs these jobs and returns their rows as JSON."""
        if self.version != _paceline.VERSION:
            versions = f"a worker has Paceline {_paceline.VERSION}, but the sweep needs {self.version}"
            raise SweepError(f"{versions}: install the same version")
        if self.token not in _loaded:
            _loaded.clear()
            _loaded[self.token] = _paceline.Sweep(self.request, self.seeds, with_registered(self.controllers))
        return _loaded[self.token].batch(first, end)


_loaded: dict[str, _paceline.Sweep] = {}
"""The last sweep of this worker process."""

_Engine = Callable[[Job, _paceline.Sweep, _paceline.Folder, Any, int | None], Iterator[str]]


def _dask(job: Job, loaded: _paceline.Sweep, folder: _paceline.Folder, client: Any, batch: int | None) -> Iterator[str]:
    from distributed import Client, as_completed

    own = client is None
    if own:
        client = Client()
    try:
        workers = sum(client.nthreads().values())
        batches = folder.batches(batch or loaded.batch_size(workers))
        # Dask gives the batch of a worker that died to another worker.
        futures = client.map(_rows, *zip(*batches, strict=True), job=job, pure=False, retries=3) if batches else []
        for future, rows in as_completed(futures, with_results=True):
            future.release()
            yield rows
    finally:
        if own:
            client.close()


def _rows(first: int, end: int, job: Job) -> str:
    return job.rows(first, end)


def _ray(job: Job, loaded: _paceline.Sweep, folder: _paceline.Folder, client: Any, batch: int | None) -> Iterator[str]:
    import ray

    if not ray.is_initialized():
        ray.init()
    workers = int(ray.cluster_resources().get("CPU", 1))
    batches = iter(folder.batches(batch or loaded.batch_size(workers)))
    remote: Any = ray.remote(max_retries=3)(_rows)
    sent = ray.put(job)
    # Limits the number of submitted batches: a sweep may have millions of jobs.
    pending = [remote.remote(*b, job=sent) for b in islice(batches, 4 * workers)]
    while pending:
        done, pending = ray.wait(pending)
        pending += [remote.remote(*b, job=sent) for b in islice(batches, len(done))]
        yield from ray.get(done)


_ENGINES: dict[str, _Engine] = {"dask": _dask, "ray": _ray}
"""Functions that compute rows in other processes, by engine."""
