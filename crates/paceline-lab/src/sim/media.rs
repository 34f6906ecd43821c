//! The ends of a media flow in the simulator.

use super::Ends;
use crate::media::{MediaFlow, class_of};
use crate::network::{End, Kind, Network};
use crate::rows::{PacketClass, RowSink};
use paceline_flow::{ReceiverEvent, SenderEvent};
use paceline_units::{DataSize, RemoteTime, Time};

/// A media flow and its number.
pub(super) struct MediaEnds {
    pub id: usize,
    pub flow: MediaFlow,
}

impl<R: RowSink> Ends<R> for MediaEnds {
    fn begin(&mut self, start: Time, net: &mut Network<R>) {
        net.wake(self.id, End::Sender, self.flow.sender.poll_timeout().max(start));
        net.wake(self.id, End::Receiver, self.flow.clock.when(self.flow.receiver.poll_timeout(), start));
    }

    fn serve(&mut self, now: Time, end: End, net: &mut Network<R>) {
        match end {
            End::Sender => {
                self.flow.sender.handle_timeout(now);
                self.drain_sender(now, net);
            }
            End::Receiver => {
                let reading = self.flow.clock.at(now);
                self.flow.receiver.handle_timeout(reading);
                self.drain_receiver(now, reading, net);
            }
        }
    }

    fn handle(&mut self, now: Time, end: End, handle: u32, net: &mut Network<R>) {
        match end {
            End::Sender => {
                self.flow.sender.handle_packet(now, net.datagram_mut(handle).bytes());
                net.give_back(handle);
                self.drain_sender(now, net);
            }
            End::Receiver => {
                let reading = self.flow.clock.at(now);
                let (size, ecn) = (net.packet(handle).row.size, net.packet(handle).ecn);
                self.flow.receiver.handle_packet(reading, net.datagram_mut(handle).bytes(), size, ecn);
                net.give_back(handle);
                self.drain_receiver(now, reading, net);
            }
        }
    }
}

impl MediaEnds {
    fn drain_sender<R: RowSink>(&mut self, now: Time, net: &mut Network<R>) {
        loop {
            let handle = net.blank();
            let datagram = net.datagram_mut(handle);
            let Some(sent) = self.flow.sender.poll_transmit(now, datagram) else {
                net.give_back(handle);
                break;
            };
            let (size, ecn) = (datagram.size(), datagram.ecn);
            net.packet_mut(handle).ecn = ecn;
            net.launch(now, self.id, End::Sender, class_of(&sent), size, handle);
        }
        while let Some(event) = self.flow.sender.poll_event() {
            if let SenderEvent::Decision(d) = &event {
                let target = DataSize::from_bytes(d.target.as_bps());
                net.decided(now, self.id, End::Sender, Kind::Decision, d.pacing.as_bps(), target);
            }
            net.tell(&self.flow.sender_row(now, event));
        }
        net.wake(self.id, End::Sender, self.flow.sender.poll_timeout().max(now));
    }

    fn drain_receiver<R: RowSink>(&mut self, now: Time, reading: RemoteTime, net: &mut Network<R>) {
        if self.flow.receiver.poll_timeout() <= reading {
            loop {
                let handle = net.blank();
                let datagram = net.datagram_mut(handle);
                if !self.flow.receiver.poll_transmit(reading, datagram) {
                    net.give_back(handle);
                    break;
                }
                let (size, ecn) = (datagram.size(), datagram.ecn);
                net.packet_mut(handle).ecn = ecn;
                net.launch(now, self.id, End::Receiver, PacketClass::ReceiverControl, size, handle);
            }
        }
        while let Some(event) = self.flow.receiver.poll_event() {
            if let ReceiverEvent::Frame { timestamp, size, .. } = &event {
                net.decided(now, self.id, End::Receiver, Kind::Frame, *timestamp as u64, *size);
            }
            net.tell(&self.flow.receiver_row(now, event));
        }
        net.wake(self.id, End::Receiver, self.flow.clock.when(self.flow.receiver.poll_timeout(), now));
    }
}
