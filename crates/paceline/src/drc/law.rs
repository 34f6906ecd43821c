// SPDX-License-Identifier: MIT OR Apache-2.0
//! The equations of the rate, numbered as in `docs/algorithms/drc.md`.

use super::DrcConfig;
use paceline_units::{DataSize, Rate, TimeDelta};

/// The largest growth in a time L, the least share of the delivery rate while a queue is drained, and the share of a queue and of a rate that
/// counts as much less.
pub const HALF: f64 = 0.5;
/// The least part of the rate that the encoders have: w is known from their frames, so they must not stop.
const MEDIA_MIN: f64 = 0.1;
/// The longest round-trip time that counts in the step of a flow whose packets are marked, s.
const MARKED_TIME: f64 = 0.05;

/// The time until a change of the rate is seen in the delivery rate. `path` is rtt_min + I + late.
///
/// ```text
/// L = rtt_min + W / 2 + I + late                                      (2)
/// ```
pub fn response_time(config: &DrcConfig, path: TimeDelta) -> TimeDelta {
    path + config.delivery.scale(0.5)
}

/// The time in which an excess of the queue is drained.
///
/// ```text
/// T = max(T_min, 1.5 L)                                               (3)
/// ```
pub fn drain_time(config: &DrcConfig, response: TimeDelta) -> TimeDelta {
    config.drain.max(response.scale(config.drain_factor))
}

/// The queue that is allowed: a short one, less of it after a loss, jitter, and what others keep.
///
/// ```text
/// q_ref = c q_0 + k jitter + f                                        (4)
/// ```
pub fn reference(config: &DrcConfig, caution: f64, jitter: TimeDelta, others: TimeDelta) -> TimeDelta {
    config.reference.scale(caution) + jitter.scale(config.jitter_factor) + others
}

/// What is added to the rate in each time T, bit/s. It makes flows equal that share a queue. With the square root of the rate it is small on
/// fast links and still equal for equal flows.
///
/// ```text
/// A = a sqrt(D / 1 Mbit/s)                                            (5)
/// ```
pub fn additive(config: &DrcConfig, delivery: f64) -> f64 {
    config.additive * libm::sqrt(delivery / 1e6)
}

/// The rate while a queue exceeds the reference, bit/s: what drains the excess in the time T, and the additive step.
///
/// ```text
/// r = D max(1 - (q - q_ref) / T, 1/2) + A                             (6)
/// ```
pub fn drain(delivery: f64, excess: TimeDelta, time: TimeDelta, additive: f64) -> f64 {
    delivery * (1.0 - excess.as_secs_f64() / time.as_secs_f64()).max(HALF) + additive
}

/// The growth in a time L, after the time `free` without a queue; `None`: there was never one.
///
/// ```text
/// g = min(g_0 2^(free / L), 1/2)                                      (7)
/// ```
pub fn growth(config: &DrcConfig, free: Option<TimeDelta>, response: TimeDelta) -> f64 {
    let Some(free) = free else { return HALF };
    let times = (free.as_secs_f64() / response.as_secs_f64().max(1e-3)).min(64.0);
    (config.growth * libm::exp2(times)).min(HALF)
}

/// What [`grow`] needs. Rates in bit/s.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// r.
    pub rate: f64,
    /// g.
    pub growth: f64,
    /// s: what is added in a second.
    pub step: f64,
    /// The greater of D and R.
    pub delivery: f64,
    /// L.
    pub response: TimeDelta,
    /// The time since the last message.
    pub elapsed: TimeDelta,
    /// q / q_ref.
    pub queue: f64,
}

/// The rate while the queue is below the reference, bit/s. It does not exceed half more than what arrives, and two steps, so that a source
/// that sends less does not collect a rate that no packet has tested; and it does not fall.
///
/// ```text
/// r = min(r + (s + g r / L) dt (1 - q / q_ref), max(r, 1.5 max(D, R) + 2 s L))    (8)
/// ```
pub fn grow(of: &Growth) -> f64 {
    let response = of.response.as_secs_f64().max(1e-3);
    let more = (of.step + of.growth * of.rate / response) * of.elapsed.as_secs_f64() * (1.0 - of.queue);
    let limit = (1.0 + HALF) * of.delivery + 2.0 * of.step * response;
    (of.rate + more).min(limit.max(of.rate))
}

/// What a flow adds in a second whose packets are marked, bit/s: a packet per round trip, in each round trip, as TCP (RFC 5681, section 3.1;
/// RFC 9332 expects it of L4S senders). With longer round trips it is larger, so that flows have the same rate whose marks are equal.
///
/// ```text
/// s = packet / srtt / min(srtt, 50 ms)                                (9)
/// ```
pub fn marked_step(packet: DataSize, srtt: TimeDelta) -> f64 {
    let srtt = srtt.as_secs_f64().max(1e-3);
    packet.as_bits() as f64 / srtt / srtt.min(MARKED_TIME)
}

/// The rate after a message with marks: the share of marked packets, halved, in each round trip, as DCTCP's (RFC 8257, section 3.3).
///
/// ```text
/// r = r (1 - (alpha / 2) min(dt / srtt, 1))                           (10)
/// ```
pub fn marked(rate: Rate, alpha: f64, dt: TimeDelta, srtt: TimeDelta) -> Rate {
    rate.scale(1.0 - alpha / 2.0 * (dt.as_secs_f64() / srtt.as_secs_f64().max(1e-3)).min(1.0))
}

/// The bytes that may be in flight: at the greater of rate and delivery rate for the time until a packet is reported, and the queue
/// that a fall of the capacity may cause. Reports that are late do not shut the window, because they say nothing about the way of the packets.
///
/// ```text
/// window = max(r, D) (rtt_min + I + late + q_window + q_ref),   4 packets and more   (13)
/// ```
pub fn window(config: &DrcConfig, rate: f64, path: TimeDelta, reference: TimeDelta, packet: DataSize) -> DataSize {
    let bytes = rate * (path + config.window_queue + reference).as_secs_f64() / 8.0;
    DataSize::from_bytes(bytes as u64).max(DataSize::from_bytes(packet.as_bytes() * 4))
}

/// What waits longer than the time tau_p. `earlier` are the bytes of all frames but the newest one, which always waits a little.
///
/// ```text
/// w = max(earlier - r tau_p, 0)                                       (14)
/// ```
pub fn waiting(config: &DrcConfig, rate: Rate, earlier: DataSize) -> DataSize {
    earlier.saturating_sub(rate * config.pace_backlog)
}

/// The rate for the encoders. What waits too long in the sender is sent first, so they make less.
///
/// ```text
/// target = max(r - w / tau, 0.1 r)                                    (15)
/// ```
pub fn media(config: &DrcConfig, rate: Rate, waiting: DataSize) -> Rate {
    rate.saturating_sub(Rate::from_size_and_time(waiting, config.backlog)).max(rate.scale(MEDIA_MIN))
}

/// The rate of the pacer, unless the queue marks packets. What waits too long leaves faster.
///
/// ```text
/// pacing = 1.25 r + w / tau_p                                         (16)
/// ```
pub fn pacing(config: &DrcConfig, rate: Rate, waiting: DataSize) -> Rate {
    rate.scale(config.pacing_factor) + Rate::from_size_and_time(waiting, config.pace_backlog)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const K: fn(u64) -> Rate = Rate::from_kbps;
    const C: DrcConfig = DrcConfig::DEFAULT;

    fn close(got: f64, wanted: f64) {
        assert!((got - wanted).abs() <= 1e-9 * wanted.abs(), "{got} {wanted}");
    }

    /// 60 + 25 ms and half of 100 ms; T is 1.5 L only above 267 ms.
    #[test]
    fn times_of_the_loop() {
        assert_eq!([85, 485].map(|path| response_time(&C, MS(path))), [135, 535].map(MS));
        assert_eq!([MS(135), MS(266), MS(300)].map(|response| drain_time(&C, response)), [MS(400), MS(400), MS(450)]);
    }

    /// 2 ms, half of it some time after a loss, eight times the jitter, and the queue of others.
    #[test]
    fn reference_has_three_parts() {
        let of = |caution, jitter, others| reference(&C, caution, MS(jitter), MS(others));
        assert_eq!([of(1.0, 0, 0), of(0.5, 0, 0), of(1.0, 3, 0), of(0.0, 1, 90)], [2, 1, 26, 98].map(MS));
    }

    /// 65 kbit/s at 1 Mbit/s, twice that at four times the rate.
    #[test]
    fn additive_step_grows_with_the_square_root() {
        close(additive(&C, 1e6), 65e3);
        close(additive(&C, 4e6), 130e3);
    }

    /// An excess of 100 ms takes a quarter of 400 ms, so a quarter of the rate is left out; 400 ms would leave nothing, but a half remains.
    #[test]
    fn drain_takes_the_time_t() {
        for (excess, wanted) in [(0, 1.065e6), (100, 0.815e6), (200, 0.565e6), (400, 0.565e6)] {
            close(drain(1e6, MS(excess), MS(400), 65e3), wanted);
        }
    }

    /// L is 200 ms: 0.5 % just after a queue, twice that after each 200 ms more, a half after 1.33 s and at the start.
    #[test]
    fn growth_doubles_without_a_queue() {
        for (free, wanted) in [(Some(0), 0.005), (Some(200), 0.01), (Some(1000), 0.16), (Some(1400), 0.5), (None, 0.5)]
        {
            close(growth(&C, free.map(MS), MS(200)), wanted);
        }
    }

    /// In 50 ms of 200 ms, a growth of 8 % is 2 %, half of it at half of the reference; and a step of 400 kbit/s in a second is 20 kbit/s.
    /// At a third of the rate nothing is added and nothing taken: the limit is 1.5 times 300 and twice 80 kbit/s.
    #[test]
    fn growth_is_limited_by_what_arrives() {
        let of = Growth {
            rate: 1e6,
            growth: 0.08,
            step: 4e5,
            delivery: 1e6,
            response: MS(200),
            elapsed: MS(50),
            queue: 0.5,
        };
        close(grow(&of), 1.02e6);
        close(grow(&Growth { delivery: 3e5, ..of }), 1e6);
        close(grow(&Growth { delivery: 3e5, rate: 6e5, ..of }), 6.1e5);
        close(grow(&Growth { queue: 1.0, ..of }), 1e6);
    }

    /// 1000 bytes each 25 ms are 320 kbit/s, 40 times in a second. Each 100 ms they are 80 kbit/s, and 20 times. A share of 0.5 takes a quarter
    /// in a round trip, and a quarter of that in 25 ms.
    #[test]
    fn marks_are_answered_as_by_tcp() {
        let step = |srtt| marked_step(DataSize::from_bytes(1000), MS(srtt));
        for (srtt, wanted) in [(25, 12.8e6), (50, 3.2e6), (100, 1.6e6)] {
            close(step(srtt), wanted);
        }
        assert_eq!(marked(K(1000), 0.5, MS(100), MS(100)), K(750));
        assert_eq!(marked(K(1000), 0.5, MS(25), MS(100)), Rate::from_bps(937_500));
        assert_eq!(marked(K(1000), 0.5, MS(900), MS(100)), K(750), "no more than once in a message");
    }

    /// 1 Mbit/s for 85 + 40 + 15 ms are 17.5 kB; 10 kbit/s would be 175 bytes, but four packets may leave.
    #[test]
    fn window_holds_the_path_and_a_queue() {
        let of = |rate| window(&C, rate, MS(85), MS(15), DataSize::from_bytes(1200)).as_bytes();
        assert_eq!([of(1e6), of(1e4)], [17_500, 4800]);
    }

    /// 33 ms of 1 Mbit/s are 4125 bytes. 5 kB more are 500 kbit/s for 80 ms; 12 kB would be 1.2 Mbit/s, and a tenth of the rate is left. The pacer
    /// sends 5 kB in 33 ms: 1212 kbit/s more.
    #[test]
    fn frames_that_wait_lower_the_target_and_raise_the_pacing_rate() {
        let size = DataSize::from_bytes;
        assert_eq!([0, 4125, 9125].map(|bytes| waiting(&C, K(1000), size(bytes)).as_bytes()), [0, 0, 5000]);
        assert_eq!([0, 5000, 12_000].map(|bytes| media(&C, K(1000), size(bytes))), [1000, 500, 100].map(K));
        assert_eq!([0, 5000].map(|bytes| pacing(&C, K(1000), size(bytes)).as_bps()), [1_250_000, 2_462_121]);
    }
}
