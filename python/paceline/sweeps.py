"""Sweeps: a grid of settings, its jobs wherever there is room for them.

A job's rows hang on nothing but the sweep and the version, so threads here, Dask's workers and Ray's all make the same. The
folder is held by the process that calls `sweep`; workers answer rows and write nothing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from . import _paceline
from .controllers import Controller, _known, with_known
from .errors import SweepError
from .scenario import Ask, toml

__all__ = ["SweepFile", "sweep", "sweeps"]


class SweepFile:
    """A sweep as text: of a file, or made in code from the same keys."""

    def __init__(self, keys: Mapping[str, Any]) -> None:
        """`SweepFile({"id": …, "axis": [{"key": …, "values": […]}], "measure": [{…}]})`."""
        lines = [f"{key} = {toml(value)}" for key, value in keys.items()]
        self.text = "\n".join(lines) + "\n"


def sweeps() -> list[str]:
    """Ids of the sweeps that come with Paceline."""
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
    """Every job of a sweep; what each point comes to, as `paceline sweep --json` prints it. Where the file has `[refine]`, the best
    points follow on more seeds, as `refined`.

    `out` is a folder that takes each batch as it is done: `rows.parquet` and `points.parquet` in the end, the same bytes
    whoever made them; those of the refined sweep are in `best` in it. `resume` goes on with one.

    `engine`: `threads` of this process, as many as `threads` says or the machine has cores; `dask`, on the workers of
    `client` (a `distributed.Client`; without one a cluster on this machine is made); `ray`, on the cluster that `ray.init`
    joined (or one on this machine). `batch` is how many jobs a worker gets at a time, as many as fit if absent.
    """
    text = what.text if isinstance(what, SweepFile) else None
    name = "sweep.toml" if isinstance(what, SweepFile) else str(what)
    ask = Ask(name, text, [f"{key}={toml(value)}" for key, value in (set or {}).items()], None, None)
    into = None if out is None else Path(out)
    _check(engine, client, into)
    read = _paceline.Sweep(ask, seeds, with_known())

    def made(read: _paceline.Sweep, ask: Ask, seeds: int | None, into: Path | None) -> _paceline.Swept:
        if into is None:
            return read.run(threads)
        folder = read.open(into, resume)
        try:
            if engine == "threads":
                return read.run_into(folder, threads)
            read.prove(folder)
            job = Job(ask, seeds, tuple(_known.values()))
            for rows in _ENGINES[engine](job, read, folder, client, batch):
                folder.write(rows)
            return read.merge(folder)
        finally:
            # Python keeps it for as long as somebody looks at a traceback.
            folder.close()

    swept = made(read, ask, seeds, into)
    document: dict[str, Any] = json.loads(swept.document)
    refined = read.refined(swept)
    if refined is not None:
        again = Ask("best.sweep.toml", refined.text, [], None, None)
        best = made(refined, again, None, None if into is None else into / "best")
        document["refined"] = json.loads(best.document)
    return document


def _check(engine: str, client: Any, into: Path | None) -> None:
    """Complains of an engine that there is not, before anything is made."""
    if engine == "threads":
        return
    if engine not in _ENGINES:
        raise ValueError(f"no engine {engine!r}; there are: threads, {', '.join(_ENGINES)}")
    if into is None:
        raise ValueError(f"the engine {engine!r} needs a folder: out=…")
    if engine == "ray" and client is not None:
        raise ValueError("`client` is Dask's; Ray has the cluster that ray.init() joined")
    package = {"dask": "distributed", "ray": "ray"}[engine]
    try:
        import_module(package)
    except ImportError as missing:
        raise ImportError(f"the engine `{engine}` needs {package}: pip install 'paceline[{engine}]'") from missing


class Job:
    """What a worker is sent: the sweep's text, and what its program registered of the controllers that this names. It is read
    once a worker."""

    def __init__(self, ask: Ask, seeds: int | None, controllers: tuple[Controller, ...]) -> None:
        if ask.text is None and Path(ask.name).is_file():
            # The worker may be on another machine. Scenarios that the file names by path must be there too.
            ask = Ask(ask.name, Path(ask.name).read_text(encoding="utf-8"), ask.settings, ask.case, ask.again)
        # Others may be of modules that only this machine has.
        says = "\n".join([ask.text or "", *ask.settings])
        self.controllers = tuple(c for c in controllers if c.name in says)
        self.ask, self.seeds = ask, seeds
        self.token, self.version = uuid.uuid4().hex, _paceline.VERSION

    def rows(self, first: int, end: int) -> str:
        """The rows of these jobs, as JSON."""
        if self.version != _paceline.VERSION:
            raise SweepError(f"a worker has Paceline {_paceline.VERSION}, and the sweep is of {self.version}: install the same")
        if self.token not in _read:
            _read.clear()
            _read[self.token] = _paceline.Sweep(self.ask, self.seeds, with_known(self.controllers))
        return _read[self.token].batch(first, end)


_read: dict[str, _paceline.Sweep] = {}
"""The sweep that this process last worked at."""

_Engine = Callable[[Job, _paceline.Sweep, _paceline.Folder, Any, int | None], Iterator[str]]


def _dask(job: Job, read: _paceline.Sweep, folder: _paceline.Folder, client: Any, batch: int | None) -> Iterator[str]:
    from distributed import Client, as_completed

    own = client is None
    if own:
        client = Client()
    try:
        workers = sum(client.nthreads().values())
        batches = folder.batches(batch or read.batch_size(workers))
        # What a worker that died was at is given to another, as Dask does.
        futures = client.map(_rows, *zip(*batches, strict=True), job=job, pure=False, retries=3) if batches else []
        for future, rows in as_completed(futures, with_results=True):
            future.release()
            yield rows
    finally:
        if own:
            client.close()


def _rows(first: int, end: int, job: Job) -> str:
    return job.rows(first, end)


def _ray(job: Job, read: _paceline.Sweep, folder: _paceline.Folder, client: Any, batch: int | None) -> Iterator[str]:
    import ray

    if not ray.is_initialized():
        ray.init()
    workers = int(ray.cluster_resources().get("CPU", 1))
    batches = iter(folder.batches(batch or read.batch_size(workers)))
    remote: Any = ray.remote(max_retries=3)(_rows)
    sent = ray.put(job)
    # No more are asked for than can soon be worked at: a million jobs are not a million promises.
    waiting = [remote.remote(*b, job=sent) for b in islice(batches, 4 * workers)]
    while waiting:
        done, waiting = ray.wait(waiting)
        waiting += [remote.remote(*b, job=sent) for b in islice(batches, len(done))]
        yield from ray.get(done)


_ENGINES: dict[str, _Engine] = {"dask": _dask, "ray": _ray}
"""What makes rows in other processes."""
