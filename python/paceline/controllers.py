# SPDX-License-Identifier: MIT OR Apache-2.0
"""Controllers: those of the library by name, and your own as a class.

A controller is a pair of halves (`SendHalf` at the sender, `ReceiveHalf` at the receiver), the feedback between them, and
parameters. The methods are those of the Rust traits of the same names: `handle_*` methods receive an event and its time,
`decision` returns the rates. Only `handle_*` methods that the class defines are called: a half that needs one call per
feedback defines only `handle_feedback`.
"""

from __future__ import annotations

import difflib
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from . import _paceline
from ._paceline import (
    Arrivals,
    Bounds,
    Decision,
    Feedback,
    Message,
    QueuedFrame,
    ReceiverReport,
    RoundTrip,
    SentPacket,
    Setup,
    StreamState,
)
from .errors import ArgumentError

__all__ = [
    "Controller",
    "Parameter",
    "ReceiveHalf",
    "SendHalf",
    "controllers",
    "register",
]


class _Emits:
    """Signals of a half."""

    signals: Mapping[str, str | Sequence[str]] = {}
    """Name of each signal, with its unit or the names of its states."""

    def emit(self, name: str, value: float | str) -> None:
        """Emits a value of a declared signal: a number, or the name or index of a state. The run records it as the series
        `FLOW.NAME`."""
        declared = self.signals.get(name)
        if declared is None:
            raise ArgumentError(f"no signal `{name}` is declared; declared: {', '.join(self.signals) or 'none'}")
        if isinstance(value, str):
            if isinstance(declared, str) or value not in declared:
                states = "a number" if isinstance(declared, str) else f"one of {', '.join(declared)}"
                raise ArgumentError(f"the signal `{name}` must be {states}, not {value!r}")
            value = list(declared).index(value)
        self.__dict__.setdefault("_emitted", []).append((name, float(value)))


class SendHalf(_Emits):
    """The half at the sender. Times are seconds since the start of the run, and never decrease."""

    def __init__(self, setup: Setup) -> None:
        """Receives rate limits and parameters."""

    def handle_sent(self, now_s: float, packet: SentPacket) -> None:
        """Handles a packet that left the pacer. There is one call per packet: define it only if you need it."""

    def handle_feedback(self, now_s: float, feedback: Feedback) -> None:
        """Handles a per-packet feedback message with the packets that it reports."""

    def handle_rtt(self, now_s: float, rtt: RoundTrip) -> None:
        """Handles a sample of the round-trip time, from a report on this flow."""

    def handle_report(self, now_s: float, report: ReceiverReport) -> None:
        """Handles the loss in reports on this flow, once they cover at least 20 packets."""

    def handle_message(self, now_s: float, message: Message) -> None:
        """Handles a message of the receive half."""

    def handle_stream(self, now_s: float, stream: StreamState) -> None:
        """Handles the state of a stream, before each of its frames."""

    def handle_frame(self, now_s: float, frame: QueuedFrame) -> None:
        """Handles a frame that was queued in the pacer, after `handle_stream`."""

    def handle_application_limit(self, now_s: float, limited: bool) -> None:
        """Handles a change of whether the application limits the flow: it has no backlog and sends less than the target
        allows."""

    def handle_stream_removed(self, now_s: float, stream: int) -> None:
        """Handles the end of a stream."""

    def handle_bounds(self, now_s: float, bounds: Bounds) -> None:
        """Handles new limits of the target, which apply at once. A half without this method is limited to them."""

    def handle_route_change(self, now_s: float, setup: Setup) -> None:
        """Handles a change of the network route: earlier measurements do not describe the new path. A half without this method
        is replaced by a new one, made with `setup`."""

    def handle_availability(self, now_s: float, available: bool) -> None:
        """Handles the loss and the return of the network. While it is unavailable, the flow sends nothing."""

    def handle_timeout(self, now_s: float) -> None:
        """Handles the timeout of `poll_timeout`, which must return a later time afterwards."""

    def poll_timeout(self) -> float | None:
        """Returns the time of the next `handle_timeout`, s; `None` for no timeout."""

    def decision(self) -> Decision | float:
        """Returns the current decision; called after every `handle_*`. A number is a target in bit/s, headers included, with
        the pacing rate at 1.5 times the target and padding up to the target, as in the library's GCC."""
        raise NotImplementedError(f"{type(self).__name__} needs a method decision()")


class ReceiveHalf(_Emits):
    """The half at the receiver, on the receiver's clock. Times never decrease."""

    def __init__(self, setup: Setup) -> None:
        """Receives rate limits and parameters."""

    def handle_arrivals(self, now_s: float, arrivals: Arrivals) -> float | None:
        """Handles the packets that arrived since the last call. Returns the rate, bit/s, of a REMB to send, or `None`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method handle_arrivals()")

    def handle_bounds(self, now_s: float, bounds: Bounds) -> None:
        """Handles new limits of the sender's target."""

    def handle_route_change(self, now_s: float, setup: Setup) -> None:
        """Handles a change of the network route. A half without this method is replaced by a new one, made with `setup`."""


def warn_of_unknown_methods(half: type, base: type) -> None:
    """Warns of methods of a half that have a name as if the package called them, or nearly such a name, but are not called."""
    known = [method for method in dir(base) if method.startswith(("handle_", "poll_")) or method == "decision"]
    for name in dir(half):
        if name.startswith("_") or hasattr(base, name) or not callable(getattr(half, name)):
            continue
        is_method = name.startswith(("handle_", "poll_"))
        for near in difflib.get_close_matches(name, known, n=1, cutoff=0.0 if is_method else 0.85):
            text = (
                f"{half.__qualname__}.{name} is never called: {base.__name__} has no such method; did you mean {near}?"
            )
            warnings.warn(text, UserWarning, stacklevel=2)


@dataclass(frozen=True)
class Parameter:
    """A parameter, which `set={"flow.ID.config.NAME": …}` changes."""

    default: float
    low: float
    high: float
    unit: str = ""
    what: str = ""


@dataclass(frozen=True)
class Controller:
    """A controller of your own. Pass it instead of a controller's name, or `register` it so that scenarios can name it."""

    name: str
    send: Callable[[Setup], SendHalf] | None = None
    """Makes the send half of a flow: usually the class."""
    receive: Callable[[Setup], ReceiveHalf] | str | None = None
    """Makes the receive half. A name selects the receive half of a controller of the library, with its feedback and ECN
    codepoint."""
    feedback: Literal["none", "transport-wide", "rfc8888"] = "transport-wide"
    """Per-packet feedback of the receiving endpoint."""
    interval_ms: float = 50.0
    """Time between two feedback messages."""
    longest_ms: float = 250.0
    """Maximum time between two feedback messages. The interval grows up to this where feedback would take more than 5 % of
    the rate that it reports on."""
    batch_ms: float = 0.0
    """Time over which packets are collected for one call of `handle_arrivals`; 0: one call per packet."""
    ecn: bool = False
    """Whether media packets are ECN-capable, ECT(0)."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    summary: str = "written in Python"
    source: str = "this program"

    def __post_init__(self) -> None:
        if self.send is None and self.receive is None:
            raise ArgumentError(f"controller {self.name!r} has neither a send nor a receive half")
        if not self.name or any(c.isspace() or c == "," for c in self.name):
            raise ArgumentError(f"controller name {self.name!r} must not be empty or contain whitespace or commas")


@dataclass(frozen=True)
class _Registered:
    """A controller as the extension reads it."""

    name: str
    summary: str
    source: str
    send: Callable[[Setup], Any] | None
    receive: Callable[[Setup], Any] | None
    receive_of: str | None
    feedback: str
    interval_ms: float
    longest_ms: float
    batch_ms: float
    ecn: bool
    parameters: list[tuple[str, float, float, float, str, str]]
    send_signals: list[tuple[str, str, list[str]]]
    receive_signals: list[tuple[str, str, list[str]]]

    @staticmethod
    def from_controller(c: Controller) -> _Registered:
        def signals(half: object) -> list[tuple[str, str, list[str]]]:
            declared: Mapping[str, str | Sequence[str]] = getattr(half, "signals", {})
            return [(n, u, []) if isinstance(u, str) else (n, "", list(u)) for n, u in declared.items()]

        named = isinstance(c.receive, str)
        parameters = [(n, p.default, p.low, p.high, p.unit, p.what) for n, p in c.parameters.items()]
        return _Registered(
            name=c.name,
            summary=c.summary,
            source=c.source,
            send=c.send,
            receive=None if named else c.receive,  # type: ignore[arg-type]
            receive_of=c.receive if named else None,  # type: ignore[arg-type]
            feedback=c.feedback,
            interval_ms=c.interval_ms,
            longest_ms=c.longest_ms,
            batch_ms=c.batch_ms,
            ecn=c.ecn,
            parameters=parameters,
            send_signals=signals(c.send),
            receive_signals=signals(None if named else c.receive),
        )


_registered: dict[str, Controller] = {}
"""The controllers of `register`, by name."""


def register(controller: Controller | str, **fields: Any) -> Controller:
    """Registers a controller, so that scenarios can name it. Replaces an earlier one of the same name.
    `register("mine", send=Mine)` is short for `register(Controller("mine", send=Mine))`."""
    made = Controller(controller, **fields) if isinstance(controller, str) else controller
    _paceline.catalogue([_Registered.from_controller(made)])  # raises an exception if the controller is invalid
    _registered[made.name] = made
    return made


def controllers() -> list[dict[str, Any]]:
    """Returns every controller with parameters and signals, as `paceline list controllers --json` prints them."""
    listed: list[dict[str, Any]] = json.loads(_paceline.catalogue(with_registered()))["controllers"]
    return listed


def with_registered(chosen: Iterable[Controller] = ()) -> list[_Registered]:
    """Returns the registered controllers and these, which replace any of the same name."""
    return [_Registered.from_controller(c) for c in {**_registered, **{c.name: c for c in chosen}}.values()]


def named(controller: Controller | str) -> tuple[str, list[Controller]]:
    """Returns the name of a controller, and the controller itself if it must be registered for the call."""
    return (controller, []) if isinstance(controller, str) else (controller.name, [controller])
