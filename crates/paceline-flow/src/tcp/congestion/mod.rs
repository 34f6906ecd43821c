//! Congestion control: how the window grows with what is acknowledged and where it falls to on a loss; or how the path is
//! measured, and pace and window are made of that.
//!
//! An algorithm is a file here and a line in [`CONGESTION`].

mod bbr;
mod cubic;
mod hystart;
mod new_reno;

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The two variables of RFC 5681.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: DataSize,
    /// Slow-start threshold; [`NO_THRESHOLD`] before the first loss.
    pub ssthresh: DataSize,
}

/// "Arbitrarily high" (RFC 5681, section 3.1).
pub const NO_THRESHOLD: DataSize = DataSize::from_bytes(u64::MAX);
/// A threshold is at least two segments (RFC 5681, equation 4; RFC 8312, section 4.5).
const THRESHOLD_MIN: u64 = 2;

impl Window {
    /// Below the threshold the window doubles in a round trip.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start (RFC 5681, equation 2) with what an ACK acknowledged, up to the threshold; answers what is left over.
    #[inline]
    fn slow_start(&mut self, acked: DataSize, limit: Option<DataSize>) -> DataSize {
        let growth = limit.map_or(acked, |limit| acked.min(limit)).min(self.ssthresh.saturating_sub(self.cwnd));
        self.cwnd += growth;
        if limit.is_some() { DataSize::ZERO } else { acked - growth }
    }
}

/// What a connection is made with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes in a full segment (SMSS).
    pub segment: DataSize,
    /// Growth by one ACK in slow start; `None`: as much as was acknowledged.
    pub slow_start_limit: Option<DataSize>,
    /// Slow start may end before a loss.
    pub hystart: bool,
    /// CUBIC's window grows by a segment for 20 acknowledged, at least, until its first loss. A loss brings a window, not the
    /// flight, down to its part, in whole segments.
    pub kernel_windows: bool,
    /// Drawn for this connection: what an algorithm may make its own randomness of.
    pub seed: u64,
}

/// An ACK of new data outside of recovery.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it came.
    pub now: Time,
    /// Bytes that it newly acknowledged.
    pub acked: DataSize,
    /// All that is acknowledged, and all that was sent, in bytes since the connection began.
    pub acknowledged: DataSize,
    /// See `acknowledged`.
    pub sent: DataSize,
    /// Round-trip time of the newest segment acknowledged, if it is certain.
    pub round_trip: Option<TimeDelta>,
    /// Smoothed round-trip time.
    pub srtt: TimeDelta,
    /// The window, and nothing else, held the sender back. Only then may it grow (RFC 8312, section 5.8; RFC 7661).
    pub limited: bool,
}

/// How the sender stands with losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing is known to be lost.
    None,
    /// Losses are repaired.
    Recovery,
    /// A timeout's are.
    Timeout,
}

/// What any ACK, in recovery too, tells an algorithm that measures the path.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When it came.
    pub now: Time,
    /// Bytes that it told to be delivered, in order or selectively, and bytes that it showed to be lost.
    pub acked: DataSize,
    /// See `acked`.
    pub lost: DataSize,
    /// Bytes delivered since the connection began.
    pub delivered: DataSize,
    /// How many of them had been when the newest segment of this ACK left, and the rate since; `None` where that is no
    /// honest measure.
    pub rate: Option<(DataSize, Rate)>,
    /// There was not always something to send meanwhile, so that the path may carry more than `rate`.
    pub limited: bool,
    /// Round-trip time of the newest segment acknowledged, if it is certain.
    pub round_trip: Option<TimeDelta>,
    /// Smoothed round-trip time, once there is one.
    pub srtt: Option<TimeDelta>,
    /// Bytes thought to be in the network before this ACK and after it.
    pub pipe_before: DataSize,
    /// See `pipe_before`.
    pub pipe: DataSize,
    /// How the sender stands with losses now.
    pub repair: Repair,
}

/// An algorithm at work on one connection.
pub trait Congestion: core::fmt::Debug + Send {
    /// New data was acknowledged and the sender is not in recovery: the window may grow.
    fn handle_ack(&mut self, ack: &Ack, window: &mut Window);
    /// A loss was found with `flight` bytes not acknowledged: sets the threshold. The sender brings the window there.
    fn handle_loss(&mut self, flight: DataSize, window: &mut Window);
    /// The timer fired: sets the threshold. The sender begins anew with one segment.
    fn handle_timeout(&mut self, flight: DataSize, window: &mut Window);
    /// The window that it strives for, where it has such a thing (CUBIC's W_max).
    fn target(&self) -> Option<DataSize> {
        None
    }
    /// The rate at which data should leave. An algorithm that has one has it from the beginning. It is told of every ACK
    /// by [`handle_sample`](Self::handle_sample) instead of `handle_ack`, and sets the window in recovery as well.
    fn pacing(&self) -> Option<Rate> {
        None
    }
    /// For one that paces: so many segments leave together.
    fn burst(&self) -> u64 {
        1
    }
    /// For one that paces: the connection is open; `round_trip` is that of its SYN, if it is certain.
    fn handle_open(&mut self, _now: Time, _round_trip: Option<TimeDelta>, _window: &Window) {}
    /// For one that paces: an ACK came.
    fn handle_sample(&mut self, _sample: &Sample, _window: &mut Window) {}
    /// For one that paces: it sends less than it could on purpose, so rates of what leaves now say nothing of the path.
    fn holds_back(&self) -> bool {
        false
    }
}

/// How an algorithm is made for a connection.
pub type Build = fn(Settings) -> Box<dyn Congestion>;

/// The algorithms: name, summary, how to make one.
pub const CONGESTION: &[(&str, &str, Build)] = &[
    (
        "bbr",
        "BBR version 1, as in Linux: paces at the delivery rate that it measures, and keeps queues short",
        bbr::build,
    ),
    ("cubic", "RFC 8312: the window follows a cubic function of the time since the last loss", cubic::build),
    ("new-reno", "RFC 5681: a segment more each round trip, half the window after a loss", new_reno::build),
];

/// The registry's own copy of a name, which a configuration holds.
pub fn congestion_named(name: &str) -> Option<&'static str> {
    CONGESTION.iter().map(|(known, ..)| *known).find(|known| *known == name)
}

/// Makes the algorithm of this name. Panics when there is none: a configuration holds a name of the registry.
pub(super) fn build(name: &str, settings: Settings) -> Box<dyn Congestion> {
    let (.., build) = CONGESTION.iter().find(|(known, ..)| *known == name).expect("a name from CONGESTION");
    build(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_stops_at_the_threshold() {
        let bytes = DataSize::from_bytes;
        let mut window = Window { cwnd: bytes(1000), ssthresh: bytes(4500) };
        assert_eq!(window.slow_start(bytes(3000), Some(bytes(1000))), DataSize::ZERO);
        assert_eq!(window.cwnd, bytes(2000));
        assert_eq!(window.slow_start(bytes(3000), None), bytes(500));
        assert_eq!(window.cwnd, bytes(4500));
        assert!(!window.in_slow_start());
    }

    #[test]
    fn every_name_makes_an_algorithm() {
        let segment = DataSize::from_bytes(1448);
        let settings = Settings { segment, slow_start_limit: None, hystart: true, kernel_windows: true, seed: 1 };
        for (name, ..) in CONGESTION {
            assert_eq!(congestion_named(name), Some(*name));
            let mut window = Window { cwnd: DataSize::from_bytes(14_480), ssthresh: NO_THRESHOLD };
            let mut algorithm = build(name, settings);
            algorithm.handle_loss(window.cwnd, &mut window);
            // One that paces has no use for a threshold.
            let threshold = if algorithm.pacing().is_some() { u64::MAX..=u64::MAX } else { 7_240..=10_136 };
            assert!(threshold.contains(&window.ssthresh.as_bytes()), "{name}");
        }
        assert_eq!(congestion_named("vegas"), None);
    }
}
