//! The flows that an end receives, without socket and clock.

use crate::hosts::arrivals::{Arrival, Recorder, RenderedFrame};
use crate::hosts::flow_number::Ssrcs;
use crate::hosts::message::Totals;
use crate::hosts::session_flow::SessionFlow;
use crate::hosts::silence::Liveness;
use crate::hosts::timers::Timers;
use crate::hosts::window::SeenNumbers;
use paceline_netsim::ControllerFailure;
use paceline_netsim::flow::{Datagram, IP_UDP_HEADERS, ReceiverEvent};
use paceline_netsim::media_flow::MediaFlow;
use paceline_netsim::network::FlowEnd;
use paceline_units::{DataSize, Ecn, Time, TimeDelta};
use std::collections::BTreeMap;

/// What to send: RTCP, or the body of a report of arrivals.
pub enum Output<'a> {
    /// RTCP with this ECN field.
    Rtcp(&'a [u8], Ecn),
    /// The body of a report of arrivals.
    Arrivals(&'a [u8]),
}

/// Sends an output.
pub type Transmit<'a> = dyn FnMut(Output<'_>) + 'a;

/// A flow and what its receiver counted.
struct ReceiveFlow {
    flow: MediaFlow,
    totals: Totals,
}

/// The flows that an end receives.
pub struct ReceiveSide {
    flows: Vec<ReceiveFlow>,
    timers: Timers,
    /// Number of the first flow in the session.
    first: usize,
    ssrcs: Ssrcs,
    /// The packets that were seen of each stream; retransmissions are a stream of their own.
    seen: BTreeMap<u16, SeenNumbers>,
    recorder: Recorder,
    first_arrival: Option<Time>,
    /// The first failure of a controller, which ends the session.
    pub failure: Option<ControllerFailure>,
    /// The time of the last packet.
    pub liveness: Liveness,
}

impl ReceiveSide {
    /// Creates the side of flows of the session with these SSRCs that start now. `first` is the number of the first one in the session.
    pub fn new(ssrcs: Ssrcs, flows: Vec<SessionFlow>, first: usize, now: Time) -> Self {
        let flow = |flow: SessionFlow| ReceiveFlow { flow: flow.flow, totals: Totals::default() };
        let flows: Vec<ReceiveFlow> = flows.into_iter().map(flow).collect();
        let timers = Timers::new(flows.iter().map(|flow| flow.flow.poll_timeout(now, FlowEnd::Receiver)));
        let (recorder, liveness) = (Recorder::new(now), Liveness::new(now));
        let (seen, first_arrival, failure) = Default::default();
        Self { flows, timers, first, ssrcs, seen, recorder, first_arrival, failure, liveness }
    }

    /// Handles a packet that arrived at `at`; `now` is not before an earlier call. Returns whether it is of one of the flows.
    pub fn handle_packet(&mut self, now: Time, at: Time, bytes: &[u8], ecn: Ecn, transmit: &mut Transmit<'_>) -> bool {
        let index = self.ssrcs.of_media(bytes).and_then(|number| number.checked_sub(self.first));
        let Some(index) = index.filter(|index| *index < self.flows.len()) else { return false };
        let size = DataSize::from_bytes(bytes.len() as u64) + IP_UDP_HEADERS;
        let flow = &mut self.flows[index];
        // A packet that the network has duplicated counts once. The flow gets it like any other.
        let key = self.ssrcs.key(bytes);
        if let Some(key) = key.filter(|key| self.seen.entry(key.stream).or_default().insert(key.sequence)) {
            self.first_arrival.get_or_insert(at);
            self.liveness.handle_news(at);
            flow.totals.packets += 1;
            flow.totals.bytes += size.as_bytes();
            flow.totals.marked += u64::from(ecn == Ecn::Ce);
            if let Some(full) = self.recorder.record(Arrival { key, at, ecn }, bytes.len()) {
                transmit(Output::Arrivals(&full));
            }
        }
        flow.flow.handle_packet(now, FlowEnd::Receiver, now, bytes, size, ecn);
        self.drain(now, index, transmit);
        true
    }

    /// Handles timers that are due, and sends what is due.
    pub fn handle_timeout(&mut self, now: Time, transmit: &mut Transmit<'_>) {
        for index in 0..self.flows.len() {
            if self.timers.due(index, now).is_some() {
                self.flows[index].flow.handle_timeout(now, FlowEnd::Receiver);
                self.drain(now, index, transmit);
            }
        }
        self.recorder.poll_transmit(now).iter().for_each(|report| transmit(Output::Arrivals(report)));
    }

    /// Returns the time of the next timer.
    pub fn poll_timeout(&self) -> Time {
        let reports = self.recorder.poll_timeout();
        self.timers.next().map_or(reports, |due| due.min(reports))
    }

    /// Returns what arrived, of all flows.
    pub fn totals(&self) -> Totals {
        let frames = self.flows.iter().map(|flow| flow.totals.frames).sum();
        let frames_dropped = self.flows.iter().map(|flow| flow.totals.frames_dropped).sum();
        Totals { frames, frames_dropped, ..*self.recorder.totals() }
    }

    /// Returns what arrived, of each flow.
    pub fn flow_totals(&self) -> Vec<Totals> {
        self.flows.iter().map(|flow| flow.totals).collect()
    }

    /// Returns the time from the first to the last packet.
    pub fn lasted(&self) -> TimeDelta {
        self.first_arrival.map_or(TimeDelta::ZERO, |first| self.liveness.last() - first)
    }

    /// Sends every report that was not sent twice, at the end of the session.
    pub fn finish(&mut self, now: Time, transmit: &mut Transmit<'_>) {
        self.recorder.finish(now).iter().for_each(|report| transmit(Output::Arrivals(report)));
    }

    /// Sends what a flow has due, and records the frames that it rendered.
    fn drain(&mut self, now: Time, index: usize, transmit: &mut Transmit<'_>) {
        let ReceiveFlow { flow, totals } = &mut self.flows[index];
        let mut datagram = Datagram::new();
        let reading = flow.clock.at(now);
        if flow.receiver.poll_timeout().is_some_and(|due| due <= reading) {
            while flow.receiver.poll_transmit(reading, &mut datagram) {
                transmit(Output::Rtcp(datagram.bytes(), datagram.ecn));
            }
        }
        while let Some(event) = flow.receiver.poll_event() {
            if let ReceiverEvent::Frame { stream, timestamp, size, dropped } = event {
                totals.frames += 1;
                totals.frames_dropped += u64::from(dropped);
                let stream = self.ssrcs.stream_number(self.first + index, stream);
                if let Some(full) =
                    self.recorder.record_frame(RenderedFrame { stream, timestamp, size, dropped, at: now })
                {
                    transmit(Output::Arrivals(&full));
                }
            }
        }
        if let Err(failure) = flow.check_controller(now, FlowEnd::Receiver) {
            self.failure.get_or_insert(failure);
        }
        self.timers.set(index, flow.poll_timeout(now, FlowEnd::Receiver));
    }
}
