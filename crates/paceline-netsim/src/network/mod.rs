// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network between the endpoints of all flows: access lines, hops, packets in transit, and the event queue.
//!
//! Hops, and the ends, access lines and inboxes of flows, are numbered components; each has at most one pending event.
//! [`Network::poll`] serves due components and returns when an endpoint's timeout is due or a packet has reached an
//! endpoint. The network does not know where endpoints are: in the simulator they are objects of the same process, on
//! the testbed they are behind network devices.

mod end_host_model;
mod events;
mod packets;
mod routes;
mod trace_hash;

use crate::flow::tcp::Segment;
pub use crate::flow_end::FlowEnd;
use crate::link::medium::build_media;
use crate::link::{Descriptor, Link, LinkChange, Medium, Output};
use crate::plan::{FlowPlan, HostPlan, Plan};
use crate::records::{DropReason, EventObserver, EventRecord, PacketClass, PacketRecord, TapPoint};
use crate::world::Outcome;
use end_host_model::{EndHost, Transfer};
use events::Events;
use paceline_units::{DataSize, Dscp, Ecn, FlowId, RandomStreams, Time, TimeDelta};
pub use packets::{HeaderClass, Packet, Packets};
use routes::{Routes, Step};
use std::collections::VecDeque;
pub use trace_hash::{TraceEvent, TraceHash};

/// An event that an endpoint has to handle; returned by [`Network::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The timeout that was set by [`Network::wake`] is due.
    Due { flow: usize, end: FlowEnd },
    /// A packet reached the endpoint. The driver calls [`Packets::free`] for it.
    Arrived {
        flow: usize,
        end: FlowEnd,
        /// The packet.
        handle: u32,
    },
}

/// A component that is not a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Component {
    End(usize, FlowEnd),
    /// The access line that leaves this end.
    Access(usize, FlowEnd),
    /// Packets that the host of this end has received and not yet delivered.
    Inbox(usize, FlowEnd),
}

/// Numbers of a flow in the trace hash: sender, receiver, and two that no record uses.
const TRACE_NUMBERS: usize = 4;
/// Components of each kind per flow: of the sender, then of the receiver.
const ENDS: usize = 2;

struct Line {
    /// Place in [`Network::routes`] of the first hop of the packets that leave each end.
    routes: [u32; 2],
    /// Whether packets go from each end to their first hop without delay. A flow without hops always uses the access line.
    is_direct: [bool; 2],
    dscp: Dscp,
    /// Absent if both ends are direct.
    delays: Option<Box<LineDelays>>,
}

/// What delays the packets of a flow between its ends and their first or last hop.
struct LineDelays {
    access_delay: TimeDelta,
    hosts: Option<[EndHost; 2]>,
    /// Packets on the access line and in the inbox of each end, with the time at which they leave it.
    access: [VecDeque<(Time, u32)>; 2],
    inbox: [VecDeque<(Time, u32)>; 2],
}

impl Line {
    /// Creates the line of a flow, and adds its routes to `routes` if they are not there.
    fn new(flow: &FlowPlan, streams: &RandomStreams, routes: &mut Routes) -> Self {
        let host_plan = flow.host.filter(HostPlan::delays_packets);
        let is_delayed = host_plan.is_some() || flow.access_delay != TimeDelta::ZERO;
        let both = [&flow.route, &flow.return_route];
        let is_direct = both.map(|route| !is_delayed && !route.is_empty());
        let routes = both.map(|route| routes.add(route));
        let host = |host: HostPlan| {
            ["sender", "receiver"]
                .map(|end| EndHost::new(host, streams.stream(&format!("flow/{}/host/{end}", flow.id))))
        };
        let delays = || LineDelays {
            access_delay: flow.access_delay,
            hosts: host_plan.map(host),
            access: [VecDeque::new(), VecDeque::new()],
            inbox: [VecDeque::new(), VecDeque::new()],
        };
        Self { routes, is_direct, dscp: flow.dscp, delays: (is_direct != [true; 2]).then(|| Box::new(delays())) }
    }
}

/// Everything between the endpoints.
pub struct Network<R> {
    events: Events,
    /// The number of the component that was woken last, until it has no more packets.
    serving: Option<(Time, usize)>,
    delivered: u64,
    /// The packets in transit.
    pub packets: Packets,
    hops: Vec<Link>,
    /// The media that hops share, and the index of the medium of each such hop.
    media: Vec<Box<dyn Medium>>,
    medium_of: Vec<Option<u16>>,
    lines: Vec<Line>,
    /// Whether any line has delays.
    has_delays: bool,
    routes: Routes,
    hash: TraceHash,
    observer: R,
    /// Whether the observer wants taps.
    tapped: bool,
    sent: u64,
}

impl<R: EventObserver> Network<R> {
    /// Creates the empty network of a plan. `streams` are the random streams of the run; `observer` receives its
    /// events.
    pub fn new(plan: &Plan, streams: &RandomStreams, observer: R) -> Self {
        let parts = plan.hops.iter().map(|hop| (hop.id.as_str(), hop.server.service.medium.as_ref()));
        let (media, medium_of) = build_media(parts, streams);
        let mut routes = Routes::new(plan.hops.iter().map(|hop| hop.clears_ecn).collect());
        let lines: Vec<Line> = plan.flows.iter().map(|flow| Line::new(flow, streams, &mut routes)).collect();
        // In most networks packets neither wait on an access line nor in a host.
        let has_delays = lines.iter().any(|line| line.delays.is_some());
        let kinds = if has_delays { 3 } else { 1 };
        Self {
            events: Events::new(plan.hops.len(), kinds * ENDS * lines.len()),
            serving: None,
            delivered: 0,
            packets: Packets::default(),
            hops: plan.hops.iter().map(|hop| Link::new(hop.clone(), streams)).collect(),
            media,
            medium_of,
            lines,
            has_delays,
            routes,
            hash: TraceHash::default(),
            tapped: observer.wants_taps(),
            observer,
            sent: 0,
        }
    }

    /// Returns the observer of the run.
    pub fn observer(&mut self) -> &mut R {
        &mut self.observer
    }

    /// Returns the outcome so far.
    pub fn outcome(&self) -> Outcome {
        Outcome {
            trace_hash: self.hash.finish(),
            events: self.events.handled(),
            delivered: self.delivered,
            machine: None,
            programs: Vec::new(),
        }
    }

    /// Serves the components that are due by `until`, and returns the next timeout or arrival at an endpoint with its
    /// time; `None` if there is no more. Handle each before the next call.
    #[inline]
    pub fn poll(&mut self, until: Time) -> Option<(Time, Wake)> {
        loop {
            let (now, number) = match self.serving.take() {
                Some(serving) => serving,
                None => self.events.pop(until)?,
            };
            // Most wake-ups are of hops.
            if number < self.hops.len() {
                while let Some(handle) = self.leave_hop(now, number) {
                    if let Some(wake) = self.forward(now, handle) {
                        self.serving = Some((now, number));
                        return Some((now, wake));
                    }
                }
                continue;
            }
            let component = self.component(number);
            if let Component::End(flow, end) = component {
                return Some((now, Wake::Due { flow, end }));
            }
            while let Some(handle) = self.release(now, component) {
                let wake = match component {
                    Component::Inbox(flow, end) => Some(self.arrived(now, flow, end, handle)),
                    _ => self.forward(now, handle),
                };
                if let Some(wake) = wake {
                    self.serving = Some((now, number));
                    return Some((now, wake));
                }
            }
        }
    }

    /// Returns the time at which to call [`poll`](Self::poll) next, which may then return `None`; `None` for never.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.events.next()
    }

    /// Changes a hop. Call [`poll`](Self::poll) until `None` for `now` first.
    pub fn change(&mut self, now: Time, hop: usize, change: LinkChange) {
        self.advance_medium(now, hop);
        self.hops[hop].change(now, change);
        self.advance_medium(now, hop);
        self.wake_hop(hop);
    }

    /// Begins the transmissions on the medium of a hop that are due by `now`, and wakes the other hops that have new outputs.
    #[inline]
    fn advance_medium(&mut self, now: Time, hop: usize) {
        if !self.media.is_empty() {
            self.advance_shared(now, hop);
        }
    }

    #[cold]
    #[inline(never)]
    fn advance_shared(&mut self, now: Time, hop: usize) {
        let Some(medium) = self.medium_of[hop] else { return };
        let medium = &mut self.media[usize::from(medium)];
        if medium.advance(now, hop, &mut self.hops) {
            for other in medium.changed().iter().filter(|other| **other != hop) {
                if let Some(at) = self.hops[*other].poll_timeout() {
                    self.events.wake_hop(*other, at);
                }
            }
        }
    }

    /// Wakes one hop at the next transmission on the medium of a hop. It is always the same: several would wake for each.
    #[cold]
    #[inline(never)]
    fn wake_shared(&mut self, hop: usize) {
        let Some(medium) = self.medium_of[hop] else { return };
        let medium = &self.media[usize::from(medium)];
        if let Some(at) = medium.next_start(&self.hops) {
            self.events.wake_hop(medium.members()[0], at);
        }
    }

    #[inline(always)]
    fn wake_hop(&mut self, hop: usize) {
        if let Some(at) = self.hops[hop].poll_timeout() {
            self.events.wake_hop(hop, at);
        }
        if !self.media.is_empty() {
            self.wake_shared(hop);
        }
    }

    /// Forwards a packet to the next hop of its route, or to its endpoint.
    #[inline(always)]
    fn forward(&mut self, now: Time, handle: u32) -> Option<Wake> {
        let packet = self.packets.get(handle);
        if let Some(step) = self.routes.step(packet.place) {
            self.enter_hop(now, handle, step);
            return None;
        }
        let record = &packet.record;
        let flow = record.flow.0 as usize;
        let end = if record.class.is_from_receiver() { FlowEnd::Sender } else { FlowEnd::Receiver };
        if self.enter_inbox(now, flow, end, handle) {
            return None;
        }
        Some(self.arrived(now, flow, end, handle))
    }

    /// Returns the component of a number. Hops come first, then the ends of all flows, their access lines, their inboxes. The
    /// number must not be that of a hop.
    #[inline]
    fn component(&self, number: usize) -> Component {
        let number = number - self.hops.len();
        let (flow, end) =
            (number / ENDS, if number.is_multiple_of(ENDS) { FlowEnd::Sender } else { FlowEnd::Receiver });
        let Some(flow) = flow.checked_sub(self.lines.len()) else { return Component::End(flow, end) };
        let Some(flow) = flow.checked_sub(self.lines.len()) else { return Component::Access(flow, end) };
        Component::Inbox(flow, end)
    }

    #[inline]
    fn number(&self, component: Component) -> usize {
        let (flows, hops) = (self.lines.len(), self.hops.len());
        match component {
            Component::End(flow, end) => hops + flow * ENDS + end as usize,
            Component::Access(flow, end) => hops + (flows + flow) * ENDS + end as usize,
            Component::Inbox(flow, end) => hops + (2 * flows + flow) * ENDS + end as usize,
        }
    }

    /// Returns the number of an end in the trace hash.
    #[inline]
    fn trace_number(&self, flow: usize, end: FlowEnd) -> usize {
        self.hops.len() + flow * TRACE_NUMBERS + end as usize
    }

    /// Wakes an endpoint at `at`; with `None`, or if an earlier wake-up is pending, this has no effect.
    #[inline]
    pub fn wake(&mut self, flow: usize, end: FlowEnd, at: Option<Time>) {
        if let Some(at) = at {
            self.events.wake_other(self.number(Component::End(flow, end)), at);
        }
    }

    /// Returns whether an endpoint wakes at `at` or before. Only assertions use it.
    pub(crate) fn wakes_by(&self, flow: usize, end: FlowEnd, at: Time) -> bool {
        self.events.wakes_by(self.number(Component::End(flow, end)), at)
    }

    /// Passes an event to the observer.
    #[inline]
    pub fn emit(&mut self, event: &EventRecord) {
        self.observer.on_event(event);
    }

    #[inline]
    fn tap(&mut self, at: Time, point: TapPoint, handle: u32) {
        if self.tapped {
            self.observer.on_tap(&self.packets.tapped(handle, at, point));
        }
    }

    /// Adds a decision of an endpoint to the trace hash.
    pub fn hash_decision(
        &mut self,
        now: Time,
        flow: usize,
        end: FlowEnd,
        event: TraceEvent,
        value: u64,
        size: DataSize,
    ) {
        self.hash.add(now, self.trace_number(flow, end), event, value, size, Ecn::NotEct);
    }

    /// Sends the datagram in `handle`, with its size and ECN field.
    #[inline]
    pub fn send_datagram(&mut self, now: Time, flow: usize, from: FlowEnd, class: PacketClass, handle: u32) {
        let datagram = self.packets.datagram_mut(handle);
        let (size, ecn) = (datagram.size(), datagram.ecn);
        self.packets.get_mut(handle).ecn = ecn;
        self.send(now, flow, from, class, size, handle);
    }

    /// Sends a TCP segment from an end of a flow.
    #[inline]
    pub fn send_segment(
        &mut self,
        now: Time,
        flow: usize,
        from: FlowEnd,
        class: PacketClass,
        segment: Segment,
        ecn: Ecn,
    ) {
        let handle = self.packets.alloc();
        *self.packets.segment_mut(handle) = segment;
        self.packets.get_mut(handle).ecn = ecn;
        self.send(now, flow, from, class, segment.size(), handle);
    }

    /// Numbers the packet of `size` in `handle` and sends it from an end of a flow.
    #[inline]
    pub fn send(&mut self, now: Time, flow: usize, from: FlowEnd, class: PacketClass, size: DataSize, handle: u32) {
        let packet = self.packets.get_mut(handle);
        packet.record = PacketRecord { packet: self.sent, flow: FlowId(flow as u16), class, size };
        packet.sent = now;
        let line = &self.lines[flow];
        let is_direct = line.is_direct[from as usize];
        let place = line.routes[from as usize];
        (packet.place, packet.dscp) = (place, line.dscp);
        let (record, ecn) = (packet.record, packet.ecn);
        self.sent += 1;
        self.hash.add(now, self.trace_number(flow, from), TraceEvent::Sent, record.packet, size, ecn);
        self.tap(now, from.tap_point(), handle);
        self.observer.on_sent(now, &record);

        if is_direct && let Some(step) = self.routes.step(place) {
            return self.enter_hop(now, handle, step);
        }
        let delays = self.lines[flow].delays.as_mut().expect("a line that is not direct has delays");
        let left = delays.hosts.as_mut().map_or(now, |hosts| hosts[from as usize].pass(now, Transfer::Out));
        let due = left + delays.access_delay;
        delays.access[from as usize].push_back((due, handle));
        self.events.wake_other(self.number(Component::Access(flow, from)), due);
    }

    /// Returns the next packet that an access line or an inbox releases by `now`.
    fn release(&mut self, now: Time, component: Component) -> Option<u32> {
        let number = self.number(component);
        let queue = match component {
            Component::Access(flow, from) => &mut self.lines[flow].delays.as_mut()?.access[from as usize],
            Component::Inbox(flow, end) => &mut self.lines[flow].delays.as_mut()?.inbox[end as usize],
            Component::End(..) => unreachable!("an end has no delay queue"),
        };
        let &(due, handle) = queue.front()?;
        if due > now {
            self.events.wake_other(number, due);
            return None;
        }
        queue.pop_front();
        Some(handle)
    }

    /// Queues a packet at the host of `end`; returns false if there is no host model.
    #[inline]
    fn enter_inbox(&mut self, now: Time, flow: usize, end: FlowEnd, handle: u32) -> bool {
        if !self.has_delays {
            return false;
        }
        let Some(delays) = &mut self.lines[flow].delays else { return false };
        let Some(hosts) = &mut delays.hosts else { return false };
        let due = hosts[end as usize].pass(now, Transfer::In);
        delays.inbox[end as usize].push_back((due, handle));
        self.events.wake_other(self.number(Component::Inbox(flow, end)), due);
        true
    }

    /// Passes a packet to the next hop of its route.
    fn enter_hop(&mut self, now: Time, handle: u32, Step { hop, clears_ecn }: Step) {
        let packet = self.packets.get_mut(handle);
        packet.place += 1;
        if clears_ecn {
            packet.ecn = Ecn::NotEct;
        }
        let HeaderClass { flow, dscp } = packet.header_class();
        let descriptor = Descriptor { id: handle, flow, size: packet.record.size, ecn: packet.ecn, dscp };
        self.tap(now, TapPoint::Entry { hop }, handle);
        let hop = usize::from(hop);
        if !self.media.is_empty() {
            return self.enter_shared(now, hop, descriptor);
        }
        let link = &mut self.hops[hop];
        link.handle_packet(now, descriptor);
        if let Some(at) = link.poll_timeout() {
            self.events.wake_hop(hop, at);
        }
    }

    #[cold]
    #[inline(never)]
    fn enter_shared(&mut self, now: Time, hop: usize, descriptor: Descriptor) {
        self.advance_shared(now, hop);
        self.hops[hop].handle_packet(now, descriptor);
        self.advance_shared(now, hop);
        self.wake_hop(hop);
    }

    /// Returns the next packet that has crossed `hop` by `now`. Reports and frees dropped packets.
    #[inline]
    fn leave_hop(&mut self, now: Time, hop: usize) -> Option<u32> {
        self.advance_medium(now, hop);
        while let Some(output) = self.hops[hop].poll_output(now) {
            match output {
                Output::Delivered { packet: descriptor, waited, left, due } => {
                    let packet = self.packets.get_mut(descriptor.id);
                    let marked = descriptor.ecn != packet.ecn;
                    packet.ecn = descriptor.ecn;
                    let record = packet.record;
                    self.hash.add(due, hop, TraceEvent::Crossed, record.packet, record.size, descriptor.ecn);
                    self.tap(due, TapPoint::Exit { hop: hop as u16, waited }, descriptor.id);
                    self.observer.on_crossed(due, hop as u16, &record, waited, left, marked);
                    return Some(descriptor.id);
                }
                Output::Dropped { packet: descriptor, reason, due, left } => {
                    let event = match reason {
                        DropReason::Overflow => TraceEvent::Overflow,
                        DropReason::Loss => TraceEvent::Loss,
                        DropReason::Aqm => TraceEvent::Aqm,
                        DropReason::Mtu => TraceEvent::Mtu,
                        DropReason::Purge => TraceEvent::Purge,
                    };
                    let record = self.packets.get(descriptor.id).record;
                    self.hash.add(due, hop, event, record.packet, record.size, descriptor.ecn);
                    self.emit(&EventRecord::Dropped { at: due, hop: hop as u16, packet: record, reason, left });
                    self.packets.free(descriptor.id);
                }
            }
        }
        self.wake_hop(hop);
        None
    }

    /// Reports the arrival of a packet at its endpoint.
    #[inline(always)]
    fn arrived(&mut self, now: Time, flow: usize, end: FlowEnd, handle: u32) -> Wake {
        let packet = self.packets.get(handle);
        let (record, delay, ecn) = (packet.record, now - packet.sent, packet.ecn);
        self.delivered += 1;
        self.hash.add(now, self.trace_number(flow, end), TraceEvent::Arrived, record.packet, record.size, ecn);
        self.tap(now, end.tap_point(), handle);
        self.observer.on_arrived(now, &record, delay, ecn);
        Wake::Arrived { flow, end, handle }
    }
}
