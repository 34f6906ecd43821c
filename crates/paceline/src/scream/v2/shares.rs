// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate of each stream (draft, section "Media Rate Control": "distributed according to relative priorities"; the rule is
//! that of the authors' C++): by priority, and what a stream cannot use goes to the others.

use crate::StreamState;
use alloc::vec::Vec;
use paceline_units::{Rate, StreamId};

/// A stream and its share.
#[derive(Clone, Debug)]
struct Share {
    stream: StreamId,
    priority: f64,
    min: f64,
    max: f64,
    rate: f64,
}

/// The streams of a flow.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    streams: Vec<Share>,
}

impl Shares {
    /// Handles the limits of a stream. Returns whether they changed.
    pub fn handle_stream(&mut self, state: &StreamState) -> bool {
        let StreamState { stream, priority, .. } = *state;
        let (min, max) = (state.min.as_bps_f64(), state.max.as_bps_f64());
        let fresh = Share { stream, priority, min, max, rate: 0.0 };
        match self.streams.iter_mut().find(|share| share.stream == stream) {
            Some(share) if (share.priority, share.min, share.max) == (priority, min, max) => false,
            Some(share) => {
                *share = fresh;
                true
            }
            None => {
                self.streams.push(fresh);
                true
            }
        }
    }

    /// Returns the share of a stream, also of the only one, and its least rate.
    pub fn with_min(&self, stream: StreamId) -> Option<(Rate, Rate)> {
        let share = self.streams.iter().find(|share| share.stream == stream)?;
        Some((Rate::from_bps_f64(share.rate), Rate::from_bps_f64(share.min)))
    }

    pub fn remove(&mut self, stream: StreamId) {
        self.streams.retain(|share| share.stream != stream);
    }

    /// Divides a target. Each round divides what is left among the streams below their maximum.
    pub fn divide(&mut self, target: Rate) {
        let mut left = target.as_bps_f64();
        self.streams.iter_mut().for_each(|share| share.rate = 0.0);
        for _ in 0..self.streams.len() {
            let open = |share: &Share| share.rate < share.max;
            let priorities: f64 = self.streams.iter().filter(|s| open(s)).map(|s| s.priority).sum();
            if left < 1.0 || priorities <= 0.0 {
                break;
            }
            let mut surplus = 0.0;
            for share in self.streams.iter_mut().filter(|s| open(s)) {
                share.rate += left * share.priority / priorities;
                surplus += (share.rate - share.max).max(0.0);
                share.rate = share.rate.min(share.max);
            }
            left = surplus;
        }
        self.streams.iter_mut().for_each(|share| share.rate = share.rate.max(share.min));
    }

    /// Returns the rate of a stream; `None` if there is only one, which takes the whole target.
    pub fn get(&self, stream: StreamId) -> Option<Rate> {
        if self.streams.len() < 2 {
            return None;
        }
        self.streams.iter().find(|share| share.stream == stream).map(|share| Rate::from_bps_f64(share.rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::DataSize;

    /// By hand: 900 by 2 : 1 are 600 and 300; the first takes only 500, so the second gets 400.
    #[test]
    fn surplus_goes_to_the_others() {
        let mut shares = Shares::default();
        let state = |n: u8, priority, min, max| StreamState {
            priority,
            min: Rate::from_kbps(min),
            max: Rate::from_kbps(max),
            ..StreamState::new(StreamId(n), DataSize::ZERO)
        };
        let kbps = |shares: &Shares, n: u8| shares.get(StreamId(n)).map(|rate| rate.as_bps() / 1000);
        assert!(shares.handle_stream(&state(0, 2.0, 100, 10_000)));
        assert!(!shares.handle_stream(&state(0, 2.0, 100, 10_000)));
        shares.divide(Rate::from_kbps(900));
        assert_eq!(kbps(&shares, 0), None, "one stream");
        shares.handle_stream(&state(1, 1.0, 350, 10_000));
        shares.divide(Rate::from_kbps(1200));
        assert_eq!((kbps(&shares, 0), kbps(&shares, 1)), (Some(800), Some(400)));
        shares.divide(Rate::from_kbps(900));
        assert_eq!((kbps(&shares, 0), kbps(&shares, 1)), (Some(600), Some(350)), "at least its minimum");
        shares.handle_stream(&state(0, 2.0, 100, 500));
        shares.divide(Rate::from_kbps(900));
        assert_eq!((kbps(&shares, 0), kbps(&shares, 1)), (Some(500), Some(400)));
        shares.remove(StreamId(0));
        assert_eq!(kbps(&shares, 1), None);
    }
}
