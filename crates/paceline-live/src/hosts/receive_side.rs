// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flows that an end receives, without socket and clock.

use crate::hosts::arrivals::{Arrival, Recorder, RenderedFrame};
use crate::hosts::flow_number::Ssrcs;
use crate::hosts::message::{self, Message, SessionId, Totals};
use crate::hosts::send_side::Transmit;
use crate::hosts::session_flow::SessionFlow;
use crate::hosts::timers::Timers;
use crate::hosts::window::SeenNumbers;
use paceline_netsim::ControllerFailure;
use paceline_netsim::flow::{Datagram, IP_UDP_HEADERS, ReceiverEvent};
use paceline_netsim::media_flow::MediaFlow;
use paceline_netsim::network::FlowEnd;
use paceline_units::{DataSize, Ecn, Time, TimeDelta};
use std::collections::BTreeMap;

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
    pub heard: Time,
}

impl ReceiveSide {
    /// Creates the side of flows of the session with these SSRCs that start now. `first` is the number of the first one in the session.
    pub fn new(ssrcs: Ssrcs, flows: Vec<SessionFlow>, first: usize, now: Time) -> Self {
        let flow = |flow: SessionFlow| ReceiveFlow { flow: flow.flow, totals: Totals::default() };
        let flows: Vec<ReceiveFlow> = flows.into_iter().map(flow).collect();
        let timers = Timers::new(flows.iter().map(|flow| flow.flow.poll_timeout(now, FlowEnd::Receiver)));
        let recorder = Recorder::new(now);
        let (seen, first_arrival, failure) = Default::default();
        Self { flows, timers, first, ssrcs, seen, recorder, first_arrival, failure, heard: now }
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
            self.heard = self.heard.max(at);
            flow.totals.packets += 1;
            flow.totals.bytes += size.as_bytes();
            flow.totals.marked += u64::from(ecn == Ecn::Ce);
            let full = self.recorder.record(Arrival { key, at, ecn }, bytes.len());
            send_reports(self.ssrcs.id, full, transmit);
        }
        flow.flow.handle_packet(now, FlowEnd::Receiver, now, bytes, size, ecn);
        self.drain(now, index, transmit);
        true
    }

    /// Returns whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Handles timers that are due, and sends what is due.
    pub fn handle_timeout(&mut self, now: Time, transmit: &mut Transmit<'_>) {
        for index in 0..self.flows.len() {
            if self.timers.due(index, now).is_some() {
                self.flows[index].flow.handle_timeout(now, FlowEnd::Receiver);
                self.drain(now, index, transmit);
            }
        }
        if !self.is_empty() {
            let due = self.recorder.poll_transmit(now);
            send_reports(self.ssrcs.id, due, transmit);
        }
    }

    /// Returns the time of the next timer; `None` without flows.
    pub fn poll_timeout(&self) -> Option<Time> {
        let reports = (!self.is_empty()).then(|| self.recorder.poll_timeout());
        self.timers.next().into_iter().chain(reports).min()
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
        self.first_arrival.map_or(TimeDelta::ZERO, |first| self.heard - first)
    }

    /// Sends every report that was not sent twice, at the end of the session.
    pub fn finish(&mut self, now: Time, transmit: &mut Transmit<'_>) {
        if !self.is_empty() {
            let last = self.recorder.finish(now);
            send_reports(self.ssrcs.id, last, transmit);
        }
    }

    /// Sends what a flow has due, and records the frames that it rendered.
    fn drain(&mut self, now: Time, index: usize, transmit: &mut Transmit<'_>) {
        let ReceiveFlow { flow, totals } = &mut self.flows[index];
        let (mut datagram, mut full_reports) = (Datagram::new(), Vec::new());
        let reading = flow.clock.at(now);
        if flow.receiver.poll_timeout().is_some_and(|due| due <= reading) {
            while flow.receiver.poll_transmit(reading, &mut datagram) {
                transmit(datagram.bytes(), datagram.ecn);
            }
        }
        while let Some(event) = flow.receiver.poll_event() {
            if let ReceiverEvent::Frame { stream, timestamp, size, dropped } = event {
                totals.frames += 1;
                totals.frames_dropped += u64::from(dropped);
                let stream = self.ssrcs.stream_number(self.first + index, stream);
                let full = self.recorder.record_frame(RenderedFrame { stream, timestamp, size, dropped, at: now });
                full_reports.extend(full);
            }
        }
        if let Err(failure) = flow.check_controller(now, FlowEnd::Receiver) {
            self.failure.get_or_insert(failure);
        }
        self.timers.set(index, flow.poll_timeout(now, FlowEnd::Receiver));
        send_reports(self.ssrcs.id, full_reports, transmit);
    }
}

/// Sends reports of arrivals in the session with this identifier.
fn send_reports(id: SessionId, reports: impl IntoIterator<Item = Vec<u8>>, transmit: &mut Transmit<'_>) {
    for report in reports {
        transmit(&message::write(id, Message::Arrivals(&report)), Ecn::NotEct);
    }
}
