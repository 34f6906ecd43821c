// SPDX-License-Identifier: MIT OR Apache-2.0
//! Padding that probes for a higher rate than the media use: for 3 s, then not for 3 s, and not within a second of a fall of the
//! window (`MaybeCreatePacerConfig`).

use super::config::{ScreamLibwebrtcConfig, since};
use crate::{ProbeCluster, StreamState};
use alloc::vec::Vec;
use paceline_units::{DataSize, Rate, StreamId, Time, TimeDelta};

/// The cluster that lets padding precede media: two packets at 50 kbit/s (`CreateFirstUpdate`).
const FIRST_CLUSTER: ProbeCluster = ProbeCluster::new(1, Rate::from_kbps(50), TimeDelta::from_millis(1), 2);

#[derive(Clone, Copy, Debug)]
struct Stream {
    id: StreamId,
    max: Rate,
    queued: DataSize,
}

/// The intervals of padding, and the streams that bound its rate.
#[derive(Clone, Debug, Default)]
pub struct Padding {
    /// The end of the interval.
    end: Option<Time>,
    /// Until then padding may precede media.
    before_media: Option<Time>,
    streams: Vec<Stream>,
    /// The largest sum of the streams' maxima.
    allocated_max: Rate,
    cluster: Option<ProbeCluster>,
}

impl Padding {
    /// Begins to probe before there are media.
    pub fn start(&mut self, now: Time, config: &ScreamLibwebrtcConfig) {
        if config.probes_before_media {
            self.before_media = Some(now + config.initial_probing);
            self.cluster = Some(FIRST_CLUSTER);
        }
    }

    /// Handles the state of a stream.
    pub fn handle_stream(&mut self, state: &StreamState) {
        let stream = Stream { id: state.stream, max: state.max, queued: state.queued };
        match self.streams.iter_mut().find(|known| known.id == state.stream) {
            Some(known) => *known = stream,
            None => self.streams.push(stream),
        }
        self.allocated_max = self.allocated_max.max(self.allocated());
    }

    /// Removes a stream that ended.
    pub fn remove_stream(&mut self, id: StreamId) {
        self.streams.retain(|stream| stream.id != id);
    }

    /// Returns the bytes in the pacer's queue.
    pub fn queued(&self) -> DataSize {
        self.streams.iter().map(|stream| stream.queued).sum()
    }

    fn allocated(&self) -> Rate {
        self.streams.iter().map(|stream| stream.max).sum()
    }

    /// Returns the padding rate: the target, or zero. `max` is the highest target, `decreased` the last fall of the window.
    pub fn rate(
        &mut self,
        now: Time,
        target: Rate,
        max: Rate,
        decreased: Option<Time>,
        config: &ScreamLibwebrtcConfig,
    ) -> Rate {
        let is_allowed = self.is_allowed(now, decreased, config);
        if is_allowed && target < self.ceiling(now, max) { target } else { Rate::ZERO }
    }

    /// Steps the intervals.
    fn is_allowed(&mut self, now: Time, decreased: Option<Time>, config: &ScreamLibwebrtcConfig) -> bool {
        let is_inside = self.end.is_some_and(|end| now < end);
        if !config.padding || since(now, decreased) <= config.padding_calm {
            if is_inside {
                self.end = Some(now);
            }
            return false;
        }
        let begins = !is_inside && since(now, self.end) >= config.padding_pause;
        if begins {
            self.end = Some(now + config.padding_length);
        }
        is_inside || begins
    }

    /// Returns the rate from which no padding is needed: what the streams can use, now doubled or ever.
    fn ceiling(&self, now: Time, max: Rate) -> Rate {
        let allocated = self.allocated();
        let ceiling = max.min(self.allocated_max).min(allocated + allocated);
        let precedes_media = ceiling == Rate::ZERO && self.before_media.is_some_and(|end| now < end);
        if precedes_media { max } else { ceiling }
    }

    /// Returns the cluster that begins probing, once.
    pub fn poll_probe(&mut self) -> Option<ProbeCluster> {
        self.cluster.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ScreamLibwebrtcConfig = ScreamLibwebrtcConfig::LIBWEBRTC;
    const KBPS: fn(u64) -> Rate = Rate::from_kbps;

    fn padding(max_kbps: u64) -> Padding {
        let mut padding = Padding::default();
        padding.handle_stream(&StreamState::new(StreamId(0), DataSize::from_bytes(7)).with_max(KBPS(max_kbps)));
        padding
    }

    #[test]
    fn padding_fills_up_to_what_streams_can_use() {
        let at = |padding: &mut Padding, target, max| padding.rate(Time::ZERO, KBPS(target), KBPS(max), None, &CONFIG);
        let mut one = padding(2000);
        let none = ScreamLibwebrtcConfig { padding: false, ..CONFIG };
        assert_eq!(one.rate(Time::ZERO, KBPS(1), KBPS(9), None, &none), Rate::ZERO);
        assert_eq!([at(&mut one, 1999, 9000), at(&mut one, 2000, 9000)], [KBPS(1999), Rate::ZERO]);
        assert_eq!([at(&mut one, 999, 1000), at(&mut one, 1000, 1000)], [KBPS(999), Rate::ZERO]);
        // Once there were 2000 kbit/s. Twice the present 600 is less.
        one.handle_stream(&StreamState::new(StreamId(0), DataSize::ZERO).with_max(KBPS(600)));
        assert_eq!([at(&mut one, 1199, 9000), at(&mut one, 1200, 9000)], [KBPS(1199), Rate::ZERO]);
        one.handle_stream(&StreamState::new(StreamId(1), DataSize::ZERO).with_max(KBPS(900)));
        assert_eq!([at(&mut one, 1999, 9000), at(&mut one, 2000, 9000)], [KBPS(1999), Rate::ZERO]);
        one.remove_stream(StreamId(0));
        assert_eq!([at(&mut one, 1799, 9000), at(&mut one, 1800, 9000)], [KBPS(1799), Rate::ZERO]);
        one.remove_stream(StreamId(1));
        assert_eq!(at(&mut one, 1, 9000), Rate::ZERO, "no stream");
    }

    #[test]
    fn padding_may_precede_media_for_six_seconds() {
        let config = ScreamLibwebrtcConfig { probes_before_media: true, ..CONFIG };
        let mut padding = Padding::default();
        padding.start(Time::ZERO, &CONFIG);
        assert_eq!(
            (padding.poll_probe(), padding.rate(Time::ZERO, KBPS(300), KBPS(900), None, &CONFIG)),
            (None, Rate::ZERO)
        );
        let mut padding = Padding::default();
        padding.start(Time::ZERO, &config);
        assert_eq!([padding.poll_probe(), padding.poll_probe()], [Some(FIRST_CLUSTER), None]);
        let mut at = |ms| padding.rate(Time::from_millis(ms), KBPS(300), KBPS(900), None, &config);
        assert_eq!([at(0), at(2999), at(3000), at(6000)], [KBPS(300), KBPS(300), Rate::ZERO, Rate::ZERO]);
    }

    #[test]
    fn queues_of_streams_are_summed() {
        let mut padding = padding(10);
        padding.handle_stream(&StreamState::new(StreamId(1), DataSize::from_bytes(5)));
        assert_eq!(padding.queued(), DataSize::from_bytes(12));
        padding.remove_stream(StreamId(0));
        assert_eq!(padding.queued(), DataSize::from_bytes(5));
    }
}
