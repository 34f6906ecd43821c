//! The ends of a TCP flow in the simulator.

use super::Ends;
use crate::network::{End, Network};
use crate::plan::{FlowPlan, TcpPlan};
use crate::rows::{HalfName, PacketClass, Row, RowSink};
use paceline::Signals;
use paceline_flow::tcp::{TcpReceiver, TcpReceiverEvent, TcpSender, TcpSenderEvent, TcpSent};
use paceline_units::{Ecn, FlowId, Streams, Time};

/// A TCP sender and receiver.
pub(super) struct TcpEnds {
    id: usize,
    sender: TcpSender,
    receiver: TcpReceiver,
}

impl<R: RowSink> Ends<R> for TcpEnds {
    fn begin(&mut self, start: Time, net: &mut Network<R>) {
        net.wake(self.id, End::Sender, self.sender.poll_timeout().max(start));
        net.wake(self.id, End::Receiver, self.receiver.poll_timeout());
    }

    fn serve(&mut self, now: Time, end: End, net: &mut Network<R>) {
        match end {
            End::Sender => {
                self.sender.handle_timeout(now);
                self.drain_sender(now, net);
            }
            End::Receiver => {
                self.receiver.handle_timeout(now);
                self.drain_receiver(now, net);
            }
        }
    }

    fn handle(&mut self, now: Time, end: End, handle: u32, net: &mut Network<R>) {
        let segment = *net.segment_mut(handle);
        net.give_back(handle);
        match end {
            End::Sender => {
                self.sender.handle_segment(now, &segment);
                self.drain_sender(now, net);
            }
            End::Receiver => {
                self.receiver.handle_segment(now, &segment);
                self.drain_receiver(now, net);
            }
        }
    }
}

impl TcpEnds {
    fn drain_sender<R: RowSink>(&mut self, now: Time, net: &mut Network<R>) {
        let flow = FlowId(self.id as u16);
        while let Some((segment, sent)) = self.sender.poll_transmit(now) {
            let class = match sent {
                TcpSent::Data | TcpSent::Control => PacketClass::TcpData,
                TcpSent::Retransmission => PacketClass::TcpRetransmission,
            };
            self.launch(now, End::Sender, class, segment, net);
        }
        while let Some(event) = self.sender.poll_event() {
            if let TcpSenderEvent::Signal(signal, value) = event {
                net.tell(&Row::Signal { at: now, flow, half: HalfName::Send, signal, value });
            }
        }
        net.wake(self.id, End::Sender, self.sender.poll_timeout().max(now));
    }

    fn drain_receiver<R: RowSink>(&mut self, now: Time, net: &mut Network<R>) {
        while let Some(segment) = self.receiver.poll_transmit(now) {
            self.launch(now, End::Receiver, PacketClass::TcpAck, segment, net);
        }
        while let Some(event) = self.receiver.poll_event() {
            let TcpReceiverEvent::Read(size) = event;
            net.tell(&Row::Read { at: now, flow: FlowId(self.id as u16), size });
        }
        net.wake(self.id, End::Receiver, self.receiver.poll_timeout().max(now));
    }

    #[inline]
    fn launch<R: RowSink>(
        &self,
        now: Time,
        from: End,
        class: PacketClass,
        segment: paceline_flow::tcp::Segment,
        net: &mut Network<R>,
    ) {
        let handle = net.blank();
        *net.segment_mut(handle) = segment;
        net.packet_mut(handle).ecn = Ecn::NotEct;
        net.launch(now, self.id, from, class, segment.size(), handle);
    }
}

/// The ends of the TCP flow of this number, which begins at `start`.
pub(super) fn build(
    id: usize,
    plan: &FlowPlan,
    tcp: &TcpPlan,
    start: Time,
    streams: &Streams,
    signals: bool,
) -> TcpEnds {
    let random = streams.stream(&format!("flow/{}/workload", plan.id));
    let signals = if signals { Signals::heard() } else { Signals::unheard() };
    TcpEnds {
        id,
        sender: TcpSender::new(tcp.config, tcp.workload, start, random, signals),
        receiver: TcpReceiver::new(tcp.config),
    }
}
