// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block-acknowledgement window of a sender to one receiver: packets that were transmitted and not yet delivered.

use super::airtime::FrameSize;
use crate::link::Descriptor;
use crate::link::queue::QueuedPacket;
use paceline_units::{Time, TimeDelta};
use std::collections::VecDeque;

/// Most packets of a window: IEEE 802.11-2020, 9.3.1.8.2, bitmap of the compressed block ACK.
const WINDOW: usize = 64;

/// A packet in the window.
#[derive(Clone, Copy, Debug)]
struct Mpdu {
    queued: QueuedPacket,
    /// Start of its first transmission; `None` before that.
    began: Option<Time>,
    attempts: u32,
    outcome: Option<Outcome>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Received,
    /// The sender gave up.
    Lost,
}

/// A packet that leaves the window, in order.
#[derive(Clone, Copy, Debug)]
pub struct Released {
    pub packet: Descriptor,
    /// Time from its arrival to its first transmission.
    pub waited: TimeDelta,
    /// Whether the receiver has it.
    pub is_received: bool,
}

/// The window. Packets leave it in order: one that was received waits for those before it, as in the reorder buffer of a
/// receiver.
#[derive(Clone, Debug, Default)]
pub struct Window {
    mpdus: VecDeque<Mpdu>,
    /// The packets of the frame in transmission, by their index.
    frame: Vec<usize>,
}

impl Window {
    /// Returns whether it holds no packet.
    pub fn is_empty(&self) -> bool {
        self.mpdus.is_empty()
    }

    /// Returns the arrival of the first packet, after filling an empty window with the next packet of `queue`.
    pub fn first_arrival(&mut self, queue: impl FnOnce() -> Option<QueuedPacket>) -> Option<Time> {
        if self.mpdus.is_empty() {
            self.mpdus.extend(queue().map(Mpdu::new));
        }
        self.mpdus.front().map(|mpdu| mpdu.queued.arrived)
    }

    /// Composes a frame at `now`: packets to repeat, then new ones from `queue`, as long as `fits` allows. The first packet
    /// needs no permission. Returns its size, with no MPDU if there is no packet.
    pub fn compose(
        &mut self,
        now: Time,
        mut queue: impl FnMut() -> Option<QueuedPacket>,
        mpdu: impl Fn(&Descriptor) -> paceline_units::DataSize,
        fits: impl Fn(FrameSize) -> bool,
    ) -> FrameSize {
        self.frame.clear();
        let mut size = FrameSize::default();
        for index in 0..WINDOW {
            if index == self.mpdus.len() {
                let Some(queued) = queue() else { break };
                self.mpdus.push_back(Mpdu::new(queued));
            }
            let entry = &mut self.mpdus[index];
            if entry.outcome.is_some() {
                continue;
            }
            let larger = size.with(mpdu(&entry.queued.packet));
            if larger.mpdus > 1 && !fits(larger) {
                break;
            }
            size = larger;
            entry.began.get_or_insert(now);
            self.frame.push(index);
        }
        size
    }

    /// Handles the outcome of the frame: `is_received` returns whether the receiver has the next packet of it. A packet is
    /// lost after `attempts`. Returns whether any was received.
    pub fn report(&mut self, attempts: u32, mut is_received: impl FnMut() -> bool) -> bool {
        let mut any = false;
        for index in self.frame.drain(..) {
            let mpdu = &mut self.mpdus[index];
            mpdu.attempts += 1;
            if is_received() {
                mpdu.outcome = Some(Outcome::Received);
                any = true;
            } else if mpdu.attempts >= attempts {
                mpdu.outcome = Some(Outcome::Lost);
            }
        }
        any
    }

    /// Removes and returns the first packet if its outcome is known.
    pub fn release(&mut self) -> Option<Released> {
        let Mpdu { queued, began, outcome, .. } = *self.mpdus.front()?;
        let is_received = outcome? == Outcome::Received;
        self.mpdus.pop_front();
        let waited = began.map_or(TimeDelta::ZERO, |began| began - queued.arrived);
        Some(Released { packet: queued.packet, waited, is_received })
    }
}

impl Mpdu {
    fn new(queued: QueuedPacket) -> Self {
        Self { queued, began: None, attempts: 0, outcome: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{DataSize, Ecn, FlowId};

    /// Composes a frame of at most `most` packets from those numbered from `next` on.
    fn compose(window: &mut Window, next: &mut u32, most: usize) -> usize {
        let size = DataSize::from_bytes(1500);
        let queue = || {
            *next += 1;
            let packet = Descriptor {
                id: *next - 1,
                flow: FlowId(0),
                size,
                ecn: Ecn::NotEct,
                dscp: paceline_units::Dscp::DEFAULT,
            };
            Some(QueuedPacket { packet, arrived: Time::ZERO })
        };
        window.compose(Time::from_millis(1), queue, |packet| packet.size, |frame| frame.mpdus <= most).mpdus
    }

    fn released(window: &mut Window) -> Vec<(u32, bool)> {
        std::iter::from_fn(|| window.release()).map(|released| (released.packet.id, released.is_received)).collect()
    }

    #[test]
    fn a_received_packet_waits_for_those_before_it() {
        let (mut window, mut next) = (Window::default(), 0);
        assert_eq!(compose(&mut window, &mut next, 4), 4);
        let mut outcomes = [true, false, true, true].into_iter();
        assert!(window.report(3, || outcomes.next().unwrap()));
        assert_eq!(released(&mut window), [(0, true)]);
        // Packet 1 again, and three new ones.
        assert_eq!(compose(&mut window, &mut next, 4), 4);
        assert!(window.report(3, || true));
        assert_eq!(released(&mut window), (1..7).map(|id| (id, true)).collect::<Vec<_>>());
        assert_eq!(window.mpdus.len(), 1, "the packet that did not fit is next");
        assert_eq!(window.mpdus[0].began, None);
    }

    #[test]
    fn a_packet_is_lost_after_the_last_attempt() {
        let (mut window, mut next) = (Window::default(), 0);
        for _ in 0..2 {
            assert_eq!(compose(&mut window, &mut next, 2), 2);
            assert!(!window.report(3, || false));
            assert_eq!(released(&mut window), []);
        }
        assert_eq!(compose(&mut window, &mut next, 2), 2);
        let mut outcomes = [false, true].into_iter();
        assert!(window.report(3, || outcomes.next().unwrap()));
        assert_eq!(released(&mut window), [(0, false), (1, true)]);
    }

    #[test]
    fn the_window_bounds_what_is_sent_behind_a_gap() {
        let (mut window, mut next) = (Window::default(), 0);
        assert_eq!(compose(&mut window, &mut next, 100), 64);
        let mut index = 0;
        window.report(9, || {
            index += 1;
            index > 1
        });
        assert_eq!(released(&mut window), []);
        assert_eq!(compose(&mut window, &mut next, 100), 1, "only the first packet is missing");
    }
}
