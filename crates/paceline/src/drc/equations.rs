//! The equations of the target, numbered as in `docs/algorithms/drc.md`.

use super::DrcConfig;
use paceline_units::{DataSize, Rate, TimeDelta};

/// T over L: an excess of the queue is drained more slowly than it is seen, so that the loop is damped.
const DRAIN_FACTOR: f64 = 1.5;
/// The least share of the rate that a drain leaves.
const RATIO_MIN: f64 = 0.3;
/// The limits of the queue that is allowed.
const REFERENCE: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(5), TimeDelta::from_millis(80));
/// The largest additive step over the delivery rate: 64 ms of queue in equilibrium, with T of 400 ms.
const ADDITIVE_MAX: f64 = 0.16;
/// The time without a queue after which the rate grows by a factor, over L: the effect of the last change must have been seen.
const FREE: f64 = 1.5;
/// The largest multiple of gamma.
const SPEED_MAX: f64 = 3.0;
/// The least m.
const LOSS_FACTOR_MIN: f64 = 0.35;
/// The time constant of the growth of m: it doubles in 28 s.
const LOSS_FACTOR_TIME: TimeDelta = TimeDelta::from_secs(40);
/// The time after a loss in which growth returns.
const CAUTION: TimeDelta = TimeDelta::from_secs(10);
/// Earlier frames that leave in this time at the rate r do not make the pacer faster: the interval of frames at 30 fps. Frames of unequal
/// size wait that long on a steady link.
const FRAME: TimeDelta = TimeDelta::from_millis(33);
/// The least part of the rate that the encoders have: w is known from their frames, so they must not stop.
const MEDIA_MIN: f64 = 0.1;
/// The longest round-trip time that counts in the step of a flow whose packets are marked.
const MARKED_TIME: TimeDelta = TimeDelta::from_millis(50);
/// The weight of a message in the rate while a queue is drained.
const DRAIN_GAIN: f64 = 0.7;

/// The time until a change of the rate is seen in the delivery rate.
///
/// ```text
/// L = rtt_min + W / 2 + I + late                                      (2)
/// ```
pub fn response_time(rtt: TimeDelta, window: TimeDelta, interval: TimeDelta, late: TimeDelta) -> TimeDelta {
    rtt + window.scale(0.5) + interval + late
}

/// The time in which an excess of the queue is drained.
///
/// ```text
/// T = max(T_min, 1.5 L)                                               (3)
/// ```
pub fn drain_time(config: &DrcConfig, response: TimeDelta) -> TimeDelta {
    config.drain.max(response.scale(DRAIN_FACTOR))
}

/// The queue that is allowed.
///
/// ```text
/// q_ref = m q_0 + k jitter,    5 ms to 80 ms                          (4)
/// ```
///
/// A queue that drops early, or that is short, loses packets below `q_0`: losses halve m.
pub fn reference(config: &DrcConfig, jitter: TimeDelta, loss_factor: f64) -> TimeDelta {
    (config.reference.scale(loss_factor) + jitter.scale(config.jitter_factor)).max(REFERENCE.0).min(REFERENCE.1)
}

/// m after a loss.
pub fn shorten(loss_factor: f64) -> f64 {
    (loss_factor * 0.5).max(LOSS_FACTOR_MIN)
}

/// m after the time `dt` without a loss: it doubles in 28 s.
pub fn lengthen(loss_factor: f64, dt: TimeDelta) -> f64 {
    (loss_factor * (1.0 + dt.as_secs_f64() / LOSS_FACTOR_TIME.as_secs_f64())).min(1.0)
}

/// What is added to the rate in each time T. It makes flows equal that share a queue. With the square root of the rate it is
/// small on fast links and still equal for equal flows.
///
/// ```text
/// A = a sqrt(D / 1 Mbit/s),    at most 0.16 D                         (5)
/// ```
pub fn additive(config: &DrcConfig, delivery: Rate) -> Rate {
    let bps = delivery.as_bps_f64();
    Rate::from_bps_f64((config.additive * libm::sqrt(bps / 1e6)).min(ADDITIVE_MAX * bps))
}

/// What the link would give to the flow if it sent its target: the target of a time L ago over the growth of the queue since the
/// window began, within a band around the delivery rate.
///
/// ```text
/// B = r(t - L) (1 - (q(t) - q(t - W)) / W),    D (1 - b) to D (1 + b) (6)
/// ```
pub fn base(config: &DrcConfig, before: Rate, slope: f64, delivery: Rate) -> Rate {
    let (low, high) = (delivery.scale(1.0 - config.band), delivery.scale(1.0 + config.band));
    before.scale((1.0 - slope).max(0.0)).max(low).min(high)
}

/// The share of the base that drains an excess of the queue in the time T.
///
/// ```text
/// d = max(1 - (q - q_ref) / T, 0.3)                                   (7a)
/// ```
pub fn drained(q: TimeDelta, reference: TimeDelta, time: TimeDelta) -> f64 {
    (1.0 - (q - reference).as_secs_f64() / time.as_secs_f64()).clamp(RATIO_MIN, 1.0)
}

/// The rate while a queue exceeds the reference: what drains the excess, and the additive step, smoothed.
///
/// ```text
/// r = r + 0.7 (B d + A - r)                                           (7b)
/// ```
pub fn drain(rate: Rate, base: Rate, drained: f64, additive: Rate) -> Rate {
    rate.scale(1.0 - DRAIN_GAIN) + (base.scale(drained) + additive).scale(DRAIN_GAIN)
}

/// The growth of the rate in a time L by a factor, after the time `free` without a queue; `None`: there was never one.
///
/// ```text
/// g = gamma min(max(free / 1.5 L - 1, 0), 3)                          (8)
/// ```
pub fn growth(config: &DrcConfig, free: Option<TimeDelta>, response: TimeDelta) -> f64 {
    let times = free.map_or(f64::MAX, |free| free.as_secs_f64() / (FREE * response.as_secs_f64()).max(1e-3));
    config.growth * (times - 1.0).clamp(0.0, SPEED_MAX)
}

/// The share of the additive step that losses leave: m, and less in the time after a loss that lowered the rate.
///
/// ```text
/// c = m min(since / 10 s, 1)                                          (9)
/// ```
pub fn caution(loss_factor: f64, since: Option<TimeDelta>) -> f64 {
    loss_factor * since.map_or(1.0, |since| (since.as_secs_f64() / CAUTION.as_secs_f64()).min(1.0))
}

/// What [`grow`] needs.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// The rate.
    pub rate: Rate,
    /// The delivery rate.
    pub delivery: Rate,
    /// The additive step in a time L.
    pub step: Rate,
    /// g, equation 8.
    pub factor: f64,
    /// The time since the last message over L, at most 1.
    pub elapsed: f64,
    /// q over q_ref, at most 1.
    pub queue: f64,
}

/// The rate while the queue is below the reference. It does not exceed what growth for a time L makes of the delivery rate, so
/// that a source that sends less does not collect a rate that no packet has tested; and it does not fall.
///
/// ```text
/// r = min(r + (s + g r) (dt / L) (1 - q / q_ref), max(r, D (1 + 3 gamma) + 2 s))      (10)
/// ```
pub fn grow(config: &DrcConfig, growth: &Growth) -> Rate {
    let &Growth { rate, delivery, step, factor, elapsed, queue } = growth;
    let limit = delivery.scale(1.0 + SPEED_MAX * config.growth) + step + step;
    (rate + (step + rate.scale(factor)).scale(elapsed * (1.0 - queue))).min(limit.max(rate))
}

/// The step in a time L of a flow whose packets are marked: a packet per round trip, in each round trip, as TCP's (RFC 5681,
/// section 3.1; RFC 9332 expects it of L4S senders). With longer round trips it is larger, so that flows have the same rate whose marks
/// are equal: 2 packet / (alpha 50 ms).
///
/// ```text
/// s = (packet / srtt) (L / min(srtt, 50 ms))                          (11)
/// ```
pub fn marked_step(packet: DataSize, srtt: TimeDelta, response: TimeDelta) -> Rate {
    let srtt = srtt.max(TimeDelta::from_millis(1));
    let each = srtt.min(MARKED_TIME);
    Rate::from_bps_f64(packet.as_bits() as f64 / srtt.as_secs_f64() * response.as_secs_f64() / each.as_secs_f64())
}

/// The rate after a message with marks: the share of marked packets, halved, in each round trip, as DCTCP's (RFC 8257, section 3.3).
///
/// ```text
/// r = r (1 - (alpha / 2) min(dt / srtt, 1))                           (12)
/// ```
pub fn marked(rate: Rate, alpha: f64, dt: TimeDelta, srtt: TimeDelta) -> Rate {
    rate.scale(1.0 - alpha / 2.0 * (dt.as_secs_f64() / srtt.as_secs_f64().max(1e-3)).min(1.0))
}

/// The bytes that may be in flight: at the greater of rate and delivery rate for the time until a packet is reported, and the queue
/// that a fall of the capacity may cause. `path` is rtt_min + I + late: reports that are late do not shut the window, because they
/// say nothing about the way of the packets.
///
/// ```text
/// window = max(r, D) (rtt_min + I + late + q_window + q_ref; competing: q_ref + q),   4 packets and more   (14)
/// ```
pub fn window(config: &DrcConfig, rate: Rate, path: TimeDelta, queue: TimeDelta, packet: DataSize) -> DataSize {
    let bytes = rate.as_bps_f64() * (path + config.window_queue + queue).as_secs_f64() / 8.0;
    DataSize::from_bytes(bytes as u64).max(DataSize::from_bytes(packet.as_bytes() * 4))
}

/// What waits longer than a frame interval. `earlier` are the bytes of all frames but the newest one, which always waits a little.
///
/// ```text
/// max(w - r 33 ms, 0)                                                 (in 16)
/// ```
pub fn waiting(rate: Rate, earlier: DataSize) -> DataSize {
    earlier.saturating_sub(rate * FRAME)
}

/// The rate for the encoders. What waits in the sender, w bytes without the newest frame, is sent first, so the encoders make less.
///
/// ```text
/// target = max(r - w / tau, 0.1 r)                                    (15)
/// ```
pub fn media(config: &DrcConfig, rate: Rate, waiting: DataSize) -> Rate {
    rate.saturating_sub(Rate::from_size_and_time(waiting, config.backlog)).max(rate.scale(MEDIA_MIN))
}

/// The rate of the pacer, unless the queue marks packets. Frames that wait leave faster.
///
/// ```text
/// pacing = 1.25 r + max(w - r 33 ms, 0) / tau_p                       (16)
/// ```
pub fn pacing(config: &DrcConfig, rate: Rate, waiting: DataSize) -> Rate {
    rate.scale(config.pacing_factor) + Rate::from_size_and_time(waiting, config.pace_backlog)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const K: fn(u64) -> Rate = Rate::from_kbps;

    fn config() -> DrcConfig {
        DrcConfig::default()
    }

    /// 60 ms, half of 200 ms, and 25 ms, and the lateness of the reports; T is 1.5 L only above 267 ms.
    #[test]
    fn times_of_the_loop() {
        assert_eq!([0, 400].map(|late| response_time(MS(60), MS(200), MS(25), MS(late))), [185, 585].map(MS));
        assert_eq!(
            [MS(185), MS(266), MS(300)].map(|response| drain_time(&config(), response)),
            [MS(400), MS(400), MS(450)]
        );
    }

    /// 8 ms and twice the jitter; 0.35 of 8 ms is below 5 ms; 8 ms and twice 40 ms are above 80 ms.
    #[test]
    fn reference_has_limits() {
        let of = |jitter, part| reference(&config(), MS(jitter), part);
        assert_eq!([of(0, 1.0), of(3, 1.0), of(3, 0.5), of(0, 0.35), of(40, 1.0)], [8, 14, 10, 5, 80].map(MS));
        assert_eq!([1.0, 0.8, 0.5].map(shorten), [0.5, 0.4, 0.35]);
        assert_eq!([lengthen(0.5, MS(1000)), lengthen(0.99, MS(1000))], [0.5125, 1.0]);
    }

    /// 65 kbit/s at 1 Mbit/s, twice that at four times the rate, and 16 % at 100 kbit/s, where the root would give 20.6.
    #[test]
    fn additive_step_grows_with_the_square_root() {
        assert_eq!([1000, 4000, 100].map(|rate| additive(&config(), K(rate))), [65, 130, 16].map(K));
    }

    /// The rate of a time L ago was 1000, and the queue has grown by 0.25 of the window since: the link gave 750, which is within
    /// 20 % of 800; not within 20 % of 500 (600) and of 1500 (1200).
    #[test]
    fn base_is_the_own_rate_within_the_band() {
        let of = |slope, delivery| base(&config(), K(1000), slope, K(delivery));
        assert_eq!([of(0.25, 800), of(0.25, 500), of(0.25, 1500), of(2.0, 1000)], [750, 600, 1200, 800].map(K));
        let narrow = DrcConfig { band: 0.0, ..config() };
        assert_eq!(base(&narrow, K(1000), 0.25, K(900)), K(900));
    }

    /// An excess of 100 ms takes a quarter of T, so a quarter of the rate is left out; 400 ms would leave nothing, but 0.3 remains. At
    /// a rate of 1065 kbit/s, 0.7 of the difference to 750 + 65 and 300 + 65 kbit/s is taken.
    #[test]
    fn drain_takes_the_time_t() {
        let of = |q| drained(MS(q), MS(10), MS(400));
        assert_eq!([10, 110, 410, 5000].map(of), [1.0, 0.75, 0.3, 0.3]);
        let of = |drained| drain(K(1065), K(1000), drained, K(65)).as_bps();
        assert_eq!([1.0, 0.75, 0.3].map(of), [1_065_000, 890_000, 575_000]);
    }

    /// L is 200 ms: nothing until 300 ms without a queue, gamma after 600 ms, three times gamma from 1.2 s on and at the start.
    #[test]
    fn growth_begins_when_the_last_change_was_seen() {
        let of = |free: Option<i64>| growth(&config(), free.map(MS), MS(200));
        let got = [Some(0), Some(300), Some(600), Some(1200), Some(60_000), None].map(of);
        let wanted = [0.0, 0.0, 0.18, 0.54, 0.54, 0.54];
        assert!(got.iter().zip(wanted).all(|(got, wanted)| (got - wanted).abs() < 1e-12), "{got:?}");
    }

    #[test]
    fn caution_ends_with_its_time_and_with_m() {
        let of = |part, ms: Option<i64>| caution(part, ms.map(MS));
        assert_eq!(
            [of(1.0, Some(0)), of(1.0, Some(2500)), of(1.0, Some(90_000)), of(1.0, None)],
            [0.0, 0.25, 1.0, 1.0]
        );
        assert_eq!([of(0.5, Some(2500)), of(0.5, None)], [0.125, 0.5]);
    }

    /// A quarter of L, half of the queue: (40 + 0.18 · 1000) / 8 = 27.5. At twice the delivery rate nothing is added, and nothing
    /// taken: the limit is 500 · 1.54 + 80 = 850.
    #[test]
    fn growth_is_limited_by_what_was_delivered() {
        let growth = Growth { rate: K(1000), delivery: K(1000), step: K(40), factor: 0.18, elapsed: 0.25, queue: 0.5 };
        assert_eq!(grow(&config(), &growth), Rate::from_bps(1_027_500));
        assert_eq!(grow(&config(), &Growth { delivery: K(500), ..growth }), K(1000));
        assert_eq!(grow(&config(), &Growth { delivery: K(500), rate: K(845), ..growth }), K(850));
        assert_eq!(grow(&config(), &Growth { queue: 1.0, ..growth }), K(1000));
    }

    /// 1000 bytes each 25 ms are 320 kbit/s, in each of eight round trips of L. Each 100 ms they are 80 kbit/s, in each 50 ms of L. A
    /// share of 0.5 takes a quarter in a round trip, and a quarter of that in 25 ms.
    #[test]
    fn marks_are_answered_as_by_tcp() {
        let step = |srtt| marked_step(DataSize::from_bytes(1000), MS(srtt), MS(200));
        assert_eq!([25, 50, 100].map(step), [2560, 640, 320].map(K));
        assert_eq!(marked(K(1000), 0.5, MS(100), MS(100)), K(750));
        assert_eq!(marked(K(1000), 0.5, MS(25), MS(100)), Rate::from_bps(937_500));
        assert_eq!(marked(K(1000), 0.5, MS(900), MS(100)), K(750), "no more than once in a message");
    }

    /// 1 Mbit/s for 85 + 60 + 15 ms are 20 kB; 10 kbit/s would be 200 bytes, but four packets may leave.
    #[test]
    fn window_holds_the_path_and_a_queue() {
        let of = |rate| window(&config(), rate, MS(85), MS(15), DataSize::from_bytes(1200)).as_bytes();
        assert_eq!([of(K(1000)), of(K(10))], [20_000, 4800]);
    }

    /// 33 ms of 1 Mbit/s are 4125 bytes.
    #[test]
    fn frames_that_leave_soon_do_not_wait() {
        let of = |bytes| waiting(K(1000), DataSize::from_bytes(bytes)).as_bytes();
        assert_eq!([0, 4125, 4126, 9125].map(of), [0, 0, 1, 5000]);
    }

    /// 5 kB are 500 kbit/s for 80 ms; 12 kB would be 1.2 Mbit/s, and a tenth of the rate is left. The pacer sends 5 kB in 33 ms: 1212 kbit/s more.
    #[test]
    fn frames_that_wait_lower_the_target_and_raise_the_pacing_rate() {
        let size = DataSize::from_bytes;
        let of = |bytes| media(&config(), K(1000), size(bytes));
        assert_eq!([0, 5000, 12_000].map(of), [1000, 500, 100].map(K));
        let of = |bytes| pacing(&config(), K(1000), size(bytes)).as_bps();
        assert_eq!([0, 5000].map(of), [1_250_000, 2_462_121]);
    }
}
