//! Between the WebRTC library's transports and our ends: an interceptor that takes every packet off and puts ours on.
//!
//! `rtc` gives ICE, DTLS, SRTP and SDP. What it has of RTP and RTCP (reports, NACK, feedback, pacing) stays out: our ends do
//! all that, as they do in the simulator. The one place where both meet is the chain of interceptors, between its SRTP and
//! its tracks: packets come there decrypted and go from there as they are.

use rtc::interceptor::{Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc::sansio::Protocol;
use rtc::shared::error::Error;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Packets on their way across; copies are the same bridge.
#[derive(Clone, Default)]
pub(super) struct Bridge(Arc<Mutex<Lanes>>);

#[derive(Default)]
struct Lanes {
    came: VecDeque<Packet>,
    leaving: VecDeque<TaggedPacket>,
}

impl Bridge {
    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next packet that came.
    pub fn take(&self) -> Option<Packet> {
        self.lanes().came.pop_front()
    }

    /// A packet that is to leave with the next write.
    pub fn put(&self, now: Instant, packet: Packet) {
        let packet = TaggedPacket { now, transport: Default::default(), message: packet.into() };
        self.lanes().leaving.push_back(packet);
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Bridge {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        self.lanes().came.push_back(packet.message.packet);
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        None
    }

    fn handle_write(&mut self, _: TaggedPacket) -> Result<(), Error> {
        Ok(()) // the library's own, of which there is none
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.lanes().leaving.pop_front()
    }
}

impl Interceptor for Bridge {
    fn bind_local_stream(&mut self, _: &StreamInfo) {}
    fn unbind_local_stream(&mut self, _: &StreamInfo) {}
    fn bind_remote_stream(&mut self, _: &StreamInfo) {}
    fn unbind_remote_stream(&mut self, _: &StreamInfo) {}
}
