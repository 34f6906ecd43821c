// SPDX-License-Identifier: MIT OR Apache-2.0
//! Constant-bitrate speech: frames of one size every 20 ms, independent of the target.
//!
//! RFC 8867 adds one such stream of 20 kbps to each video stream. Talk spurts are not modelled: the stream is always
//! on, as without discontinuous transmission.

use super::error::check;
use super::rounding::ByteRounder;
use super::{Configured, Frame, Source, SourceConfig, SourceEntry, SourceError};
use crate::flow::parameter::{Parameter, ParameterKind};
use crate::flow::stream_info::MediaKind;
use paceline_units::{RandomStream, Rate, Time, TimeDelta};
use std::sync::Arc;

/// The rate of RFC 8867, section 4.
const RATE: Rate = Rate::from_kbps(20);

pub(super) const ENTRY: SourceEntry = SourceEntry {
    name: "audio",
    summary: "constant-bitrate audio",
    kind: MediaKind::Audio,
    parameters: &[Parameter::new("rate", ParameterKind::Rate, "20 kbps").about("rate of audio")],
    implied_by: None,
    configure: |setup| {
        let config = AudioConfig { rate: setup.values.rate("rate"), ..AudioConfig::default() };
        Ok(Configured { config: Arc::new(config), lines: None })
    },
};

/// The configuration of an [`Audio`] source. The default is 20 kbps in frames of 20 ms.
#[derive(Clone, Debug, PartialEq)]
pub struct AudioConfig {
    /// The rate without headers; at least one byte per frame.
    pub rate: Rate,
    /// The frame interval, 1 ms to 1 s.
    pub interval: TimeDelta,
}

impl Default for AudioConfig {
    fn default() -> Self {
        Self { rate: RATE, interval: TimeDelta::from_millis(20) }
    }
}

impl SourceConfig for AudioConfig {
    fn build(&self, start: Time, _: RandomStream) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(Audio::new(self.clone(), start)?))
    }
    fn range(&self) -> (Rate, Rate) {
        (self.rate, self.rate)
    }
    fn frame_interval(&self) -> Option<TimeDelta> {
        Some(self.interval)
    }
}

/// An audio source that ignores its target.
#[derive(Clone, Debug)]
pub struct Audio {
    config: AudioConfig,
    due: Time,
    /// Exact size of a frame in bytes.
    exact: f64,
    bytes: ByteRounder,
}

impl Audio {
    /// Creates a source whose first frame is due at `start`.
    pub fn new(config: AudioConfig, start: Time) -> Result<Self, SourceError> {
        let (shortest, longest) = (TimeDelta::from_millis(1), TimeDelta::from_secs(1));
        check((shortest..=longest).contains(&config.interval), "interval", config.interval, "1 ms to 1 s")?;
        let exact = config.rate.as_bps_f64() * config.interval.as_secs_f64() / 8.0;
        let ok = exact >= 1.0 && config.rate <= Rate::from_kbps(1_000_000);
        check(ok, "rate", config.rate, "at least one byte per frame and at most 1 Gbps")?;
        Ok(Self { config, due: start, exact, bytes: ByteRounder::default() })
    }
}

impl Source for Audio {
    /// Has no effect.
    fn set_target(&mut self, _now: Time, _target: Rate) {}
    /// Every frame is a key frame, because audio frames are decoded independently.
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        if now < self.due {
            return None;
        }
        let captured = self.due;
        self.due += self.config.interval;
        Some(Frame { captured, size: self.bytes.round(self.exact), key: true })
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(self.due)
    }
    fn range(&self) -> (Rate, Rate) {
        (self.config.rate, self.config.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_early_polls_have_no_effect, bytes, frames_until};
    use super::*;

    const START: Time = Time::from_millis(3);

    fn audio() -> Audio {
        Audio::new(AudioConfig::default(), START).unwrap()
    }

    #[test]
    fn default_is_fifty_frames_of_fifty_bytes_per_second() {
        let mut source = audio();
        source.set_target(START, Rate::from_kbps(500));
        source.request_key_frame(START);
        let frames = frames_until(&mut source, START + TimeDelta::from_secs(10));
        assert_eq!(frames.len(), 500);
        assert!(frames.iter().all(|f| f.size.as_bytes() == 50 && f.key));
        assert_eq!(frames[1].captured - frames[0].captured, TimeDelta::from_millis(20));
        assert_eq!(source.range(), (Rate::from_kbps(20), Rate::from_kbps(20)));
    }

    #[test]
    fn rates_without_whole_frame_sizes_are_exact() {
        // 12 345 bps in frames of 10 ms: 15.43125 bytes each, 92 587.5 in a minute.
        let config = AudioConfig { rate: Rate::from_bps(12_345), interval: TimeDelta::from_millis(10) };
        let mut source = Audio::new(config, START).unwrap();
        let frames = frames_until(&mut source, START + TimeDelta::from_secs(60));
        assert!((92_586..=92_588).contains(&bytes(&frames)));
        assert!(frames.iter().all(|f| (15..=16).contains(&f.size.as_bytes())));
    }

    #[test]
    fn early_polls_have_no_effect() {
        assert_early_polls_have_no_effect(audio(), audio(), START);
    }

    #[test]
    fn errors_name_the_invalid_field() {
        let error = |rate, interval| Audio::new(AudioConfig { rate, interval }, START).unwrap_err().field;
        let (kbps, ms) = (Rate::from_kbps(20), TimeDelta::from_millis);
        assert_eq!(error(kbps, TimeDelta::ZERO), "interval");
        assert_eq!(error(kbps, ms(1001)), "interval");
        assert_eq!(error(Rate::from_bps(399), ms(20)), "rate"); // 0.9975 bytes
        assert_eq!(error(Rate::MAX, ms(20)), "rate");
    }
}
