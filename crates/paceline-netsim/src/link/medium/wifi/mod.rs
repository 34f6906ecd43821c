// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Wi-Fi channel: stations contend for it by the distributed coordination function of IEEE 802.11 (10.3 and, with other
//! parameters for each station, 10.23.2).
//!
//! After each transmission the channel is idle for SIFS, and then slots begin. A station with packets counts AIFSN slots and
//! its backoff, and transmits a frame in the next one. If several begin in one slot, all their frames are lost, and each
//! station doubles its contention window. A frame carries several packets (A-MPDU). The packets that the receiver did not
//! acknowledge are repeated.
//!
//! ```text
//!  station 0  |=A-MPDU=| SIFS |ack|               | collision |
//!  station 1                        SIFS AIFS |3|2|===========|        SIFS AIFS |1|=A-MPDU=| SIFS |ack|   time ->
//! ```
//!
//! Each hop is a queue of one station, for one receiver: the uplink of a station is one hop, and each downlink is a hop of the
//! station that is the access point. `docs/explanation/wifi.md` lists what the model leaves out.

mod airtime;
#[cfg(test)]
mod bianchi;
mod station;
#[cfg(test)]
mod tests;
mod window;

use super::{Medium, Member};
use crate::link::hop::Link;
use crate::link::medium_plan::Order;
use paceline_units::{RandomStreams, Time, TimeDelta};
use station::{Contention, Frame, Station, StationHop};

/// Contention by IEEE 802.11.
pub(super) struct Wifi {
    members: Vec<usize>,
    stations: Vec<Station>,
    /// The station of each link, and the index of the link within it.
    place_of: Vec<(usize, usize)>,
    slot: TimeDelta,
    sifs: TimeDelta,
    /// End of the last transmission, its acknowledgement included.
    idle: Time,
    /// Start of the next transmission; [`Time::MAX`] for none.
    next: Time,
    /// Links whose frames were sent.
    changed: Vec<usize>,
    /// The frames that begin in one slot, with their stations.
    frames: Vec<(usize, Frame)>,
}

impl Wifi {
    pub fn new(members: &[Member<'_>], streams: &RandomStreams, path: &str) -> Self {
        let mut names: Vec<&str> = Vec::new();
        let mut place_of = vec![(usize::MAX, 0); members.iter().map(|member| member.hop + 1).max().unwrap_or(0)];
        let mut members_of: Vec<Vec<&Member<'_>>> = Vec::new();
        for member in members {
            let name = member.values.text("station").unwrap_or(member.id);
            let index = names.iter().position(|other| *other == name).unwrap_or_else(|| {
                names.push(name);
                members_of.push(Vec::new());
                names.len() - 1
            });
            place_of[member.hop] = (index, members_of[index].len());
            members_of[index].push(member);
        }
        let station = |(name, members): (&&str, &Vec<&Member<'_>>)| {
            let values = members[0].values;
            let contention = Contention {
                aifsn: values.count("aifsn"),
                cw_min: values.count("cw_min"),
                cw_max: values.count("cw_max"),
                attempts: values.count("attempts"),
                full_rate_attempts: values.count("full_rate_attempts"),
                order: values.text("order").and_then(Order::named).unwrap_or(Order::RoundRobin),
            };
            let hops = members.iter().map(|member| StationHop::new(member.hop, member.values)).collect();
            Station::new(hops, contention, streams.stream(&format!("{path}/{name}")))
        };
        Self {
            members: members.iter().map(|member| member.hop).collect(),
            stations: names.iter().zip(&members_of).map(station).collect(),
            place_of,
            slot: members[0].values.time("slot"),
            sifs: members[0].values.time("sifs"),
            idle: Time::ZERO,
            next: Time::MAX,
            changed: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Returns the start of the slots after the last transmission.
    fn slots(&self) -> Time {
        self.idle + self.sifs
    }

    /// Transmits in the slot that begins at `start`.
    fn transmit(&mut self, start: Time, links: &mut [Link]) {
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        for (index, station) in self.stations.iter_mut().enumerate().filter(|(_, station)| station.start == start) {
            frames.extend(station.compose(start, links).map(|frame| (index, frame)));
        }
        if !frames.is_empty() {
            // Those that transmit draw a new backoff when they finish.
            let slot = (start - self.slots()).as_nanos() / self.slot.as_nanos();
            self.stations.iter_mut().for_each(|station| station.freeze(slot));
        }
        let collided = frames.len() > 1;
        for (index, frame) in &frames {
            let (station, left) = (&mut self.stations[*index], start + frame.data);
            self.idle = self.idle.max(if collided { left } else { left + self.sifs + frame.ack });
            station.finish(frame, collided, left, links);
            self.changed.push(station.link(frame));
        }
        self.frames = frames;
        self.update_starts();
    }

    /// Updates the start of each station that requests the channel. Only arrivals and changes let another one begin to request it.
    fn update_starts(&mut self) {
        let (idle, slots) = (self.idle, self.slots());
        self.next = Time::MAX;
        for station in self.stations.iter_mut().filter(|station| station.start != Time::MAX) {
            station.update_start(idle, slots, self.slot);
            self.next = self.next.min(station.start);
        }
    }

    fn update_next(&mut self) {
        self.next = self.stations.iter().map(|station| station.start).min().unwrap_or(Time::MAX);
    }
}

impl Medium for Wifi {
    fn members(&self) -> &[usize] {
        &self.members
    }

    fn next_start(&self, _: &[Link]) -> Option<Time> {
        (self.next != Time::MAX).then_some(self.next)
    }

    fn advance(&mut self, now: Time, hop: usize, links: &mut [Link]) -> bool {
        self.changed.clear();
        let (idle, slots) = (self.idle, self.slots());
        let (station, place) = self.place_of[hop];
        let station = &mut self.stations[station];
        // The requests of other links have not changed since their own call, or since they transmitted.
        if station.read_request(place, links) {
            let before = station.start;
            station.update_start(idle, slots, self.slot);
            if station.start < self.next {
                self.next = station.start;
            } else if before != station.start {
                self.update_next();
            }
        }
        while self.next <= now {
            self.transmit(self.next, links);
        }
        debug_assert!(self.stations.iter().all(|station| station.knows_requests(links)), "a request has changed");
        !self.changed.is_empty()
    }

    fn changed(&self) -> &[usize] {
        &self.changed
    }
}
