//! What every registered controller owes a queue: it sees one that grows, and lets one that stands be.

use paceline::{
    Arrival, Controller, Entry, Feedback, FeedbackKind, History, MediaKind, Message, PacketKind, PacketReport,
    ReceiverReport, Registry, SentPacket, Setup, Signals, StreamState,
};
use paceline_units::{DataSize, Ecn, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use std::collections::VecDeque;

/// Frames of three packets, 33 ms apart: 873 kbit/s. From this one on each takes 8 ms more than the one before, so that
/// 702 kbit/s arrive.
const ONSET: i64 = 300;
const FRAMES: i64 = 420;
const SIZE: DataSize = DataSize::from_bytes(1200);
/// Each way without the queue, and what a receiver's clock is ahead by, ms.
const WAY: i64 = 25;
const AHEAD: i64 = 70_000;

/// A queue that grows is seen within four seconds, and one that stands is not: in what the receiver tells, if that is a
/// rate, else in what the sender makes of what it is told.
#[test]
fn a_queue_that_grows_lowers_the_rate() {
    let registry = Registry::standard();
    let (controllers, yardsticks): (Vec<_>, Vec<_>) = registry.iter().partition(|entry| entry.controls());
    assert_eq!(yardsticks.iter().map(|entry| entry.name()).collect::<Vec<_>>(), ["fixed"]);
    for entry in controllers {
        let (steady, growing): (Vec<_>, Vec<_>) = Call::new(entry).told().into_iter().partition(|(f, _)| *f <= ONSET);
        let told = || format!("{}: {steady:?}, {growing:?}", entry.name());
        // Nothing falls, told each second or not at all; but who follows what comes in may, as long as it stays above.
        let stays = steady.is_sorted_by_key(|(_, rate)| *rate) || steady.iter().all(|(_, r)| r.as_bps() > 873_000);
        let as_often = if entry.name() == "gcc-2013" { steady.is_empty() } else { steady.len() >= 5 };
        assert!(stays && as_often, "{}", told());
        let least = growing.iter().map(|(_, rate)| rate.as_bps() / 1000).min().expect("seconds passed");
        // NADA of RFC 8698 follows the delay alone, all the way down.
        let lowest = if ["nada", "nada-sender"].contains(&entry.name()) { 50 } else { 500 };
        assert!((lowest..=860).contains(&least), "{}", told());
    }
}

/// A pair and a path that carries what is sent, whatever the controller says.
struct Call {
    pair: Controller,
    history: History,
    signals: Signals,
    /// What is under way: when it arrives, its number.
    under_way: VecDeque<(i64, u64)>,
    /// What arrived and was not fed back yet.
    arrived: Vec<(u64, RemoteTime)>,
    /// By frame: what the receiver told, or what the sender's target was after feedback.
    told: Vec<(i64, Rate)>,
}

impl Call {
    fn new(entry: &Entry) -> Self {
        // The sources make all that they can: some let a target be that is not made use of.
        let setup = Setup { start: Rate::from_kbps(900), min: Rate::from_kbps(50), max: Rate::from_kbps(900) };
        let pair = entry.build(&setup, &[]).expect("its defaults are sound");
        assert_eq!(pair.receive.is_none(), pair.feedback != FeedbackKind::None, "{}", entry.name());
        let (under_way, arrived, told) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { pair, history: History::new(), signals: Signals::unheard(), under_way, arrived, told }
    }

    fn told(mut self) -> Vec<(i64, Rate)> {
        for now in 0..33 * FRAMES {
            if now % 33 % 4 == 0 && now % 33 < 12 {
                self.send(now);
            }
            while let Some((_, sequence)) = self.under_way.pop_front_if(|(at, _)| *at == now) {
                self.arrive(now, sequence);
            }
            if now % 50 == 0 {
                self.feed_back(now);
            }
            if now % 1000 == 999 {
                let (fraction_lost, rtt) = (Fraction::from_q8(0), TimeDelta::from_millis(2 * WAY + queue(now / 33)));
                let report = ReceiverReport { fraction_lost, rtt: Some(rtt) };
                let half = self.pair.send.as_mut().expect("it has one");
                half.handle_report(Time::from_millis(now), &report, &mut self.signals);
            }
        }
        self.told
    }

    fn send(&mut self, now: i64) {
        let (sequence, stream) = (self.history.next_sequence(), StreamId(0));
        let (at, packet) =
            (Time::from_millis(now), SentPacket { sequence, size: SIZE, stream, kind: PacketKind::Media });
        let half = self.pair.send.as_mut().expect("it has one");
        while half.poll_timeout() <= at {
            half.handle_timeout(at, &mut self.signals);
        }
        half.handle_stream(at, &StreamState::new(stream, DataSize::ZERO));
        half.handle_sent(at, &packet);
        self.history.handle_sent(at, &packet);
        self.under_way.push_back((now + WAY + queue(now / 33), sequence));
    }

    /// A receive half hears of it at once, per-packet feedback tells it later.
    fn arrive(&mut self, now: i64, sequence: u64) {
        let at = RemoteTime::from_millis(AHEAD + now);
        self.arrived.push((sequence, at));
        let (Some(half), Some(sender)) = (&mut self.pair.receive, &mut self.pair.send) else { return };
        let (frame, part) = (sequence as i64 / 3, sequence as i64 % 3);
        let arrival = Arrival {
            sent: Some(Time::from_millis(33 * frame + 4 * part)),
            timestamp: 2970 * frame as u32,
            sequence: sequence as u16,
            stream: StreamId(0),
            media: MediaKind::Video,
            kind: PacketKind::Media,
            size: SIZE,
            ecn: Ecn::NotEct,
        };
        half.handle_arrival(at, &arrival, &mut self.signals);
        if half.poll_timeout() <= at {
            half.handle_timeout(at, &mut self.signals);
        }
        while let Some(message) = half.poll_message(at) {
            sender.handle_message(Time::from_millis(now), &message, &mut self.signals);
            let target = sender.decision().target;
            self.told.push((frame, if let Message::Remb(rate) = message { rate } else { target }));
        }
    }

    fn feed_back(&mut self, now: i64) {
        let settle = |(sequence, at)| self.history.settle(sequence, Some(at), Ecn::NotEct);
        let packets: Vec<PacketReport> = self.arrived.drain(..).filter_map(settle).collect();
        let (Some(last), Some(half)) = (packets.last(), &mut self.pair.send) else { return };
        if self.pair.receive.is_none() {
            let flight = self.history.flight();
            let (outstanding, after_highest) = (flight.outstanding, flight.after_highest);
            let feedback = Feedback { packets: &packets, outstanding, after_highest };
            half.handle_feedback(Time::from_millis(now), &feedback, &mut self.signals);
            self.told.push((last.sequence as i64 / 3, half.decision().target));
        }
    }
}

/// What a packet of this frame waits, ms.
fn queue(frame: i64) -> i64 {
    8 * (frame - ONSET).max(0)
}
