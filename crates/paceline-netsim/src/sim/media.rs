// SPDX-License-Identifier: MIT OR Apache-2.0
//! The endpoints of a media flow in the simulator.

use super::over_tcp::OverTcp;
use super::{FlowEndpoints, Handled};
use crate::flow::{MediaSender, ReceiverEvent, SenderEvent};
use crate::media_flow::{MediaFlow, packet_class};
use crate::network::{FlowEnd, Network, TraceEvent};
use crate::records::{EventObserver, EventRecord, PacketClass};
use paceline_units::{DataSize, Ecn, FlowId, Time};

pub(super) struct MediaEndpoints {
    pub id: usize,
    pub flow: MediaFlow,
    /// `None`: over UDP.
    pub tcp: Option<Box<OverTcp>>,
}

impl<R: EventObserver> FlowEndpoints<R> for MediaEndpoints {
    fn id(&self) -> usize {
        self.id
    }

    fn poll_timeout(&self, now: Time, end: FlowEnd) -> Option<Time> {
        let of_tcp = self.tcp.as_ref().and_then(|tcp| tcp.poll_timeout(end));
        self.flow.poll_timeout(now, end).into_iter().chain(of_tcp).min()
    }

    fn handle_timeout(&mut self, now: Time, end: FlowEnd) {
        if let Some(tcp) = &mut self.tcp {
            tcp.handle_timeout(now, end);
        }
        self.flow.handle_timeout(now, end);
    }

    #[inline(always)]
    fn handle_packet(&mut self, now: Time, end: FlowEnd, handle: u32, net: &mut Network<R>) {
        if self.tcp.is_some() {
            return self.handle_segment(now, end, handle, net);
        }
        let packet = net.packets.get(handle);
        let (sent, size, ecn) = (packet.sent, packet.record.size, packet.ecn);
        self.flow.handle_packet(now, end, sent, net.packets.datagram_mut(handle).bytes(), size, ecn);
        net.packets.free(handle);
    }

    fn media_sender(&mut self) -> Option<&mut MediaSender> {
        Some(&mut self.flow.sender)
    }

    /// Does the same as the default, but schedules only if a timeout changed. Otherwise the wake-up is still pending: every call
    /// schedules, the clock converts a timeout to the same time at any `now`, and only a timeout removes a change of the flow.
    fn on_packet(&mut self, now: Time, end: FlowEnd, handle: u32, net: &mut Network<R>) -> Handled {
        let timeouts = |flow: &MediaFlow| (flow.sender.poll_timeout(), flow.receiver.poll_timeout());
        let before = timeouts(&self.flow);
        self.handle_packet(now, end, handle, net);
        self.drain(now, end, net);
        if timeouts(&self.flow) != before || self.tcp.is_some() {
            self.schedule(now, end, net);
        }
        debug_assert!(self.flow.poll_timeout(now, end).is_none_or(|due| net.wakes_by(self.id, end, due.max(now))));
        self.flow.check_controller(now, end)
    }

    fn check_controller(&mut self, now: Time, end: FlowEnd) -> Handled {
        self.flow.check_controller(now, end)
    }

    #[inline(always)]
    fn drain(&mut self, now: Time, end: FlowEnd, net: &mut Network<R>) {
        match end {
            FlowEnd::Sender => self.drain_sender(now, net),
            FlowEnd::Receiver => self.drain_receiver(now, net),
        }
        self.drain_tcp(now, end, net);
    }
}

impl MediaEndpoints {
    #[inline(always)]
    fn send<R: EventObserver>(
        &mut self,
        now: Time,
        from: FlowEnd,
        class: PacketClass,
        handle: u32,
        net: &mut Network<R>,
    ) {
        match &mut self.tcp {
            None => net.send_datagram(now, self.id, from, class, handle),
            Some(tcp) => {
                tcp.write(now, from, class, net.packets.datagram_mut(handle));
                net.packets.free(handle);
            }
        }
    }

    /// Handles a segment, and the packets that are in order then.
    fn handle_segment<R: EventObserver>(&mut self, now: Time, end: FlowEnd, handle: u32, net: &mut Network<R>) {
        let Some(tcp) = &mut self.tcp else { return };
        let ecn = net.packets.get(handle).ecn;
        tcp.handle_segment(now, end, net.packets.segment_mut(handle), ecn);
        net.packets.free(handle);
        while let Some(packet) = tcp.read(end) {
            let size = packet.datagram.size();
            self.flow.handle_packet(now, end, packet.sent, packet.datagram.bytes(), size, Ecn::NotEct);
            if packet.class == PacketClass::Media {
                net.emit(&EventRecord::Read { at: now, flow: FlowId(self.id as u16), size });
            }
        }
    }

    fn drain_tcp<R: EventObserver>(&mut self, now: Time, end: FlowEnd, net: &mut Network<R>) {
        let Some(tcp) = &mut self.tcp else { return };
        while let Some((segment, class, ecn)) = tcp.poll_transmit(now, end) {
            net.send_segment(now, self.id, end, class, segment, ecn);
        }
    }

    fn drain_sender<R: EventObserver>(&mut self, now: Time, net: &mut Network<R>) {
        while self.flow.sender.poll_timeout().is_some_and(|due| due <= now) {
            let handle = net.packets.alloc();
            let Some(sent) = self.flow.sender.poll_transmit(now, net.packets.datagram_mut(handle)) else {
                net.packets.free(handle);
                break;
            };
            self.send(now, FlowEnd::Sender, packet_class(&sent), handle, net);
        }
        while let Some(event) = self.flow.sender.poll_event() {
            if let SenderEvent::Decision(d) = &event {
                let target = DataSize::from_bytes(d.target.as_bps());
                net.hash_decision(now, self.id, FlowEnd::Sender, TraceEvent::Decision, d.pacing.as_bps(), target);
            }
            if let Some(event) = self.flow.sender_event(now, event) {
                net.emit(&event);
            }
        }
    }

    fn drain_receiver<R: EventObserver>(&mut self, now: Time, net: &mut Network<R>) {
        let reading = self.flow.clock.at(now);
        while self.flow.receiver.poll_timeout().is_some_and(|due| due <= reading) {
            let handle = net.packets.alloc();
            if !self.flow.receiver.poll_transmit(reading, net.packets.datagram_mut(handle)) {
                net.packets.free(handle);
                break;
            }
            self.send(now, FlowEnd::Receiver, PacketClass::ReceiverControl, handle, net);
        }
        while let Some(event) = self.flow.receiver.poll_event() {
            if let ReceiverEvent::Frame { timestamp, size, .. } = &event {
                net.hash_decision(now, self.id, FlowEnd::Receiver, TraceEvent::Frame, *timestamp as u64, *size);
            }
            net.emit(&self.flow.receiver_event(now, event));
        }
    }
}
