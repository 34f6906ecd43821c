// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the network, the limits and the streams during a call.

use super::MediaReceiver;
use super::stream::ReceiverStream;
use crate::flow::stream_info::StreamInfo;
use paceline::{Bounds, Setup};
use paceline_units::{RemoteTime, StreamId};

impl MediaReceiver {
    /// Sets the limits of the sender's target for the receive half.
    pub fn set_bounds(&mut self, now: RemoteTime, bounds: &Bounds) {
        self.core.set_bounds(now, bounds);
        self.update_wake();
    }

    /// Handles a change of the network route. The receive half starts again with this setup. Its messages that were not
    /// sent yet are dropped.
    pub fn handle_route_change(&mut self, now: RemoteTime, setup: &Setup) {
        self.core.handle_route_change(now, setup);
        self.update_wake();
    }

    /// Expects a stream. Returns whether it was added: not if a stream with this id or one of its SSRCs exists.
    pub fn add_stream(&mut self, info: StreamInfo) -> bool {
        let is_used = |s: &ReceiverStream| {
            let old = s.info;
            old.id == info.id || [old.ssrc, old.rtx_ssrc].iter().any(|ssrc| [info.ssrc, info.rtx_ssrc].contains(ssrc))
        };
        if self.streams.iter().any(is_used) {
            return false;
        }
        self.core.add_ssrcs(&[info.ssrc, info.rtx_ssrc]);
        self.streams.push(ReceiverStream::new(info));
        self.restart_report();
        true
    }

    /// Forgets a stream, with its incomplete frames. Returns whether there was one.
    pub fn remove_stream(&mut self, id: StreamId) -> bool {
        let Some(index) = self.streams.iter().position(|stream| stream.info.id == id) else { return false };
        let stream = self.streams.remove(index);
        self.core.remove_ssrcs(&[stream.info.ssrc, stream.info.rtx_ssrc]);
        self.restart_report();
        true
    }

    /// An unfinished report counts streams by index, so it begins again.
    fn restart_report(&mut self) {
        self.next_block = 0;
        self.update_wake();
    }
}
