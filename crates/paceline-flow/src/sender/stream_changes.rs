//! Streams that begin, end or change during a call.

use super::prober::Prober;
use super::sequence_map::SequenceMap;
use super::stream::SenderStream;
use super::{MediaSender, StreamConfig};
use paceline_units::{StreamId, Time};

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
        if self.by_ssrc {
            self.sequence_maps.extend([new.ssrc, new.rtx_ssrc].map(SequenceMap::new));
        }
        self.pacer.add_stream(config.priority);
        let stream = SenderStream::new(config, self.fec.is_some(), self.packet_size);
        self.streams.push(SenderStream { report: self.report, ..stream });
        self.allocate_rates(now);
        self.update_wake();
        true
    }

    /// Ends a stream: it has no more frames, sender reports or share of the target. Its packets in the pacer still
    /// leave, and feedback on them counts. Returns whether there was such a stream.
    pub fn remove_stream(&mut self, now: Time, id: StreamId) -> bool {
        let Some(stream) = self.active_stream(id) else { return false };
        (stream.removed, stream.next_frame) = (true, Time::MAX);
        if !self.streams.iter().any(SenderStream::carries_padding) {
            self.prober = Prober::default();
        }
        if let Some(half) = &mut self.half {
            half.handle_stream_removed(now, id);
        }
        self.allocate_rates(now);
        self.follow_half(now);
        true
    }

    /// Sets the weight of a stream, above zero, when streams share the target. Returns whether there is such a stream.
    pub fn set_priority(&mut self, now: Time, id: StreamId, priority: f64) -> bool {
        let Some(stream) = self.active_stream(id) else { return false };
        stream.config.priority = priority;
        if let Some(index) = self.streams.iter().position(|stream| stream.config.info.id == id) {
            self.pacer.set_weight(index, priority);
        }
        self.allocate_rates(now);
        self.update_wake();
        true
    }

    fn active_stream(&mut self, id: StreamId) -> Option<&mut SenderStream> {
        self.streams.iter_mut().find(|stream| stream.config.info.id == id && !stream.removed)
    }
}
