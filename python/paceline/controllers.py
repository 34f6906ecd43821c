"""Controllers: those of the library by name, and your own as a class.

A controller is a pair of halves (`SendHalf` at the sender, `ReceiveHalf` at the receiver), the report that joins them, and
numbers that can be set. The methods are those of the Rust traits of the same names. They are told what happened
(`handle_*`, with the time), and asked what to do (`decision`). Of the `handle_*` methods only those that the class defines
are called, so a half that wants one call per feedback defines `handle_feedback` alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from . import _paceline
from ._paceline import Arrivals, Decision, Feedback, Message, ReceiverReport, SentPacket, Setup, StreamState

__all__ = [
    "Controller",
    "Parameter",
    "ReceiveHalf",
    "SendHalf",
    "controllers",
    "register",
]


class _Emits:
    """What lets one see inside a half."""

    signals: Mapping[str, str | Sequence[str]] = {}
    """Each signal's name, and its unit, or the names of its states."""

    def emit(self, name: str, value: float) -> None:
        """Emits a value of a declared signal (of states: the index). It becomes the series `FLOW.NAME` of the run."""
        self.__dict__.setdefault("_emitted", []).append((name, float(value)))


class SendHalf(_Emits):
    """The half at the sender. Times are seconds since the run began, and never go back."""

    def __init__(self, setup: Setup) -> None:
        """What the flow tells a controller at birth."""

    def handle_sent(self, now_s: float, packet: SentPacket) -> None:
        """A packet left the pacer. One call per packet: define it only where it is needed."""

    def handle_feedback(self, now_s: float, feedback: Feedback) -> None:
        """A per-packet feedback message came: every packet that it settles."""

    def handle_report(self, now_s: float, report: ReceiverReport) -> None:
        """A sender or receiver report came, with a block on this flow."""

    def handle_message(self, now_s: float, message: Message) -> None:
        """A message of the receive half came, behind a report."""

    def handle_stream(self, now_s: float, stream: StreamState) -> None:
        """How a stream is doing; told before each of its frames."""

    def handle_timeout(self, now_s: float) -> None:
        """The time of `poll_timeout` has come; after it that answers a later one."""

    def poll_timeout(self) -> float | None:
        """When `handle_timeout` is wanted, s; None for never."""

    def decision(self) -> Decision | float:
        """What to do now, asked after every `handle_*`. A number is a target in bit/s, headers included, with the pacer at
        1.5 times that and padding up to it, as the library's GCC has it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method decision()")


class ReceiveHalf(_Emits):
    """The half at the receiver, on the receiver's clock. Times never go back."""

    def __init__(self, setup: Setup) -> None:
        """What the flow tells a controller at birth."""

    def handle_arrivals(self, now_s: float, arrivals: Arrivals) -> float | None:
        """The packets that arrived since the last call. Answers the rate, bit/s, of a REMB to send, or None."""
        raise NotImplementedError(f"{type(self).__name__} needs a method handle_arrivals()")


@dataclass(frozen=True)
class Parameter:
    """A number that `set={"flow.ID.config.NAME": …}` changes."""

    default: float
    low: float
    high: float
    unit: str = ""
    what: str = ""


@dataclass(frozen=True)
class Controller:
    """A controller of your own. Hand it over where a name of one is wanted, or `register` it for scenarios to name."""

    name: str
    send: Callable[[Setup], SendHalf] | None = None
    """What makes the send half of a flow: usually the class."""
    receive: Callable[[Setup], ReceiveHalf] | str | None = None
    """What makes the receive half; a name: that of this controller of the library, with its report and ECN codepoint."""
    feedback: Literal["none", "transport-wide", "rfc8888"] = "transport-wide"
    """Which per-packet report the receiving endpoint writes."""
    interval_ms: float = 50.0
    """Time between two reports."""
    longest_ms: float = 250.0
    """Reports are further apart, up to this, where they would take more than a twentieth of the rate that they report on."""
    batch_ms: float = 0.0
    """So long `handle_arrivals` gathers packets; 0: a call for each."""
    ecn: bool = False
    """Whether media packets are ECN-capable, ECT(0)."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    summary: str = "written in Python"
    source: str = "this program"

    def __post_init__(self) -> None:
        if self.send is None and self.receive is None:
            raise ValueError(f"controller {self.name!r} has neither a send nor a receive half")
        if not self.name or any(c.isspace() or c == "," for c in self.name):
            raise ValueError(f"{self.name!r} is no name: blanks and commas separate names")


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
    def of(c: Controller) -> _Registered:
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


_known: dict[str, Controller] = {}
"""What `register` was told."""


def register(controller: Controller | str, **how: Any) -> Controller:
    """Makes a controller known by its name, to scenarios too; again: in place of the one before. `register("mine", send=Mine)`
    is `register(Controller("mine", send=Mine))`."""
    made = Controller(controller, **how) if isinstance(controller, str) else controller
    _paceline.catalogue([_Registered.of(made)])  # complains of what cannot be
    _known[made.name] = made
    return made


def controllers() -> list[dict[str, Any]]:
    """Every controller by name, with parameters and signals, as `paceline list controllers --json` has them."""
    listed: list[dict[str, Any]] = json.loads(_paceline.catalogue(with_known()))["controllers"]
    return listed


def with_known(chosen: Iterable[Controller] = ()) -> list[_Registered]:
    """Those that are registered, and these in place of any of the same name."""
    return [_Registered.of(c) for c in {**_known, **{c.name: c for c in chosen}}.values()]


def named(controller: Controller | str) -> tuple[str, list[Controller]]:
    """The name, and what to register beside what is known."""
    return (controller, []) if isinstance(controller, str) else (controller.name, [controller])
