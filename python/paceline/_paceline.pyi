"""The extension. What people use of it stands in `paceline`."""

from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "VERSION",
    "Arrivals",
    "Decision",
    "Feedback",
    "Folder",
    "Gym",
    "Message",
    "ReceiverReport",
    "SentPacket",
    "Setup",
    "StreamState",
    "Sweep",
    "Swept",
    "Watched",
    "cases",
    "catalogue",
    "compare",
    "edited",
    "evaluate",
    "find",
    "quantities",
    "reproduce",
    "run",
    "runs",
]

VERSION: str

@final
class Setup:
    """What a controller is told at birth."""

    start_bps: int
    """The first target."""
    min_bps: int
    """Never below this."""
    max_bps: int
    """The most that the flow's sources can use, headers included."""
    parameters: dict[str, float]
    """Its parameters, as scenario and changes say them."""

@final
class Decision:
    """What encoder and pacer are to do until the next decision. Rates include IP and UDP headers."""

    target_bps: float
    """What the flow sends in all."""
    pacing_bps: float
    """How fast the pacer may empty its queue; 1.5 times the target unless said."""
    padding_bps: float
    """Up to this rate, padding fills what media leaves free; the target unless said."""
    outstanding_bytes: int | None
    """Bound on what was sent and neither acknowledged nor lost."""
    after_highest_bytes: int | None
    """Bound on what was sent after the highest acknowledged packet."""
    def __new__(
        cls,
        target_bps: float,
        *,
        pacing_bps: float | None = None,
        padding_bps: float | None = None,
        outstanding_bytes: int | None = None,
        after_highest_bytes: int | None = None,
    ) -> Self: ...

@final
class SentPacket:
    """A packet as it left the pacer."""

    sequence: int
    """Number within the flow, from 0."""
    size: int
    """Bytes on the network, IP and UDP headers included."""
    stream: int
    """Number of its stream."""
    kind: Literal["media", "retransmission", "fec", "padding"]

@final
class ReceiverReport:
    """What an RTCP report says of the flow."""

    fraction_lost: float
    """Fraction of packets lost since the report before, 0 to 1."""
    rtt_s: float | None
    """Round-trip time, if the report gave one."""

@final
class StreamState:
    """How a stream is doing at the sender."""

    stream: int
    """Its number."""
    queued_bytes: int
    """What waits in the pacer for it."""
    unused_bps: int
    """What it was allowed and its source did not use."""
    priority: float
    """Its weight when streams share the target."""

@final
class Message:
    """A message of a receive half; what its kind does not say is None."""

    kind: Literal["remb", "gradient", "nada"]
    rate_bps: int
    """The estimated maximum of a REMB; of the others, the rate that came in."""
    signal_ms: float | None
    """Of `gradient`: the one-way delay gradient. Of `nada`: the composite congestion signal."""
    mode: Literal["ramp-up", "gradual"] | None
    """Of `nada`."""

@final
class Feedback:
    """One feedback message: every packet that it settles, in order of sequence. Each array is made when it is asked for."""

    outstanding_bytes: int
    """Sent, and neither acknowledged nor lost, after this message."""
    after_highest_bytes: int
    """Sent after the highest acknowledged packet."""
    @property
    def sequence(self) -> npt.NDArray[np.uint64]:
        """Number of each packet within the flow."""
    @property
    def sent_s(self) -> npt.NDArray[np.float64]:
        """When each left the pacer."""
    @property
    def arrival_s(self) -> npt.NDArray[np.float64]:
        """When each arrived, on the receiver's clock, of which only differences mean anything; NaN: lost."""
    @property
    def size(self) -> npt.NDArray[np.uint64]:
        """Bytes on the network."""
    @property
    def ecn(self) -> npt.NDArray[np.uint8]:
        """ECN field on arrival: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced."""
    def __len__(self) -> int: ...

@final
class Arrivals:
    """The packets that arrived since the last call, in order."""

    @property
    def arrival_s(self) -> npt.NDArray[np.float64]:
        """When each arrived, on the receiver's clock."""
    @property
    def sent_s(self) -> npt.NDArray[np.float64]:
        """When each was sent, as its header says: only differences mean anything; NaN: it says nothing."""
    @property
    def timestamp(self) -> npt.NDArray[np.uint32]:
        """RTP timestamp: packets of one frame share it."""
    @property
    def sequence(self) -> npt.NDArray[np.uint16]:
        """RTP sequence number."""
    @property
    def stream(self) -> npt.NDArray[np.uint8]:
        """Number of its stream."""
    @property
    def video(self) -> npt.NDArray[np.bool_]:
        """Whether its stream is video."""
    @property
    def media(self) -> npt.NDArray[np.bool_]:
        """Whether it is media, and neither repair nor padding."""
    @property
    def size(self) -> npt.NDArray[np.uint64]:
        """Bytes on the network."""
    @property
    def ecn(self) -> npt.NDArray[np.uint8]:
        """ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced."""
    def __len__(self) -> int: ...

@final
class Watched:
    """A run that was watched."""

    document: str
    """What `run --json` prints of it."""
    metrics: str
    """Every metric of the run as a whole, by id, as JSON."""
    def series(self) -> list[tuple[str, str, npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """Name, unit, times in s and values of every series."""
    def capacity(self) -> list[tuple[str, list[tuple[float, float]] | None]]:
        """From when (s) which capacity (bit/s) each hop has."""
    def title(self) -> str:
        """A line on the scenario."""
    def svg(self) -> str:
        """Rate and queue over time, as an SVG document."""

@final
class Sweep:
    """A sweep that was read."""

    jobs: int
    """How many jobs there are."""
    text: str
    """Its text, changes made."""
    def __new__(cls, ask: Any, seeds: int | None, controllers: list[Any]) -> Self: ...
    def batch_size(self, workers: int) -> int:
        """How many jobs should be done at a time by so many workers."""
    def batch(self, first: int, end: int) -> str:
        """The rows of some jobs, in order, as JSON."""
    def run(self, threads: int | None) -> Swept:
        """Every job on local threads, in memory."""
    def open(self, dir: Path, resume: bool) -> Folder:
        """Makes a folder for it, or goes on with one."""
    def prove(self, folder: Folder) -> None:
        """Complains if code is no longer what the folder's rows were made with."""
    def run_into(self, folder: Folder, threads: int | None) -> Swept:
        """Every job that the folder lacks, on local threads."""
    def merge(self, folder: Folder) -> Swept:
        """What the folder's rows come to, all of them being there."""
    def refined(self, swept: Swept) -> Sweep | None:
        """The best points of what it came to once more, on more seeds, if its file asks for them."""

@final
class Swept:
    """What a sweep came to."""

    document: str
    """As `paceline sweep --json` prints it: without its points where they are in a folder."""

@final
class Folder:
    """A folder of a sweep, held by this process alone until it is closed."""

    done: int
    """How many jobs are done."""
    def close(self) -> None:
        """Lets go of it."""
    def batches(self, size: int) -> list[tuple[int, int]]:
        """What is not done yet, first and end of each batch."""
    def write(self, rows: str) -> None:
        """Takes the rows of a batch, as JSON."""

# What stands for a question (`scenario.Ask`) and for a controller (`controllers._Registered`) is read by its attributes.

def run(ask: Any, controller: str | None, seed: int, controllers: list[Any], out: Path | None) -> Watched: ...
def runs(ask: Any, controller: str | None, seeds: list[int], controllers: list[Any], out: Path | None) -> str: ...
def compare(ask: Any, names: list[str], seeds: list[int] | None, controllers: list[Any], out: Path | None) -> str: ...
def reproduce(asks: list[Any], controller: str | None, seeds: int | None, controllers: list[Any]) -> str: ...
def find(name: str) -> tuple[str, str]: ...
def edited(ask: Any) -> str: ...
def cases(ask: Any, controllers: list[Any]) -> list[str]: ...
def catalogue(controllers: list[Any]) -> str: ...

@final
class Gym:
    """Episodes side by side: what `gym.Env` and `gym.VectorEnv` step."""

    rates: tuple[int, int]
    """Of the actions -1 and 1, bit/s."""
    def __new__(cls, task: Any, seats: int, history: int, threads: int, controllers: list[Any]) -> Self: ...
    def reset(self, seeds: list[int | None]) -> _Step: ...
    def step(self, actions: npt.NDArray[np.float32]) -> _Step: ...

_Step: TypeAlias = tuple[
    npt.NDArray[np.float32], npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.float64]
]
"""Observations, rewards, ends, truths."""

def evaluate(
    task: Any, controller: str | None, seeds: list[int], threads: int, controllers: list[Any]
) -> list[tuple[int, int, float, float, float, float]]: ...
def quantities() -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]: ...
