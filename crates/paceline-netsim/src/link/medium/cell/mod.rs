// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction of a mobile cell for one device: slots of a pattern, grants of the uplink, repetitions of blocks that failed.
//!
//! ```text
//!  pattern     D   D   D   S  |U|  D   D   D   S  |U|
//!  uplink                      block: packets, in parts     block               time ->
//!                              └ fails ─ repeat_delay ─▶ arrives: the packets behind it wait
//! ```
//!
//! A slot of the direction carries what the capacity gives in one pattern, divided by its slots in the pattern, so that a queue that is
//! never empty leaves at the capacity. What a sender sees depends on what it sends: an uplink that was idle first requests a grant, and a
//! backlog is granted as long as it is reported. `docs/explanation/radio.md` describes the model.

mod channel;
mod grants;
#[cfg(test)]
mod tests;

use super::{Medium, Member};
use crate::link::hop::Link;
use crate::link::queue::QueuedPacket;
use crate::parameter::Values;
use channel::Channel;
use grants::Grants;
use paceline_units::{DataSize, RandomStream, RandomStreams, Time, TimeDelta};

/// The slots of one direction.
#[derive(Clone, Debug)]
struct Slots {
    length: TimeDelta,
    /// The slots of the pattern, from its start, that the direction has.
    places: Vec<i64>,
    period: TimeDelta,
}

impl Slots {
    fn new(values: &Values) -> Self {
        let (length, pattern) = (values.time("slot"), values.text("pattern").unwrap_or(PATTERN));
        let is_up = values.text("direction") != Some("down");
        // A special slot is mostly downlink (TS 38.213, 11.1).
        let places = (0..).zip(pattern.chars()).filter(|(_, slot)| (*slot == 'U') == is_up).map(|(place, _)| place);
        Self { length, places: places.collect(), period: length * pattern.chars().count() as i64 }
    }

    /// Returns the start of the first slot of the direction that begins at `at` or later.
    fn first_from(&self, at: Time) -> Time {
        let into = TimeDelta::from_nanos(at.as_nanos().rem_euclid(self.period.as_nanos()));
        let start = at - into;
        let place = self.places.iter().map(|place| self.length * *place).find(|offset| *offset >= into);
        start + place.unwrap_or_else(|| self.period + self.length * self.places[0])
    }

    /// Returns the time for which one slot carries the capacity.
    fn share(&self) -> TimeDelta {
        self.period / self.places.len() as i64
    }
}

/// The usual pattern of a band at 3.5 GHz in Europe: three slots for the downlink, one special, one for the uplink.
pub const PATTERN: &str = "DDDSU";

/// Returns whether a pattern has slots of both directions, and no others.
pub fn is_pattern(pattern: &str) -> bool {
    let has = |slots: &[char]| pattern.contains(slots);
    pattern.chars().all(|slot| "DSU".contains(slot)) && has(&['U']) && has(&['D', 'S'])
}

/// How blocks are repeated.
#[derive(Clone, Copy, Debug)]
struct Repetition {
    /// Probability that a block is not decoded.
    error: f64,
    /// From a block to its repetition.
    delay: TimeDelta,
    /// Transmissions of a block until the link layer above finds that it is missing, and sends its packets again.
    attempts: u32,
    /// The time that this takes.
    recovery: TimeDelta,
}

impl Repetition {
    fn new(values: &Values) -> Self {
        Self {
            error: values.fraction("block_error").get(),
            delay: values.time("repeat_delay"),
            attempts: values.count("attempts"),
            recovery: values.time("recovery_time"),
        }
    }

    /// Returns by how much later than without errors a block is decoded.
    fn delay(&self, random: &mut RandomStream) -> TimeDelta {
        let mut delay = TimeDelta::ZERO;
        let mut failures = 0;
        while self.error > 0.0 && random.chance(self.error) {
            failures += 1;
            delay += if failures % self.attempts == 0 { self.recovery } else { self.delay };
        }
        delay
    }
}

/// A packet that a block has carried in part.
#[derive(Clone, Copy, Debug)]
struct Split {
    queued: QueuedPacket,
    began: Time,
    rest: DataSize,
    /// The time at which all blocks with its other parts are decoded.
    decoded: Time,
}

/// One direction of a cell.
pub(super) struct Cell {
    member: [usize; 1],
    slots: Slots,
    /// `None` if the base station needs no request: of a downlink, and of configured grants.
    grants: Option<Grants>,
    repetition: Repetition,
    channel: Channel,
    random: RandomStream,
    split: Option<Split>,
    /// The part of a byte that the last slot did not carry.
    rest: f64,
    /// No slot before this time is free.
    free: Time,
    /// The packets until now are decoded by this time: the link layer delivers them in order.
    decoded: Time,
    /// The next slot that may carry packets; [`Time::MAX`] for none.
    next: Time,
}

impl Cell {
    pub fn new(member: &Member<'_>, streams: &RandomStreams, path: &str) -> Self {
        let values = member.values;
        let needs_grant = values.text("direction") != Some("down") && values.text("grants") != Some("configured");
        let grants = || {
            let (interval, delay) = (values.time("request_interval"), values.time("grant_delay"));
            Grants::new(interval, delay, values.size("first_grant"))
        };
        Self {
            member: [member.hop],
            slots: Slots::new(values),
            grants: needs_grant.then(grants),
            repetition: Repetition::new(values),
            channel: Channel::new(values, streams, path),
            random: streams.stream(&format!("{path}/blocks")),
            split: None,
            rest: 0.0,
            free: Time::ZERO,
            decoded: Time::ZERO,
            next: Time::MAX,
        }
    }

    fn update_next(&mut self, link: &Link) {
        self.next = link.requested_since().map_or(Time::MAX, |since| {
            let since = since.max(self.free);
            let ready = self.grants.as_mut().map_or(since, |grants| grants.ready(since));
            self.slots.first_from(ready.max(since))
        });
    }

    /// Sends a block in the slot that begins at `at`.
    fn transmit(&mut self, at: Time, link: &mut Link) {
        self.free = at + self.slots.length;
        let Some(rate) = link.available_rate(at) else { return };
        // In bytes. The part of a byte that is left goes to the next slot.
        let room = rate.as_bps_f64() / 8.0 * self.channel.part(at) * self.slots.share().as_secs_f64() + self.rest;
        let whole = DataSize::from_bytes(room as u64);
        self.rest = room - whole.as_bytes() as f64;
        let allowed = self.grants.as_ref().map_or(whole, |grants| grants.allowed(at).min(whole));
        let mut room = allowed;
        let mut decoded = None;
        while room > DataSize::ZERO {
            let next = self.split.take().or_else(|| {
                let queued = link.dequeue_shared(at)?;
                Some(Split { queued, began: at, rest: queued.packet.size, decoded: Time::ZERO })
            });
            let Some(mut split) = next else { break };
            let (repetition, random, end) = (&self.repetition, &mut self.random, self.free);
            let decoded = *decoded.get_or_insert_with(|| end + repetition.delay(random));
            let part = split.rest.min(room);
            (split.rest, room) = (split.rest - part, room - part);
            split.decoded = split.decoded.max(decoded);
            if split.rest == DataSize::ZERO {
                self.decoded = self.decoded.max(split.decoded);
                link.put_on_wire(self.decoded, split.queued.packet, split.began - split.queued.arrived);
            } else {
                self.split = Some(split);
            }
        }
        link.set_unfinished(at, self.split.is_some());
        if let Some(grants) = self.grants.as_mut().filter(|_| allowed > DataSize::ZERO) {
            let waiting = link.backlog() + self.split.map_or(DataSize::ZERO, |split| split.rest);
            grants.consume(at, allowed - room, waiting);
        }
    }
}

impl Medium for Cell {
    fn members(&self) -> &[usize] {
        &self.member
    }

    fn next_start(&self, _: &[Link]) -> Option<Time> {
        (self.next != Time::MAX).then_some(self.next)
    }

    fn advance(&mut self, now: Time, hop: usize, links: &mut [Link]) -> bool {
        let link = &mut links[hop];
        self.update_next(link);
        let mut has_sent = false;
        while self.next <= now {
            self.transmit(self.next, link);
            self.update_next(link);
            has_sent = true;
        }
        has_sent
    }
}
