//! What lies between the ends of all flows: access lines, hops, the packets under way, and the clockwork that wakes
//! everybody. Ends put packets on their way here and report what happened.
//!
//! Hops, and the ends, access lines and inboxes of flows, are numbered components; each has at most one pending event.
//! [`Network::poll`] serves what is due and answers when an end's time has come or a packet has reached one. Nothing
//! here knows where the ends are: under the simulator they are objects beside it, on the test track they are machines
//! beyond network devices.

mod events;
mod host;
mod packets;
mod trace_hash;

use crate::plan::{HopPlan, Plan, QueuePlan};
use crate::rows::{DropReason, PacketClass, PacketRow, Row, RowSink};
use crate::sight::Place;
use crate::world::Outcome;
use events::Events;
use host::{Host, Way};
use paceline_flow::Datagram;
use paceline_flow::tcp::Segment;
use paceline_link::queue::DropTail;
use paceline_link::{Descriptor, DropCause, Link, LinkConfig, Output};
use paceline_units::{DataSize, Ecn, FlowId, Streams, Time, TimeDelta};
pub use packets::Packet;
use packets::Packets;
use std::collections::VecDeque;
pub use trace_hash::Kind;
use trace_hash::TraceHash;

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where its data comes from.
    Sender = 0,
    /// Where its data goes.
    Receiver = 1,
}

impl End {
    /// The other end.
    pub fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }

    fn place(self) -> Place {
        match self {
            Self::Sender => Place::Sender,
            Self::Receiver => Place::Receiver,
        }
    }
}

/// What a flow's end hears of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time has come that it named to [`Network::wake`].
    Due {
        /// Which flow.
        flow: usize,
        /// Which end.
        end: End,
    },
    /// A packet reached it. Whoever takes it gives its slot back.
    Arrived {
        /// Which flow.
        flow: usize,
        /// Which end.
        end: End,
        /// Which packet.
        handle: u32,
    },
}

/// Who is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Component {
    Hop(usize),
    End(usize, End),
    /// The access line that leaves this end.
    Access(usize, End),
    /// What has arrived at the machine of this end, and waits to be seen.
    Inbox(usize, End),
}

/// Components of a flow, in this order: sender, receiver, the access line of each. Hops come before all flows, and the
/// inboxes of all flows, two each, after them.
const PER_FLOW: usize = 4;
const ACCESS: usize = 2;
const INBOXES: usize = 2;

struct Line {
    /// Hops of what leaves each end.
    routes: [Vec<usize>; 2],
    access_delay: TimeDelta,
    /// The machine of each end.
    hosts: Option<[Host; 2]>,
    /// Packets on the access line of each end, and those in the inbox of each.
    access: [VecDeque<(Time, u32)>; 2],
    inbox: [VecDeque<(Time, u32)>; 2],
}

/// Everything between the ends.
pub struct Network<R> {
    events: Events,
    /// What was woken last, until it has nothing more to hand on.
    serving: Option<(Time, Component)>,
    delivered: u64,
    packets: Packets,
    hops: Vec<Link>,
    lines: Vec<Line>,
    hash: TraceHash,
    rows: R,
    /// Somebody wants to see packets.
    watched: bool,
    sent: u64,
}

impl<R: RowSink> Network<R> {
    /// The network of a plan, empty; `streams` are the run's random draws, and `rows` hears what happens.
    pub fn new(plan: &Plan, streams: &Streams, rows: R) -> Self {
        let line = |f: &crate::plan::FlowPlan| Line {
            routes: [f.route.clone(), f.return_route.clone()],
            access_delay: f.access_delay,
            hosts: f.host.map(|host| {
                ["sender", "receiver"].map(|end| Host::new(host, streams.stream(&format!("flow/{}/host/{end}", f.id))))
            }),
            access: [VecDeque::new(), VecDeque::new()],
            inbox: [VecDeque::new(), VecDeque::new()],
        };
        Self {
            events: Events::new(plan.hops.len() + plan.flows.len() * (PER_FLOW + INBOXES)),
            serving: None,
            delivered: 0,
            packets: Packets::default(),
            hops: plan.hops.iter().map(|h| build_hop(h, streams)).collect(),
            lines: plan.flows.iter().map(line).collect(),
            hash: TraceHash::new(),
            watched: rows.wants_sights(),
            rows,
            sent: 0,
        }
    }

    /// Who hears what happens.
    pub fn rows(&mut self) -> &mut R {
        &mut self.rows
    }

    /// What it came to.
    pub fn outcome(&self) -> Outcome {
        Outcome {
            trace_hash: self.hash.finish(),
            events: self.events.handled(),
            pending_max: self.events.pending_max(),
            delivered: self.delivered,
            machine: None,
        }
    }

    /// Serves what is due by `until` up to the next thing that concerns an end, and answers that and its time; `None`:
    /// nothing more by then. Answer each before asking for the next.
    #[inline]
    pub fn poll(&mut self, until: Time) -> Option<(Time, Wake)> {
        loop {
            let (now, component) = match self.serving.take() {
                Some(serving) => serving,
                None => {
                    let (now, number) = self.events.pop(until)?;
                    (now, self.component(number))
                }
            };
            let came = match component {
                Component::End(flow, end) => return Some((now, Wake::Due { flow, end })),
                Component::Hop(hop) => self.leave_hop(now, hop),
                Component::Access(flow, from) => self.leave_access(now, flow, from),
                Component::Inbox(flow, end) => match self.leave_inbox(now, flow, end) {
                    None => continue,
                    Some(handle) => {
                        self.serving = Some((now, component));
                        return Some((now, self.arrived(now, flow, end, handle)));
                    }
                },
            };
            if let Some(handle) = came {
                self.serving = Some((now, component));
                if let Some(arrived) = self.go_on(now, handle) {
                    return Some((now, arrived));
                }
            }
        }
    }

    /// When [`poll`](Self::poll) is wanted next; it may then have nothing to say.
    pub fn poll_timeout(&self) -> Time {
        self.events.next()
    }

    /// A packet goes to the next hop of its route, or to its end.
    #[inline]
    fn go_on(&mut self, now: Time, handle: u32) -> Option<Wake> {
        let row = self.packets.get(handle).row;
        let flow = row.flow.0 as usize;
        let from = if row.class.goes_back() { End::Receiver } else { End::Sender };
        if self.enter_next_hop(now, flow, from, handle) || self.enter_inbox(now, flow, from.other(), handle) {
            return None;
        }
        Some(self.arrived(now, flow, from.other(), handle))
    }

    /// Whom a number of the event heap means.
    #[inline]
    fn component(&self, number: usize) -> Component {
        let Some(within) = number.checked_sub(self.hops.len()) else { return Component::Hop(number) };
        let flow = within / PER_FLOW;
        if let Some(inbox) = within.checked_sub(self.lines.len() * PER_FLOW) {
            let end = if inbox % INBOXES == 0 { End::Sender } else { End::Receiver };
            return Component::Inbox(inbox / INBOXES, end);
        }
        match within % PER_FLOW {
            0 => Component::End(flow, End::Sender),
            1 => Component::End(flow, End::Receiver),
            2 => Component::Access(flow, End::Sender),
            _ => Component::Access(flow, End::Receiver),
        }
    }

    #[inline]
    fn number(&self, flow: usize, part: usize) -> usize {
        self.hops.len() + flow * PER_FLOW + part
    }

    #[inline]
    fn inbox_number(&self, flow: usize, end: End) -> usize {
        self.hops.len() + self.lines.len() * PER_FLOW + flow * INBOXES + end as usize
    }

    /// Wakes an end of a flow at `at`.
    #[inline]
    pub fn wake(&mut self, flow: usize, end: End, at: Time) {
        self.events.wake(self.number(flow, end as usize), at);
    }

    /// Tells whoever listens.
    #[inline]
    pub fn tell(&mut self, row: &Row) {
        self.rows.row(row);
    }

    /// Shows a packet to whoever watches.
    #[inline]
    fn show(&mut self, at: Time, place: Place, handle: u32) {
        if self.watched {
            self.rows.sight(&self.packets.seen(handle, at, place));
        }
    }

    /// Takes a decision of an end into the trace hash.
    pub fn decided(&mut self, now: Time, flow: usize, end: End, kind: Kind, what: u64, size: DataSize) {
        self.hash.add(now, self.number(flow, end as usize), kind, what, size, Ecn::NotEct);
    }

    /// A free slot to write a packet into; launch it or give it back.
    #[inline]
    pub fn blank(&mut self) -> u32 {
        let (flow, class) = (FlowId(0), PacketClass::Media);
        self.packets.take(PacketRow { packet: 0, flow, class, size: DataSize::ZERO })
    }

    /// The packet in a slot.
    #[inline]
    pub fn packet(&self, handle: u32) -> &Packet {
        self.packets.get(handle)
    }

    /// The same, to write its ECN field.
    #[inline]
    pub fn packet_mut(&mut self, handle: u32) -> &mut Packet {
        self.packets.get_mut(handle)
    }

    /// What a TCP packet carries.
    #[inline]
    pub fn segment_mut(&mut self, handle: u32) -> &mut Segment {
        self.packets.segment_mut(handle)
    }

    /// What any other packet carries.
    #[inline]
    pub fn datagram_mut(&mut self, handle: u32) -> &mut Datagram {
        self.packets.datagram_mut(handle)
    }

    /// The slot is free again.
    #[inline]
    pub fn give_back(&mut self, handle: u32) {
        self.packets.give_back(handle);
    }

    /// An end wrote a packet of `size` into `handle`: numbers it and puts it on its way.
    #[inline]
    pub fn launch(&mut self, now: Time, flow: usize, from: End, class: PacketClass, size: DataSize, handle: u32) {
        let packet = self.packets.get_mut(handle);
        packet.row = PacketRow { packet: self.sent, flow: FlowId(flow as u16), class, size };
        packet.sent = now;
        packet.hop = 0;
        let (row, ecn) = (packet.row, packet.ecn);
        self.sent += 1;
        self.hash.add(now, self.number(flow, from as usize), Kind::Sent, row.packet, size, ecn);
        self.show(now, from.place(), handle);
        self.rows.row(&Row::Sent { at: now, packet: row });

        let line = &mut self.lines[flow];
        // Without a hop the access line is all there is.
        if line.hosts.is_none() && line.access_delay == TimeDelta::ZERO && !line.routes[from as usize].is_empty() {
            self.enter_next_hop(now, flow, from, handle);
            return;
        }
        let left = line.hosts.as_mut().map_or(now, |hosts| hosts[from as usize].pass(now, Way::Out));
        let due = left + line.access_delay;
        line.access[from as usize].push_back((due, handle));
        self.events.wake(self.number(flow, ACCESS + from as usize), due);
    }

    /// The next packet that has crossed the access line of `from` by `now`.
    fn leave_access(&mut self, now: Time, flow: usize, from: End) -> Option<u32> {
        let &(due, handle) = self.lines[flow].access[from as usize].front()?;
        if due > now {
            self.events.wake(self.number(flow, ACCESS + from as usize), due);
            return None;
        }
        self.lines[flow].access[from as usize].pop_front();
        Some(handle)
    }

    /// A packet is at the machine of `end`, which holds it for a while; false: it does not.
    #[inline]
    fn enter_inbox(&mut self, now: Time, flow: usize, end: End, handle: u32) -> bool {
        let line = &mut self.lines[flow];
        let Some(hosts) = &mut line.hosts else { return false };
        let due = hosts[end as usize].pass(now, Way::In);
        line.inbox[end as usize].push_back((due, handle));
        self.events.wake(self.inbox_number(flow, end), due);
        true
    }

    /// The next packet that the machine of `end` shows by `now`.
    fn leave_inbox(&mut self, now: Time, flow: usize, end: End) -> Option<u32> {
        let &(due, handle) = self.lines[flow].inbox[end as usize].front()?;
        if due > now {
            self.events.wake(self.inbox_number(flow, end), due);
            return None;
        }
        self.lines[flow].inbox[end as usize].pop_front();
        Some(handle)
    }

    /// Hands a packet that `from` sent to the next hop of its route; false: it has arrived.
    #[inline]
    fn enter_next_hop(&mut self, now: Time, flow: usize, from: End, handle: u32) -> bool {
        let packet = self.packets.get(handle);
        let Some(&hop) = self.lines[flow].routes[from as usize].get(packet.hop as usize) else { return false };
        let descriptor = Descriptor { id: handle, flow: packet.row.flow, size: packet.row.size, ecn: packet.ecn };
        self.show(now, Place::Entry { hop: hop as u16 }, handle);
        self.hops[hop].handle_packet(now, descriptor);
        self.events.wake(hop, self.hops[hop].poll_timeout());
        true
    }

    /// The next packet that has crossed `hop` by `now`; dropped ones are told and forgotten.
    #[inline]
    fn leave_hop(&mut self, now: Time, hop: usize) -> Option<u32> {
        while let Some(output) = self.hops[hop].poll_output(now) {
            match output {
                Output::Delivered { packet: descriptor, waited, left, due } => {
                    let packet = self.packets.get_mut(descriptor.id);
                    packet.hop += 1;
                    let marked = descriptor.ecn != packet.ecn;
                    packet.ecn = descriptor.ecn;
                    let row = packet.row;
                    self.hash.add(due, hop, Kind::Crossed, row.packet, row.size, descriptor.ecn);
                    self.show(due, Place::Exit { hop: hop as u16, waited }, descriptor.id);
                    self.rows.row(&Row::Crossed { at: due, hop: hop as u16, packet: row, waited, left, marked });
                    return Some(descriptor.id);
                }
                Output::Dropped { packet: descriptor, cause, due, left } => {
                    let (kind, reason) = match cause {
                        DropCause::Overflow => (Kind::Overflow, DropReason::Overflow),
                        DropCause::Loss => (Kind::Loss, DropReason::Loss),
                        DropCause::Early => (Kind::Early, DropReason::Early),
                    };
                    let row = self.packets.get(descriptor.id).row;
                    self.hash.add(due, hop, kind, row.packet, row.size, descriptor.ecn);
                    self.rows.row(&Row::Dropped { at: due, hop: hop as u16, packet: row, reason, left });
                    self.packets.give_back(descriptor.id);
                }
            }
        }
        self.events.wake(hop, self.hops[hop].poll_timeout());
        None
    }

    /// A packet is at its end: tells so.
    #[inline]
    fn arrived(&mut self, now: Time, flow: usize, end: End, handle: u32) -> Wake {
        let packet = self.packets.get(handle);
        let (row, delay, ecn) = (packet.row, now - packet.sent, packet.ecn);
        self.delivered += 1;
        self.hash.add(now, self.number(flow, end as usize), Kind::Arrived, row.packet, row.size, ecn);
        self.show(now, end.place(), handle);
        self.rows.row(&Row::Arrived { at: now, packet: row, delay, ecn });
        Wake::Arrived { flow, end, handle }
    }
}

fn build_hop(hop: &HopPlan, streams: &Streams) -> Link {
    let QueuePlan::DropTail { limit, mark } = hop.queue;
    let config = LinkConfig {
        capacity: hop.capacity.clone(),
        burst: hop.burst,
        queue: Box::new(DropTail::new(limit).marking(mark)),
        delay: hop.delay.clone(),
        jitter: hop.jitter,
        loss: hop.loss.clone(),
    };
    Link::new(config, streams, &format!("hop/{}", hop.id))
}
