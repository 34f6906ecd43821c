// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pacer: spreads the packets of a frame over time, by priority, in a bounded queue.
//!
//! A packet may leave when the transmission time of the previous one at the pacing rate has passed. The time is
//! computed, so there is no periodic timer, unless the controller requests a tick: then a packet leaves at multiples of
//! the tick only, one at each, and the transmission time starts again there. If the caller is late, the next packets catch up; time during which the
//! queue was empty or held back is not saved. Audio leaves before retransmissions, and these before video; video
//! streams share by weight.

use crate::fair_queue::FairQueue;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The priority of a packet, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketPriority {
    /// Audio: small, and the most sensitive to delay.
    Audio = 0,
    /// Retransmissions, which are already late.
    Retransmission = 1,
    /// Video.
    Video = 2,
}

/// A longer wait for the next packet comes from a rate near zero: a packet of 1500 bytes takes it below 6 kbit/s. Shorter ones stay as
/// they were computed.
const STALL: TimeDelta = TimeDelta::from_secs(2);
/// A late caller catches up at most this much: the timers of a busy machine are less late. After a longer pause of the
/// machine, the missed packets would leave in a burst.
const CATCH_UP_MAX: TimeDelta = TimeDelta::from_millis(10);

/// A paced queue of packets `T`.
#[derive(Clone, Debug)]
pub struct Pacer<T> {
    /// The queues of audio and retransmissions.
    urgent: [VecDeque<(T, DataSize)>; 2],
    video: FairQueue<T>,
    queued: DataSize,
    /// All that left the queue.
    released: DataSize,
    rate: Rate,
    /// The longest time that the queue may take to drain.
    limit: TimeDelta,
    /// Packets leave at once until they take this time at the pacing rate.
    burst: TimeDelta,
    /// Whether a burst is over, so that packets wait until all of it would have left at the pacing rate.
    burst_over: bool,
    /// Packets leave at multiples of this time, one at each; zero: at any time.
    tick: TimeDelta,
    /// The time at which the next packet leaves at the pacing rate.
    next: Time,
}

impl<T> Pacer<T> {
    /// Creates an empty pacer for streams with these weights, which are above zero. `limit` is the longest time that
    /// the queue may take to drain at the pacing rate.
    pub fn new(rate: Rate, limit: TimeDelta, weights: impl IntoIterator<Item = f64>) -> Self {
        let (urgent, video) = ([VecDeque::new(), VecDeque::new()], FairQueue::new(weights));
        let (queued, released) = (DataSize::ZERO, DataSize::ZERO);
        Self {
            urgent,
            video,
            queued,
            released,
            rate,
            limit,
            burst: TimeDelta::ZERO,
            burst_over: false,
            tick: TimeDelta::ZERO,
            next: Time::ZERO,
        }
    }

    /// Adds a stream with this weight, which is above zero. Its index follows the last one.
    pub fn add_stream(&mut self, weight: f64) {
        self.video.add(weight);
    }

    /// Sets the weight of a stream, above zero, for the following packets.
    pub fn set_weight(&mut self, stream: usize, weight: f64) {
        self.video.set_weight(stream, weight);
    }

    /// Sets the pacing rate for the following packets. A stalled queue continues at the new rate: what is left of a wait of more
    /// than 2 s is recomputed.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        let before = core::mem::replace(&mut self.rate, rate);
        let wait = self.next - now;
        if before != rate && wait > STALL {
            self.next = now + wait.scale(before.as_bps_f64() / rate.as_bps_f64().max(1.0));
        }
    }

    /// Sets the length of bursts: packets leave at once until they take this time at the pacing rate, and then none leaves
    /// for this time. Zero: no bursts.
    pub fn set_burst(&mut self, burst: TimeDelta) {
        self.burst = burst;
    }

    /// Sets the time at whose multiples packets leave, one at each; zero: at any time.
    pub fn set_tick(&mut self, tick: TimeDelta) {
        self.tick = tick;
    }

    /// Returns whether the queue plus `size` would drain within the limit. An empty queue takes any frame: a flow whose frames are all
    /// larger would otherwise send nothing, and get no feedback that raises its rate.
    pub fn has_room(&self, size: DataSize) -> bool {
        self.queued == DataSize::ZERO || (self.queued + size) / self.rate <= self.limit
    }

    /// Returns the video packet of a stream that leaves first; `None` without any.
    pub fn first_video(&self, stream: usize) -> Option<&T> {
        self.video.front(stream)
    }

    /// Removes the video packets of a stream from the first one that is not to be kept, and returns them.
    pub fn discard_video(&mut self, stream: usize, keep: impl Fn(&T) -> bool) -> Vec<(T, DataSize)> {
        let discarded = self.video.discard(stream, keep);
        self.queued -= discarded.iter().map(|(_, size)| *size).sum();
        discarded
    }

    /// Queues a packet that became available at `at`, which is in the past if the caller is late. `stream` is the index
    /// of its weight. Check [`has_room`](Self::has_room) first, for a frame as a whole.
    pub fn push(&mut self, at: Time, priority: PacketPriority, stream: usize, packet: T, size: DataSize) {
        if self.queued == DataSize::ZERO {
            self.next = self.next.max(at);
            self.update_burst(at);
        }
        self.queued += size;
        match self.urgent.get_mut(priority as usize) {
            Some(queue) => queue.push_back((packet, size)),
            None => self.video.push(stream, packet, size),
        }
    }

    /// Removes the next packet, if there is one that may leave at `now`, and returns it with its size.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<(T, DataSize)> {
        if now < self.next_release() || self.queued == DataSize::ZERO {
            return None;
        }
        let (packet, size) = self.urgent.iter_mut().find_map(VecDeque::pop_front).or_else(|| self.video.pop())?;
        self.queued -= size;
        self.released += size;
        self.next = match self.tick.is_positive() {
            // A late caller does not lose a tick.
            true => last_multiple(now, self.tick) + (size / self.rate).max(self.tick),
            false => self.next.max(now - CATCH_UP_MAX) + size / self.rate,
        };
        self.update_burst(now);
        Some((packet, size))
    }

    /// Removes the next packet regardless of the pacing rate, for a probe. The packets after it wait as if it had left at
    /// the pacing rate.
    pub fn pop_at_once(&mut self, now: Time) -> Option<(T, DataSize)> {
        let (packet, size) = self.urgent.iter_mut().find_map(VecDeque::pop_front).or_else(|| self.video.pop())?;
        self.queued -= size;
        self.released += size;
        self.spend(now, size);
        Some((packet, size))
    }

    /// Blocks packets until `time`, for a reason outside the pacer, such as a closed window.
    pub fn block_until(&mut self, time: Time) {
        self.next = self.next.max(time);
    }

    /// Accounts for a packet that did not come from the queue, such as padding.
    pub fn spend(&mut self, now: Time, size: DataSize) {
        self.next = self.next.max(now) + size / self.rate;
        self.update_burst(now);
    }

    /// Ends a burst once what has left takes the length of a burst (libwebrtc's `PacingController::NextSendTime`).
    fn update_burst(&mut self, now: Time) {
        self.burst_over = self.next - now >= self.burst;
    }

    /// Returns the time at which the next packet may leave, also if the queue is empty.
    pub fn next_release(&self) -> Time {
        self.on_tick(if self.burst_over { self.next } else { self.next - self.burst })
    }

    /// Returns the time at which the packets that left would have left at the pacing rate, without a burst. Padding waits for it:
    /// otherwise it would leave in place of the next burst (libwebrtc's `PacingController::NextSendTime`).
    pub fn drained_at(&self) -> Time {
        self.on_tick(self.next)
    }

    fn on_tick(&self, time: Time) -> Time {
        if self.tick.is_positive() { next_multiple(time, self.tick) } else { time }
    }

    /// Returns the time at which [`pop`](Self::pop) will return a packet; `None` if the queue is empty.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        (self.queued != DataSize::ZERO).then(|| self.next_release())
    }

    /// Returns the size of all packets that have left the queue.
    pub fn released(&self) -> DataSize {
        self.released
    }

    /// Returns the size of all packets in the queue.
    pub fn queued(&self) -> DataSize {
        self.queued
    }
}

/// Returns the last multiple of `tick` that is not after `at`.
fn last_multiple(at: Time, tick: TimeDelta) -> Time {
    Time::from_nanos(at.as_nanos() - at.as_nanos().rem_euclid(tick.as_nanos()))
}

/// Returns the first multiple of `tick` that is not before `at`; [`Time::MAX`] stays.
fn next_multiple(at: Time, tick: TimeDelta) -> Time {
    let (at, tick) = (at.as_nanos(), tick.as_nanos());
    Time::from_nanos(match at.rem_euclid(tick) {
        0 => at,
        rest => at.saturating_add(tick - rest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1212 bytes, a tick of 5 ms. At 1 to 1.9 Mbit/s one takes 5.1 to 9.7 ms, so each second tick; at 4 Mbit/s
    /// 2.4 ms, so each tick; at 0.9 Mbit/s 10.8 ms, so each third.
    #[test]
    fn tick_releases_one_packet_at_its_multiples() {
        for (kbps, expected) in [(1000, [0, 10, 20]), (1900, [0, 10, 20]), (4000, [0, 5, 10]), (900, [0, 15, 30])] {
            let mut pacer = Pacer::new(Rate::from_kbps(kbps), TimeDelta::from_secs(1), [1.0]);
            pacer.set_tick(TimeDelta::from_millis(5));
            let start = Time::from_millis(7);
            (0..3).for_each(|id| pacer.push(start, PacketPriority::Video, 0, id, DataSize::from_bytes(1212)));
            let mut left = Vec::new();
            while let Some(due) = pacer.poll_timeout() {
                let now = due.max(start);
                pacer.pop(now).unwrap();
                assert_eq!(pacer.pop(now), None, "one at each tick");
                left.push((now - Time::from_millis(10)).as_nanos() / 1_000_000);
            }
            assert_eq!(left, expected, "{kbps} kbit/s");
        }
    }

    /// At 1 bit/s a packet of 1250 bytes takes 10,000 s. When the rate rises to 100 kbit/s 5 s later, 9995 of them are left, which
    /// take 99.95 ms.
    #[test]
    fn stalled_queue_continues_at_the_new_rate() {
        let mut pacer = Pacer::new(Rate::from_bps(1), TimeDelta::from_secs(1), [1.0]);
        (0..2).for_each(|id| pacer.push(Time::ZERO, PacketPriority::Video, 0, id, DataSize::from_bytes(1250)));
        assert_eq!(pacer.pop(Time::ZERO).map(|(id, _)| id), Some(0));
        assert_eq!(pacer.poll_timeout(), Some(Time::from_secs(10_000)));
        let now = Time::from_secs(5);
        pacer.set_rate(now, Rate::from_kbps(100));
        assert_eq!(pacer.poll_timeout(), Some(now + TimeDelta::from_micros(99_950)));
        pacer.set_rate(now, Rate::from_kbps(1000));
        assert_eq!(pacer.poll_timeout(), Some(now + TimeDelta::from_micros(99_950)), "an ordinary wait stays");
    }

    #[test]
    fn packets_leave_at_the_pacing_rate_by_priority() {
        let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_millis(40), [1.0]);
        let size = DataSize::from_bytes(1250); // 10 ms
        for id in 0..3 {
            pacer.push(Time::ZERO, PacketPriority::Video, 0, id, size);
        }
        let mut left = Vec::new();
        while let Some(now) = pacer.poll_timeout() {
            left.push((now.as_nanos() / 1_000_000, pacer.pop(now).unwrap().0));
            assert_eq!(pacer.pop(now), None, "one at a time");
            if left.len() == 1 {
                pacer.push(Time::ZERO, PacketPriority::Audio, 0, 9, size);
            }
        }
        assert_eq!(left, [(0, 0), (10, 9), (20, 1), (30, 2)]);
    }

    #[test]
    fn queue_is_bounded_by_its_drain_time() {
        let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_millis(40), [1.0]);
        assert!(pacer.has_room(DataSize::from_bytes(50_000)), "an empty queue takes any frame");
        pacer.push(Time::ZERO, PacketPriority::Video, 0, (), DataSize::from_bytes(2000));
        assert!(pacer.has_room(DataSize::from_bytes(3000)));
        assert!(!pacer.has_room(DataSize::from_bytes(3001)));
        pacer.set_rate(Time::ZERO, Rate::from_kbps(2000));
        assert!(pacer.has_room(DataSize::from_bytes(8000)));
    }

    #[test]
    fn packets_leave_in_bursts_at_the_same_mean_rate() {
        let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_secs(1), [1.0]);
        pacer.set_burst(TimeDelta::from_millis(40));
        let size = DataSize::from_bytes(1250); // 10 ms
        (0..10).for_each(|id| pacer.push(Time::from_secs(1), PacketPriority::Video, 0, id, size));
        let left_at = |pacer: &mut Pacer<i64>, start: Time| {
            let (mut left, mut now) = (Vec::new(), start);
            while let Some(due) = pacer.poll_timeout() {
                now = now.max(due);
                pacer.pop(now).unwrap();
                left.push((now - Time::from_secs(1)).as_nanos() / 1_000_000);
            }
            left
        };
        assert_eq!(left_at(&mut pacer, Time::from_secs(1)), [0, 0, 0, 0, 40, 40, 40, 40, 80, 80]);
        // All of them take until 100 ms. Of packets that come after they have left, a burst at 75 ms takes two, one at 50 ms none.
        for (ms, expected) in [(85, [85, 85, 85]), (75, [75, 75, 120]), (50, [100, 100, 100])] {
            let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_secs(1), [1.0]);
            pacer.set_burst(TimeDelta::from_millis(40));
            let at = Time::from_millis(1000 + ms);
            pacer.next = Time::from_millis(1100);
            (0..3).for_each(|id| pacer.push(at, PacketPriority::Video, 0, id, size));
            assert_eq!(left_at(&mut pacer, at), expected);
        }
    }

    #[test]
    fn burst_leaves_a_debt_that_drains_at_the_pacing_rate() {
        let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_secs(1), [1.0]);
        pacer.set_burst(TimeDelta::from_millis(40));
        (0..3).for_each(|id| pacer.push(Time::from_secs(1), PacketPriority::Video, 0, id, DataSize::from_bytes(1250)));
        (0..3).for_each(|id| assert_eq!(pacer.pop(Time::from_secs(1)).map(|(id, _)| id), Some(id)));
        assert_eq!((pacer.next_release(), pacer.drained_at()), (Time::from_millis(990), Time::from_millis(1030)));
    }

    #[test]
    fn probe_leaves_at_once_and_counts() {
        let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_secs(1), [1.0]);
        (0..3).for_each(|id| pacer.push(Time::ZERO, PacketPriority::Video, 0, id, DataSize::from_bytes(1250)));
        assert_eq!([(); 2].map(|()| pacer.pop_at_once(Time::ZERO).unwrap().0), [0, 1]);
        assert_eq!(pacer.poll_timeout(), Some(Time::from_millis(20)));
        assert_eq!(pacer.pop_at_once(Time::ZERO).unwrap().0, 2);
        assert_eq!(pacer.pop_at_once(Time::ZERO), None);
    }

    #[test]
    fn idle_time_is_not_saved() {
        let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_secs(1), [1.0]);
        let size = DataSize::from_bytes(1250);
        pacer.push(Time::from_secs(5), PacketPriority::Video, 0, (), size);
        pacer.push(Time::from_secs(5), PacketPriority::Video, 0, (), size);
        assert!(pacer.pop(Time::from_secs(5)).is_some());
        assert_eq!(pacer.poll_timeout(), Some(Time::from_millis(5010)));
        pacer.block_until(Time::from_millis(5300));
        assert!(pacer.pop(Time::from_millis(5300)).is_some());
        assert_eq!(pacer.next_release(), Time::from_millis(5310));
    }

    #[test]
    fn late_caller_catches_up_but_not_after_a_pause() {
        let mut pacer = Pacer::new(Rate::from_kbps(1000), TimeDelta::from_secs(1), [1.0]);
        (0..9).for_each(|_| pacer.push(Time::ZERO, PacketPriority::Video, 0, (), DataSize::from_bytes(1250)));
        for (now, next) in [(0, 10), (13, 20), (29, 30), (30, 40)] {
            assert!(pacer.pop(Time::from_millis(now)).is_some());
            assert_eq!(pacer.poll_timeout(), Some(Time::from_millis(next)), "late by {} ms", now % 10);
        }
        assert!(pacer.pop(Time::from_millis(500)).is_some());
        assert_eq!(pacer.poll_timeout(), Some(Time::from_millis(500)), "one packet immediately, and no more");
    }
}
