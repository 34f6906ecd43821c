//! One flow's sender: a send half and the history that joins feedback with sent packets.

use paceline::{
    Decision, Event, Feedback, History, PacketReport, ReceiverReport, Registry, RoundTrip, SendHalf, SentPacket, Setup,
    Signals,
};
use paceline_units::{DataSize, Fraction, Rate, RemoteTime, Time, TimeDelta};

/// A sender.
#[derive(Debug)]
pub(crate) struct Sender {
    half: Box<dyn SendHalf>,
    history: History,
    /// Packets of the next feedback.
    reports: Vec<(u64, Option<RemoteTime>)>,
    rtt: Option<RoundTrip>,
    /// The latest time so far; earlier times are read as this one.
    now: Time,
}

/// Returns the names of all controllers with a send half.
pub(crate) fn names() -> Vec<String> {
    Registry::standard().iter().map(|entry| entry.name().to_owned()).collect()
}

fn milliseconds(ms: f64) -> TimeDelta {
    TimeDelta::from_millis_f64(if ms.is_finite() { ms.max(0.0) } else { 0.0 })
}

impl Sender {
    pub fn new(name: &str, start_bps: f64, min_bps: f64, max_bps: f64) -> Result<Self, String> {
        let registry = Registry::standard();
        let entry = registry
            .get(name)
            .ok_or_else(|| format!("there is no controller `{name}`; known: {}", names().join(", ")))?;
        let [start, min, max] = [start_bps, min_bps, max_bps].map(Rate::from_bps_f64);
        let controller = entry.build(&Setup::new(start, min, max), &[]).map_err(|error| error.to_string())?;
        let half = controller.send.ok_or_else(|| format!("`{name}` has no half at the sender"))?;
        Ok(Self { half, history: History::new(), reports: Vec::new(), rtt: None, now: Time::ZERO })
    }

    /// Returns the time, which never decreases.
    fn at(&mut self, now_ms: f64) -> Time {
        self.now = self.now.max(Time::ZERO + milliseconds(now_ms));
        self.now
    }

    pub fn handle_sent(&mut self, now_ms: f64, bytes: f64) -> f64 {
        let now = self.at(now_ms);
        let sequence = self.history.next_sequence();
        let mut packet = SentPacket::new(sequence, DataSize::from_bytes(bytes.max(0.0) as u64));
        packet.in_flight = Some(self.history.flight().outstanding);
        self.history.handle_sent(now, &packet);
        self.half.handle_event(now, &Event::Sent(&packet), &mut Signals::disabled());
        sequence as f64
    }

    pub fn add_report(&mut self, number: f64, arrival_ms: f64) {
        let arrival = arrival_ms.is_finite().then(|| RemoteTime::from_nanos(milliseconds(arrival_ms).as_nanos()));
        self.reports.push((number.max(0.0) as u64, arrival));
    }

    pub fn handle_feedback(&mut self, now_ms: f64) {
        let now = self.at(now_ms);
        let mut reports = std::mem::take(&mut self.reports);
        reports.sort_unstable_by_key(|(number, _)| *number);
        let settled = reports.into_iter().filter_map(|(number, arrival)| self.history.settle(number, arrival, None));
        let packets: Vec<PacketReport> = settled.collect();
        let flight = self.history.flight();
        let mut feedback = Feedback::new(&packets, flight.outstanding, flight.after_highest);
        feedback.rtt = self.rtt;
        self.half.handle_event(now, &Event::Feedback(&feedback), &mut Signals::disabled());
    }

    pub fn handle_rtt(&mut self, now_ms: f64, rtt_ms: f64) {
        let now = self.at(now_ms);
        let rtt = RoundTrip::after(self.rtt, milliseconds(rtt_ms));
        self.rtt = Some(rtt);
        self.half.handle_event(now, &Event::RoundTrip(&rtt), &mut Signals::disabled());
    }

    pub fn handle_loss(&mut self, now_ms: f64, fraction: f64) {
        let now = self.at(now_ms);
        if let Some(fraction_lost) = Fraction::new(fraction) {
            self.half.handle_event(now, &Event::Report(&ReceiverReport { fraction_lost }), &mut Signals::disabled());
        }
    }

    pub fn handle_timeout(&mut self, now_ms: f64) {
        let now = self.at(now_ms);
        self.half.handle_event(now, &Event::Timeout, &mut Signals::disabled());
    }

    pub fn poll_timeout(&self) -> f64 {
        self.half.poll_timeout().map_or(f64::INFINITY, |at| (at - Time::ZERO).as_millis_f64())
    }

    pub fn decision(&self) -> Decision {
        self.half.decision()
    }
}
