// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion control algorithms. NewReno and CUBIC grow the window with acknowledged data and reduce it on a loss. DCTCP and
//! Prague also reduce it in proportion to the share of marked data. BBR measures the path and derives a pacing rate and a window
//! from it.
//!
//! An algorithm is a file in this module and a line in [`CONGESTION`].

mod bbr;
mod cubic;
mod dctcp;
mod hystart;
mod new_reno;
mod prague;

use super::TcpConfig;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The congestion window and the slow-start threshold (RFC 5681).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionWindow {
    /// Congestion window.
    pub cwnd: DataSize,
    /// Slow-start threshold; [`NO_THRESHOLD`] before the first loss.
    pub ssthresh: DataSize,
}

/// The initial threshold, "arbitrarily high" (RFC 5681, section 3.1).
pub const NO_THRESHOLD: DataSize = DataSize::from_bytes(u64::MAX);
/// The minimum threshold, in segments (RFC 5681, equation 4; RFC 8312, section 4.5).
const THRESHOLD_MIN: u64 = 2;

impl CongestionWindow {
    /// Returns whether the window is below the threshold, so that it doubles each round trip.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows the window in slow start (RFC 5681, equation 2) by the acknowledged data, up to the threshold. Returns the
    /// acknowledged data that is left over.
    #[inline]
    fn slow_start(&mut self, acked: DataSize, limit: Option<DataSize>) -> DataSize {
        let growth = limit.map_or(acked, |limit| acked.min(limit)).min(self.ssthresh.saturating_sub(self.cwnd));
        self.cwnd += growth;
        if limit.is_some() { DataSize::ZERO } else { acked - growth }
    }
}

/// An ACK of new data outside of recovery.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// The time at which it arrived.
    pub now: Time,
    /// Newly acknowledged bytes.
    pub acked: DataSize,
    /// Bytes acknowledged since the connection began.
    pub acknowledged: DataSize,
    /// Bytes sent since the connection began.
    pub sent: DataSize,
    /// Round-trip time of the newest acknowledged segment, if it is unambiguous.
    pub round_trip: Option<TimeDelta>,
    /// Smoothed round-trip time.
    pub srtt: TimeDelta,
    /// The sender was limited by the congestion window. Only then may the window grow (RFC 8312, section 5.8; RFC
    /// 7661).
    pub cwnd_limited: bool,
}

/// The marks that an ACK reports, with accurate feedback.
#[derive(Clone, Copy, Debug)]
pub struct MarkSample {
    /// The time at which it arrived.
    pub now: Time,
    /// Newly delivered bytes, acknowledged in order or selectively.
    pub acked: DataSize,
    /// Bytes newly reported as marked.
    pub marked: DataSize,
    /// Bytes acknowledged since the connection began.
    pub acknowledged: DataSize,
    /// Bytes sent since the connection began.
    pub sent: DataSize,
    /// Whether no loss is known.
    pub open: bool,
}

/// The sender's state of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossState {
    /// No loss is known.
    Open,
    /// Loss recovery.
    Recovery,
    /// Recovery after a timeout.
    Loss,
}

/// The measurements of an ACK, also in recovery, for an algorithm that models the path.
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// The time at which it arrived.
    pub now: Time,
    /// Newly delivered bytes, acknowledged in order or selectively.
    pub acked: DataSize,
    /// Bytes newly found lost.
    pub lost: DataSize,
    /// Bytes delivered since the connection began.
    pub delivered: DataSize,
    /// Bytes delivered before the newest acknowledged segment was sent, and the delivery rate since; `None` if there is
    /// no valid rate.
    pub rate: Option<(DataSize, Rate)>,
    /// There was not always data to send, so the path may be faster than `rate`.
    pub app_limited: bool,
    /// Estimated bytes in the network when the newest acknowledged segment was sent, this one included.
    pub pipe_sent: DataSize,
    /// Bytes found lost since the newest acknowledged segment was sent.
    pub lost_since: DataSize,
    /// The sender was limited by the congestion window before this ACK.
    pub cwnd_limited: bool,
    /// Round-trip time of the newest acknowledged segment, if it is unambiguous.
    pub round_trip: Option<TimeDelta>,
    /// Smoothed round-trip time, once there is one.
    pub srtt: Option<TimeDelta>,
    /// Estimated bytes in the network before this ACK.
    pub pipe_before: DataSize,
    /// Estimated bytes in the network after this ACK.
    pub pipe: DataSize,
    /// The state of loss recovery after this ACK.
    pub loss_state: LossState,
}

/// The congestion control of one connection.
pub trait Congestion: core::fmt::Debug + Send {
    /// Handles an ACK of new data outside of recovery. The window may grow.
    fn handle_ack(&mut self, ack: &Ack, window: &mut CongestionWindow);
    /// Handles a loss with `flight` bytes in flight: sets the threshold. The sender reduces the window to it.
    fn handle_loss(&mut self, flight: DataSize, window: &mut CongestionWindow);
    /// Handles a retransmission timeout: sets the threshold. The sender sets the window to one segment.
    fn handle_timeout(&mut self, flight: DataSize, window: &mut CongestionWindow);
    /// Handles a classic ECN mark with `flight` bytes in flight: sets the threshold, to which the sender reduces the window.
    /// `alternative`: less than for a loss (RFC 8511), if the algorithm has such a rule.
    fn handle_mark(&mut self, flight: DataSize, window: &mut CongestionWindow, alternative: bool) {
        let _ = alternative;
        self.handle_loss(flight, window);
    }
    /// Handles the marks of an ACK, of an algorithm for accurate feedback. Returns whether it reduced the window.
    fn handle_marks(&mut self, _sample: &MarkSample, _window: &mut CongestionWindow) -> bool {
        false
    }
    /// Returns the window that the algorithm aims at, if it has one (CUBIC's W_max).
    fn target(&self) -> Option<DataSize> {
        None
    }
    /// Returns the pacing rate of an algorithm that paces. Such an algorithm must return a rate from the beginning. It
    /// handles every ACK by [`handle_sample`](Self::handle_sample) instead of `handle_ack`, and also sets the window in
    /// recovery.
    fn pacing(&self) -> Option<Rate> {
        None
    }
    /// Returns the number of segments that are sent in one burst (with pacing).
    fn burst(&self) -> u64 {
        1
    }
    /// Handles the opening of the connection (with pacing). `round_trip` is that of the SYN, if it is unambiguous.
    fn handle_open(&mut self, _now: Time, _round_trip: Option<TimeDelta>, _window: &CongestionWindow) {}
    /// Handles the measurements of an ACK (with pacing).
    fn handle_sample(&mut self, _sample: &RateSample, _window: &mut CongestionWindow) {}
    /// Returns whether the algorithm deliberately sends less than it could, so that delivery rates do not show
    /// the path (with pacing).
    fn is_self_limited(&self) -> bool {
        false
    }
}

/// Creates the congestion control of a connection, with a seed for its own random numbers.
pub type BuildCongestion = fn(&TcpConfig, u64) -> Box<dyn Congestion>;

/// The algorithms: name, summary, constructor.
pub const CONGESTION: &[(&str, &str, BuildCongestion)] = &[
    (
        "bbr",
        "BBR version 1, as in Linux: paces at the delivery rate that it measures, and keeps queues short",
        bbr::build,
    ),
    (
        "bbr3",
        "BBR version 3, as Google sends: as bbr, bounded by the bytes in flight at which losses exceeded 2 %",
        bbr::build_v3,
    ),
    ("cubic", "RFC 8312: the window follows a cubic function of the time since the last loss", cubic::build),
    (
        "dctcp",
        "RFC 8257: new-reno, and the window falls in proportion to the share of marked data; for queues that mark early",
        dctcp::build,
    ),
    ("new-reno", "RFC 5681: a segment more each round trip, half the window after a loss", new_reno::build),
    ("prague", "TCP Prague, for L4S: as dctcp, paced, and slower growth below 25 ms", prague::build),
];

/// Returns the name of an algorithm as it is in [`CONGESTION`], for use in a configuration. Returns `None` if there is
/// no such algorithm.
pub fn find_congestion(name: &str) -> Option<&'static str> {
    CONGESTION.iter().map(|(known, ..)| *known).find(|known| *known == name)
}

/// Creates the congestion control of a configuration. Panics if there is none; configurations hold names from [`CONGESTION`].
pub(super) fn build_congestion(config: &TcpConfig, seed: u64) -> Box<dyn Congestion> {
    let (.., build) =
        CONGESTION.iter().find(|(known, ..)| *known == config.congestion).expect("a name from CONGESTION");
    build(config, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::tcp::Profile;

    /// Segments of 1000 bytes, without HyStart and a limit of slow start.
    pub(super) fn config(kernel_windows: bool) -> TcpConfig {
        let profile = Profile { slow_start_limit: None, hystart: false, kernel_windows, ..Profile::LINUX };
        TcpConfig { segment: DataSize::from_bytes(1000), profile, ..TcpConfig::default() }
    }

    #[test]
    fn slow_start_stops_at_the_threshold() {
        let bytes = DataSize::from_bytes;
        let mut window = CongestionWindow { cwnd: bytes(1000), ssthresh: bytes(4500) };
        assert_eq!(window.slow_start(bytes(3000), Some(bytes(1000))), DataSize::ZERO);
        assert_eq!(window.cwnd, bytes(2000));
        assert_eq!(window.slow_start(bytes(3000), None), bytes(500));
        assert_eq!(window.cwnd, bytes(4500));
        assert!(!window.in_slow_start());
    }

    #[test]
    fn every_name_has_an_algorithm() {
        for (name, ..) in CONGESTION {
            assert_eq!(find_congestion(name), Some(*name));
            let mut window = CongestionWindow { cwnd: DataSize::from_bytes(14_480), ssthresh: NO_THRESHOLD };
            let mut algorithm = build_congestion(&TcpConfig { congestion: name, ..TcpConfig::default() }, 1);
            algorithm.handle_loss(window.cwnd, &mut window);
            // BBR does not use the threshold.
            let threshold = if name.starts_with("bbr") { u64::MAX..=u64::MAX } else { 7_240..=10_136 };
            assert!(threshold.contains(&window.ssthresh.as_bytes()), "{name}");
        }
        assert_eq!(find_congestion("vegas"), None);
    }
}
