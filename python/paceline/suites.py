"""Suites: tests with bounds under several controllers, on threads, on Dask or on Ray.

The results of a suite under a controller depend only on its scenarios and the version, so every engine gives the same document.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import _paceline
from .arguments import seed_of
from .controllers import Controller, _registered, with_registered
from .errors import ArgumentError, PacelineError
from .runs import _Result
from .sweeps import check_engine

__all__ = ["SuiteResult", "suite"]


class SuiteResult(_Result):
    """Which bounds hold under which controller. As a mapping it is the document of `suite --json`. Can be pickled."""

    def __init__(self, finished: _paceline.FinishedSuites) -> None:
        super().__init__(json.loads(finished.document), finished.text, finished.html)

    @property
    def controllers(self) -> list[str]:
        """The controllers and oracles, in order of the rows."""
        return [row["controller"] for row in self["suites"][0]["rows"]]

    def __repr__(self) -> str:
        names = ", ".join(suite["id"] for suite in self["suites"])
        return f"<{names}: {len(self.controllers)} controllers>"


class _Job:
    """Data for a worker: one suite under one controller, and the registered controllers that it needs."""

    def __init__(self, suite: str, controller: str, repeats: int | None, registered: Iterable[Controller]) -> None:
        self.suite, self.controller, self.repeats = suite, controller, repeats
        self.registered = tuple(own for own in registered if own.name == controller)
        self.version = _paceline.VERSION

    def document(self) -> str:
        """Runs it and returns its document."""
        if self.version != _paceline.VERSION:
            versions = f"a worker has Paceline {_paceline.VERSION}, but the suite needs {self.version}"
            raise PacelineError(f"{versions}: install the same version")
        registered = with_registered(self.registered)
        return _paceline.suites([self.suite], [self.controller], self.repeats, registered, None).document


def suite(
    *names: str,
    controllers: Sequence[str] = (),
    repeats: int | None = None,
    engine: str = "threads",
    threads: int | None = None,
    client: Any = None,
) -> SuiteResult:
    """Runs suites and returns which bounds hold: `suite("l4s", "wifi", controllers=["googcc", "scream-v2"])`.

    `names` are suites of the package, `all`, or manifests of your own. `controllers` are names of controllers and of the oracles
    `ideal` and `causal`, or `all` (default: googcc, scream-v2 and nada). `repeats` is the number of runs of each test (default: that of
    the manifest).

    `engine`: `threads` uses `threads` threads of this process (default: the number of cores). `dask` uses the workers of `client`, a
    `distributed.Client` (default: a new cluster on this machine). `ray` uses the cluster of `ray.init` (default: a new one on this
    machine). A job of a worker is one suite under one controller. Manifests of your own must exist on each worker.
    """
    if not names:
        raise ArgumentError('name a suite, such as "l4s", or "all"')
    if isinstance(controllers, str):
        raise ArgumentError(f'controllers are a list: controllers=["{controllers}"]')
    if threads is not None and not 1 <= operator.index(threads) <= 1024:
        raise ArgumentError(f"threads must be 1 to 1024, not {threads}")
    count = None if repeats is None else seed_of(repeats)
    if count is not None and not 1 <= count <= 1000:
        raise ArgumentError(f"repeats must be 1 to 1000, not {repeats}")
    if engine == "threads":
        return SuiteResult(_paceline.suites(list(names), list(controllers), count, with_registered(), threads))
    check_engine(engine, client)
    pairs = _paceline.suite_jobs(list(names), list(controllers), with_registered())
    jobs = [_Job(name, controller, count, _registered.values()) for name, controller in pairs]
    return SuiteResult(_paceline.merge_suites(list(names), _ENGINES[engine](jobs, client)))


def _document(job: _Job) -> str:
    return job.document()


def _dask(jobs: list[_Job], client: Any) -> list[str]:
    from distributed import Client

    own = client is None
    if own:
        make: Any = Client
        client = make()
    try:
        # Dask gives the job of a worker that died to another worker.
        documents: list[str] = client.gather(client.map(_document, jobs, pure=False, retries=3))
        return documents
    finally:
        if own:
            client.close()


def _ray(jobs: list[_Job], client: Any) -> list[str]:
    import ray

    if not ray.is_initialized():
        ray.init()
    remote: Any = ray.remote(max_retries=3)(_document)
    documents: list[str] = ray.get([remote.remote(job) for job in jobs])
    return documents


_ENGINES: dict[str, Callable[[list[_Job], Any], list[str]]] = {"dask": _dask, "ray": _ray}
"""Functions that run jobs in other processes, by engine. They return the documents in the order of the jobs."""
