// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams that begin, end or change during a call.

use super::stream::SenderStream;
use super::{MediaSender, StreamConfig};
use paceline::StreamConfig as CoreStream;
use paceline::internals::blocks::UnusedRate;
use paceline_units::{Rate, StreamId, Time};

impl MediaSender {
    /// Adds a stream. Its source determines the time of its first frame. Returns whether the stream was added: not if its
    /// id or one of its SSRCs was used in this call before, or if there are 256 streams.
    pub fn add_stream(&mut self, now: Time, config: StreamConfig) -> bool {
        let new = config.info;
        let is_used = |s: &SenderStream| {
            let old = s.config.info;
            old.id == new.id || [old.ssrc, old.rtx_ssrc].iter().any(|ssrc| [new.ssrc, new.rtx_ssrc].contains(ssrc))
        };
        if self.streams.len() > usize::from(u8::MAX) || self.streams.iter().any(is_used) {
            return false;
        }
        let stream = SenderStream::new(config, self.repair.has_fec(), self.packet_size);
        if !self.add_to_core(stream) {
            return false;
        }
        self.allocate_rates(now);
        self.update_wake();
        true
    }

    /// Adds a stream to both lists, at the same place.
    pub(super) fn add_to_core(&mut self, stream: SenderStream) -> bool {
        let (info, (min, max)) = (stream.config.info, stream.limits());
        let mut config = CoreStream::video(info.id, min, max);
        (config.kind, config.clock_rate, config.suspends) = (info.kind, info.clock_rate, stream.config.suspends);
        (config.priority, config.timestamp_offset) = (stream.config.priority, stream.config.timestamp_offset);
        let is_added = self.core.add_stream(&config).is_some();
        if is_added {
            self.core.add_ssrcs(info.id, info.ssrc, info.rtx_ssrc, stream.config.first_sequence);
            self.streams.push(stream);
        }
        is_added
    }

    /// Ends a stream: it has no more frames, sender reports or share of the target. Its packets in the pacer still
    /// leave, and feedback on them counts. Returns whether there was such a stream.
    pub fn remove_stream(&mut self, now: Time, id: StreamId) -> bool {
        let Some(stream) = self.active_stream(id) else { return false };
        (stream.removed, stream.next_frame) = (true, Time::MAX);
        self.core.remove_stream(now, id);
        self.allocate_rates(now);
        self.finish(now);
        true
    }

    /// Sets the highest rate of a stream's encoded media, in addition to that of its source; zero pauses it: its frames are
    /// discarded, and it has no share of the target. A stream that resumes begins with a key frame. Returns whether there is
    /// such a stream.
    pub fn set_stream_max(&mut self, now: Time, id: StreamId, max: Rate) -> bool {
        let Some(stream) = self.active_stream(id) else { return false };
        let before = core::mem::replace(&mut stream.max, max);
        if before.is_zero() && !max.is_zero() {
            stream.config.source.request_key_frame(now);
        }
        if max.is_zero() && !before.is_zero() {
            stream.unused = UnusedRate::default();
            self.core.set_stream_limits(now, id, Rate::ZERO, Rate::ZERO);
        }
        self.allocate_rates(now);
        self.finish(now);
        true
    }

    /// Mutes a stream, as a camera that sends black pictures: its source makes its lowest rate, and its limits and its share
    /// of the target stay. Returns whether there is such a stream.
    pub fn set_stream_muted(&mut self, now: Time, id: StreamId, muted: bool) -> bool {
        let Some(stream) = self.active_stream(id) else { return false };
        if core::mem::replace(&mut stream.muted, muted) && !muted {
            stream.config.source.request_key_frame(now);
        }
        self.allocate_rates(now);
        self.update_wake();
        true
    }

    /// Sets the weight of a stream, above zero, when streams share the target. Returns whether there is such a stream.
    pub fn set_priority(&mut self, now: Time, id: StreamId, priority: f64) -> bool {
        let Some(stream) = self.active_stream(id) else { return false };
        stream.config.priority = priority;
        self.core.set_priority(id, priority);
        self.allocate_rates(now);
        self.update_wake();
        true
    }

    fn active_stream(&mut self, id: StreamId) -> Option<&mut SenderStream> {
        self.streams.iter_mut().find(|stream| stream.config.info.id == id && !stream.removed)
    }
}
