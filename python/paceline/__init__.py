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
from .controllers import Controller, Parameter, ReceiveHalf, SendHalf, controllers, register
from .errors import PacelineError, RunError, ScenarioError, SweepError, WorldUnavailable
from .runs import Comparison, Run, Runs, Series, compare, repeat, reproduce, run
from .scenario import Scenario, scenarios
from .sweeps import SweepFile, sweep, sweeps

__all__ = [
    "Arrivals",
    "Comparison",
    "Controller",
    "Decision",
    "Feedback",
    "Message",
    "PacelineError",
    "Parameter",
    "QueuedFrame",
    "ReceiveHalf",
    "ReceiverReport",
    "RoundTrip",
    "Run",
    "RunError",
    "Runs",
    "Scenario",
    "ScenarioError",
    "SendHalf",
    "SentPacket",
    "Series",
    "Setup",
    "StreamState",
    "SweepError",
    "SweepFile",
    "WorldUnavailable",
    "__version__",
    "compare",
    "controllers",
    "register",
    "repeat",
    "reproduce",
    "run",
    "scenarios",
    "sweep",
    "sweeps",
]
