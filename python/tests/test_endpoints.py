"""`paceline.Sender` and `paceline.Receiver`: calls over a link in this process."""

import math
import random
from collections import deque

import pytest

import paceline

LIMITS = {"start_bps": 300_000, "min_bps": 50_000, "max_bps": 10_000_000}
LINK_BPS = 2_000_000
DELAY_S = 0.025


def call(name, *, seconds=20, rtp=False, media_of=lambda sender: sender.target_bps):
    """Sends video over a link of 2 Mbit/s. Returns the sender and the bytes that arrived in its second half."""
    sender = paceline.Sender(name, **LIMITS)
    receiver = paceline.Receiver(name, **LIMITS, rtp=(1, 2) if rtp else None)
    if rtp:
        sender.add_ssrcs(0, 2, 3, 0)
    there, back, free, arrived = deque(), deque(), 0.0, 0
    for step in range(1000 * seconds):
        now = step / 1000
        sender.handle_timeout(now)
        if step % 33 == 0:
            size = max(1, int(media_of(sender) * 0.033 / 8))
            count = math.ceil(size / 1200)
            sender.push_frame(now, [(n, size // count + 1) for n in range(count)])
        while sent := sender.poll_transmit(now):
            head = sent.head
            if rtp:
                sender.handle_rtp_sent(head.number, 2, head.number % 65_536)
                head = head.rtp_header(2, head.number % 65_536)
            free = max(free, now) + sent.size * 8 / LINK_BPS
            there.append((free + DELAY_S, head, sent.size))
        while there and there[0][0] <= now:
            _, head, size = there.popleft()
            arrived += size if now > seconds / 2 else 0
            if rtp:
                receiver.handle_rtp(now, head, size=size)
            else:
                receiver.handle_packet(now, head, size)
        receiver.handle_timeout(now)
        while report := receiver.poll_rtcp(now) if rtp else receiver.poll_report(now):
            back.append((now + DELAY_S, report))
        while back and back[0][0] <= now:
            _, report = back.popleft()
            if rtp:
                sender.handle_rtcp(now, report)
            else:
                sender.handle_report(now, report)
        while sender.poll_event():
            pass
    return sender, 8 * arrived / (seconds / 2)


@pytest.mark.parametrize("name", ["googcc", "scream-v2", "drc", "nada", "gcc-2016"])
@pytest.mark.parametrize("rtp", [False, True])
def test_call_uses_the_link(name, rtp):
    sender, rate = call(name, rtp=rtp)
    # gcc-2016 grows by at most 8 % a second.
    low = 500_000 if name == "gcc-2016" else 0.5 * LINK_BPS
    assert low < rate <= 1.01 * LINK_BPS
    assert low < sender.target_bps < 1.6 * LINK_BPS


def test_own_controller_sends_and_its_exception_is_raised():
    class Steady(paceline.SendHalf):
        def __init__(self, setup):
            self.reports = 0

        def handle_feedback(self, now_s, feedback):
            self.reports += 1
            if self.reports == 200:
                raise ZeroDivisionError("no more")

        def decision(self):
            return 700_000

    controller = paceline.Controller("steady", Steady)
    with pytest.raises(ZeroDivisionError, match="no more"):
        call(controller)
    sender, rate = call(controller, seconds=4)
    assert sender.target_bps == 700_000 and 600_000 < rate < 760_000


def test_reports_pass_through_a_format_of_the_program():
    receiver = paceline.Receiver("drc", **LIMITS)
    for number in (0, 1, 3):
        receiver.handle_packet(0.1 + number / 100, paceline.PacketHead(number, number / 100), 1200, ecn="ect1")
    report = receiver.poll_report(1.2)
    numbers = [(number, arrival is None, ecn) for number, arrival, ecn in report.packets]
    assert numbers == [(0, False, "ect1"), (1, False, "ect1"), (2, True, None), (3, False, "ect1")]
    end, arrived, echo_s, held_s = report.reception
    assert (end, arrived, echo_s) == (4, 3, 0.03) and held_s == pytest.approx(1.07)
    again = paceline.Report(report.number, report.written_s, report.packets, reception=report.reception)
    assert (again.number, again.packets, again.reception) == (report.number, report.packets, report.reception)
    assert paceline.Report(0, 1.0, [], remb_bps=5000).remb_bps == 5000


def test_streams_share_the_target_and_limits_hold():
    sender = paceline.Sender("fixed", **LIMITS)
    assert sender.add_stream(1, media="audio", max_bps=64_000, min_bps=64_000)
    assert not sender.add_stream(1)
    assert sender.stream_rate_bps(1) == 64_000
    assert sender.stream_rate_bps(0) == pytest.approx(sender.target_bps - 64_000)
    assert sender.stream_rate_bps(9) is None
    sender.set_bounds(1.0, min_bps=50_000, max_bps=100_000)
    assert sender.target_bps == 100_000
    assert sender.set_stream_limits(1.0, 1, min_bps=0, max_bps=0) and sender.stream_rate_bps(1) == 0
    assert sender.remove_stream(1.0, 1) and not sender.remove_stream(1.0, 1)
    sender.set_available(1.0, False)
    assert not sender.push_frame(1.0, [(b"", 100)])
    assert [event.kind for event in iter(sender.poll_event, None)].count("frame-dropped") == 1


def test_program_that_paces_gets_probes():
    sender = paceline.Sender("googcc", **LIMITS)
    sender.set_paces(False)
    assert not sender.push_frame(0.0, [(b"", 100)])
    assert sender.handle_sent(0.0, 1200) == 0
    sender.handle_stream(0.0, 0, max_bps=2_000_000)
    sender.finish_frame(0.0, 1200, 1, key=True)
    sender.handle_timeout(0.03)
    cluster = sender.poll_probe()
    assert cluster.rate_bps > LIMITS["start_bps"] and cluster.packets > 0
    assert sender.handle_sent(0.03, 1200, kind="padding", probe=cluster.id) == 1
    assert sender.in_flight_bytes == 2400 and sender.window_is_open


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda s: s.handle_timeout(math.nan), "a time must be"),
        (lambda s: s.handle_timeout(1e12), "a time must be"),
        (lambda s: s.handle_timeout(-1.0), "a time must be"),
        (lambda s: s.handle_rtt(0.0, -1.0), "a time must be"),
        (lambda s: s.push_frame(0.0, []), "a frame needs a packet"),
        (lambda s: s.push_frame(0.0, [(b"", 0)]), "1 to 65535 bytes, not 0"),
        (lambda s: s.handle_sent(0.0, 70_000), "1 to 65535 bytes, not 70000"),
        (lambda s: s.handle_sent(0.0, 100, kind="medai"), "kind must be one of media, retransmission"),
        (lambda s: s.handle_reports(0.0, [(0, 1.0, "ect7")]), "ecn must be one of not-ect, ect0, ect1, ce"),
        (lambda s: s.handle_loss(0.0, 1.1), "fraction_lost must be 0 to 1"),
        (lambda s: s.set_bounds(0.0, min_bps=2, max_bps=1), "min_bps not above max_bps"),
        (lambda s: s.add_stream(1, priority=math.nan), "priority must be above 0"),
        (lambda s: s.handle_route_change(0.0, start_bps=0, min_bps=0, max_bps=1), "must be above 0"),
    ],
)
def test_wrong_arguments_change_nothing(wrong, message):
    sender, twin = (paceline.Sender("drc", **LIMITS) for _ in range(2))
    with pytest.raises(paceline.ArgumentError, match=message):
        wrong(sender)
    assert (sender.target_bps, sender.queued_bytes, sender.poll_timeout()) == (
        twin.target_bps,
        twin.queued_bytes,
        twin.poll_timeout(),
    )
    assert sender.handle_sent(0.0, 100) == 0


def test_wrong_construction_and_malformed_datagrams_are_errors():
    with pytest.raises(paceline.ArgumentError, match="start_bps, max_bps and packet_size_bytes must be above 0"):
        paceline.Sender("drc", start_bps=0, min_bps=0)
    with pytest.raises(ValueError, match="drc"):
        paceline.Sender("drcc")
    sender, receiver = paceline.Sender("drc"), paceline.Receiver("drc", rtp=(1, 2))
    for datagram in (b"", b"\x80", b"\x80\xc9\x00\x09"):
        with pytest.raises(paceline.InputError, match="malformed"):
            sender.handle_rtcp(0.0, datagram)
        with pytest.raises(paceline.InputError, match="malformed"):
            receiver.handle_rtp(0.0, datagram, size=100)


def test_random_calls_keep_limits():
    generator = random.Random(7)
    for name in ("googcc", "drc", "gcc-2016", "nada"):
        sender, now = paceline.Sender(name, **LIMITS), 0.0
        for _ in range(4000):
            now = max(0.0, now + generator.choice([0.0, 0.001, 0.02, 3.0, -1.0]))
            match generator.randrange(8):
                case 0 | 1:
                    sender.push_frame(now, [(b"", generator.randrange(1, 1500)) for _ in range(3)])
                case 2 | 3:
                    while sender.poll_transmit(now):
                        pass
                case 4:
                    numbers = sorted(generator.sample(range(5000), 5))
                    sender.handle_reports(now, [(n, generator.choice([None, now]), None) for n in numbers])
                case 5:
                    sender.set_available(now, generator.random() < 0.7)
                case 6:
                    sender.handle_loss(now, generator.random())
                    sender.handle_remb(now, generator.randrange(5_000_000))
                case 7:
                    sender.handle_timeout(now)
            assert LIMITS["min_bps"] <= sender.target_bps <= LIMITS["max_bps"]
