//! The rates of a sender that knows its share of the path one round trip late.
//!
//! At t it knows its share up to t - RTT and everything that it has sent. It assumes that the share remains as it was at t - RTT, and
//! computes the queue from that. It sends nothing while that queue is not empty, and its share otherwise. So after a fall it sends too
//! much for one round trip, and then drains what it sent; after a rise it sends too little for one round trip.

use super::{Steps, push, rate_at};
use paceline_units::{Time, TimeDelta};

/// The step of the computation.
const STEP: TimeDelta = TimeDelta::from_millis(1);

/// Returns the rates over time, up to `end`, for a share over time. In its first round trip from `start` the sender knows the share
/// at its start.
pub(super) fn rates(share: &Steps, rtt: TimeDelta, (start, end): (Time, Time)) -> Steps {
    let seconds = STEP.as_secs_f64();
    let late = (rtt.as_nanos() / STEP.as_nanos()) as usize;
    let index = |at: Time| ((at - Time::ZERO).as_nanos() / STEP.as_nanos()) as usize;
    let (first, count) = (index(start), index(end));
    let at = |n: usize| Time::ZERO + TimeDelta::from_nanos(STEP.as_nanos() * n as i64);
    // Bits sent in each step, and the queue at its start.
    let (mut sent, mut queue, mut rates) = (Vec::with_capacity(count), vec![0.0], Steps::new());
    for n in 0..count {
        let known = n.saturating_sub(late).max(first.min(n));
        let served = rate_at(share, at(known)) * seconds;
        let expected = sent[known..].iter().fold(queue[known], |queue: f64, sent| (queue + sent - served).max(0.0));
        // All of it after less than a step is none.
        let bits: f64 = (served - expected).max(0.0);
        push(&mut rates, at(n), bits / seconds);
        sent.push(bits);
        queue.push((queue[n] + bits - rate_at(share, at(n)) * seconds).max(0.0));
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    /// By hand, with a round trip of 100 ms. From 2 to 1 Mbit/s at 1 s: 2 Mbit/s until 1.1 s leave 100 kbit in the queue, so nothing is sent
    /// until 1.2 s, and 1 Mbit/s from then on. From 1 to 4 Mbit/s at 2 s: 1 Mbit/s until 2.1 s.
    #[test]
    fn a_fall_costs_one_round_trip_of_queue_and_a_rise_one_of_capacity() {
        let share = vec![(ms(0), 2e6), (ms(1000), 1e6), (ms(2000), 4e6)];
        let rates = rates(&share, TimeDelta::from_millis(100), (ms(0), ms(3000)));
        let near = |(a, b): (&(Time, f64), &(i64, f64))| ((a.0 - ms(b.0)).abs() <= STEP) && (a.1 - b.1).abs() < 1.0;
        let expected = [(0, 2e6), (1100, 0.0), (1200, 1e6), (2100, 4e6)];
        assert!(rates.len() == expected.len() && rates.iter().zip(&expected).all(near), "{rates:?}");
    }

    /// The sender knows when it starts itself, and that another flow starts one round trip later than that.
    #[test]
    fn the_own_start_is_known_at_once() {
        let share = vec![(ms(0), 0.0), (ms(200), 3e6), (ms(300), 1.5e6)];
        let rates = rates(&share, TimeDelta::from_millis(40), (ms(200), ms(500)));
        assert_eq!(rates[..2], [(ms(0), 0.0), (ms(200), 3e6)]);
        assert!(
            rates[2] == (ms(340), 0.0) && rates[3].0 == ms(380),
            "40 ms of 1.5 Mbit/s too much take 40 ms: {rates:?}"
        );
    }

    #[test]
    fn a_constant_share_is_used_from_the_start() {
        assert_eq!(rates(&vec![(ms(0), 3e6)], TimeDelta::from_millis(40), (ms(0), ms(500))), [(ms(0), 3e6)]);
    }
}
