// SPDX-License-Identifier: MIT OR Apache-2.0
//! A station: the backoff with which it contends for the medium, and the hops whose packets it sends.

use super::airtime::{FrameSize, Phy};
use super::window::Window;
use crate::link::hop::Link;
use crate::link::medium_plan::{Batch, Order};
use crate::parameter::Values;
use paceline_units::{RandomStream, Rate, Time, TimeDelta};

/// How a station contends.
#[derive(Clone, Copy, Debug)]
pub struct Contention {
    /// Slots after SIFS before the backoff counts (AIFSN).
    pub aifsn: u32,
    /// Smallest contention window: the backoff is drawn from 0 to this.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Transmissions of a packet before the station gives up.
    pub attempts: u32,
    /// Transmissions in a row without acknowledgement at the full rate; each further one has half of the rate before.
    pub full_rate_attempts: u32,
    pub order: Order,
}

/// A hop that a station serves.
pub struct StationHop {
    /// Index of the link.
    pub link: usize,
    phy: Phy,
    limits: Batch,
    lowest_rate: Rate,
    /// Probability that a packet at the full rate is received with errors.
    frame_error: f64,
    window: Window,
}

impl StationHop {
    /// Creates the hop of a link with an empty window.
    pub fn new(link: usize, values: &Values) -> Self {
        let phy = Phy {
            preamble: values.time("preamble"),
            symbol: values.time("symbol"),
            header: values.size("header"),
            ack_preamble: values.time("ack_preamble"),
            ack_rate: values.rate("ack_rate"),
        };
        Self {
            link,
            phy,
            limits: Batch::of_frame(values),
            lowest_rate: values.rate("lowest_rate"),
            frame_error: values.fraction("frame_error").get(),
            window: Window::default(),
        }
    }
}

/// Returns the first of these times.
fn first(times: &[Time]) -> Time {
    times.iter().copied().min().unwrap_or(Time::MAX)
}

#[derive(Clone, Copy, Debug)]
pub struct Frame {
    hop: usize,
    pub data: TimeDelta,
    /// Airtime of the acknowledgement.
    pub ack: TimeDelta,
    /// Whether the rate was reduced after failures.
    is_reduced: bool,
}

pub struct Station {
    hops: Vec<StationHop>,
    /// The time since which each hop requests the medium, as last read; [`Time::MAX`] if it does not.
    requests: Vec<Time>,
    /// The first of these times.
    request: Time,
    contention: Contention,
    random: RandomStream,
    /// The hop that is next in turn.
    turn: usize,
    /// Contention window.
    cw: u32,
    /// Transmissions in a row without acknowledgement.
    failures: u32,
    /// Slots to count down after AIFS, as of the end of the last transmission on the medium; `None` if they were counted while
    /// the station had no packets.
    backoff: Option<u32>,
    /// Start of its next transmission if no other station begins before; [`Time::MAX`] without packets.
    pub start: Time,
}

impl Station {
    /// Creates a station without packets.
    pub fn new(hops: Vec<StationHop>, contention: Contention, random: RandomStream) -> Self {
        let cw = contention.cw_min;
        let requests = vec![Time::MAX; hops.len()];
        Self {
            hops,
            requests,
            request: Time::MAX,
            contention,
            random,
            turn: 0,
            cw,
            failures: 0,
            backoff: None,
            start: Time::MAX,
        }
    }

    /// Reads since when one of its hops requests the medium. Returns whether that is another time than before.
    pub fn read_request(&mut self, hop: usize, links: &[Link]) -> bool {
        let request = links[self.hops[hop].link].requested_since().unwrap_or(Time::MAX);
        let changed = self.requests[hop] != request;
        if changed {
            self.requests[hop] = request;
            self.request = first(&self.requests);
        }
        changed
    }

    /// Reads since when each of its hops requests the medium.
    fn read_requests(&mut self, links: &[Link]) {
        for (request, hop) in self.requests.iter_mut().zip(&self.hops) {
            *request = links[hop.link].requested_since().unwrap_or(Time::MAX);
        }
        self.request = first(&self.requests);
    }

    /// Returns whether the requests of all hops are those last read.
    pub fn knows_requests(&self, links: &[Link]) -> bool {
        let requests = self.hops.iter().map(|hop| links[hop.link].requested_since().unwrap_or(Time::MAX));
        requests.eq(self.requests.iter().copied())
    }

    /// Sets the start of its next transmission, on a medium that is idle since `idle` and whose slots begin at `slots`. A packet
    /// that arrived while the medium was busy needs a backoff; one that finds it idle for AIFS does not (IEEE 802.11-2020,
    /// 10.3.4.2).
    pub fn update_start(&mut self, idle: Time, slots: Time, slot: TimeDelta) {
        let request = self.request;
        if request == Time::MAX {
            self.start = Time::MAX;
            return;
        }
        if self.backoff.is_none() && request < idle {
            self.draw_backoff();
        }
        let counted = i64::from(self.contention.aifsn) + i64::from(self.backoff.unwrap_or(0));
        // The slot after the one in which the packet arrived.
        let arrived = if request < slots { 0 } else { (request - slots).as_nanos() / slot.as_nanos() + 1 };
        self.start = slots + slot * counted.max(arrived);
    }

    fn draw_backoff(&mut self) {
        self.backoff = Some((self.random.unit() * (f64::from(self.cw) + 1.0)) as u32);
    }

    /// Handles the start of a transmission of another station in this slot: the counter stops.
    pub fn freeze(&mut self, slot: i64) {
        let counted = slot - i64::from(self.contention.aifsn);
        let left = |backoff: &u32| i64::from(*backoff) > counted;
        self.backoff = self.backoff.filter(left).map(|backoff| backoff - counted.max(0) as u32);
    }

    /// Composes a frame at `start` from a hop that requests the medium; `None` if no queue releases a packet.
    pub fn compose(&mut self, start: Time, links: &mut [Link]) -> Option<Frame> {
        let frame = self.compose_in_turn(start, links);
        if frame.is_none() {
            self.read_requests(links);
        }
        frame
    }

    fn compose_in_turn(&mut self, start: Time, links: &mut [Link]) -> Option<Frame> {
        let count = self.hops.len();
        if self.contention.order == Order::Arrival {
            self.turn = self.first_arrived(start, links);
        }
        let mut turns = (0..count).map(|turn| (self.turn + turn) % count);
        let (hop, rate, is_reduced, size) = turns.find_map(|hop| {
            let StationHop { link, phy, limits, lowest_rate, window, .. } = &mut self.hops[hop];
            let link = &mut links[*link];
            link.requested_since().filter(|since| *since <= start)?;
            let full_rate = link.available_rate(start)?;
            let halvings = (self.failures + 1).saturating_sub(self.contention.full_rate_attempts);
            let halved = Rate::from_bps(full_rate.as_bps().checked_shr(halvings).unwrap_or(0));
            let rate = halved.max((*lowest_rate).min(full_rate));
            let fits = |frame: FrameSize| {
                frame.mpdus <= limits.packets as usize
                    && frame.size() <= limits.bytes
                    && phy.data(frame.size(), rate) <= limits.airtime
            };
            let size = window.compose(start, || link.dequeue_shared(start), |packet| packet.size + phy.header, fits);
            link.set_unfinished(start, !window.is_empty());
            (size.mpdus > 0).then_some((hop, rate, rate < full_rate, size))
        })?;
        self.turn = hop;
        let phy = &self.hops[hop].phy;
        Some(Frame { hop, data: phy.data(size.size(), rate), ack: phy.ack(size.mpdus), is_reduced })
    }

    /// Returns the hop whose first packet arrived first.
    fn first_arrived(&mut self, start: Time, links: &mut [Link]) -> usize {
        let mut arrival = |hop: &mut StationHop| {
            let link = &mut links[hop.link];
            link.requested_since().filter(|since| *since <= start)?;
            let first = hop.window.first_arrival(|| link.dequeue_shared(start));
            link.set_unfinished(start, !hop.window.is_empty());
            first
        };
        let arrivals = self.hops.iter_mut().enumerate().filter_map(|(index, hop)| Some((arrival(hop)?, index)));
        arrivals.min().map_or(self.turn, |(_, index)| index)
    }

    /// Handles the end of its transmission at `left`, which others may have collided with: packets leave or are repeated, and
    /// the contention window doubles or is reset.
    pub fn finish(&mut self, frame: &Frame, collided: bool, left: Time, links: &mut [Link]) {
        let Contention { attempts, cw_min, cw_max, .. } = self.contention;
        let StationHop { link, frame_error, window, .. } = &mut self.hops[frame.hop];
        let (link, error) = (&mut links[*link], if frame.is_reduced { 0.0 } else { *frame_error });
        let random = &mut self.random;
        let is_received = || !collided && (error == 0.0 || !random.chance(error));
        let is_acknowledged = window.report(attempts, is_received);
        while let Some(released) = window.release() {
            match released.is_received {
                true => link.put_on_wire(left, released.packet, released.waited),
                false => link.lose(left, released.packet),
            }
        }
        link.set_unfinished(left, !window.is_empty());
        self.failures = if is_acknowledged { 0 } else { self.failures + 1 };
        if is_acknowledged || self.failures >= attempts {
            self.failures = 0;
            self.cw = cw_min;
            self.turn = (frame.hop + 1) % self.hops.len();
        } else {
            self.cw = (2 * self.cw + 1).min(cw_max);
        }
        self.draw_backoff();
        self.read_requests(links);
    }

    pub fn link(&self, frame: &Frame) -> usize {
        self.hops[frame.hop].link
    }
}
