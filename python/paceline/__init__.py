# SPDX-License-Identifier: MIT OR Apache-2.0
"""Congestion control for real-time media: run, compare and reproduce experiments.

    import paceline
    run = paceline.run("mmsys16/table1", controller="gcc-2016", seed=1)
    run.metrics["utilization"], run.series["video.target_bps"].value

Names, documents and trace hashes are those of the command.
"""

from ._paceline import (
    VERSION as __version__,
)
from ._paceline import (
    Arrivals,
    Bounds,
    Decision,
    Feedback,
    Message,
    PacketHead,
    ProbeCluster,
    QueuedFrame,
    ReceiverReport,
    Report,
    RoundTrip,
    SenderEvent,
    SentPacket,
    Setup,
    StreamState,
    Transmit,
)
from .choices import Choice, choose
from .controllers import Controller, Parameter, ReceiveHalf, SendHalf, controllers, register
from .endpoints import Receiver, Sender
from .errors import (
    ArgumentError,
    InputError,
    PacelineError,
    PackageMissing,
    ResultsError,
    RunError,
    ScenarioError,
    SeriesError,
    SweepError,
    WorldUnavailable,
)
from .explanations import Explanation, explain, fit
from .result import Result
from .results import Results, load
from .runs import Comparison, ComparisonTable, Reproduction, Run, Runs, compare, repeat, reproduce, run
from .scenario import Scenario, scenarios
from .suites import SuiteResult, suite
from .sweeps import SweepFile, SweepResult, sweep, sweeps
from .tables import Series, Table

__all__ = [
    "ArgumentError",
    "Arrivals",
    "Bounds",
    "Choice",
    "Comparison",
    "ComparisonTable",
    "Controller",
    "Decision",
    "Explanation",
    "Feedback",
    "InputError",
    "Message",
    "PacelineError",
    "PackageMissing",
    "PacketHead",
    "Parameter",
    "ProbeCluster",
    "QueuedFrame",
    "ReceiveHalf",
    "Receiver",
    "ReceiverReport",
    "Report",
    "Reproduction",
    "Result",
    "Results",
    "ResultsError",
    "RoundTrip",
    "Run",
    "RunError",
    "Runs",
    "Scenario",
    "ScenarioError",
    "SendHalf",
    "Sender",
    "SenderEvent",
    "SentPacket",
    "Series",
    "SeriesError",
    "Setup",
    "StreamState",
    "SuiteResult",
    "SweepError",
    "SweepFile",
    "SweepResult",
    "Table",
    "Transmit",
    "WorldUnavailable",
    "__version__",
    "choose",
    "compare",
    "controllers",
    "explain",
    "fit",
    "load",
    "register",
    "repeat",
    "reproduce",
    "run",
    "scenarios",
    "suite",
    "sweep",
    "sweeps",
]
