//! The endpoints of a media flow in the simulator.

use super::{FlowEndpoints, Handled};
use crate::flow::{MediaSender, ReceiverEvent, SenderEvent};
use crate::media_flow::{MediaFlow, packet_class};
use crate::network::{FlowEnd, Network, TraceEvent};
use crate::records::{EventObserver, PacketClass};
use paceline_units::{DataSize, Time};

pub(super) struct MediaEndpoints {
    pub id: usize,
    pub flow: MediaFlow,
}

impl<R: EventObserver> FlowEndpoints<R> for MediaEndpoints {
    fn id(&self) -> usize {
        self.id
    }

    fn poll_timeout(&self, now: Time, end: FlowEnd) -> Option<Time> {
        self.flow.poll_timeout(now, end)
    }

    fn handle_timeout(&mut self, now: Time, end: FlowEnd) {
        self.flow.handle_timeout(now, end);
    }

    fn handle_packet(&mut self, now: Time, end: FlowEnd, handle: u32, net: &mut Network<R>) {
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
        if timeouts(&self.flow) != before {
            self.schedule(now, end, net);
        }
        debug_assert!(self.flow.poll_timeout(now, end).is_none_or(|due| net.wakes_by(self.id, end, due.max(now))));
        self.flow.check_controller(now, end)
    }

    fn check_controller(&mut self, now: Time, end: FlowEnd) -> Handled {
        self.flow.check_controller(now, end)
    }

    fn drain(&mut self, now: Time, end: FlowEnd, net: &mut Network<R>) {
        match end {
            FlowEnd::Sender => self.drain_sender(now, net),
            FlowEnd::Receiver => self.drain_receiver(now, net),
        }
    }
}

impl MediaEndpoints {
    fn drain_sender<R: EventObserver>(&mut self, now: Time, net: &mut Network<R>) {
        while self.flow.sender.poll_timeout().is_some_and(|due| due <= now) {
            let handle = net.packets.alloc();
            let Some(sent) = self.flow.sender.poll_transmit(now, net.packets.datagram_mut(handle)) else {
                net.packets.free(handle);
                break;
            };
            net.send_datagram(now, self.id, FlowEnd::Sender, packet_class(&sent), handle);
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
            net.send_datagram(now, self.id, FlowEnd::Receiver, PacketClass::ReceiverControl, handle);
        }
        while let Some(event) = self.flow.receiver.poll_event() {
            if let ReceiverEvent::Frame { timestamp, size, .. } = &event {
                net.hash_decision(now, self.id, FlowEnd::Receiver, TraceEvent::Frame, *timestamp as u64, *size);
            }
            net.emit(&self.flow.receiver_event(now, event));
        }
    }
}
