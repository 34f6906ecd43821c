// SPDX-License-Identifier: MIT OR Apache-2.0
//! An interceptor that moves packets between the WebRTC library and the local media endpoint.
//!
//! `rtc` provides ICE, DTLS, SRTP and SDP. Its RTP and RTCP functions (reports, NACK, feedback, pacing) are not used, because
//! the local endpoint implements them as in the simulator. The interceptor sits between SRTP and the tracks: it takes every
//! decrypted packet and inserts the outgoing ones.

use rtc::interceptor::{Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc::sansio::Protocol;
use rtc::shared::error::Error;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Packet queues in both directions. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Bridge(Arc<Mutex<Queues>>);

#[derive(Default)]
struct Queues {
    received: VecDeque<Packet>,
    outgoing: VecDeque<TaggedPacket>,
}

impl Bridge {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the next received packet.
    pub fn pop_received(&self) -> Option<Packet> {
        self.queues().received.pop_front()
    }

    /// Queues a packet for the next write.
    pub fn push_outgoing(&self, now: Instant, packet: Packet) {
        let packet = TaggedPacket { now, transport: Default::default(), message: packet.into() };
        self.queues().outgoing.push_back(packet);
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Bridge {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        self.queues().received.push_back(packet.message.packet);
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        None
    }

    fn handle_write(&mut self, _: TaggedPacket) -> Result<(), Error> {
        Ok(()) // the library itself sends no packets
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.queues().outgoing.pop_front()
    }
}

impl Interceptor for Bridge {
    fn bind_local_stream(&mut self, _: &StreamInfo) {}
    fn unbind_local_stream(&mut self, _: &StreamInfo) {}
    fn bind_remote_stream(&mut self, _: &StreamInfo) {}
    fn unbind_remote_stream(&mut self, _: &StreamInfo) {}
}
