# SPDX-License-Identifier: MIT OR Apache-2.0
"""Engines: jobs in other processes, on Dask or on Ray. Workers return results; the process that calls writes the folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any, TypeAlias

from . import _paceline
from .errors import ArgumentError, PacelineError, PackageMissing

Jobs: TypeAlias = Callable[[int], list[tuple[Any, ...]]]
"""Returns the arguments of each job for a number of workers. It is called again when these jobs are done, until there are none."""


def check_engine(engine: str, client: Any) -> None:
    """Raises an exception if the engine is not available."""
    if engine == "threads":
        return
    if engine not in _ENGINES:
        raise ArgumentError(f"no engine {engine!r}; known: threads, {', '.join(_ENGINES)}")
    if engine == "ray" and client is not None:
        raise ArgumentError("`client` is for Dask; Ray uses the cluster of ray.init()")
    package = {"dask": "distributed", "ray": "ray"}[engine]
    try:
        import_module(package)
    except ImportError as missing:
        raise PackageMissing(f"the engine `{engine}` needs {package}: pip install 'paceline[{engine}]'") from missing


def check_version(version: str) -> None:
    """Raises an exception if this worker has another version than the process that sent the job."""
    if version != _paceline.VERSION:
        versions = f"a worker has Paceline {_paceline.VERSION}, but the job needs {version}"
        raise PacelineError(f"{versions}: install the same version")


def completed(
    engine: str,
    client: Any,
    function: Callable[..., Any],
    shared: Any,
    jobs: Jobs,
    progress: Callable[[int, int], object] | None,
) -> Iterator[Any]:
    """Calls `function(*arguments, shared=shared)` for each job and yields the results as they are completed."""
    count = 0

    def counted(workers: int) -> list[tuple[Any, ...]]:
        nonlocal count
        made = jobs(workers)
        count += len(made)
        return made

    for done, result in enumerate(_ENGINES[engine](client, function, shared, counted), 1):
        yield result
        if progress is not None:
            progress(done, count)


def _dask(client: Any, function: Callable[..., Any], shared: Any, jobs: Jobs) -> Iterator[Any]:
    from distributed import Client, as_completed

    own = client is None
    if own:
        client = Client()
    try:
        while all_jobs := jobs(sum(client.nthreads().values())):
            # Dask gives the job of a worker that died to another worker.
            futures = client.map(function, *zip(*all_jobs, strict=True), shared=shared, pure=False, retries=3)
            for future, result in as_completed(futures, with_results=True):
                future.release()
                yield result
    finally:
        if own:
            client.close()


def _ray(client: Any, function: Callable[..., Any], shared: Any, jobs: Jobs) -> Iterator[Any]:
    import ray

    if not ray.is_initialized():
        ray.init()
    workers = int(ray.cluster_resources().get("CPU", 1))
    remote: Any = ray.remote(max_retries=3)(function)
    sent = ray.put(shared)
    while all_jobs := jobs(workers):
        rest = iter(all_jobs)
        # Limits the number of submitted jobs: a sweep may have millions.
        pending = [remote.remote(*job, shared=sent) for job in islice(rest, 4 * workers)]
        while pending:
            done, pending = ray.wait(pending)
            pending += [remote.remote(*job, shared=sent) for job in islice(rest, len(done))]
            yield from ray.get(done)


_ENGINES: dict[str, Callable[[Any, Callable[..., Any], Any, Jobs], Iterator[Any]]] = {"dask": _dask, "ray": _ray}
"""Functions that run jobs in other processes, by engine."""
