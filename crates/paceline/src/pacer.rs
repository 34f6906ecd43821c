//! The pacer: spreads a frame's packets in time, by priority, with a bounded queue.
//!
//! A packet may leave when the one before it has had its time at the pacing rate; the time is computed, not
//! ticked. A caller that comes late makes up for it with the next packets; time in which nothing waited, or nothing was let
//! go, is not saved up. Audio goes before retransmissions, those before video; video streams take turns by weight.

use crate::lanes::Lanes;
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::collections::VecDeque;

/// Priority of a packet, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Audio: small, and the first to be missed.
    Audio = 0,
    /// Retransmissions: late already.
    Retransmission = 1,
    /// Video.
    Video = 2,
}

/// So much lateness is made up for: timers of a busy machine are late by less. A longer one is a pause of the machine,
/// and what it missed would come as a burst.
const LATENESS_MADE_UP: TimeDelta = TimeDelta::from_millis(10);

/// A paced queue of packets `T`.
#[derive(Debug)]
pub struct Pacer<T> {
    /// Audio and retransmissions.
    urgent: [VecDeque<(T, DataSize)>; 2],
    video: Lanes<T>,
    queued: DataSize,
    rate: Rate,
    /// Longest time that the queue may take to drain; what does not fit is refused.
    limit: TimeDelta,
    /// When the next packet may leave.
    next: Time,
}

impl<T> Pacer<T> {
    /// An empty pacer of streams of these weights, above zero. `limit`: the longest time that the queue may take to drain
    /// at the pacing rate.
    pub fn new(rate: Rate, limit: TimeDelta, weights: impl IntoIterator<Item = f64>) -> Self {
        let (urgent, video) = ([VecDeque::new(), VecDeque::new()], Lanes::new(weights));
        Self { urgent, video, queued: DataSize::ZERO, rate, limit, next: Time::ZERO }
    }

    /// Changes the pacing rate from the next packet on.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Whether `size` more bytes would drain within the limit.
    pub fn has_room(&self, size: DataSize) -> bool {
        (self.queued + size) / self.rate <= self.limit
    }

    /// Queues a packet of a stream, by its place among the weights, which was there at `at`: that may be a while ago, if
    /// the caller is late. Ask [`has_room`](Self::has_room) first, for a frame as a whole.
    pub fn push(&mut self, at: Time, class: Class, stream: usize, packet: T, size: DataSize) {
        if self.queued == DataSize::ZERO {
            self.next = self.next.max(at);
        }
        self.queued += size;
        match self.urgent.get_mut(class as usize) {
            Some(queue) => queue.push_back((packet, size)),
            None => self.video.push(stream, packet, size),
        }
    }

    /// The next packet, if one waits and may leave at `now`.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<T> {
        if now < self.next || self.queued == DataSize::ZERO {
            return None;
        }
        let (packet, size) = self.urgent.iter_mut().find_map(VecDeque::pop_front).or_else(|| self.video.pop())?;
        self.queued -= size;
        self.next = self.next.max(now - LATENESS_MADE_UP) + size / self.rate;
        Some(packet)
    }

    /// Nothing was let go until `now`, for a reason that is not the pacer's.
    pub fn hold(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// Takes the time of a packet that did not come from the queue, such as padding.
    pub fn spend(&mut self, now: Time, size: DataSize) {
        self.next = self.next.max(now) + size / self.rate;
    }

    /// When a packet may leave, whether one waits or not.
    pub fn next_release(&self) -> Time {
        self.next
    }

    /// When [`pop`](Self::pop) will yield; [`Time::MAX`] for an empty queue.
    pub fn poll_timeout(&self) -> Time {
        if self.queued == DataSize::ZERO { Time::MAX } else { self.next }
    }

    /// What waits.
    pub fn queued(&self) -> DataSize {
        self.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_at_the_pacing_rate_by_priority() {
        let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_millis(40), [1.0]);
        let size = DataSize::from_bytes(1250); // 10 ms
        for id in 0..3 {
            pacer.push(Time::ZERO, Class::Video, 0, id, size);
        }
        let mut left = Vec::new();
        while pacer.poll_timeout() < Time::MAX {
            let now = pacer.poll_timeout();
            left.push((now.as_nanos() / 1_000_000, pacer.pop(now).unwrap()));
            assert_eq!(pacer.pop(now), None, "one at a time");
            if left.len() == 1 {
                pacer.push(Time::ZERO, Class::Audio, 0, 9, size);
            }
        }
        assert_eq!(left, [(0, 0), (10, 9), (20, 1), (30, 2)]);
    }

    #[test]
    fn the_queue_is_bounded_in_time() {
        let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_millis(40), [1.0]);
        assert!(pacer.has_room(DataSize::from_bytes(5000)));
        assert!(!pacer.has_room(DataSize::from_bytes(5001)));
        pacer.push(Time::ZERO, Class::Video, 0, (), DataSize::from_bytes(5000));
        assert!(!pacer.has_room(DataSize::from_bytes(1)));
        pacer.set_rate(Rate::from_kbps(2000));
        assert!(pacer.has_room(DataSize::from_bytes(5000)));
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_secs(1), [1.0]);
        let size = DataSize::from_bytes(1250);
        pacer.push(Time::from_secs(5), Class::Video, 0, (), size);
        pacer.push(Time::from_secs(5), Class::Video, 0, (), size);
        assert!(pacer.pop(Time::from_secs(5)).is_some());
        assert_eq!(pacer.poll_timeout(), Time::from_millis(5010));
        pacer.hold(Time::from_millis(5300));
        assert!(pacer.pop(Time::from_millis(5300)).is_some());
        assert_eq!(pacer.next_release(), Time::from_millis(5310));
    }

    #[test]
    fn a_late_caller_makes_up_for_it_but_for_a_pause() {
        let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_secs(1), [1.0]);
        (0..9).for_each(|_| pacer.push(Time::ZERO, Class::Video, 0, (), DataSize::from_bytes(1250)));
        for (now, next) in [(0, 10), (13, 20), (29, 30), (30, 40)] {
            assert!(pacer.pop(Time::from_millis(now)).is_some());
            assert_eq!(pacer.poll_timeout(), Time::from_millis(next), "late by {} ms", now % 10);
        }
        assert!(pacer.pop(Time::from_millis(500)).is_some());
        assert_eq!(pacer.poll_timeout(), Time::from_millis(500), "one at once, and no more");
    }
}
