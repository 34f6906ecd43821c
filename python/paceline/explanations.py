# SPDX-License-Identifier: MIT OR Apache-2.0
"""Why the rate of a call fell, and its path as a scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _paceline
from .controllers import Controller, named, with_registered
from .errors import ArgumentError
from .result import Result
from .scenario import Scenario
from .tables import Table, columns_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Explanation", "explain", "fit"]


def _no_rows() -> Table:
    raise ArgumentError("an explanation has no table of results: `to_pandas()` has the causes")


class Explanation(Result):
    """Why the rate of a call fell. As a mapping it is the document of `explain --json`. Frames have a row for each of the `causes`."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(json.loads(data["document"]), data["text"], data["html"], _no_rows)

    @property
    def verdict(self) -> str:
        """The answer in one sentence: how long the call was poor, why, and what did not limit it."""
        return str(self["inputs"][0]["verdict"])

    @property
    def causes(self) -> list[dict[str, Any]]:
        """What happened, by flow in order of time. `cost_bps` is the rate that it cost: `from_bps` less `to_bps`. `confidence` is `strong`,
        `weak`, or `None` for an unknown cause; `others` are further causes that fit."""
        return [
            {
                "flow": flow["flow"],
                **{key: found[key] for key in ("kind", "start_s", "end_s", "from_bps", "to_bps")},
                "cost_bps": found["from_bps"] - found["to_bps"],
                "cause": found["cause"],
                "confidence": found["evidence"] and found["evidence"]["strength"],
                "is_ambiguous": found["is_ambiguous"],
                "evidence": found["evidence"] and found["evidence"]["text"],
                "others": ", ".join(other["cause"] for other in found["others"]),
                "advice": found["advice"],
            }
            for flow in self["inputs"][0]["flows"]
            for found in flow["findings"]
        ]

    def _columns(self) -> dict[str, list[Any]]:
        return columns_of(self.causes)

    def plot(self) -> Figure:
        """Not available: `paceline explain --page` draws the series."""
        raise ArgumentError(
            "an explanation has no plot: `paceline explain FILE --page PAGE` draws the series with the causes"
        )

    def __repr__(self) -> str:
        return f"<explanation: {self.verdict}>"


def explain(file: str | Path, *, run: str | None = None, what_if: Sequence[Controller | str] = ()) -> Explanation:
    """Explains why the rate of a call fell, as `paceline explain`: `explain("webrtc_internals_dump.gz").verdict`.

    `file` is a capture, a dump, statistics or a log of a call, or a folder of results, of which `run` names one run. `what_if` are controllers
    that run on the path as far as it was observed; `explanation["inputs"][0]["what_if"]` has their results."""
    chosen = [named(c) for c in ([what_if] if isinstance(what_if, str | Controller) else what_if)]
    own = [c for _, more in chosen for c in more]
    return Explanation(_paceline.explain(Path(file), run, [name for name, _ in chosen], with_registered(own)))


def fit(file: str | Path, *, run: str | None = None, controller: Controller | str | None = None) -> Scenario:
    """Returns the path of a call as a scenario, as `paceline fit`: `run(fit("call.pcapng"), controller="nada")`. Its method `to_toml()` returns the
    text with comments, which say what is known of the path.

    `file` and `run` are those of `explain`. `controller` is that of the media flows (default: those of the run, and googcc for other inputs)."""
    name, own = (None, []) if controller is None else named(controller)
    text = _paceline.fit(Path(file), run, name, with_registered(own))
    return Scenario._of("path.toml", text, {})
