"""The extension module. `paceline` is the public interface."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt
from typing_extensions import disjoint_base

__all__ = [
    "VERSION",
    "Arrivals",
    "Bounds",
    "Decision",
    "Feedback",
    "FinishedSuites",
    "FinishedSweep",
    "FlowReceiver",
    "FlowSender",
    "Folder",
    "Gym",
    "Message",
    "Observer",
    "PacketHead",
    "ProbeCluster",
    "QueuedFrame",
    "Receiver",
    "ReceiverReport",
    "Report",
    "RoundTrip",
    "Sender",
    "SenderEvent",
    "SentPacket",
    "Setup",
    "StreamState",
    "SuiteRuns",
    "Sweep",
    "Transmit",
    "cases",
    "catalogue",
    "command",
    "choose",
    "compare",
    "constants",
    "edited",
    "evaluate",
    "explain",
    "find",
    "fit",
    "load",
    "quantities",
    "replay",
    "reproduce",
    "rows",
    "runs",
    "suite_job",
    "svg",
    "trial",
]

VERSION: str

@final
class Setup:
    """Input of a controller's constructor."""

    start_bps: int
    """Initial target rate."""
    min_bps: int
    """Minimum target rate."""
    max_bps: int
    """Maximum rate that the flow's sources can use, headers included."""
    packet_size_bytes: int
    """Size of the largest RTP packet, without IP and UDP headers."""
    parameters: dict[str, float]
    """Values of the parameters."""

@final
class Bounds:
    """Limits of the target."""

    min_bps: int
    """Minimum target rate."""
    max_bps: int
    """Maximum target rate."""

@final
class Decision:
    """Rates and window of encoder and pacer until the next decision. Rates include IP and UDP headers."""

    target_bps: float
    """Send rate of the flow."""
    pacing_bps: float
    """Rate at which the pacer may empty its queue (default: 1.5 times the target)."""
    padding_bps: float
    """Padding fills the flow up to this rate (default: the target)."""
    outstanding_bytes: int | None
    """Limit of bytes that are neither acknowledged nor lost."""
    after_highest_bytes: int | None
    """Limit of bytes sent after the highest acknowledged packet."""
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
    """A packet that left the pacer."""

    sequence: int
    """Sequence number within the flow, from 0."""
    size: int
    """Bytes on the network, IP and UDP headers included."""
    stream: int
    """Number of the stream."""
    kind: Literal["media", "retransmission", "fec", "padding"]

@final
class ReceiverReport:
    """The loss in the RTCP reports on the flow, over at least 20 packets."""

    fraction_lost: float
    """Fraction of packets lost since the previous one, 0 to 1."""

@final
class RoundTrip:
    """The round-trip time of the path, without the time for which the receiver held the report."""

    last_s: float
    """The last sample, s."""
    smoothed_s: float
    """The smoothed time, s: each sample has a weight of 1/8."""

@final
class StreamState:
    """State of a stream at the sender."""

    stream: int
    """Number of the stream."""
    queued_bytes: int
    """Bytes of the stream in the pacer's queue."""
    unused_bps: int
    """Allocated rate that its source did not use over the last window of 500 ms or more."""
    priority: float
    """Weight of the stream when streams share the target."""

@final
class QueuedFrame:
    """A frame whose packets are in the pacer's queue."""

    stream: int
    """Number of the stream."""
    size: int
    """Bytes of its packets on the network, FEC included."""
    packets: int
    """Number of its packets, FEC included."""
    key: bool
    """Whether it can be decoded without earlier frames."""

@final
class Message:
    """A message of a receive half. Fields that its kind does not have are `None`."""

    kind: Literal["remb", "nada"]
    rate_bps: int
    """REMB: the estimated maximum. Other kinds: the receive rate."""
    signal_ms: float | None
    """`nada`: the composite congestion signal."""
    mode: Literal["ramp-up", "gradual"] | None
    """Only for `nada`."""

@final
class Feedback:
    """One feedback message: the packets that it reports as received or lost, in order of sequence. Each array is made on
    access."""

    outstanding_bytes: int
    """Bytes that are neither acknowledged nor lost after this message."""
    after_highest_bytes: int
    """Bytes sent after the highest acknowledged packet."""
    @property
    def sequence(self) -> npt.NDArray[np.uint64]:
        """Sequence numbers within the flow."""
    @property
    def sent_s(self) -> npt.NDArray[np.float64]:
        """Times at which the packets left the pacer."""
    @property
    def arrival_s(self) -> npt.NDArray[np.float64]:
        """Arrival times on the receiver's clock, of which only differences are meaningful; NaN: lost."""
    @property
    def size(self) -> npt.NDArray[np.uint64]:
        """Bytes on the network, IP and UDP headers included."""
    @property
    def ecn(self) -> npt.NDArray[np.int8]:
        """ECN fields on arrival: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced; -1: the feedback does not
        contain them."""
    def __len__(self) -> int: ...

@final
class Arrivals:
    """The packets that arrived since the last call, in order."""

    @property
    def arrival_s(self) -> npt.NDArray[np.float64]:
        """Arrival times on the receiver's clock."""
    @property
    def sent_s(self) -> npt.NDArray[np.float64]:
        """Send times from the header. Only differences are meaningful; NaN: no send time."""
    @property
    def timestamp(self) -> npt.NDArray[np.uint32]:
        """RTP timestamps. The packets of a frame share one."""
    @property
    def sequence(self) -> npt.NDArray[np.uint16]:
        """RTP sequence numbers."""
    @property
    def stream(self) -> npt.NDArray[np.uint8]:
        """Numbers of the streams."""
    @property
    def video(self) -> npt.NDArray[np.bool_]:
        """Whether the stream is video."""
    @property
    def media(self) -> npt.NDArray[np.bool_]:
        """Whether the packet is media, not repair or padding."""
    @property
    def size(self) -> npt.NDArray[np.uint64]:
        """Bytes on the network, IP and UDP headers included."""
    @property
    def ecn(self) -> npt.NDArray[np.uint8]:
        """ECN fields: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced."""
    def __len__(self) -> int: ...

@final
class Sweep:
    """A loaded sweep."""

    jobs: int
    """Number of jobs."""
    text: str
    """The text with the changes."""
    def __new__(cls, request: Any, seeds: int | None, controllers: list[Any], world: str) -> Self: ...
    def runs(self, request: Any, point: int, measure: int, making: Any) -> dict[str, Any]:
        """Makes the runs behind a measure at a point, each with its series and packets."""
    def batch_size(self, workers: int) -> int:
        """Returns a suitable number of jobs per batch for this number of workers."""
    def batch(self, first: int, end: int) -> str:
        """Runs a range of jobs and returns their rows, in order, as JSON."""
    def run(self, threads: int | None, progress: _Progress) -> FinishedSweep:
        """Runs every job on local threads, in memory."""
    def open(self, dir: Path, resume: bool) -> Folder:
        """Creates a folder for the sweep, or resumes one."""
    def verify(self, folder: Folder) -> None:
        """Checks that the folder's rows were made with the same code."""
    def run_into(self, folder: Folder, threads: int | None, progress: _Progress) -> FinishedSweep:
        """Runs every job that is missing in the folder, on local threads."""
    def merge(self, folder: Folder) -> FinishedSweep:
        """Computes the result from the folder's rows, which must be complete."""
    def refined(self, finished: FinishedSweep) -> Sweep | None:
        """Returns the sweep of the best points on more seeds, if the file has `[refine]`."""

_Progress: TypeAlias = Callable[[int, int], object] | None
"""Called with the work that is done and its total."""

@final
class SuiteRuns:
    """The runs of suites under controllers."""

    def __new__(
        cls,
        names: list[str],
        controllers: list[str],
        seeds: list[int] | None,
        registered: list[Any],
        out: Path | None,
        resume: bool,
    ) -> Self: ...
    def run(self, threads: int | None, progress: _Progress) -> None:
        """Makes the missing runs on local threads; `None`: one for each core."""
    def jobs(self, workers: int, batch: int | None) -> list[tuple[int, str, str, int, list[int], list[int]]]:
        """Returns the missing runs as jobs for this number of workers: number, suite, controller, index of the scenario, indices of its
        cases, and seeds. Finished runs may show that more are needed, until there are no jobs."""
    def add(self, job: int, runs: str) -> None:
        """Adds and stores the runs of a job, given as JSON."""
    def finish(self) -> FinishedSuites:
        """Returns the results, and writes them into the folder. All runs must be finished."""
    def close(self) -> None:
        """Closes the folder."""

def suite_job(
    suite: str, controller: str, scenario: int, cases: list[int], seeds: list[int], registered: list[Any]
) -> str:
    """Makes the runs of a job and returns them as JSON: cases of a scenario of a suite under a controller."""

@final
class FinishedSuites:
    """The results of suites."""

    document: str
    """The JSON document of `paceline suite --json`."""
    text: str
    """The result as the command prints it."""
    html: str
    """The same as HTML."""
    rows: list[_Column]
    """The columns of the table of results."""

@final
class FinishedSweep:
    """The result of a sweep."""

    document: str
    """The JSON document of `paceline sweep --json`."""
    source: str
    """The text of the sweep."""
    text: str
    """The result as the command prints it."""
    html: str
    """The same as HTML."""
    rows: list[_Column]
    """The columns of the table of results, for a sweep in memory."""

@final
class Folder:
    """A folder of a sweep, locked by this process until `close()`."""

    done: int
    """Number of finished jobs."""
    def close(self) -> None:
        """Unlocks the folder."""
    def batches(self, size: int) -> list[tuple[int, int]]:
        """Returns the missing jobs as batches: first job, and end."""
    def write(self, rows: str) -> None:
        """Stores the rows of a batch, given as JSON."""

_SetupNumbers: TypeAlias = tuple[int, int, int, int]
"""The start, the minimum and the maximum of the target, bit/s, and the size of packets, bytes."""

@final
class Sender:
    """The send half of a controller."""

    decision: Decision
    """The current decision."""
    def __new__(
        cls, name: str, setup: _SetupNumbers, parameters: list[tuple[str, float]], controllers: list[Any]
    ) -> Self: ...
    def handle_bounds(self, now_s: float, min_bps: int, max_bps: int) -> None:
        """Passes new limits of the target."""
    def handle_route_change(self, now_s: float, setup: _SetupNumbers) -> None:
        """Passes a change of the route."""
    def handle_availability(self, now_s: float, available: bool) -> None:
        """Passes the loss or the return of the network."""
    def handle_stream_removed(self, now_s: float, stream: int) -> None:
        """Passes the end of a stream."""

@final
class Receiver:
    """The receive half of a controller."""

    def __new__(
        cls, name: str, setup: _SetupNumbers, parameters: list[tuple[str, float]], controllers: list[Any]
    ) -> Self: ...
    def handle_bounds(self, now_s: float, min_bps: int, max_bps: int) -> None:
        """Passes new limits of the target."""
    def handle_route_change(self, now_s: float, setup: _SetupNumbers) -> None:
        """Passes a change of the route."""

_Ecn: TypeAlias = Literal["not-ect", "ect0", "ect1", "ce"]
_Media: TypeAlias = Literal["video", "audio"]
_Kind: TypeAlias = Literal["media", "retransmission", "fec", "padding"]
_Arrival: TypeAlias = tuple[int, float | None, _Ecn | None]
"""The number of a packet, its arrival on the receiver's clock or `None` for a loss, and its ECN field if it is known."""

@final
class PacketHead:
    """What the receiver must learn about a packet. A program writes it into a format of its own, or as an RTP header."""

    number: int
    """The number within the flow, from 0."""
    sent_s: float
    """The time at which the packet left, on the sender's clock."""
    stream: int
    """The number of the stream."""
    media: _Media
    """The media type of the stream."""
    kind: _Kind
    """The purpose."""
    timestamp: int
    """The media timestamp, which the packets of a frame share."""
    def __new__(
        cls,
        number: int,
        sent_s: float,
        *,
        stream: int = 0,
        media: _Media = "video",
        kind: _Kind = "media",
        timestamp: int = 0,
    ) -> Self: ...
    def rtp_header(
        self,
        ssrc: int,
        sequence: int,
        *,
        payload_type: int = 96,
        marker: bool = False,
        abs_send_time_id: int = 2,
        transport_sequence_id: int = 3,
    ) -> bytes:
        """Returns an RTP header with the number and the time in its extensions. An id of 0 leaves an extension out."""

@final
class Transmit:
    """A packet to send now."""

    packet: Any
    """What the program passed with the frame; `None` for padding: send the head, and fill the datagram up to `size`, less the
    headers of IP and UDP."""
    head: PacketHead
    """What the receiver must learn about the packet."""
    size: int
    """Bytes on the network, IP and UDP headers included."""
    ecn: _Ecn
    """The ECN codepoint. A program that cannot set it may ignore it."""
    probe: int | None
    """The probe cluster to which the packet belongs."""

@final
class SenderEvent:
    """What changed in a sender. Fields that the kind does not have are `None`."""

    kind: Literal[
        "decision",
        "stream-rates",
        "round-trip",
        "fraction-lost",
        "probe-result",
        "frame-dropped",
        "key-frame-requested",
        "feedback-lost",
        "feedback-resumed",
        "clock-stepped-back",
        "controller-failed",
    ]
    stream: int | None
    """`frame-dropped`, `key-frame-requested`: the stream."""
    probe: int | None
    """`probe-result`: the cluster."""
    rate_bps: float | None
    """`decision`: the target; `probe-result`: the rate at which the cluster arrived."""
    seconds: float | None
    """`round-trip`: the time; `clock-stepped-back`: the step."""
    fraction_lost: float | None
    """`fraction-lost`: the fraction, 0 to 1."""

@final
class ProbeCluster:
    """Packets that test a rate: send at least `packets` packets, and at least the bytes of `duration_s`, at `rate_bps`."""

    id: int
    """Passed to `handle_sent` with each of the packets."""
    rate_bps: float
    duration_s: float
    packets: int

@final
class Report:
    """A report of a receiver. A program sends its fields in a format of its own, and makes it again at the sender."""

    number: int
    """The number of the report, from 0."""
    written_s: float
    """The time at which it was written, on the receiver's clock."""
    packets: list[_Arrival]
    """The packets that arrived, and those that did not, by ascending number."""
    reception: tuple[int, int, float, float] | None
    """One more than the highest number that arrived, the number of packets that arrived, the send time of the last one, and the
    time from its arrival to the report, s."""
    remb_bps: int | None
    """The rate of the receive half of GCC with REMB. Messages of other receive halves cannot be sent in a format of the program:
    use RTP."""
    def __new__(
        cls,
        number: int,
        written_s: float,
        packets: list[_Arrival],
        *,
        reception: tuple[int, int, float, float] | None = None,
        remb_bps: int | None = None,
    ) -> Self: ...

@disjoint_base
class FlowSender:
    """The sender of a flow."""

    def __new__(
        cls, name: str, setup: _SetupNumbers, parameters: list[tuple[str, float]], controllers: list[Any]
    ) -> Self: ...
    @property
    def target_bps(self) -> float:
        """The rate of the flow, IP and UDP headers included."""
    @property
    def decision(self) -> Decision:
        """The decision in force."""
    @property
    def window_is_open(self) -> bool:
        """Whether the bound on bytes in flight leaves room for a packet."""
    @property
    def queued_bytes(self) -> int:
        """The size of all packets in the queue."""
    @property
    def in_flight_bytes(self) -> int:
        """The bytes in flight; 0 without reports on packets."""
    def add_stream(
        self,
        stream: int,
        *,
        media: _Media = "video",
        min_bps: int = 0,
        max_bps: int | None = None,
        priority: float = 1.0,
    ) -> bool:
        """Adds a stream. Without `max_bps` it can use the whole target. Returns `False` if its number is in use."""
    def remove_stream(self, now_s: float, stream: int) -> bool:
        """Ends a stream. Returns whether there was one with this number."""
    def set_stream_limits(self, now_s: float, stream: int, *, min_bps: int, max_bps: int) -> bool:
        """Sets the rates that the source of a stream can make; a maximum of 0 pauses it. Returns whether there is such a stream."""
    def stream_rate_bps(self, stream: int) -> float | None:
        """Returns the share of the target of a stream; `None` if there is no such stream."""
    def push_frame(
        self,
        now_s: float,
        packets: Iterable[tuple[Any, int]],
        *,
        key: bool = False,
        stream: int = 0,
        captured_s: float | None = None,
    ) -> bool:
        """Queues the packets of a frame, each with its size. Returns `False` if the frame is dropped; the next one should be a
        key frame."""
    def poll_transmit(self, now_s: float) -> Transmit | None:
        """Returns the next packet that may leave now."""
    def set_paces(self, paces: bool) -> None:
        """Sets whether the sender paces. If not, the program reports each packet by `handle_sent`, and reads `decision` and
        `poll_probe`."""
    def handle_sent(
        self, now_s: float, size: int, *, stream: int = 0, kind: _Kind = "media", probe: int | None = None
    ) -> int:
        """Handles a packet that left the pacer of the program. Returns its number."""
    def handle_stream(self, now_s: float, queued_bytes: int, *, stream: int = 0, max_bps: int | None = None) -> None:
        """Handles the state of a stream before each frame, for a program that paces: what waits in its queue, and the highest rate
        of the encoder."""
    def finish_frame(
        self, now_s: float, size: int, packets: int, *, key: bool = False, stream: int = 0
    ) -> None:
        """Handles a frame of this size and number of packets that a program which paces has put into its queue."""
    def poll_probe(self) -> ProbeCluster | None:
        """Returns the next probe cluster, for a program that paces."""
    def handle_report(self, now_s: float, report: Report) -> None:
        """Handles a report of the receiver."""
    def handle_reports(self, now_s: float, packets: list[_Arrival]) -> None:
        """Handles a report on packets of another receiver. Packets below its lowest number that no report has named are no longer in flight."""
    def handle_rtt(self, now_s: float, rtt_s: float) -> None:
        """Handles a round-trip time that the program measured."""
    def handle_loss(self, now_s: float, fraction_lost: float) -> None:
        """Handles the loss of receiver reports, over at least 20 packets."""
    def handle_remb(self, now_s: float, bps: int) -> None:
        """Handles a REMB."""
    def handle_rtcp(self, now_s: float, datagram: bytes) -> None:
        """Handles an RTCP datagram: transport-wide feedback, RFC 8888, receiver reports, REMB, key frame requests. Raises
        `InputError` if it is malformed; it then has no effect."""
    def add_ssrcs(self, stream: int, ssrc: int, rtx_ssrc: int, first_sequence: int) -> None:
        """Declares the SSRCs of a stream. RTCP on other SSRCs then has no effect."""
    def handle_rtp_sent(self, number: int, ssrc: int, sequence: int) -> None:
        """Records the SSRC and the RTP sequence number of the packet with this number."""
    def set_bounds(self, now_s: float, *, min_bps: int, max_bps: int) -> None:
        """Sets the limits of the target, which hold at once."""
    def handle_route_change(
        self, now_s: float, *, start_bps: int, min_bps: int, max_bps: int, packet_size_bytes: int = 1200
    ) -> None:
        """Handles a change of the network route. The controller starts again."""
    def set_available(self, now_s: float, available: bool) -> None:
        """Sets whether there is a network."""
    def handle_timeout(self, now_s: float) -> None:
        """Handles the passing of time: call it at the time of `poll_timeout`."""
    def poll_timeout(self) -> float | None:
        """Returns the next time at which `handle_timeout` and then `poll_transmit` must be called."""
    def poll_event(self) -> SenderEvent | None:
        """Returns the next event."""

@disjoint_base
class FlowReceiver:
    """The receiver of a flow."""

    def __new__(
        cls,
        name: str,
        setup: _SetupNumbers,
        parameters: list[tuple[str, float]],
        controllers: list[Any],
        rtp: tuple[int, int, int, int] | None,
    ) -> Self: ...
    def handle_packet(self, now_s: float, head: PacketHead, size: int, *, ecn: _Ecn = "not-ect") -> None:
        """Handles a packet that arrived."""
    def handle_rtp(
        self,
        now_s: float,
        datagram: bytes,
        *,
        size: int,
        ecn: _Ecn = "not-ect",
        stream: int = 0,
        media: _Media = "video",
        kind: _Kind = "media",
    ) -> None:
        """Handles an RTP packet that arrived; its header is enough. `size` includes IP and UDP headers. Raises `InputError` if it is
        malformed."""
    def handle_rtcp(self, now_s: float, datagram: bytes) -> None:
        """Handles an RTCP datagram of the sender, whose sender reports give it round-trip times."""
    def add_ssrcs(self, ssrcs: list[int]) -> None:
        """Adds SSRCs to the reports."""
    def poll_report(self, now_s: float) -> Report | None:
        """Returns the next report that is due."""
    def poll_rtcp(self, now_s: float) -> bytes | None:
        """Returns the next RTCP compound that is due."""
    def handle_timeout(self, now_s: float) -> None:
        """Handles the passing of time: call it at the time of `poll_timeout`."""
    def poll_timeout(self) -> float | None:
        """Returns the next time at which `handle_timeout` and then a report is due."""
    def set_bounds(self, now_s: float, *, min_bps: int, max_bps: int) -> None:
        """Handles new limits of the sender's target, if they are known here."""
    def handle_route_change(
        self, now_s: float, *, start_bps: int, min_bps: int, max_bps: int, packet_size_bytes: int = 1200
    ) -> None:
        """Handles a change of the network route."""

_Series: TypeAlias = tuple[str, str, npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Name, unit, times in s and values."""

_Column: TypeAlias = tuple[str, npt.NDArray[Any], list[str] | None]
"""Name, values, and the names that the values are indices of."""

# A request (`scenario._Request`), a controller (`controllers._Registered`) and how runs are made (`arguments.Making`) are read by
# their attributes. Results are dicts with the fields of the struct of the same name.

def command(words: list[str], program: list[str]) -> int: ...
def runs(
    request: Any, controller: str | None, making: Any, controllers: list[Any], progress: _Progress
) -> dict[str, Any]: ...
def choose(
    calls: tuple[list[str], list[str], tuple[str | None, str | None, str | None], list[str]],
    names: list[str],
    seeds: list[int],
    controllers: list[Any],
    command: str,
    progress: _Progress,
) -> dict[str, Any]: ...
def compare(
    request: Any, names: list[str], making: Any, controllers: list[Any], command: str, progress: _Progress
) -> dict[str, Any]: ...
def reproduce(
    requests: list[Any],
    controller: str | None,
    seeds: int | None,
    controllers: list[Any],
    world: str,
    progress: _Progress,
) -> dict[str, Any]: ...
def trial(
    requests: list[Any], controller: str | None, seeds: int | None, constants: list[tuple[str, str]], null_sender: bool
) -> str: ...
def constants(requests: list[Any]) -> str: ...
def load(dir: Path, controllers: list[Any]) -> dict[str, Any]: ...
def rows(dir: Path, directories: list[str] | None) -> list[_Column]: ...
def replay(directory: Path, packets: bool) -> tuple[list[_Series] | None, list[_Column] | None]: ...
def svg(
    description: str,
    controllers: list[str],
    seed: int,
    series: list[tuple[str, npt.NDArray[np.float64], npt.NDArray[np.float64]]],
) -> str: ...
def explain(file: Path, run: str | None, what_if: list[str], controllers: list[Any]) -> dict[str, Any]: ...
def fit(input: Path, run: str | None, controller: str | None, controllers: list[Any]) -> str: ...
def find(name: str) -> tuple[str, str]: ...
def edited(request: Any) -> str: ...
def cases(request: Any, controllers: list[Any]) -> list[str]: ...
def catalogue(controllers: list[Any]) -> str: ...

@final
class Gym:
    """The episodes of a `gym.Env` or `gym.VectorEnv`."""

    rates: tuple[int, int]
    """Rates of the actions -1 and 1, bit/s."""
    def __new__(cls, task: Any, environments: int, history: int, threads: int, controllers: list[Any]) -> Self: ...
    def reset(self, seeds: list[int | None]) -> _Step: ...
    def step(self, actions: npt.NDArray[np.float32]) -> _Step: ...

_Step: TypeAlias = tuple[
    npt.NDArray[np.float32], npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.float64]
]
"""Observations, rewards, ends, ground truth."""

@final
class Observer:
    """Computes the observations of a policy that is a controller."""

    def __new__(cls, begin_s: float, rates_bps: tuple[int, int, int], step_s: float) -> Self: ...
    def handle_sent(self, size: int) -> None:
        """Adds a packet of this size that left the pacer."""
    def handle_feedback(self, now_s: float, feedback: Feedback) -> None:
        """Adds the packets of a feedback message."""
    def observe(self, now_s: float) -> npt.NDArray[np.float32]:
        """Returns the features of the step that ends now, and begins the next."""
    def act(self, action: float) -> int:
        """Returns the rate of an action, bit/s, which is the target from now on."""
    def __deepcopy__(self, _memo: Any) -> Self: ...

def evaluate(
    task: Any, controller: str | None, seeds: list[int], threads: int, controllers: list[Any]
) -> list[tuple[int, int, float, float, float, float]]: ...
def quantities() -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]: ...
