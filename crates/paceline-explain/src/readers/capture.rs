// SPDX-License-Identifier: MIT OR Apache-2.0
//! pcapng and pcap captures with RTP, in clear or as SRTP, at the sender, at the receiver or with both in one file.
//!
//! Two passes: the first finds the streams, where each is seen first and last, and the ids of header extensions; the second fills
//! the model. SRTP leaves the RTP header, its extensions and the first 8 bytes of RTCP in clear (RFC 3711, sections 3.1 and 3.4).

use super::datagram::{Datagram, FORMAT, INCOMING, OUTGOING, Pass, Route, each_datagram};
use super::tcp::{TLS, TURN_OVER_TLS};
use crate::error::ReadError;
use crate::model::{Call, Flow, MarkKind};
use crate::transport::{Ends, Transport};
use paceline_units::Time;
use paceline_wire::{ExtensionIds, RtpHeader, is_rtcp};
use std::collections::BTreeMap;
use std::io::Read;

/// Streams at most; further ones are left out.
const STREAMS_MAX: usize = 1024;
/// Packets of a stream from which extension ids are learnt.
const LEARN: u32 = 400;
/// This many packets of the same SSRC at least make a stream.
const PACKETS_MIN: u32 = 20;

/// Routes of a stream at most, and packets for each change between them at least: copies of a stream on two routes alternate.
const ROUTES_MAX: usize = 8;
const PACKETS_PER_CHANGE: u32 = 20;
/// A larger jump of sequence numbers is no loss: the stream was elsewhere, or began anew.
const JUMP: u16 = 100;
/// Assumed: streams of which at least so many packets, and this share, are missing were not captured at the sender.
const MISSING_MIN: u32 = 3;
const MISSING_SHARE: f64 = 0.005;

/// Reads a capture. `open` is called twice.
///
/// # Errors
/// The file is damaged before the first packet, or has no RTP.
pub fn read(open: &mut dyn FnMut() -> std::io::Result<Box<dyn Read>>) -> Result<Call, ReadError> {
    let mut streams = BTreeMap::new();
    let mut other = Other::default();
    let mut pass = each_datagram(open()?, &mut |datagram| learn(&mut streams, &mut other, datagram))?;
    let plans = plan(&streams);
    // Only headers of media are needed.
    pass.cut_at = pass.cut_at.filter(|_| plans.is_empty() || other.has_cut_reports);
    if plans.is_empty() {
        return Err(ReadError::Empty { format: FORMAT, problem: nothing(&streams, &other, &pass) });
    }
    if pass.last == Time::ZERO {
        let problem = "all packets have the same time, so nothing of it has a rate".to_owned();
        return Err(ReadError::Empty { format: FORMAT, problem });
    }
    let mut filled: Vec<Filled> = plans.iter().map(Filled::new).collect();
    if other.has_cut_reports {
        // The short ones that are whole are those of few losses or of many.
        filled.iter_mut().for_each(|filled| filled.transport.reads_packet_reports = false);
    }
    let mut roles: BTreeMap<(u32, Route), Vec<Role>> = BTreeMap::new();
    for (index, plan) in plans.iter().enumerate() {
        plan.roles(index, &mut roles);
    }
    each_datagram(open()?, &mut |datagram| {
        let Some(roles) = roles.get(&(datagram.interface, datagram.route)) else { return };
        for role in roles {
            filled[role.flow].add(&plans[role.flow], role.what, datagram);
        }
    })?;
    let call = finish(filled, &plans, &other, &pass);
    match call.flows.is_empty() {
        true => Err(ReadError::Empty { format: FORMAT, problem: call.why_empty("no RTP in it").to_owned() }),
        false => Ok(call),
    }
}

/// The routes of flows at each interface, with the ids of header extensions that are read there.
pub(crate) type Routes = BTreeMap<(u32, Route), ExtensionIds>;

/// Returns where the flows of a capture are.
///
/// # Errors
/// The file is damaged before the first packet.
pub(crate) fn routes(input: Box<dyn Read>) -> Result<Routes, ReadError> {
    let (mut streams, mut other) = (BTreeMap::new(), Other::default());
    each_datagram(input, &mut |datagram| learn(&mut streams, &mut other, datagram))?;
    let plans = plan(&streams);
    let places = plans.iter().flat_map(|plan| [&plan.sender, &plan.receiver].map(|place| (place.as_ref(), plan.ids)));
    let places = places.filter_map(|(place, ids)| Some((place?, ids)));
    Ok(places.flat_map(|(place, ids)| place.routes.iter().map(move |route| ((place.interface, *route), ids))).collect())
}

/// Returns why there is nothing to read.
fn nothing(streams: &Streams, other: &Other, pass: &Pass) -> String {
    let has_short = streams.values().any(|seen| seen.packets < PACKETS_MIN && rises(seen.packets, seen.steps));
    let problem = match (other.datagrams, has_short) {
        _ if pass.cut_at.is_some() && !has_short => "no RTP in what is left of its packets".to_owned(),
        (0, _) => "no UDP datagram and no RTP over TCP in it".to_owned(),
        (_, false) => "no RTP in it".to_owned(),
        (_, true) => format!("RTP streams with fewer than {PACKETS_MIN} packets at most"),
    };
    std::iter::once(problem).chain(unread(pass, true)).collect::<Vec<_>>().join("; ")
}

/// Returns what is in the file, and not read. Without RTP, any TLS may be that of a relay.
fn unread(pass: &Pass, is_empty: bool) -> impl Iterator<Item = String> {
    let joined = |names: Vec<&str>| (!names.is_empty()).then(|| names.join(", "));
    let links = joined(pass.links.iter().map(String::as_str).collect());
    let (tls, tunnels): (Vec<&str>, Vec<&str>) =
        pass.encrypted.iter().copied().partition(|name| [TLS, TURN_OVER_TLS].contains(name));
    let tls = match tls.contains(&TURN_OVER_TLS) {
        true => Some("TURN over TLS"),
        false => (is_empty && !tls.is_empty()).then_some("TLS, perhaps TURN over TLS,"),
    };
    let copies = match pass.copies {
        0 => None,
        1 => Some("1 packet is in the file twice: the first counts".to_owned()),
        copies => Some(format!(
            "{copies} packets are in the file twice, as `tcpdump -i any` and tunnels show them, or went to several receivers: the first of each counts"
        )),
    };
    let cut = pass.cut_at.map(|bytes| {
        format!(
            "packets are cut at {bytes} bytes: reports that are cut say nothing of losses and delays; capture whole packets \
             (`tcpdump -s 0`)"
        )
    });
    let notes = [
        copies,
        cut,
        links.map(|links| format!("packets of the link type {links} are not read")),
        joined(tunnels).map(|tunnels| {
            format!("the content of {tunnels} is encrypted and not read: capture on the interface of the tunnel, or at an endpoint")
        }),
        tls.map(|tls| {
            format!(
                "{tls} cannot be read: record a dump of chrome://webrtc-internals or an RTC event log at an end, or capture between \
                 the TURN server and the other end"
            )
        }),
    ];
    notes.into_iter().flatten()
}

fn finish(filled: Vec<Filled>, plans: &[FlowPlan], other: &Other, pass: &Pass) -> Call {
    let mut notes: Vec<String> = pass.cut.clone().into_iter().chain(unread(pass, false)).collect();
    if other.dtls || filled.iter().any(|flow| flow.transport.encrypted_reports > flow.transport.clear_reports) {
        notes.push(
            "SRTP: headers, sizes and times are clear; the content of reports is not, so losses and delays are known only at the \
             receiver or with both ends in the file"
                .to_owned(),
        );
    }
    if plans.iter().any(|plan| plan.is_guessed) {
        notes.push(
            "the capture does not say which packets were sent: streams count as sent, unless their send times jitter or \
             sequence numbers are missing"
                .to_owned(),
        );
    }
    let flows = filled.into_iter().filter(|flow| !flow.transport.is_empty());
    let flows = flows.map(|flow| flow.transport.finish(String::new())).collect::<Vec<Flow>>();
    let mut call = Call { format: FORMAT.to_owned(), flows, notes };
    call.drop_short();
    for (index, flow) in call.flows.iter_mut().enumerate() {
        flow.name = format!("flow {}", index + 1);
    }
    call
}

/// Returns whether sequence numbers rise, of which there may be copies. Those of other protocols that look like RTP, such as names of
/// DNS and NetBIOS, do not.
fn rises(packets: u32, steps: u32) -> bool {
    steps > 0 && 4 * u64::from(steps) >= u64::from(packets)
}

/// What else is in the file.
#[derive(Default)]
struct Other {
    datagrams: u64,
    dtls: bool,
    has_cut_reports: bool,
}

/// Returns whether a compound of RTCP goes on after the end of what there is of it.
fn is_cut(datagram: &Datagram<'_>) -> bool {
    let (mut at, payload) = (0, datagram.payload);
    while let Some(words) = payload.get(at + 2..at + 4) {
        at += 4 * (1 + usize::from(u16::from_be_bytes([words[0], words[1]])));
    }
    !datagram.is_whole && at != payload.len()
}

/// A stream of one SSRC at one interface.
struct Seen {
    first: Time,
    packets: u32,
    /// Sequence numbers that rose by little.
    steps: u32,
    /// Packets that came in and went out.
    directions: [u32; 2],
    /// In order of appearance.
    routes: Vec<Route>,
    /// Where the last packet was, and how often that changed.
    route: Route,
    changes: u32,
    highest: u16,
    missing: u32,
    ids: Learner,
}

type Streams = BTreeMap<(u32, u32), Seen>;

fn learn(streams: &mut Streams, other: &mut Other, datagram: &Datagram<'_>) {
    other.datagrams += 1;
    let Some(first) = datagram.payload.first() else { return };
    // Content types of DTLS, and its version (RFC 9147, section 4).
    other.dtls |= (20..=26).contains(first) && datagram.payload.get(1) == Some(&0xFE);
    if is_rtcp(datagram.payload) {
        other.has_cut_reports |= is_cut(datagram);
        return;
    }
    let none = ExtensionIds { abs_send_time: 0, transport_sequence: 0 };
    let Ok((header, _)) = RtpHeader::parse(datagram.payload, &none) else { return };
    let key = (header.ssrc, datagram.interface);
    if streams.len() >= STREAMS_MAX && !streams.contains_key(&key) {
        return;
    }
    let seen = streams.entry(key).or_insert_with(|| Seen {
        first: datagram.at,
        packets: 0,
        steps: 0,
        directions: [0; 2],
        routes: Vec::new(),
        route: datagram.route,
        changes: 0,
        highest: header.sequence,
        missing: 0,
        ids: Learner::default(),
    });
    seen.packets += 1;
    seen.place(datagram.route);
    seen.sequence(header.sequence);
    match datagram.direction {
        INCOMING => seen.directions[0] += 1,
        OUTGOING => seen.directions[1] += 1,
        _ => {}
    }
    if seen.packets <= LEARN {
        seen.ids.packet(datagram.at, datagram.payload);
    }
}

impl Seen {
    fn place(&mut self, route: Route) {
        if self.route != route {
            (self.route, self.changes) = (route, self.changes + 1);
        }
        if self.routes.len() < ROUTES_MAX && !self.routes.contains(&route) {
            self.routes.push(route);
        }
    }

    fn sequence(&mut self, sequence: u16) {
        match sequence.wrapping_sub(self.highest) {
            0 => {}
            step if step < 1 << 15 => {
                self.steps += u32::from(step <= JUMP);
                self.missing += u32::from(if step <= JUMP { step - 1 } else { 0 });
                self.highest = sequence;
            }
            // Late, so not missing.
            _ => self.missing = self.missing.saturating_sub(1),
        }
    }

    /// Returns the routes on which the stream was, one after the other.
    fn routes(&self) -> Vec<Route> {
        let first = self.routes[0];
        if self.changes.saturating_mul(PACKETS_PER_CHANGE) > self.packets {
            return vec![first];
        }
        // The other direction is another stream with the same SSRC.
        self.routes.iter().copied().filter(|(from, to)| (*to, *from) != first).collect()
    }

    fn at(&self, interface: u32) -> Place {
        Place { interface, routes: self.routes() }
    }

    /// Returns whether packets are missing, or send times jitter: a path lies between the sender and the capture.
    fn looks_received(&self) -> bool {
        let sent = f64::from(self.packets + self.missing);
        let has_losses = self.missing >= MISSING_MIN && f64::from(self.missing) >= MISSING_SHARE * sent;
        has_losses || self.ids.jitter().is_some_and(|jitter| jitter > SENDER_JITTER)
    }
}

/// Learns which ids are the transport-wide sequence number and the send time: a value of 2 bytes that rises by little, and one of
/// 3 bytes that rises by 2^18 in a second.
#[derive(Default)]
pub struct Learner {
    /// By id: last value, steps, and steps that fit.
    counters: [(Option<u16>, u32, u32); 15],
    /// By id: first time and value, last time and value without wraps, and the spread of the difference.
    clocks: [Option<Clock>; 15],
}

#[derive(Clone, Copy)]
struct Clock {
    first: (f64, u32),
    last: u32,
    total: i64,
    at: f64,
    low: f64,
    high: f64,
}

impl Learner {
    /// Learns from a packet.
    pub fn packet(&mut self, at: Time, payload: &[u8]) {
        for id in 1..=14u8 {
            let Ok((header, _)) =
                RtpHeader::parse(payload, &ExtensionIds { abs_send_time: id, transport_sequence: id })
            else {
                return;
            };
            let index = usize::from(id);
            if let Some(value) = header.transport_sequence {
                let (last, steps, fit) = &mut self.counters[index];
                if let Some(last) = *last {
                    *steps += 1;
                    *fit += u32::from((1..=64).contains(&value.wrapping_sub(last)));
                }
                *last = Some(value);
            }
            if let Some(value) = header.abs_send_time {
                let (at, bits) = (at.since(Time::ZERO).as_secs_f64(), value.bits());
                let clock = self.clocks[index].get_or_insert(Clock {
                    first: (at, bits),
                    last: bits,
                    total: 0,
                    at,
                    low: 0.0,
                    high: 0.0,
                });
                clock.total += i64::from(((bits.wrapping_sub(clock.last) << 8) as i32) >> 8);
                (clock.last, clock.at) = (bits, at);
                let delay = (at - clock.first.0) - clock.total as f64 / f64::from(1 << 18);
                (clock.low, clock.high) = (clock.low.min(delay), clock.high.max(delay));
            }
        }
    }

    /// Returns the ids; 0 for an unknown one.
    pub fn ids(&self) -> ExtensionIds {
        let transport_sequence = (1..15).find(|id| {
            let (_, steps, fit) = self.counters[*id];
            steps >= 10 && 10 * fit >= 8 * steps
        });
        let abs_send_time = (1..15).find(|id| self.clock(*id).is_some());
        ExtensionIds {
            abs_send_time: abs_send_time.unwrap_or(0) as u8,
            transport_sequence: transport_sequence.unwrap_or(0) as u8,
        }
    }

    fn clock(&self, id: usize) -> Option<&Clock> {
        let clock = self.clocks[id].as_ref()?;
        let (span, ticks) = (clock.at - clock.first.0, clock.total as f64 / f64::from(1 << 18));
        (span > 0.2 && (0.8..1.25).contains(&(ticks / span))).then_some(clock)
    }

    /// Returns by how much the send times jitter against the capture, if they are known.
    fn jitter(&self) -> Option<f64> {
        (1..15).find_map(|id| self.clock(id)).map(|clock| clock.high - clock.low)
    }
}

/// Interface and routes.
#[derive(Clone)]
struct Place {
    interface: u32,
    routes: Vec<Route>,
}

impl Place {
    fn meets(&self, other: &Self) -> bool {
        self.interface == other.interface && self.routes.iter().any(|route| other.routes.contains(route))
    }

    fn add(&mut self, other: &Self) {
        for route in &other.routes {
            if !self.routes.contains(route) && self.routes.len() < ROUTES_MAX {
                self.routes.push(*route);
            }
        }
    }
}

/// Where the packets of a flow are.
struct FlowPlan {
    /// At the sender and at the receiver.
    sender: Option<Place>,
    receiver: Option<Place>,
    ids: ExtensionIds,
    is_guessed: bool,
}

/// What a datagram is for a flow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    DataLeft,
    DataArrived,
    ReportLeft,
    ReportArrived,
}

struct Role {
    flow: usize,
    what: What,
}

/// Larger jitter of send times than this is that of a path. Assumed.
const SENDER_JITTER: f64 = 0.002;

fn plan(streams: &Streams) -> Vec<FlowPlan> {
    let mut by_ssrc: BTreeMap<u32, Vec<(u32, &Seen)>> = BTreeMap::new();
    for ((ssrc, interface), seen) in streams {
        if seen.packets >= PACKETS_MIN && rises(seen.packets, seen.steps) {
            by_ssrc.entry(*ssrc).or_default().push((*interface, seen));
        }
    }
    let mut plans: Vec<FlowPlan> = Vec::new();
    let mut places: Vec<(Time, Vec<(u32, &Seen)>)> = by_ssrc
        .into_values()
        .map(|mut places| {
            places.sort_by_key(|(interface, seen)| (seen.first, *interface));
            (places[0].1.first, places)
        })
        .collect();
    places.sort_by_key(|(first, _)| *first);
    let received = places.iter().filter_map(|(_, places)| guessed(places)).filter(|(seen, _)| seen.looks_received());
    let received: Vec<Place> = received.map(|(seen, interface)| seen.at(interface)).collect();
    for (_, places) in places {
        let (first, last) = (&places[0], &places[places.len() - 1]);
        let place = |(interface, seen): &(u32, &Seen)| seen.at(*interface);
        let [came, went] = first.1.directions;
        let is_guessed = guessed(&places).is_some();
        // All streams of a route are sent, or all are received.
        let is_sender = if is_guessed { !received.iter().any(|other| other.meets(&place(first))) } else { went > came };
        let plan = FlowPlan {
            sender: (places.len() > 1 || is_sender).then(|| place(first)),
            receiver: (places.len() > 1 || !is_sender).then(|| place(last)),
            ids: first.1.ids.ids(),
            is_guessed,
        };
        join(&mut plans, plan);
    }
    plans
}

/// Returns a stream if it is seen at one place and the capture does not say whether it was sent.
fn guessed<'a>(places: &[(u32, &'a Seen)]) -> Option<(&'a Seen, u32)> {
    match places {
        [(interface, seen)] if seen.directions == [0; 2] => Some((seen, *interface)),
        _ => None,
    }
}

/// Adds a stream to the flow on whose routes it is.
fn join(plans: &mut Vec<FlowPlan>, plan: FlowPlan) {
    let mut same: Vec<usize> = (0..plans.len()).filter(|index| plans[*index].is_same(&plan)).collect();
    let Some(kept) = same.first().copied() else { return plans.push(plan) };
    plans[kept].add(&plan);
    // A stream with several routes may join flows.
    for index in same.drain(1..).rev() {
        let joined = plans.remove(index);
        plans[kept].add(&joined);
    }
}

impl FlowPlan {
    fn is_same(&self, other: &Self) -> bool {
        let same = |a: &Option<Place>, b: &Option<Place>| match (a, b) {
            (Some(a), Some(b)) => a.meets(b),
            (None, None) => true,
            _ => false,
        };
        same(&self.sender, &other.sender) && same(&self.receiver, &other.receiver)
    }

    fn add(&mut self, other: &Self) {
        for (place, other) in [(&mut self.sender, &other.sender), (&mut self.receiver, &other.receiver)] {
            if let (Some(place), Some(other)) = (place, other) {
                place.add(other);
            }
        }
        // A stream with few packets teaches fewer ids.
        self.ids.abs_send_time = self.ids.abs_send_time.max(other.ids.abs_send_time);
        self.ids.transport_sequence = self.ids.transport_sequence.max(other.ids.transport_sequence);
        self.is_guessed |= other.is_guessed;
    }

    fn ends(&self) -> Ends {
        match (self.sender.is_some(), self.receiver.is_some()) {
            (true, true) => Ends::Both,
            (true, false) => Ends::Sender,
            _ => Ends::Receiver,
        }
    }

    fn roles(&self, flow: usize, roles: &mut BTreeMap<(u32, Route), Vec<Role>>) {
        let ends = [
            (&self.sender, What::DataLeft, What::ReportArrived),
            (&self.receiver, What::DataArrived, What::ReportLeft),
        ];
        for (place, data, report) in ends {
            let Some(place) = place else { continue };
            for route in &place.routes {
                roles.entry((place.interface, *route)).or_default().push(Role { flow, what: data });
                roles.entry((place.interface, (route.1, route.0))).or_default().push(Role { flow, what: report });
            }
        }
    }
}

/// A flow that is read.
struct Filled {
    transport: Transport,
    /// The route of the flow, and of each stream, at its first end.
    route: Option<Route>,
    routes: BTreeMap<u32, Route>,
}

impl Filled {
    fn new(plan: &FlowPlan) -> Self {
        Self { transport: Transport::new(plan.ends()), route: None, routes: BTreeMap::new() }
    }

    fn add(&mut self, plan: &FlowPlan, what: What, datagram: &Datagram<'_>) {
        let (at, payload) = (datagram.at, datagram.payload);
        match (what, is_rtcp(payload)) {
            // When a report came, and not what it says.
            (What::ReportLeft, true) if is_cut(datagram) => self.transport.report_sent(at, payload),
            (What::ReportArrived, true) if is_cut(datagram) => self.transport.cut_report_arrived(at, payload),
            (What::DataLeft, true) => self.transport.rtcp_sent(at, payload),
            (What::ReportLeft, true) => self.transport.report_sent(at, payload),
            (What::ReportArrived, true) => self.transport.report_arrived(at, payload),
            (What::DataLeft | What::DataArrived, false) => {
                let Ok((header, _)) = RtpHeader::parse(payload, &plan.ids) else { return };
                if (what == What::DataLeft) == plan.sender.is_some() {
                    self.place(at, header.ssrc, datagram.route);
                }
                match what {
                    What::DataLeft => self.transport.rtp_sent(at, &header, datagram.bytes, datagram.ecn),
                    _ => self.transport.rtp_arrived(at, &header, datagram.bytes, datagram.ecn),
                }
            }
            _ => {}
        }
    }

    /// Marks a change of the route: once, although each stream changes on its own.
    fn place(&mut self, at: Time, ssrc: u32, route: Route) {
        if self.routes.len() >= STREAMS_MAX && !self.routes.contains_key(&ssrc) {
            return;
        }
        let changed = self.routes.insert(ssrc, route).is_some_and(|before| before != route);
        let flow = self.route.get_or_insert(route);
        if changed && *flow != route {
            *flow = route;
            self.transport.mark(at, MarkKind::RouteChange);
        }
    }
}

#[cfg(test)]
mod tests;
