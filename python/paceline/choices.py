# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which controller to choose for a call on your paths."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _paceline
from .arguments import Progress, controllers_of, progress_of, seeds_of
from .controllers import Controller, named, with_registered
from .errors import ArgumentError
from .result import Result
from .scenario import toml
from .tables import Table, columns_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Choice", "choose"]


class Choice(Result):
    """Which controller to choose. As a mapping it is the document of `choose --json`. Frames have a row for each controller on each path,
    and for their mean over several paths. The first columns of `rows` are `path` and `controller`."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        rows = Table._of_columns(data["rows"])
        super().__init__(json.loads(data["document"]), data["text"], data["html"], rows)
        self.page: str = data["page"]
        """The page of `paceline choose`: HTML that prints on one sheet of A4."""

    @property
    def verdict(self) -> str:
        """What follows from the ranking, in a few sentences."""
        return " ".join(self["verdict"])

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """The controllers by their mean score over the paths, as in `Comparison.ranking`."""
        ranking: list[dict[str, Any]] = self["ranking"]
        return ranking

    def _columns(self) -> dict[str, list[Any]]:
        paths = [(path["name"], path["table"]["ranking"]) for path in self["paths"]]
        rankings = [("mean", self.ranking), *paths] if len(paths) > 1 else paths
        return columns_of(
            [
                {
                    "path": name,
                    "place": entry["place"],
                    "controller": entry["controller"],
                    "score": entry["score"]["mean"],
                    "ci95": entry["score"]["ci95"],
                    **{key: entry[key] for key in ("lost_to_rate", "lost_to_delay", "lost_to_freezes", "others_keep")},
                }
                for name, ranking in rankings
                for entry in ranking
            ]
        )

    def plot(self) -> Figure:
        """Draws the score of each controller on each path, with its interval, with matplotlib."""
        from .plot import plot_choice

        return plot_choice(self)

    def write_page(self, file: str | Path) -> None:
        """Writes `page` into a file."""
        Path(file).write_text(self.page, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<choice for {', '.join(path['name'] for path in self['paths'])}: {self.verdict}>"


def choose(
    *paths: str,
    trace: str | Path | Sequence[str | Path] = (),
    video: str | None = None,
    use: str | None = None,
    duration: str | None = None,
    controllers: Sequence[Controller | str] | None = None,
    seeds: int | Iterable[int] = 10,
    set: Mapping[str, Any] | None = None,
    progress: Progress = False,
) -> Choice:
    """Runs a call on your paths under each controller, and says which one to choose, as `paceline choose`:
    `choose("wifi-fq-codel", trace="uplink.up", video="720p")`.

    `paths` are presets, scenarios, or files of recorded traces; `trace` is a trace `[NAME=]FILE[,BACK]`, or a list of them. `video`, `use`
    and `duration` are those of the call over presets and traces. `controllers` are the candidates (default: those of `suite`, and drc). The other
    arguments are those of `compare`."""
    traces = [str(one) for one in ([trace] if isinstance(trace, str | Path) else trace)]
    if not paths and not traces:
        raise ArgumentError('name a path: choose("dsl") or choose(trace="uplink.up")')
    chosen = [named(c) for c in controllers_of(controllers)] if controllers is not None else []
    names, own = [name for name, _ in chosen], [c for _, more in chosen for c in more]
    settings = [f"{key}={toml(value)}" for key, value in (set or {}).items()]
    numbers = seeds_of(seeds)
    given: dict[str, Any] = {"trace": traces, "video": video, "use": use, "duration": duration, "set": set}
    given |= {"controllers": names, "seeds": numbers}
    words = [repr(path) for path in paths] + [f"{key}={value!r}" for key, value in given.items() if value]
    call = (list(paths), traces, (video, use, duration), settings)
    command = f"paceline.choose({', '.join(words)})"
    data = _paceline.choose(call, names, numbers, with_registered(own), command, progress_of(progress))
    return Choice(data)
