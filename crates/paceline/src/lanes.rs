//! Packets of several streams that share one pace: whose turn it is.
//!
//! ```text
//! a packet of lane i leaves:    turn = turn(i)       turn(i) += size / weight(i)
//! lane i begins to wait again:  turn(i) = max(turn(i), turn)
//! next: the lane with the least turn(i) of those where something waits
//! ```
//!
//! While all lanes wait each gets by its weight, whatever the size of its packets. A stream that rests does not save up a
//! burst, and what it leaves goes to the others. One lane alone is a queue.
//!
//! RFC 8298 (section 4.1.2.8) leaves open how RTP queues are scheduled and speaks of credits: what one queue sends, the
//! others earn, by weight. These turns are start-time fair queueing (Goyal, Vin, Cheng, 1996). Of two lanes that wait both
//! make the same; among three or more, credits of those who wait grow without bound, and who comes last waits for them.

use paceline_units::DataSize;
use std::collections::VecDeque;

/// Queues of packets `T`, one a stream.
#[derive(Debug)]
pub struct Lanes<T> {
    lanes: Vec<Lane<T>>,
    /// Whose it is now, in bytes over weight.
    turn: f64,
}

#[derive(Debug)]
struct Lane<T> {
    weight: f64,
    turn: f64,
    queue: VecDeque<(T, DataSize)>,
}

impl<T> Lanes<T> {
    /// Empty lanes of these weights, above zero.
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let lane = |weight| Lane { weight, turn: 0.0, queue: VecDeque::new() };
        Self { lanes: weights.into_iter().map(lane).collect(), turn: 0.0 }
    }

    /// Queues a packet in a lane that there is.
    pub fn push(&mut self, lane: usize, packet: T, size: DataSize) {
        let lane = &mut self.lanes[lane];
        if lane.queue.is_empty() {
            lane.turn = lane.turn.max(self.turn);
        }
        lane.queue.push_back((packet, size));
    }

    /// The next packet. Of equal turns the first lane's.
    #[inline]
    pub fn pop(&mut self) -> Option<(T, DataSize)> {
        if let [lane] = &mut self.lanes[..] {
            return lane.queue.pop_front();
        }
        let waiting = self.lanes.iter_mut().filter(|lane| !lane.queue.is_empty());
        let lane = waiting.min_by(|a, b| a.turn.total_cmp(&b.turn))?;
        let (packet, size) = lane.queue.pop_front()?;
        self.turn = lane.turn;
        lane.turn += size.as_bytes() as f64 / lane.weight;
        Some((packet, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that left of each lane, all of which wait at all times, of packets of these sizes.
    fn left(lanes: &[(f64, u64)], packets: usize) -> Vec<f64> {
        let mut queue = Lanes::new(lanes.iter().map(|(weight, _)| *weight));
        let mut left = vec![0.0; lanes.len()];
        let push = |queue: &mut Lanes<usize>, lane: usize| {
            queue.push(lane, lane, DataSize::from_bytes(lanes[lane].1));
        };
        (0..lanes.len()).for_each(|lane| (0..2).for_each(|_| push(&mut queue, lane)));
        for _ in 0..packets {
            let (lane, size) = queue.pop().unwrap();
            left[lane] += size.as_bytes() as f64;
            push(&mut queue, lane);
        }
        left
    }

    #[test]
    fn those_who_wait_get_by_weight() {
        for lanes in [
            &[(1.0, 1000), (0.5, 1000)][..],
            &[(1.0, 300), (0.5, 1200)],
            &[(1.0, 1200), (1.0, 100)],
            &[(3.0, 1200), (2.0, 1100), (1.0, 900)],
        ] {
            let left = left(lanes, 10_000);
            let (bytes, weights) = (left.iter().sum::<f64>(), lanes.iter().map(|(weight, _)| weight).sum::<f64>());
            for (left, (weight, _)) in left.iter().zip(lanes) {
                let share = (left / bytes) / (weight / weights);
                assert!((0.98..=1.02).contains(&share), "{lanes:?}: {share}");
            }
        }
    }

    /// Packet by packet: each second packet of the heavy lane one of the light.
    #[test]
    fn a_turn_is_earned_by_waiting() {
        let mut lanes = Lanes::new([0.5, 1.0]);
        let size = DataSize::from_bytes(1000);
        (0..4).for_each(|n| lanes.push(0, ('l', n), size));
        (0..8).for_each(|n| lanes.push(1, ('h', n), size));
        let order: String = std::iter::from_fn(|| lanes.pop()).map(|((lane, _), _)| lane).collect();
        assert_eq!(order, "lhhlhhlhhlhh");
    }

    /// In a lane packets keep their order; what one lane leaves goes to the other; a rest saves nothing up.
    #[test]
    fn a_rest_earns_nothing() {
        let mut lanes = Lanes::new([1.0, 1.0]);
        let size = DataSize::from_bytes(1000);
        for n in 0..100 {
            lanes.push(0, n, size);
            assert_eq!(lanes.pop(), Some((n, size)));
        }
        (0..10).for_each(|n| lanes.push(0, n, size));
        (0..10).for_each(|n| lanes.push(1, 100 + n, size));
        let first: Vec<i32> = (0..6).map(|_| lanes.pop().unwrap().0).collect();
        assert_eq!(first, [100, 0, 101, 1, 102, 2], "it was the turn of the other, by one packet");
        assert_eq!(Lanes::<()>::new([1.0, 2.0]).pop(), None);
    }
}
