// SPDX-License-Identifier: MIT OR Apache-2.0
//! The endpoints of a TCP flow in the simulator.

use super::{FlowEndpoints, Handled};
use crate::flow::tcp::{Bursts, SegmentKind, TcpReceiver, TcpReceiverEvent, TcpSender, TcpSenderEvent, Workload};
use crate::network::{FlowEnd, Network};
use crate::plan::{FlowPlan, TcpPlan};
use crate::records::{EventObserver, EventRecord, HalfName, PacketClass};
use paceline::Signals;
use paceline_units::{Ecn, FlowId, RandomStreams, Time};

pub(super) struct TcpEndpoints {
    id: usize,
    sender: TcpSender,
    receiver: TcpReceiver,
}

impl TcpEndpoints {
    /// Builds the endpoints of TCP flow number `id`, which starts at `start`.
    pub fn new(id: usize, plan: &FlowPlan, tcp: &TcpPlan, start: Time, streams: &RandomStreams, signals: bool) -> Self {
        let random = streams.stream(&format!("flow/{}/workload", plan.id));
        let signals = if signals { Signals::enabled() } else { Signals::disabled() };
        let sender = TcpSender::new(tcp.config, tcp.workload, start, random, signals);
        let sender = match tcp.workload {
            Workload::Bursts { .. } => {
                let group = plan.group.as_ref().unwrap_or(&plan.id);
                sender.with_bursts(Bursts::new(streams.stream(&format!("flow/{group}/bursts")), start))
            }
            _ => sender,
        };
        Self { id, sender, receiver: TcpReceiver::new(tcp.config) }
    }
}

impl<R: EventObserver> FlowEndpoints<R> for TcpEndpoints {
    fn id(&self) -> usize {
        self.id
    }

    fn poll_timeout(&self, _: Time, end: FlowEnd) -> Option<Time> {
        match end {
            FlowEnd::Sender => self.sender.poll_timeout(),
            FlowEnd::Receiver => self.receiver.poll_timeout(),
        }
    }

    fn handle_timeout(&mut self, now: Time, end: FlowEnd) {
        match end {
            FlowEnd::Sender => self.sender.handle_timeout(now),
            FlowEnd::Receiver => self.receiver.handle_timeout(now),
        }
    }

    fn handle_packet(&mut self, now: Time, end: FlowEnd, handle: u32, net: &mut Network<R>) {
        match end {
            FlowEnd::Sender => self.handle_at_sender(now, handle, net),
            FlowEnd::Receiver => self.handle_at_receiver(now, handle, net),
        }
    }

    fn drain(&mut self, now: Time, end: FlowEnd, net: &mut Network<R>) {
        match end {
            FlowEnd::Sender => self.drain_sender(now, net),
            FlowEnd::Receiver => self.drain_receiver(now, net),
        }
    }

    /// Has the effect of the default, and decides once which end it is.
    fn on_packet(&mut self, now: Time, end: FlowEnd, handle: u32, net: &mut Network<R>) -> Handled {
        let due = match end {
            FlowEnd::Sender => {
                self.handle_at_sender(now, handle, net);
                self.drain_sender(now, net);
                self.sender.poll_timeout()
            }
            FlowEnd::Receiver => {
                self.handle_at_receiver(now, handle, net);
                self.drain_receiver(now, net);
                self.receiver.poll_timeout()
            }
        };
        net.wake(self.id, end, due.map(|due| due.max(now)));
        Ok(())
    }
}

impl TcpEndpoints {
    #[inline]
    fn handle_at_sender<R: EventObserver>(&mut self, now: Time, handle: u32, net: &mut Network<R>) {
        self.sender.handle_segment(now, net.packets.segment_mut(handle));
        net.packets.free(handle);
    }

    #[inline]
    fn handle_at_receiver<R: EventObserver>(&mut self, now: Time, handle: u32, net: &mut Network<R>) {
        let ecn = net.packets.get(handle).ecn;
        self.receiver.handle_packet(now, net.packets.segment_mut(handle), ecn);
        net.packets.free(handle);
    }

    #[inline]
    fn drain_sender<R: EventObserver>(&mut self, now: Time, net: &mut Network<R>) {
        while let Some((segment, sent)) = self.sender.poll_transmit(now) {
            let class = match sent {
                SegmentKind::Data | SegmentKind::Control => PacketClass::TcpData,
                SegmentKind::Retransmission => PacketClass::TcpRetransmission,
            };
            net.send_segment(now, self.id, FlowEnd::Sender, class, segment, self.sender.codepoint(sent));
        }
        while let Some(event) = self.sender.poll_event() {
            if let TcpSenderEvent::Signal(signal, value) = event {
                let flow = FlowId(self.id as u16);
                net.emit(&EventRecord::Signal { at: now, flow, half: HalfName::Send, signal, value });
            }
        }
    }

    #[inline]
    fn drain_receiver<R: EventObserver>(&mut self, now: Time, net: &mut Network<R>) {
        while let Some(segment) = self.receiver.poll_transmit(now) {
            net.send_segment(now, self.id, FlowEnd::Receiver, PacketClass::TcpAck, segment, Ecn::NotEct);
        }
        while let Some(TcpReceiverEvent::Read(size)) = self.receiver.poll_event() {
            net.emit(&EventRecord::Read { at: now, flow: FlowId(self.id as u16), size });
        }
    }
}
