// SPDX-License-Identifier: MIT OR Apache-2.0
//! Start-time fair queueing (Goyal, Vin, Cheng, 1996) of the packets of several streams that share one pacing rate.
//!
//! ```text
//! a packet of queue i leaves:    virtual = start(i)     start(i) += size / weight(i)
//! queue i becomes non-empty:     start(i) = max(start(i), virtual)
//! next: the non-empty queue with the lowest start(i)
//! ```
//!
//! While all queues hold packets, each gets a share in proportion to its weight, whatever the size of its packets. An
//! idle stream saves no credit for a later burst, and the others use its share. A single queue is first in, first out.
//!
//! RFC 8298 (section 4.1.2.8) does not define how RTP queues are scheduled and suggests credits: when one queue sends,
//! the others earn credit by weight. For two non-empty queues both schemes are equal. With three or more, the credits
//! of non-empty queues grow without bound, and a queue that becomes non-empty has to wait for them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use paceline_units::DataSize;

/// Queues of packets `T`, one for each stream.
#[derive(Clone, Debug)]
pub struct FairQueue<T> {
    queues: Vec<StreamQueue<T>>,
    /// The virtual time, in bytes over weight.
    virtual_time: f64,
}

#[derive(Clone, Debug)]
struct StreamQueue<T> {
    weight: f64,
    /// The start tag of the next packet.
    start: f64,
    packets: VecDeque<(T, DataSize)>,
}

impl<T> FairQueue<T> {
    /// Creates an empty queue for each weight; weights are above zero.
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let queue = |weight| StreamQueue { weight, start: 0.0, packets: VecDeque::new() };
        Self { queues: weights.into_iter().map(queue).collect(), virtual_time: 0.0 }
    }

    /// Adds an empty queue.
    pub fn add(&mut self, weight: f64) {
        self.queues.push(StreamQueue { weight, start: self.virtual_time, packets: VecDeque::new() });
    }

    /// Sets the weight of a queue for the following packets.
    pub fn set_weight(&mut self, queue: usize, weight: f64) {
        self.queues[queue].weight = weight;
    }

    /// Appends a packet to an existing queue.
    pub fn push(&mut self, queue: usize, packet: T, size: DataSize) {
        let queue = &mut self.queues[queue];
        if queue.packets.is_empty() {
            queue.start = queue.start.max(self.virtual_time);
        }
        queue.packets.push_back((packet, size));
    }

    /// Returns the packet of a queue that leaves first; `None` if the queue is empty or does not exist.
    pub fn front(&self, queue: usize) -> Option<&T> {
        self.queues.get(queue)?.packets.front().map(|(packet, _)| packet)
    }

    /// Removes the packets of a queue from the first one that is not to be kept, and returns them.
    pub fn discard(&mut self, queue: usize, keep: impl Fn(&T) -> bool) -> Vec<(T, DataSize)> {
        let Some(queue) = self.queues.get_mut(queue) else { return Vec::new() };
        let kept = queue.packets.iter().take_while(|(packet, _)| keep(packet)).count();
        queue.packets.drain(kept..).collect()
    }

    /// Removes the next packet. Of several queues with the same start tag the first one is served.
    #[inline]
    pub fn pop(&mut self) -> Option<(T, DataSize)> {
        if let [queue] = &mut self.queues[..] {
            return queue.packets.pop_front();
        }
        let non_empty = self.queues.iter_mut().filter(|queue| !queue.packets.is_empty());
        let queue = non_empty.min_by(|a, b| a.start.total_cmp(&b.start))?;
        let (packet, size) = queue.packets.pop_front()?;
        self.virtual_time = queue.start;
        queue.start += size.as_bytes() as f64 / queue.weight;
        Some((packet, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    /// Returns the bytes that leave each of these streams, given as weight and packet size, while none of them is ever
    /// empty.
    fn served(streams: &[(f64, u64)], packets: usize) -> Vec<f64> {
        let mut queue = FairQueue::new(streams.iter().map(|(weight, _)| *weight));
        let mut served = vec![0.0; streams.len()];
        let push = |queue: &mut FairQueue<usize>, stream: usize| {
            queue.push(stream, stream, DataSize::from_bytes(streams[stream].1));
        };
        (0..streams.len()).for_each(|stream| (0..2).for_each(|_| push(&mut queue, stream)));
        for _ in 0..packets {
            let (stream, size) = queue.pop().unwrap();
            served[stream] += size.as_bytes() as f64;
            push(&mut queue, stream);
        }
        served
    }

    #[test]
    fn backlogged_streams_share_by_weight() {
        for streams in [
            &[(1.0, 1000), (0.5, 1000)][..],
            &[(1.0, 300), (0.5, 1200)],
            &[(1.0, 1200), (1.0, 100)],
            &[(3.0, 1200), (2.0, 1100), (1.0, 900)],
        ] {
            let served = served(streams, 10_000);
            let (bytes, weights) = (served.iter().sum::<f64>(), streams.iter().map(|(weight, _)| weight).sum::<f64>());
            for (served, (weight, _)) in served.iter().zip(streams) {
                let share = (served / bytes) / (weight / weights);
                assert!((0.98..=1.02).contains(&share), "{streams:?}: {share}");
            }
        }
    }

    /// By hand: 1000 bytes of the first queue leave alone. The new queue starts at the virtual time of the last of them,
    /// so it is served first, and then takes turns.
    #[test]
    fn added_queue_and_new_weight_share_from_then_on() {
        let size = DataSize::from_bytes(1000);
        let mut queue = FairQueue::new([1.0]);
        (0..9).for_each(|_| queue.push(0, 'a', size));
        let order = |queue: &mut FairQueue<char>, n| -> String { (0..n).map(|_| queue.pop().unwrap().0).collect() };
        assert_eq!(order(&mut queue, 1), "a");
        queue.add(1.0);
        (0..9).for_each(|_| queue.push(1, 'b', size));
        assert_eq!(order(&mut queue, 4), "abab");
        queue.set_weight(1, 2.0);
        assert_eq!(order(&mut queue, 6), "abbabb");
    }

    #[test]
    fn twice_the_weight_gets_every_second_packet() {
        let mut queue = FairQueue::new([0.5, 1.0]);
        let size = DataSize::from_bytes(1000);
        (0..4).for_each(|n| queue.push(0, ('l', n), size));
        (0..8).for_each(|n| queue.push(1, ('h', n), size));
        let order: String = core::iter::from_fn(|| queue.pop()).map(|((stream, _), _)| stream).collect();
        assert_eq!(order, "lhhlhhlhhlhh");
    }

    /// Packets of one stream keep their order, and an empty stream's share goes to the other.
    #[test]
    fn idle_streams_save_no_credit() {
        let mut queue = FairQueue::new([1.0, 1.0]);
        let size = DataSize::from_bytes(1000);
        for n in 0..100 {
            queue.push(0, n, size);
            assert_eq!(queue.pop(), Some((n, size)));
        }
        (0..10).for_each(|n| queue.push(0, n, size));
        (0..10).for_each(|n| queue.push(1, 100 + n, size));
        let first: Vec<i32> = (0..6).map(|_| queue.pop().unwrap().0).collect();
        assert_eq!(first, [100, 0, 101, 1, 102, 2], "the other stream is one packet behind");
        assert_eq!(FairQueue::<()>::new([1.0, 2.0]).pop(), None);
    }
}
