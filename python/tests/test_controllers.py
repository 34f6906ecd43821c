"""Controllers written in Python."""

import math
import traceback
import warnings

import numpy as np

import pytest
from loss_based import LossBased, controller

import paceline
from paceline.testing import Receiver, Sender

TABLE1 = "mmsys16/table1"
SHORT = {"duration": "20s"}
NO_PROBES = {"media.config.start_probes": 0}  # halves in Python send no probes


def test_a_port_of_gcc_2016_makes_the_same_decisions():
    built_in, port = (
        paceline.run(TABLE1, half, set=NO_PROBES) for half in ("gcc-2016", controller())
    )
    assert port.trace_hash == built_in.trace_hash
    for name in ("A_s", "A_r received", "f_l", "gamma"):
        np.testing.assert_array_equal(port.series[f"video.{name}"].value, built_in.series[f"video.{name}"].value)

    class Slower(LossBased):
        def decision(self):
            return 0.9 * super().decision()

    assert paceline.run(TABLE1, controller(half=Slower)).trace_hash != built_in.trace_hash


def test_compare_and_reproduce_accept_a_controller():
    mine = controller("mine")
    found = paceline.compare(TABLE1, [controller("other"), mine, "fixed"], seeds=2, set=SHORT)
    assert found["differences"][0]["same_runs"] == 2 and found["differences"][1]["same_runs"] == 0
    cells = paceline.reproduce(TABLE1, mine, seeds=1)["experiments"][0]["cells"]
    assert {c["controller"] for c in cells} == {"mine"}
    other = paceline.reproduce(TABLE1, controller("other"), seeds=1)["experiments"][0]["cells"]
    assert [c["measured"] for c in cells] == [c["measured"] for c in other]


def test_scenarios_can_name_a_registered_controller():
    paceline.register(controller("registered"))
    assert "registered" in [c["name"] for c in paceline.controllers()]
    scenario = paceline.Scenario(TABLE1).edit(SHORT | {"flow.video.controller": "registered"})
    run = paceline.run(scenario)
    assert run["flows"][0]["controller"] == "registered"
    assert run.trace_hash == paceline.run(TABLE1, controller(), set=SHORT).trace_hash
    with pytest.raises(ValueError, match="taken"):
        paceline.register("gcc-2016", send=LossBased)


class DelayBased(paceline.SendHalf):
    """Lowers the rate by 10 % if the delay exceeds its minimum by 30 ms, else raises it by the parameter `step`."""

    signals = {"queue": "ms", "state": ["up", "down"]}

    def __init__(self, setup):
        self.rate, self.setup, self.minimum = float(setup.start_bps), setup, math.inf
        self.step = setup.parameters["step"]

    def handle_feedback(self, now_s, feedback):
        assert len(feedback) == len(feedback.sequence) == len(feedback.size) > 0
        assert np.all(np.diff(feedback.sequence.astype(np.int64)) > 0) and feedback.sent_s.max() < now_s
        delay = np.nanmin(feedback.arrival_s - feedback.sent_s)
        if math.isnan(delay):
            return
        self.minimum = min(self.minimum, delay)
        overuse = delay > self.minimum + 0.03
        self.emit("queue", (delay - self.minimum) * 1e3)
        self.emit("state", overuse)
        self.rate = min(max(self.rate * (0.9 if overuse else 1 + self.step), self.setup.min_bps), self.setup.max_bps)

    def decision(self):
        return paceline.Decision(self.rate, pacing_bps=1.2 * self.rate, padding_bps=0)


def delay_based(**fields):
    step = {"step": paceline.Parameter(0.01, 0.001, 0.1, what="growth per feedback")}
    return paceline.Controller("delay-based", send=DelayBased, parameters=step, **fields)


def test_a_send_half_with_handle_feedback_only():
    capacity = {"duration": "60s", "path.forward.capacity": "1Mbps"}
    run = paceline.run(TABLE1, delay_based(), set=capacity)
    assert 0.6 < run.metrics["utilization"] < 1.0 and run.metrics["queue_p95_ms"] < 250
    states = run.series["video.state"]
    assert set(np.unique(states.value)) == {0.0, 1.0} and 60 / 0.26 < len(states) < 60 / 0.049
    assert run.trace_hash == paceline.run(TABLE1, delay_based(), set=capacity).trace_hash
    assert run.trace_hash != paceline.run(TABLE1, delay_based(interval_ms=100), set=capacity).trace_hash
    faster = paceline.run(TABLE1, delay_based(), set=capacity | {"flow.video.config.step": 0.05})
    assert faster.trace_hash != run.trace_hash
    with pytest.raises(paceline.ScenarioError, match="outside 0.001 to 0.1"):
        paceline.run(TABLE1, delay_based(), set=capacity | {"flow.video.config.step": 1})
    ecn = paceline.run(TABLE1, delay_based(feedback="rfc8888", ecn=True), set=capacity)
    assert ecn.trace_hash != run.trace_hash and ecn.metrics["utilization"] > 0.5


class Meter(paceline.ReceiveHalf):
    """Sends 1.125 times the receive rate of the last half second."""

    def __init__(self, setup):
        self.since, self.bytes = None, 0

    def handle_arrivals(self, now_s, arrivals):
        assert len(arrivals) > 0 and arrivals.arrival_s.max() <= now_s + 1e-9 and arrivals.video.any()
        self.since = self.since or arrivals.arrival_s[0]
        self.bytes += int(arrivals.size.sum())
        if now_s - self.since < 0.5:
            return None
        rate = self.bytes * 8 / (now_s - self.since) * 1.125
        self.since, self.bytes = now_s, 0
        return rate


def test_a_receive_half_sends_remb():
    both = paceline.Controller("metered", send=LossBased, receive=Meter, feedback="none", batch_ms=50)
    run = paceline.run(TABLE1, both, set=SHORT)
    rembs = run.series["video.remb_bps"]
    assert 15 < len(rembs) <= 40 and 1e5 < np.median(rembs.value) < 3e6
    each = paceline.Controller("metered", send=LossBased, receive=Meter, feedback="none")
    assert paceline.run(TABLE1, each, set=SHORT).trace_hash != run.trace_hash


class Clocked(paceline.SendHalf):
    """Changes the rate at a timeout each second, and records which methods are called."""

    called = set()

    def __init__(self, setup):
        self.next, self.rate = 1.0, 200_000

    def handle_sent(self, now_s, packet):
        assert packet.size > 0 and packet.kind in ("media", "retransmission", "fec", "padding")
        self.called.add("sent")

    def handle_stream(self, now_s, stream):
        assert stream.queued_bytes >= 0
        self.called.add("stream")

    def handle_frame(self, now_s, frame):
        assert frame.size > 100 * (frame.packets - 1) >= 0 and frame.stream == 0 and isinstance(frame.key, bool)
        self.called.add("frame")

    def handle_timeout(self, now_s):
        assert now_s >= self.next
        self.next, self.rate = self.next + 1.0, 500_000 if self.rate == 200_000 else 200_000
        self.called.add("timeout")

    def poll_timeout(self):
        return self.next

    def decision(self):
        return self.rate


def test_timeouts_arrive_at_the_requested_times():
    run = paceline.run(TABLE1, paceline.Controller("clocked", send=Clocked), set=SHORT)
    assert Clocked.called == {"sent", "stream", "frame", "timeout"}
    target = run.series["video.target_bps"]
    np.testing.assert_allclose(np.diff(target.time_s[1:]), 1.0, atol=1e-9)
    assert set(target.value) == {200_000.0, 500_000.0}


class Ample(paceline.SendHalf):
    """Allows more than the sources produce, without padding, and records the changes of the application limit."""

    limits = []

    def handle_application_limit(self, now_s, limited):
        self.limits.append((now_s, limited))

    def decision(self):
        return paceline.Decision(50_000_000, padding_bps=0)


def test_a_half_learns_that_the_application_limits_the_flow():
    paceline.run(TABLE1, paceline.Controller("ample", send=Ample), set=SHORT)
    ((at, limited),) = Ample.limits
    assert limited and 0 < at < 3


def half(**methods):
    return type("Half", (LossBased,), methods)


def test_an_exception_ends_the_run_with_a_note_how_to_repeat_it():
    def report(self, now_s, report):
        if now_s > 10:
            raise LookupError("no idea")

    broken = controller("broken", half(handle_report=report))
    with pytest.raises(LookupError, match="no idea") as raised:
        paceline.run(TABLE1, broken, seed=3, set=SHORT)
    (note,) = raised.value.__notes__
    assert note.startswith("the controller `broken` of flow `video` raised an exception in its send half, at 1")
    assert "s of mmsys16/table1\n" in note
    call = note.splitlines()[1].removeprefix("the same run again: ")
    assert call == "paceline.run('mmsys16/table1', set={'duration': '20s'}, controller='broken', seed=3)"
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert "report" in [frame.name for frame in frames]
    paceline.register(broken)
    with pytest.raises(LookupError):
        eval(call)
    text = 'id = "mine"\ntitle = "One call"\nduration = "20s"\n[path.forward]\ncapacity = "1Mbps"\n'
    text += '[[flow]]\nid = "video"\ncontroller = "fixed"\n'
    with pytest.raises(LookupError) as raised:
        paceline.run(paceline.Scenario.from_toml(text), broken, seed=4, set=SHORT)
    with pytest.raises(LookupError):
        eval(raised.value.__notes__[0].splitlines()[1].removeprefix("the same run again: "))
    # The exception does not affect the next run.
    built_in = paceline.run(TABLE1, set=SHORT | NO_PROBES)
    assert built_in.trace_hash == paceline.run(TABLE1, controller(), set=SHORT | NO_PROBES).trace_hash
    with pytest.raises(LookupError, match="no idea") as raised:
        paceline.compare(TABLE1, ["gcc-2016", broken], seeds=[5], set=SHORT)
    assert "controller='broken', seed=5)" in raised.value.__notes__[0]


def test_the_note_names_a_receive_half():
    class Broken(paceline.ReceiveHalf):
        def __init__(self, setup):
            pass

        def handle_arrivals(self, now_s, arrivals):
            raise LookupError("no idea")

    for batch_ms in [0, 25]:
        broken = paceline.Controller("broken", send=LossBased, receive=Broken, feedback="none", batch_ms=batch_ms)
        with pytest.raises(LookupError) as raised:
            paceline.run(TABLE1, broken, set=SHORT)
        (note,) = raised.value.__notes__
        assert "raised an exception in its receive half, at 0." in note


def test_the_note_of_a_half_that_cannot_be_made_states_the_start():
    for half in ["send", "receive"]:
        halves = {"send": LossBased, "receive": None, half: lambda setup: 1 / 0}
        with pytest.raises(ZeroDivisionError) as raised:
            paceline.run(TABLE1, paceline.Controller("broken", **halves, feedback="none"), set=SHORT)
        (note,) = raised.value.__notes__
        assert f"in its {half} half, at the start of mmsys16/table1" in note


@pytest.mark.parametrize(
    ("methods", "error", "match"),
    [
        ({"__init__": lambda self, setup: 1 / 0}, ZeroDivisionError, "division"),
        ({"decision": lambda self: "fast"}, TypeError, "target in bit/s"),
        ({"decision": lambda self: math.nan}, ValueError, "0 bit/s or more"),
        ({"decision": lambda self: -1}, ValueError, "0 bit/s or more"),
        ({"poll_timeout": lambda self: 1.0, "handle_timeout": lambda self, now_s: None}, RuntimeError, "later time"),
        ({"handle_report": lambda self, now_s, r: self.emit("nonsense", 1)}, ValueError, "no signal `nonsense`"),
    ],
)
def test_rejects_invalid_results_of_a_half(methods, error, match):
    with pytest.raises(error, match=match):
        paceline.run(TABLE1, controller("odd", half(**methods)), set=SHORT)


def test_rejects_invalid_controllers():
    with pytest.raises(ValueError, match="neither"):
        paceline.Controller("nothing")
    with pytest.raises(ValueError, match="no controller `gcc-1999`"):
        paceline.run(TABLE1, paceline.Controller("mine", send=LossBased, receive="gcc-1999"))
    with pytest.raises(ValueError, match="feedback must be"):
        paceline.run(TABLE1, paceline.Controller("mine", send=LossBased, feedback="pigeon"))
    with pytest.raises(ValueError, match="not both"):
        paceline.Decision(1e6, outstanding_bytes=1, after_highest_bytes=1)
    with pytest.raises(NotImplementedError, match="decision"):
        paceline.run(TABLE1, paceline.Controller("mine", send=paceline.SendHalf))


class Aware(paceline.SendHalf):
    """Records limits, routes and the network."""

    seen = []

    def __init__(self, setup):
        self.rate, self.bounds = setup.start_bps, (setup.min_bps, setup.max_bps)
        self.seen.append(("made", setup.start_bps, setup.packet_size_bytes))

    def handle_bounds(self, now_s, bounds):
        self.seen.append(("bounds", now_s, bounds.min_bps, bounds.max_bps))
        self.bounds = (bounds.min_bps, bounds.max_bps)

    def handle_route_change(self, now_s, setup):
        self.seen.append(("route", now_s, setup.start_bps, setup.parameters))
        self.rate = setup.start_bps

    def handle_availability(self, now_s, available):
        self.seen.append(("available", now_s, available))

    def handle_stream_removed(self, now_s, stream):
        self.seen.append(("removed", now_s, stream))

    def decision(self):
        return min(max(self.rate, self.bounds[0]), self.bounds[1])


def test_a_send_half_learns_of_limits_routes_and_the_network():
    Aware.seen.clear()
    step = {"step": paceline.Parameter(0.5, 0, 1)}
    sender = Sender(paceline.Controller("aware", send=Aware, parameters=step), start_bps=500_000)
    assert sender.decision.target_bps == 500_000
    sender.handle_bounds(1.0, min_bps=100_000, max_bps=200_000)
    assert sender.decision.target_bps == 200_000
    sender.handle_route_change(2.0, start_bps=150_000, min_bps=50_000, max_bps=1_000_000)
    assert sender.decision.target_bps == 150_000
    sender.handle_availability(3.0, False)
    sender.handle_availability(4.0, True)
    sender.handle_stream_removed(5.0, 1)
    assert Aware.seen == [
        ("made", 500_000, 1200),
        ("bounds", 1.0, 100_000, 200_000),
        ("route", 2.0, 150_000, {"step": 0.5}),
        ("available", 3.0, False),
        ("available", 4.0, True),
        ("removed", 5.0, 1),
    ]


class Unaware(paceline.SendHalf):
    """Handles feedback alone."""

    made = []

    def __init__(self, setup):
        self.made.append(setup.start_bps)
        self.rate = setup.start_bps

    def decision(self):
        return self.rate


def test_a_send_half_without_these_methods_is_limited_and_made_again():
    Unaware.made.clear()
    sender = Sender(paceline.Controller("unaware", send=Unaware), start_bps=500_000)
    sender.handle_bounds(1.0, min_bps=100_000, max_bps=200_000)
    decision = sender.decision
    assert (decision.target_bps, decision.padding_bps) == (200_000, 200_000) and decision.pacing_bps >= 200_000
    sender.handle_bounds(2.0, min_bps=600_000, max_bps=900_000)
    assert sender.decision.target_bps == 600_000 <= sender.decision.pacing_bps
    sender.handle_route_change(3.0, start_bps=300_000, min_bps=50_000, max_bps=1_000_000)
    assert Unaware.made == [500_000, 300_000] and sender.decision.target_bps == 300_000
    sender.handle_availability(4.0, False)
    assert sender.decision.target_bps == 300_000


def test_a_receive_half_learns_of_limits_and_routes():
    class Both(Meter):
        seen = []

        def handle_bounds(self, now_s, bounds):
            self.seen.append((now_s, bounds.max_bps))

        def handle_route_change(self, now_s, setup):
            self.seen.append((now_s, setup.max_bps))

    receiver = Receiver(paceline.Controller("both", send=LossBased, receive=Both))
    receiver.handle_bounds(1.0, min_bps=1, max_bps=2_000)
    receiver.handle_route_change(2.0, start_bps=1, min_bps=1, max_bps=3_000)
    assert [limit for _, limit in Both.seen] == [2_000, 3_000] and Both.seen[1][0] - Both.seen[0][0] == 1.0

    class Counted(Meter):
        made = 0

        def __init__(self, setup):
            super().__init__(setup)
            type(self).made += 1

    receiver = Receiver(paceline.Controller("counted", send=LossBased, receive=Counted))
    receiver.handle_bounds(1.0, min_bps=1, max_bps=2_000)
    assert Counted.made == 1
    receiver.handle_route_change(2.0, start_bps=1, min_bps=1, max_bps=3_000)
    assert Counted.made == 2


def test_library_controllers_can_be_driven_and_errors_are_raised():
    sender = Sender("gcc-2016", start_bps=500_000)
    sender.handle_bounds(1.0, min_bps=50_000, max_bps=300_000)
    assert sender.decision.target_bps == 300_000
    with pytest.raises(ValueError, match="no receive half"):
        Receiver("fixed")
    with pytest.raises(paceline.ArgumentError, match="no controller"):
        Sender("gcc-1999")

    class Broken(Unaware):
        def handle_bounds(self, now_s, bounds):
            raise LookupError("no idea")

    with pytest.raises(LookupError, match="no idea"):
        Sender(paceline.Controller("broken", send=Broken)).handle_bounds(1.0, min_bps=1, max_bps=2)


def test_states_are_emitted_by_name():
    class Named(LossBased):
        signals = {"state": ["hold", "grow"]}

        def handle_report(self, now_s, report):
            self.emit("state", "grow" if report.fraction_lost < 0.01 else "hold")

        def handle_message(self, now_s, message):
            pass

    run = paceline.run(TABLE1, controller("named", Named), set={"duration": "60s", "path.forward.loss": "1 %"})
    assert set(run.series["video.state"].value) == {0.0, 1.0}
    half = Named.__new__(Named)
    for name, value, sentence in [("state", "shrink", "one of hold, grow"), ("rate", 1, "no signal `rate`")]:
        with pytest.raises(paceline.ArgumentError, match=sentence):
            half.emit(name, value)


def test_an_unknown_method_of_a_half_is_named():
    class Misspelled(paceline.SendHalf):
        def __init__(self, setup):
            pass

        def handle_feedbak(self, now_s, feedback):
            raise AssertionError("it is not called")

        def handel_rtt(self, now_s, rtt):
            raise AssertionError("it is not called")

        def decision(self):
            return 300e3

    with (
        pytest.warns(UserWarning, match="Misspelled.handle_feedbak is never called.* did you mean handle_feedback?"),
        pytest.warns(UserWarning, match="Misspelled.handel_rtt is never called.* did you mean handle_rtt?"),
    ):
        paceline.run(TABLE1, paceline.Controller("misspelled", send=Misspelled), set={"duration": "2s"})


def test_known_and_private_methods_of_a_half_are_not_named():
    class Fine(paceline.SendHalf):
        def __init__(self, setup):
            pass

        def handle_feedback(self, now_s, feedback):
            self._handle_all(feedback)

        def _handle_all(self, feedback):
            pass

        def decision(self):
            return 300e3

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paceline.run(TABLE1, paceline.Controller("fine", send=Fine), set={"duration": "2s"})
