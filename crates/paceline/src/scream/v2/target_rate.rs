// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target rate (draft, section "Media Rate Control").
//!
//! ```text
//! target = (1 - small window) MSS / (MSS + 20) / (1.2 + rate_adjust_factor + frame_size_dev) · 8 ref_wnd / s_rtt
//! ```

use super::media_queue::MediaQueue;
use crate::{QueuedFrame, SentPacket, StreamState, params};
use alloc::vec::Vec;
use paceline_units::{DataSize, Rate, StreamId, Time, TimeDelta};

params! {
    /// The parameters of the target.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct TargetConfig {
        /// The draft.
        const DRAFT;

        /// Bytes of a packet that are not media.
        overhead as "packet_overhead": DataSize = DataSize::from_bytes(20), in 0.0..=1000.0, from "PACKET_OVERHEAD";
        /// Divisor of ref_wnd / s_rtt, without queue and deviation.
        divisor: f64 = 1.2, in 1.0..=10.0, from "draft: 1.2; C++: 1.1";
        /// Gain by which a delay in the RTP queue lowers the target.
        adjust_gain: f64 = 1.0 / 16.0, in 0.0..=1.0, from "RATE_ADJUST_GAIN; C++: 0.2/8";
        /// Delay in the RTP queue without effect, in frame periods.
        adjust_free: f64 = 1.0 / 4.0, in 0.0..=10.0, from "draft: 1/4; C++: 1/2";
        /// Whether the effect of the RTP queue multiplies the divisor; otherwise it is added.
        adjust_multiplies: bool = false, from "draft: 0; C++: 1";
        /// Gain by which large frames lower the target; 0: frame sizes have no effect.
        deviation_gain as "frame_dev_gain": f64 = 1.0 / 64.0, in 0.0..=1.0, from "FRAME_SIZE_DEV_ALPHA; C++: 0";
        /// Time that is added to `s_rtt` in the target.
        rtt_extra as "rtt_extra_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=100.0, from "draft: none; C++: 1 ms";
        /// Longest round-trip time in the target.
        rtt_max as "rtt_max_ms": TimeDelta = TimeDelta::from_secs(60), in 1.0..=6e4,
            from "draft: no bound; C++: 200 ms";
    }
}

impl TargetConfig {
    /// The authors' C++.
    pub const CPP: Self = Self {
        divisor: 1.1,
        adjust_gain: 0.2 / 8.0,
        adjust_free: 1.0 / 2.0,
        adjust_multiplies: true,
        deviation_gain: 0.0,
        rtt_extra: TimeDelta::from_millis(1),
        rtt_max: TimeDelta::from_millis(200),
        ..Self::DRAFT
    };
}

/// The greatest `rate_adjust_factor` and the greatest `frame_size_dev`.
const ADJUST_MAX: f64 = 0.5;
const DEVIATION_MAX: f64 = 0.2;
/// The ratio of packet and window without effect, and the greatest reduction above.
const SMALL_WINDOW: f64 = 0.1;
const SMALL_WINDOW_MAX: f64 = 0.2;
/// The first `frame_period`, and the weight of a new one (C++: 0.9).
const FRAME_PERIOD: f64 = 0.02;
const FRAME_PERIOD_WEIGHT: f64 = 0.9;
/// The shortest round-trip time in the target (C++: 1 ms).
const RTT_MIN: f64 = 0.001;

/// The rate of a window: `window` and `mss` in bytes, `s_rtt` in seconds.
pub fn rate_of_window(window: f64, mss: f64, s_rtt: f64, divisor: f64, overhead: f64) -> f64 {
    let small = 1.0 - (mss / window - SMALL_WINDOW).clamp(0.0, SMALL_WINDOW_MAX);
    small * mss / (mss + overhead) / divisor * 8.0 * window / s_rtt
}

/// `rate_adjust_factor`: the integral of the delay in the media queue. Times are in seconds.
fn rate_adjust(factor: f64, delay: f64, period: f64, config: &TargetConfig) -> f64 {
    let error = (delay - config.adjust_free * period) / period;
    (factor + error * config.adjust_gain).clamp(0.0, ADJUST_MAX)
}

/// `frame_size_dev`: by how much frames are larger than nominal. Sizes are in bytes.
fn frame_size_deviation(deviation: f64, size: f64, nominal: f64, gain: f64) -> f64 {
    let excess = if nominal > 0.0 { ((size - nominal) / nominal).max(0.0) } else { 0.0 };
    ((1.0 - gain) * deviation + gain * excess).min(DEVIATION_MAX)
}

/// The frames of a stream.
#[derive(Clone, Debug)]
struct StreamFrames {
    stream: StreamId,
    queue: MediaQueue,
    /// The time of the last frame, and `frame_period`, s.
    last: Option<Time>,
    period: f64,
    adjust: f64,
    deviation: f64,
}

/// The frames of all streams, and the divisor that follows from them.
#[derive(Clone, Debug)]
pub(super) struct FrameStatistics {
    config: TargetConfig,
    streams: Vec<StreamFrames>,
}

impl FrameStatistics {
    pub fn new(config: TargetConfig) -> Self {
        Self { config, streams: Vec::new() }
    }

    fn find(&mut self, stream: StreamId) -> Option<&mut StreamFrames> {
        self.streams.iter_mut().find(|s| s.stream == stream)
    }

    #[inline]
    pub fn handle_sent(&mut self, packet: &SentPacket) {
        if let Some(frames) = self.find(packet.stream) {
            frames.queue.handle_sent(packet);
        }
    }

    pub fn handle_stream(&mut self, state: &StreamState) {
        if let Some(frames) = self.find(state.stream) {
            return frames.queue.handle_stream(state);
        }
        let queue = MediaQueue::new(state.stream);
        let period = FRAME_PERIOD;
        self.streams.push(StreamFrames {
            stream: state.stream,
            queue,
            last: None,
            period,
            adjust: 0.0,
            deviation: 0.0,
        });
    }

    pub fn remove_stream(&mut self, stream: StreamId) {
        self.streams.retain(|s| s.stream != stream);
    }

    /// Handles a frame that was queued; `rate` is the target of its stream.
    pub fn handle_frame(&mut self, now: Time, frame: &QueuedFrame, rate: Rate) {
        let config = self.config;
        let Some(frames) = self.find(frame.stream) else { return };
        if let Some(last) = frames.last.replace(now)
            && now > last
        {
            let period = (now - last).as_secs_f64();
            frames.period = FRAME_PERIOD_WEIGHT * period + (1.0 - FRAME_PERIOD_WEIGHT) * frames.period;
        }
        let delay = frames.queue.delay(now).as_secs_f64();
        frames.adjust = rate_adjust(frames.adjust, delay, frames.period, &config);
        let nominal = rate.as_bps_f64() * frames.period / 8.0;
        let size = frame.size.as_bytes() as f64;
        frames.deviation = frame_size_deviation(frames.deviation, size, nominal, config.deviation_gain);
        frames.queue.handle_frame(now, frame);
    }

    /// Returns the greatest `rate_adjust_factor` of the streams.
    pub fn adjust(&self) -> f64 {
        self.streams.iter().map(|s| s.adjust).fold(0.0, f64::max)
    }

    /// Returns the greatest `frame_size_dev` of the streams.
    pub fn deviation(&self) -> f64 {
        self.streams.iter().map(|s| s.deviation).fold(0.0, f64::max)
    }

    /// Returns the longest delay in the queues.
    pub fn delay(&self, now: Time) -> TimeDelta {
        self.streams.iter().map(|s| s.queue.delay(now)).max().unwrap_or_default()
    }

    /// Returns the rate of a window; sizes in bytes.
    pub fn target(&self, window: f64, mss: DataSize, s_rtt: TimeDelta) -> f64 {
        let TargetConfig { divisor, adjust_multiplies, overhead, rtt_extra, rtt_max, .. } = self.config;
        let divisor = if adjust_multiplies {
            divisor * (1.0 + self.adjust())
        } else {
            divisor + self.adjust() + self.deviation()
        };
        let rtt = (s_rtt + rtt_extra).min(rtt_max).as_secs_f64().max(RTT_MIN);
        rate_of_window(window, mss.as_bytes() as f64, rtt, divisor, overhead.as_bytes() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 1e-6, "{value} is not {expected}");
    }

    /// By hand: a queue of a period and a quarter raises the factor by a sixteenth; frames of twice the size raise the
    /// deviation by a sixty-fourth.
    #[test]
    fn queues_and_large_frames_lower_the_target() {
        let config = TargetConfig::DRAFT;
        near(rate_adjust(0.0, 0.025, 0.020, &config), 1.0 / 16.0);
        assert_eq!(rate_adjust(0.0, 0.004, 0.020, &config), 0.0);
        assert_eq!(rate_adjust(0.49, 0.1, 0.020, &config), 0.5);
        near(frame_size_deviation(0.0, 2000.0, 1000.0, 1.0 / 64.0), 1.0 / 64.0);
        assert_eq!(frame_size_deviation(0.2, 9e9, 1000.0, 1.0 / 64.0), 0.2);
        near(rate_of_window(20_000.0, 1000.0, 0.05, 1.2, 20.0), 2_614_379.08);
        near(rate_of_window(3000.0, 1000.0, 0.05, 1.2, 20.0) / rate_of_window(20_000.0, 1000.0, 0.05, 1.2, 20.0), 0.12);
    }

    #[test]
    fn greatest_delay_of_the_streams_counts() {
        let mut frames = FrameStatistics::new(TargetConfig::DRAFT);
        let (size, rate) = (DataSize::from_bytes(2500), Rate::from_kbps(1000));
        for n in [0, 1] {
            frames.handle_stream(&StreamState::new(StreamId(n), DataSize::ZERO));
        }
        let before = frames.target(20_000.0, DataSize::from_bytes(1000), TimeDelta::from_millis(50));
        for ms in [0, 20, 40] {
            let frame = QueuedFrame { stream: StreamId(1), size, packets: 2, key: false };
            frames.handle_frame(Time::from_millis(ms), &frame, rate);
        }
        // Waits of 0, 20 and 40 ms, a period of 20 ms: -0.25 (0), 0.75 and 1.75 sixteenths.
        near(frames.adjust(), 2.5 / 16.0);
        assert_eq!((frames.deviation(), frames.delay(Time::from_millis(45))), (0.0, TimeDelta::from_millis(45)));
        let after = frames.target(20_000.0, DataSize::from_bytes(1000), TimeDelta::from_millis(50));
        near(after, before * 1.2 / (1.2 + 2.5 / 16.0));
        frames.remove_stream(StreamId(1));
        near(frames.target(20_000.0, DataSize::from_bytes(1000), TimeDelta::from_millis(50)), before);
    }
}
