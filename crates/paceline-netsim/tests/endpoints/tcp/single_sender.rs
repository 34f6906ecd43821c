// SPDX-License-Identifier: MIT OR Apache-2.0
//! A single sender: handshake, retransmission timer, recovery and workloads.

use crate::tcp::harness::{AT, Bottleneck, MS, Net, Path, config, delay};
use paceline::Signals;
use paceline_netsim::flow::tcp::{
    Flags, Profile, SackBlocks, Segment, SegmentKind, TcpConfig, TcpEcn, TcpSender, TcpSenderEvent, Workload,
};
use paceline_units::{DataSize, RandomStreams, Rate, Time, TimeDelta};

const MSS: u64 = 1448;

fn sender(profile: Profile, workload: Workload) -> TcpSender {
    sender_of("new-reno", profile, workload)
}

fn sender_of(congestion: &'static str, profile: Profile, workload: Workload) -> TcpSender {
    let config = config(congestion, profile);
    TcpSender::new(config, workload, Time::ZERO, RandomStreams::new(1).stream("tcp"), Signals::disabled())
}

/// Returns the segments that are sent now: number and kind.
fn transmit_all(sender: &mut TcpSender, now: Time) -> Vec<(u64, SegmentKind)> {
    std::iter::from_fn(|| sender.poll_transmit(now))
        .map(|(segment, sent)| (segment.sequence.saturating_sub(1) / MSS, sent))
        .collect()
}

fn ack(segments: u64, ranges: &[(u64, u64)]) -> Segment {
    let mut sack = SackBlocks::default();
    for (start, end) in ranges {
        sack.push(1 + start * MSS, 1 + end * MSS);
    }
    let flags = Flags { syn: false, ack: true };
    Segment { connection: 1, acknowledgment: 1 + segments * MSS, sack, flags, ..Segment::default() }
}

/// A sender whose handshake took 100 ms and whose initial window was sent at 100 ms.
fn established(profile: Profile) -> TcpSender {
    open(sender(profile, Workload::Bulk), 10)
}

fn transfers(segments: u64) -> Workload {
    let size = DataSize::from_bytes(segments * MSS);
    Workload::Short { size: (size, size), pause: MS(1000), begins_off: false }
}

/// Completes the handshake at 100 ms, after which this many segments are sent at once.
fn open(mut sender: TcpSender, segments: u64) -> TcpSender {
    sender.handle_timeout(Time::ZERO);
    assert_eq!(transmit_all(&mut sender, Time::ZERO), [(0, SegmentKind::Control)]);
    assert_eq!(sender.poll_timeout(), Some(AT(1000)));
    let flags = Flags { syn: true, ack: true };
    sender.handle_segment(AT(100), &Segment { flags, ..ack(0, &[]) });
    let first = transmit_all(&mut sender, AT(100));
    assert_eq!(first[0].1, SegmentKind::Control);
    assert_eq!(first[1..], (0..segments).map(|n| (n, SegmentKind::Data)).collect::<Vec<_>>());
    sender
}

#[test]
fn syn_is_retransmitted_after_1_3_7_seconds_and_two_losses_reduce_the_initial_window() {
    for (lost, rto, segments) in [(1, 3000, 10), (2, 3000, 1)] {
        let mut sender = sender(Profile::RFC, Workload::Bulk);
        sender.handle_timeout(Time::ZERO);
        let mut at = Time::ZERO;
        for expected in [1000, 3000, 7000].iter().take(lost) {
            assert_eq!(transmit_all(&mut sender, at), [(0, SegmentKind::Control)]);
            at = sender.poll_timeout().unwrap();
            assert_eq!(at, AT(*expected));
            sender.handle_timeout(at);
        }
        assert_eq!(transmit_all(&mut sender, at), [(0, SegmentKind::Control)]);
        let now = at + MS(100);
        sender.handle_segment(now, &Segment { flags: Flags { syn: true, ack: true }, ..ack(0, &[]) });
        assert_eq!(transmit_all(&mut sender, now).len(), 1 + segments);
        assert_eq!(sender.poll_timeout(), Some(now + MS(rto)), "no round-trip time is known");
    }
}

#[test]
fn timeout_backs_off_until_a_segment_sent_once_is_acknowledged() {
    let mut sender = established(Profile::RFC);
    let mut at = AT(100);
    for (n, wait) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
        assert_eq!(sender.poll_timeout(), Some(at + TimeDelta::from_secs(wait)), "timeout {n}");
        at = sender.poll_timeout().unwrap();
        sender.handle_timeout(at);
        assert_eq!(transmit_all(&mut sender, at), [(0, SegmentKind::Retransmission)]);
        // Half of ten segments at the first timeout, unchanged later (RFC 5681, section 3.1).
        assert_eq!(sender.window().ssthresh.as_bytes(), 5 * MSS);
        assert_eq!(sender.window().cwnd.as_bytes(), MSS);
        sender.check();
    }
    // The ACK covers a segment that was sent nine times: there is no sample, and the timeout stays at 60 s.
    let now = at + MS(100);
    sender.handle_segment(now, &ack(1, &[]));
    assert_eq!(transmit_all(&mut sender, now), [(1, SegmentKind::Retransmission), (2, SegmentKind::Retransmission)]);
    assert_eq!(sender.poll_timeout(), Some(now + TimeDelta::from_secs(60)));
    // Go-back-N in slow start, then new data, whose ACK gives a sample.
    let (mut now, mut acked) = (now, 1);
    while acked < 10 {
        now += MS(100);
        acked = (acked + 2).min(10);
        sender.handle_segment(now, &ack(acked, &[]));
        transmit_all(&mut sender, now);
        assert_eq!(sender.poll_timeout(), Some(now + TimeDelta::from_secs(60)));
    }
    now += MS(100);
    sender.handle_segment(now, &ack(11, &[]));
    assert_eq!(sender.poll_timeout(), Some(now + TimeDelta::from_secs(1)));
}

#[test]
fn only_the_first_timeout_of_a_segment_lowers_the_threshold() {
    let mut sender = open(sender_of("cubic", Profile::RFC, Workload::Bulk), 10);
    for _ in 0..4 {
        let at = sender.poll_timeout().unwrap();
        sender.handle_timeout(at);
        transmit_all(&mut sender, at);
        assert_eq!(sender.window().ssthresh.as_bytes(), 7 * MSS, "beta of ten segments");
    }
}

#[test]
fn data_with_a_lost_ack_is_retransmitted_with_both_profiles() {
    for profile in [Profile::RFC, Profile::LINUX] {
        let mut sender = established(profile);
        // An early ACK arrives late and the cumulative ACK is lost: every segment in flight is SACKed.
        sender.handle_segment(AT(200), &ack(1, &[(1, 10)]));
        while transmit_all(&mut sender, AT(200)).last().is_some_and(|(_, sent)| *sent == SegmentKind::Data) {}
        let at = sender.poll_timeout().unwrap();
        sender.handle_timeout(at);
        assert_eq!(transmit_all(&mut sender, at), [(1, SegmentKind::Retransmission)], "{}", profile.name);
        sender.check();
    }
}

#[test]
fn the_end_of_a_transfer_gets_one_rescue_retransmission() {
    let mut sender = open(sender(Profile::RFC, transfers(10)), 10);
    // Segments 2, 8 and 9 are lost. No segment above 9 can show it.
    assert_eq!(sender.flight().as_bytes(), 10 * MSS);
    sender.handle_segment(AT(200), &ack(2, &[(3, 8)]));
    assert_eq!(transmit_all(&mut sender, AT(200)), [(2, SegmentKind::Retransmission)]);
    // RFC 6675, NextSeg rule 4: the last segment, once.
    sender.handle_segment(AT(300), &ack(8, &[]));
    assert_eq!(transmit_all(&mut sender, AT(300)), [(9, SegmentKind::Retransmission)]);
    sender.handle_segment(AT(310), &ack(8, &[]));
    assert_eq!(transmit_all(&mut sender, AT(310)), []);
    // After its arrival, rule 3 allows 8, and no timeout is needed.
    sender.handle_segment(AT(400), &ack(8, &[(9, 10)]));
    assert_eq!(transmit_all(&mut sender, AT(400)), [(8, SegmentKind::Retransmission)]);
    sender.handle_segment(AT(500), &ack(10, &[]));
    assert!(matches!(sender.poll_event(), Some(TcpSenderEvent::TransferDone { .. })));
}

#[test]
fn a_lost_tail_is_retransmitted_after_a_timeout() {
    for (profile, wait) in [(Profile::RFC, 1000), (Profile::LINUX, 300)] {
        let mut sender = open(sender(profile, transfers(5)), 5);
        sender.handle_segment(AT(200), &ack(4, &[]));
        assert_eq!(transmit_all(&mut sender, AT(200)), []);
        let timeout = sender.poll_timeout().unwrap();
        assert!((AT(200 + wait)..AT(200 + wait + 1)).contains(&timeout), "{}: {timeout}", profile.name);
        sender.handle_timeout(timeout);
        assert_eq!(transmit_all(&mut sender, timeout), [(4, SegmentKind::Retransmission)]);
        sender.handle_segment(timeout + MS(100), &ack(5, &[]));
        let done =
            TcpSenderEvent::TransferDone { size: DataSize::from_bytes(5 * MSS), took: timeout + MS(100) - Time::ZERO };
        assert_eq!(sender.poll_event(), Some(done));
        assert_eq!(sender.poll_event(), None);
        assert!(sender.poll_timeout() > Some(timeout + MS(100)), "the pause");
    }
}

#[test]
fn two_duplicate_acks_allow_new_data_and_the_third_starts_recovery() {
    let mut sender = established(Profile::RFC);
    // Limited transmit (RFC 3042): one new segment each.
    sender.handle_segment(AT(200), &ack(0, &[(1, 2)]));
    assert_eq!(transmit_all(&mut sender, AT(200)), [(10, SegmentKind::Data)]);
    sender.handle_segment(AT(201), &ack(0, &[(1, 3)]));
    assert_eq!(transmit_all(&mut sender, AT(201)), [(11, SegmentKind::Data)]);
    assert_eq!(sender.window().cwnd.as_bytes(), 10 * MSS);
    // An ACK without new SACK information is not a duplicate (RFC 6675, section 2).
    sender.handle_segment(AT(202), &ack(0, &[(1, 3)]));
    assert_eq!(transmit_all(&mut sender, AT(202)), []);
    sender.handle_segment(AT(203), &ack(0, &[(1, 4)]));
    assert_eq!(transmit_all(&mut sender, AT(203)), [(0, SegmentKind::Retransmission)]);
    // Two of the twelve in flight were sent by limited transmit and do not count.
    assert_eq!(sender.window().ssthresh.as_bytes(), 5 * MSS);
    assert_eq!(sender.window().cwnd.as_bytes(), 5 * MSS);
    assert_eq!(sender.pipe().as_bytes(), 9 * MSS, "12 minus 3 SACKed minus 1 lost plus 1 retransmitted");
    // Nothing is sent until the pipe is below the window.
    for n in 5..9 {
        sender.handle_segment(AT(200 + n as i64), &ack(0, &[(1, n)]));
        assert_eq!(transmit_all(&mut sender, AT(200 + n as i64)), [], "{n}");
    }
    sender.handle_segment(AT(210), &ack(0, &[(1, 9)]));
    assert_eq!(transmit_all(&mut sender, AT(210)), [(12, SegmentKind::Data)]);
    sender.handle_segment(AT(300), &ack(12, &[]));
    assert_eq!(sender.window().cwnd.as_bytes(), 5 * MSS);
    assert_eq!(transmit_all(&mut sender, AT(300)).len(), 4);
    sender.check();
}

/// A sender with classic ECN whose handshake took 100 ms and whose initial window was sent at 100 ms.
fn established_with_ecn(profile: Profile) -> TcpSender {
    let config = TcpConfig { ecn: TcpEcn::Classic, ..config("new-reno", profile) };
    let random = RandomStreams::new(1).stream("tcp");
    open(TcpSender::new(config, Workload::Bulk, Time::ZERO, random, Signals::disabled()), 10)
}

/// Handles an ACK of this many segments that echoes a mark. Returns the segments sent, each with its CWR.
fn echo(sender: &mut TcpSender, segments: u64) -> Vec<(u64, bool)> {
    let now = AT(200 + segments as i64);
    sender.handle_segment(now, &Segment { ece: true, ..ack(segments, &[]) });
    std::iter::from_fn(|| sender.poll_transmit(now))
        .map(|(segment, _)| (segment.sequence.saturating_sub(1) / MSS, segment.cwr))
        .collect()
}

/// A mark at a window of ten segments. RFC: nothing is sent until less than half of it is in flight. Linux: one segment at once,
/// with CWR, then one for two that are acknowledged until half of it is in flight. In the round trip one sends four, the other five.
#[test]
fn mark_halves_the_window_once_per_round_trip() {
    let none: [(u64, bool); 0] = [];
    let mut rfc = established_with_ecn(Profile::RFC);
    for n in 1..=6 {
        assert_eq!(echo(&mut rfc, n), none, "{n}");
        assert_eq!(rfc.window().cwnd.as_bytes(), 9 * MSS / 2, "half of what was in flight after the first ACK");
    }
    assert_eq!(echo(&mut rfc, 7), [(10, true)]);
    assert_eq!((8..=10).flat_map(|n| echo(&mut rfc, n)).collect::<Vec<_>>(), [(11, false), (12, false), (13, false)]);
    assert_eq!(rfc.window().cwnd.as_bytes(), 9 * MSS / 2, "the receiver has not yet seen CWR");
    echo(&mut rfc, 11);
    assert_eq!(rfc.window().ssthresh.as_bytes(), 2 * MSS, "the next mark; three segments in flight");

    let mut linux = established_with_ecn(Profile::LINUX);
    let sent: Vec<_> = (1..=10).map(|n| echo(&mut linux, n)).collect();
    let new = |number, cwr| vec![(number, cwr)];
    let empty = Vec::new;
    assert_eq!(
        sent,
        [
            new(10, true),
            empty(),
            empty(),
            new(11, false),
            empty(),
            new(12, false),
            empty(),
            empty(),
            new(13, false),
            new(14, false)
        ]
    );
    assert_eq!(linux.window().ssthresh.as_bytes(), 5 * MSS, "half of the window");
    linux.handle_segment(AT(300), &ack(11, &[]));
    assert_eq!(linux.window().cwnd.as_bytes(), 5 * MSS);
    echo(&mut linux, 12);
    assert_eq!(linux.window().ssthresh.as_bytes(), 2 * MSS, "the next mark");
}

/// The loss of a segment that was sent before the reduction belongs to the same congestion (RFC 3168, section 6.1.2).
#[test]
fn loss_in_the_round_trip_of_a_mark_does_not_reduce_the_window_again() {
    for profile in [Profile::RFC, Profile::LINUX] {
        for marked in [true, false] {
            let mut sender = established_with_ecn(profile);
            sender.handle_segment(AT(200), &Segment { ece: marked, ..ack(1, &[]) });
            transmit_all(&mut sender, AT(200));
            let before = sender.window().ssthresh;
            for end in 3..=5 {
                sender.handle_segment(AT(200), &ack(1, &[(2, end)]));
            }
            let sent = transmit_all(&mut sender, AT(200));
            assert_eq!(sent.first(), Some(&(1, SegmentKind::Retransmission)));
            assert_eq!(sender.window().ssthresh == before, marked, "{}", profile.name);
            sender.check();
        }
    }
}

/// A timeout, or a later loss, during the reduction: the timeout leaves the threshold of the mark, and the loss of the segment with
/// CWR, which was sent after the reduction, lowers it again.
#[test]
fn only_losses_after_the_reduction_lower_the_threshold_again() {
    for profile in [Profile::RFC, Profile::LINUX] {
        let mut sender = established_with_ecn(profile);
        echo(&mut sender, 1);
        let threshold = sender.window().ssthresh;
        let due = sender.poll_timeout().expect("a timer");
        sender.handle_timeout(due);
        assert_eq!(sender.window().cwnd.as_bytes(), MSS);
        assert_eq!(sender.window().ssthresh, threshold, "{}", profile.name);

        let mut sender = established_with_ecn(profile);
        (1..=10).for_each(|n| drop(echo(&mut sender, n)));
        let threshold = sender.window().ssthresh;
        for end in 12..=14 {
            sender.handle_segment(AT(300), &ack(10, &[(11, end)]));
        }
        let sent = transmit_all(&mut sender, AT(300));
        assert_eq!(sent.first(), Some(&(10, SegmentKind::Retransmission)), "{}", profile.name);
        assert!(sender.window().ssthresh < threshold, "{}", profile.name);
        assert!(sender.window().cwnd.as_bytes() >= sender.pipe().as_bytes(), "{}", profile.name);
        sender.check();
    }
}

/// A transfer whose last window is marked ends, and the next one begins without a reduction.
#[test]
fn reduction_ends_with_its_connection() {
    let config = TcpConfig { ecn: TcpEcn::Classic, ..config("new-reno", Profile::LINUX) };
    let random = RandomStreams::new(1).stream("tcp");
    let mut sender = open(TcpSender::new(config, transfers(8), Time::ZERO, random, Signals::enabled()), 8);
    let states = |sender: &mut TcpSender| {
        let events = std::iter::from_fn(|| sender.poll_event());
        events
            .filter_map(|event| match event {
                TcpSenderEvent::Signal(3, value) => Some(value),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    echo(&mut sender, 2);
    assert_eq!(states(&mut sender), [0.0, 4.0]);
    echo(&mut sender, 8);
    assert_eq!(states(&mut sender), [0.0], "all is acknowledged");
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut sender = open(sender(Profile::RFC, transfers(8)), 8);
    sender.handle_segment(AT(200), &ack(2, &[]));
    assert_eq!(sender.window().cwnd.as_bytes(), 10 * MSS);
    // The same ACK at a sender with more data.
    let mut bulk = established(Profile::RFC);
    bulk.handle_segment(AT(200), &ack(2, &[]));
    assert_eq!(bulk.window().cwnd.as_bytes(), 11 * MSS, "one segment per ACK");
    let mut bulk = established(Profile::LINUX);
    bulk.handle_segment(AT(200), &ack(2, &[]));
    assert_eq!(bulk.window().cwnd.as_bytes(), 12 * MSS, "by the acknowledged data");
}

#[test]
fn on_off_workload_opens_a_connection_per_period() {
    let rate = Rate::from_kbps(2_000);
    let link = Bottleneck::new(rate, MS(50), rate * MS(200));
    let mut net = Net::new();
    net.keep_segments = true;
    let workload = Workload::OnOff { on: MS(3_000), off: MS(2_000) };
    net.add(TcpConfig::default(), workload, AT(500), Bottleneck::path(&link), delay(MS(50)));
    net.run_until(AT(15_400));
    let sent = &net.flows[0].sent;
    let syns: Vec<_> = sent.iter().filter(|(_, s, _)| s.flags.syn).map(|(at, s, _)| (*at, s.connection)).collect();
    assert_eq!(syns, [(AT(500), 1), (AT(5_500), 2), (AT(10_500), 3)]);
    for (n, start) in [500, 5_500, 10_500].into_iter().enumerate() {
        let new = sent.iter().filter(|(_, s, sent)| s.connection == n as u32 + 1 && *sent == SegmentKind::Data);
        let (first, last) = (new.clone().next().unwrap(), new.clone().next_back().unwrap());
        assert_eq!((first.0, first.1.sequence), (first_data_at(start), 1), "a new connection");
        assert!((AT(start + 2_900)..AT(start + 3_000)).contains(&last.0), "{}", last.0);
        // All sent data was read before the next period.
        let bytes: u64 = new.map(|(_, s, _)| s.payload as u64).sum();
        let read = net.read(0, AT(start), AT(start + 5_000));
        assert_eq!(read.as_bytes(), bytes);
        assert!((600_000..750_000).contains(&bytes), "{bytes}");
    }
}

/// The handshake takes 100 ms, and the transmission of the 60 bytes of the SYN 240 us.
fn first_data_at(start: i64) -> Time {
    AT(start + 100) + TimeDelta::from_micros(240)
}

#[test]
fn short_workload_pauses_between_transfers() {
    let mut net = Net::new();
    net.keep_segments = true;
    let (size, pause) = ((DataSize::from_bytes(10_000), DataSize::from_bytes(30_000)), MS(400));
    net.add(
        TcpConfig::default(),
        Workload::Short { size, pause, begins_off: false },
        Time::ZERO,
        delay(MS(25)),
        delay(MS(25)),
    );
    net.run_until(Time::from_secs(1000));
    let flow = &net.flows[0];
    let n = flow.transfers.len() as f64;
    let mean = flow.transfers.iter().map(|(_, size, _)| size.as_bytes() as f64).sum::<f64>() / n;
    assert!((19_000.0..21_000.0).contains(&mean), "{mean}");
    // 50 ms of handshake, one or two round trips of 50 ms, perhaps a delayed ACK; then a pause of 400 ms on average.
    let took = flow.transfers.iter().map(|(.., took)| took.as_millis_f64()).sum::<f64>() / n;
    assert!((110.0..160.0).contains(&took), "{took}");
    let idle = 1_000_000.0 / n - took;
    assert!((370.0..430.0).contains(&idle), "{idle}");
    let read: DataSize = flow.reads.iter().map(|(_, size)| *size).sum();
    let done: DataSize = flow.transfers.iter().map(|(_, size, _)| *size).sum();
    assert!(read >= done && read.as_bytes() <= done.as_bytes() + 30_000);
}

#[test]
fn segments_of_other_connections_are_ignored() {
    let mut sender = established(Profile::LINUX);
    let before = (sender.window(), sender.flight());
    sender.handle_segment(AT(200), &Segment { connection: 2, ..ack(5, &[]) });
    sender.handle_segment(AT(200), &Segment { connection: 0, ..ack(5, &[]) });
    assert_eq!((sender.window(), sender.flight()), before);
    sender.handle_segment(AT(200), &ack(5, &[]));
    assert_ne!((sender.window(), sender.flight()), before);
}

#[test]
fn signals_show_a_loss() {
    let mut count = 0;
    let forward: Path = Box::new(move |now, segment| {
        count += (segment.payload > 0) as u32;
        [(count != 50).then_some(now + MS(20) + TimeDelta::from_micros(200 * count as i64)), None]
    });
    let mut net = Net::new();
    let config = TcpConfig { receive_window: Some(DataSize::from_bytes(100_000)), ..TcpConfig::default() };
    net.add(config, Workload::Bulk, Time::ZERO, forward, delay(MS(20)));
    net.run_until(AT(2_000));
    let signals = &net.flows[0].signals;
    let of = |index: u8| signals.iter().filter(move |(_, signal, _)| *signal == index).map(|(.., value)| *value);
    assert_eq!(of(3).collect::<Vec<_>>(), [0.0, 1.0, 2.0, 0.0], "open, disorder, recovery, open");
    assert_eq!(of(0).next(), Some(14_480.0));
    let ssthresh: Vec<_> = of(1).collect();
    // The threshold of HyStart and of the loss: 0.7 of the window, in whole segments of 1448 bytes.
    assert!(ssthresh.len() == 2 && (14_480.0..100_000.0).contains(&ssthresh[0]), "{ssthresh:?}");
    assert!(of(2).all(|ms| (40.0..1_000.0).contains(&ms)));
    let w_max = of(4).next_back().unwrap_or_default();
    assert_eq!(((w_max / 1448.0).floor() * 0.7).floor() * 1448.0, ssthresh[1], "{w_max}");
    assert_eq!(net.flows[0].resent, 1);
}
