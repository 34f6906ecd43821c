//! The perfect encoder: a constant frame rate, every frame exactly the target over the frame rate, and a new target
//! obeyed at the next frame.
//!
//! It is the encoder of studies that want to see the controller alone. It has no key frame burst: the first frame and
//! each requested key frame are marked as such, their size is that of all others. Target / fps is rarely a whole
//! number of bytes; the remainder goes to the next frame, so that the long-run rate is exact.

use super::cadence::Cadence;
use super::error::{check_fps, check_range};
use super::whole_bytes::WholeBytes;
use super::{Frame, Source, SourceError, VIDEO_CLOCK};
use paceline_units::{Rate, Time};

/// What an [`Ideal`] source is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct IdealConfig {
    /// Frames per second, 0.1 to 1000.
    pub fps: f64,
    /// The lowest target obeyed; at least one byte a frame.
    pub min: Rate,
    /// The highest target obeyed.
    pub max: Rate,
    /// The target until the first [`Source::set_target`].
    pub start: Rate,
}

/// A video source that does as it is told.
#[derive(Clone, Debug)]
pub struct Ideal {
    config: IdealConfig,
    cadence: Cadence,
    target: Rate,
    bytes: WholeBytes,
    /// The next frame is a key frame.
    key: bool,
}

impl Ideal {
    /// A source whose first frame, a key frame, is due at `start`.
    pub fn new(config: IdealConfig, start: Time) -> Result<Self, SourceError> {
        check_fps(config.fps)?;
        check_range(config.min, config.max, config.start, config.fps, 1.0)?;
        let cadence = Cadence::new(start, config.fps);
        Ok(Self { cadence, target: config.start, bytes: WholeBytes::default(), key: true, config })
    }
}

impl Source for Ideal {
    fn set_target(&mut self, _now: Time, target: Rate) {
        self.target = target.clamp(self.config.min, self.config.max);
    }
    fn request_key_frame(&mut self, _now: Time) {
        self.key = true;
    }
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        let captured = self.cadence.take(now)?;
        let size = self.bytes.take(self.target.as_bps_f64() / (8.0 * self.config.fps));
        Some(Frame { captured, size, key: core::mem::take(&mut self.key) })
    }
    fn poll_timeout(&self) -> Time {
        self.cadence.due()
    }
    fn range(&self) -> (Rate, Rate) {
        (self.config.min, self.config.max)
    }
    fn clock_rate(&self) -> u32 {
        VIDEO_CLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bytes, early_polls_change_nothing, frames_until};
    use super::*;

    const START: Time = Time::from_millis(250);

    fn config() -> IdealConfig {
        let kbps = Rate::from_kbps;
        IdealConfig { fps: 30.0, min: kbps(50), max: kbps(2000), start: kbps(1000) }
    }

    fn ideal() -> Ideal {
        Ideal::new(config(), START).unwrap()
    }

    #[test]
    fn the_rate_is_exact_to_the_byte() {
        // 1 Mbps for 60 s = 7 500 000 bytes in 1800 frames of 4166 or 4167 bytes.
        let mut source = ideal();
        let frames = frames_until(&mut source, START + paceline_units::TimeDelta::from_secs(60));
        assert_eq!(frames.len(), 1800);
        assert_eq!(bytes(&frames), 7_500_000);
        assert!(frames.iter().all(|f| (4166..=4167).contains(&f.size.as_bytes())));
    }

    #[test]
    fn a_new_target_holds_from_the_next_frame() {
        let mut source = ideal();
        for (kbps, low, high) in [(240, 1000, 1001), (9999, 8333, 8334), (0, 208, 209), (1200, 5000, 5001)] {
            let due = source.poll_timeout();
            source.set_target(due, Rate::from_kbps(kbps));
            let size = source.poll_frame(due).unwrap().size.as_bytes();
            assert!((low..=high).contains(&size), "{size} bytes at {kbps} kbps");
        }
        assert_eq!(source.range(), (Rate::from_kbps(50), Rate::from_kbps(2000)));
        assert_eq!(source.clock_rate(), 90_000);
    }

    #[test]
    fn key_frames_come_first_and_on_demand() {
        let mut source = ideal();
        let keys: Vec<bool> = (0..5)
            .map(|n| {
                if n == 3 {
                    source.request_key_frame(source.poll_timeout());
                }
                source.poll_frame(source.poll_timeout()).unwrap().key
            })
            .collect();
        assert_eq!(keys, [true, false, false, true, false]);
    }

    #[test]
    fn a_late_driver_gets_all_frames_with_their_own_times() {
        let mut source = ideal();
        let late = START + paceline_units::TimeDelta::from_millis(100);
        let captured: Vec<i64> =
            core::iter::from_fn(|| source.poll_frame(late)).map(|f| (f.captured - START).as_nanos()).collect();
        assert_eq!(captured, [0, 33_333_333, 66_666_667, 100_000_000]);
    }

    #[test]
    fn early_polls() {
        early_polls_change_nothing(ideal(), ideal(), START);
    }

    #[test]
    fn bad_configurations_are_named() {
        let field = |change: fn(&mut IdealConfig)| {
            let mut config = config();
            change(&mut config);
            Ideal::new(config, START).unwrap_err().field
        };
        assert_eq!(field(|c| c.fps = 0.0), "fps");
        assert_eq!(field(|c| c.min = Rate::ZERO), "min");
        assert_eq!(field(|c| c.max = Rate::from_kbps(49)), "max");
        assert_eq!(field(|c| c.start = Rate::from_kbps(49)), "start");
    }
}
