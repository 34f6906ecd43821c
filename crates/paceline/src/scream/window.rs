//! The congestion window: how much may be in flight (RFC 8298, sections 4.1.2.1, 4.1.2.2, 4.1.2.5 to 4.1.2.7).
//!
//! ```text
//! fast increase:  cwnd += acked                                          while trend < 0.2
//! else:           cwnd += GAIN (1 - qdelay / target) acked MSS / cwnd    LEDBAT's law; up only if the window is used
//!                 cwnd <= 1.1 max_bytes_in_flight
//! loss:           cwnd *= BETA_LOSS        mark: cwnd *= BETA_ECN        cwnd >= MIN_CWND, always
//! ```

use paceline_units::{DataSize, Rate, Time, TimeDelta, round_to_u64};

/// Numbers of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowConfig {
    /// `MIN_CWND`, also the first window.
    pub min: DataSize,
    /// `MSS`, a full packet.
    pub mss: DataSize,
    /// `GAIN` below the target of the queuing delay.
    pub gain: f64,
    /// `GAIN` above it.
    pub gain_down: f64,
    /// The most that one report takes away above the target, as a share of the window.
    pub fall_max: f64,
    /// Outside fast increase the window grows only if it is less than this many times the bytes in flight.
    pub used: f64,
    /// `MAX_BYTES_IN_FLIGHT_HEAD_ROOM`.
    pub head_room: f64,
    /// `BETA_LOSS`.
    pub beta_loss: f64,
    /// `BETA_ECN`.
    pub beta_ecn: f64,
    /// `QDELAY_TREND_TH`: from this trend on there is congestion, and no fast increase.
    pub trend_th: f64,
    /// `QDELAY_TREND_LO`: below this trend there is none.
    pub trend_lo: f64,
    /// `T_RESUME_FAST_INCREASE`.
    pub resume: TimeDelta,
    /// `RATE_PACE_MIN`.
    pub pace_min: Rate,
    /// Pacing rate over that of the window.
    pub pacing: f64,
}

/// In fast increase the window grows only if it is less than this many times the bytes in flight (section 4.1.2.2).
const USED_FAST: f64 = 1.5;
/// Shortest round-trip time that is reckoned with.
const RTT_MIN: TimeDelta = TimeDelta::from_millis(1);

/// What a report said, for the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acknowledged {
    /// `bytes_newly_acked`: by how much the highest acknowledged packet moved since the last update, losses included.
    pub newly: DataSize,
    /// The window grows as if no more than this had been acknowledged.
    pub counted_max: DataSize,
    /// `bytes_in_flight`, after the report.
    pub in_flight: DataSize,
    /// `max_bytes_in_flight`.
    pub max_in_flight: DataSize,
    /// `qdelay`.
    pub qdelay: TimeDelta,
    /// `qdelay_target`.
    pub target: TimeDelta,
    /// `qdelay_trend`.
    pub trend: f64,
}

/// A sign of congestion, other than delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Packets were lost.
    Loss,
    /// Packets were marked, and none lost.
    Mark,
}

/// How the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// `in_fast_increase`.
    Fast,
    /// By the queuing delay.
    Delay,
}

impl Growth {
    /// Names, in order of [`index`](Self::index).
    pub const NAMES: &'static [&'static str] = &["fast increase", "by delay"];
    /// The state as a signal value.
    pub fn index(self) -> f64 {
        self as u8 as f64
    }
}

/// `cwnd`.
#[derive(Clone, Debug)]
pub struct CongestionWindow {
    config: WindowConfig,
    bytes: f64,
    growth: Growth,
    /// When there last was congestion.
    congested: Option<Time>,
}

impl CongestionWindow {
    /// A window of `MIN_CWND` in fast increase.
    pub fn new(config: WindowConfig) -> Self {
        Self::starting_at(config, config.min, Growth::Fast)
    }

    /// A window of this size that grows like this.
    pub fn starting_at(config: WindowConfig, cwnd: DataSize, growth: Growth) -> Self {
        Self { config, bytes: bytes(cwnd), growth, congested: None }
    }

    /// `cwnd`.
    pub fn get(&self) -> DataSize {
        DataSize::from_bytes(round_to_u64(self.bytes))
    }

    /// How it grows.
    pub fn growth(&self) -> Growth {
        self.growth
    }

    /// `update_cwnd`: no congestion event.
    pub fn handle_acknowledged(&mut self, ack: &Acknowledged) {
        let (newly, in_flight) = (bytes(ack.newly), bytes(ack.in_flight));
        let counted = bytes(ack.newly.min(ack.counted_max));
        if self.growth == Growth::Fast {
            if ack.trend < self.config.trend_th {
                if USED_FAST * in_flight + newly > self.bytes {
                    self.bytes += counted;
                }
                return;
            }
            self.growth = Growth::Delay;
        }
        let off_target = off_target(ack.qdelay, ack.target);
        let per_byte = bytes(self.config.mss) / self.bytes;
        if off_target <= 0.0 {
            let fall = self.config.gain_down * -off_target * newly * per_byte;
            self.bytes -= fall.min(self.config.fall_max * self.bytes);
        } else if self.config.used * in_flight + newly > self.bytes {
            self.bytes += self.config.gain * off_target * counted * per_byte;
        }
        self.bytes = self.bytes.min(self.config.head_room * bytes(ack.max_in_flight)).max(bytes(self.config.min));
    }

    /// A congestion event.
    pub fn handle_congestion(&mut self, now: Time, congestion: Congestion) {
        let beta = match congestion {
            Congestion::Loss => self.config.beta_loss,
            Congestion::Mark => self.config.beta_ecn,
        };
        self.bytes = (beta * self.bytes).max(bytes(self.config.min));
        self.growth = Growth::Delay;
        self.congested = Some(now);
    }

    /// `check_to_resume_fast_increase` (section 4.1.2.7): once there was no sign of congestion for long.
    pub fn check_to_resume(&mut self, now: Time, trend: f64) {
        if trend >= self.config.trend_lo {
            self.congested = Some(now);
        } else if self.congested.is_none_or(|at| now - at >= self.config.resume) {
            self.growth = Growth::Fast;
        }
    }

    /// What may be in flight (section 4.1.2.5): a packet more than the window while the queue is below its target.
    pub fn allowed(&self, qdelay: TimeDelta, target: TimeDelta) -> DataSize {
        if qdelay <= target { self.get() + self.config.mss } else { self.get() }
    }

    /// `pace_bitrate` (section 4.1.2.6); its `t_pace` is a packet's time at this rate.
    pub fn pacing(&self, s_rtt: TimeDelta) -> Rate {
        Rate::of(self.get(), s_rtt.max(RTT_MIN)).scale(self.config.pacing).max(self.config.pace_min)
    }
}

/// `off_target`, as LEDBAT has it (RFC 6817, section 2.4.2).
fn off_target(qdelay: TimeDelta, target: TimeDelta) -> f64 {
    (target - qdelay).as_secs_f64() / target.as_secs_f64()
}

fn bytes(size: DataSize) -> f64 {
    size.as_bytes() as f64
}

#[cfg(test)]
mod tests {
    use super::super::ScreamConfig;
    use super::*;

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }
    fn size(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }
    fn ack(newly: u64, qdelay: i64, trend: f64) -> Acknowledged {
        Acknowledged {
            newly: size(newly),
            counted_max: size(newly),
            in_flight: size(20_000),
            max_in_flight: size(20_000),
            qdelay: ms(qdelay),
            target: ms(100),
            trend,
        }
    }

    /// Five seconds after the trend was last high, or a packet lost, and not before.
    #[test]
    fn fast_increase_resumes_after_five_seconds() {
        let mut window = CongestionWindow::new(ScreamConfig::default().window);
        let at = Time::from_millis;
        window.handle_congestion(at(0), Congestion::Loss);
        let grows = |window: &mut CongestionWindow, ms, trend| {
            window.check_to_resume(at(ms), trend);
            window.growth()
        };
        assert_eq!(grows(&mut window, 4000, 0.0), Growth::Delay);
        assert_eq!(grows(&mut window, 4500, 0.2), Growth::Delay);
        assert_eq!(grows(&mut window, 9400, 0.19), Growth::Delay);
        assert_eq!(grows(&mut window, 9500, 0.19), Growth::Fast);
    }

    /// By hand: at twice the target the law takes MSS bytes per window acknowledged. The C++ takes twice that, and a
    /// quarter of the window at most.
    #[test]
    fn how_a_queue_above_its_target_is_answered() {
        let fallen = |config: WindowConfig, newly, qdelay| {
            let mut window = CongestionWindow::starting_at(config, size(20_000), Growth::Delay);
            window.handle_acknowledged(&ack(newly, qdelay, 0.0));
            20_000 - window.get().as_bytes()
        };
        let (rfc, cpp) = (ScreamConfig::default().window, ScreamConfig::cpp().window);
        assert_eq!([fallen(rfc, 20_000, 200), fallen(rfc, 20_000, 1100)], [1000, 10_000]);
        assert_eq!([fallen(cpp, 20_000, 200), fallen(cpp, 20_000, 1100)], [2400, 5000]);
        assert_eq!(fallen(rfc, 20_000, 5000), 17_000, "MIN_CWND");
    }

    #[test]
    fn a_packet_more_below_the_target_and_never_slower_than_the_least_pace() {
        let window = CongestionWindow::new(ScreamConfig::default().window);
        assert_eq!(window.allowed(ms(100), ms(100)), size(4000));
        assert_eq!(window.allowed(ms(101), ms(100)), size(3000));
        assert_eq!(window.pacing(ms(100)), Rate::from_kbps(240));
        assert_eq!(window.pacing(ms(1000)), Rate::from_kbps(50));
        assert_eq!(window.pacing(TimeDelta::ZERO), Rate::from_kbps(24_000));
    }
}
