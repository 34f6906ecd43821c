// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capacity of a link: a rate that changes at given times, or recorded delivery opportunities.
//!
//! A capacity is known for all times when it is built, so a departure time is computed once, at the start of service.

use super::schedule::Schedule;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The behaviour of a capacity after its last entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityEnd {
    /// The last rate stays in force; after the last opportunity nothing passes.
    Hold,
    /// The capacity repeats with this period.
    Loop(TimeDelta),
}

/// A capacity over time.
#[derive(Clone, Debug)]
pub struct Capacity(Shape);

impl From<Rate> for Capacity {
    fn from(rate: Rate) -> Self {
        Self::constant(rate)
    }
}

/// An error of an invalid capacity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// There is no entry.
    #[error("a capacity needs at least one entry")]
    Empty,
    /// Times do not start at 0 or do not increase.
    #[error("times must start at 0 and increase")]
    NotIncreasing,
    /// The period ends before the last entry.
    #[error("the period {0} ends before the last entry")]
    ShortPeriod(TimeDelta),
    /// Opportunities carry no bytes.
    #[error("an opportunity must carry at least one byte")]
    NoBytes,
    /// A looped capacity never serves anything.
    #[error("a looped capacity must serve something")]
    NothingServed,
}

#[derive(Clone, Debug)]
enum Shape {
    Rates(Rates),
    Opportunities(Opportunities),
}

/// A rate that changes at given times.
#[derive(Clone, Debug)]
struct Rates {
    schedule: Schedule<Rate>,
    end: CapacityEnd,
    /// The segment of the last departure. The next is mostly in the same.
    current: Segment,
    /// The times for the last requested volume, which is almost always the size of the token bucket.
    fill: FillTime,
}

/// How long a rate takes to provide a volume.
#[derive(Clone, Copy, Debug)]
struct FillTime {
    volume: DataSize,
    rate: Rate,
    /// The shortest time in which the rate provides at least one byte more than the volume.
    exceeded_after: TimeDelta,
    /// The time in which it provides the volume; `None` if it is not exact to a byte.
    time: Option<TimeDelta>,
}

/// A time during which the rate is constant.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: Time,
    until: Time,
    rate: Rate,
}

/// The model of mahimahi: each instant is one delivery opportunity of `bytes_each`. Several small packets share an
/// opportunity, a large packet uses several, and what is left when the queue is empty is lost.
#[derive(Clone, Debug)]
struct Opportunities {
    at: Vec<TimeDelta>,
    bytes_each: u64,
    end: CapacityEnd,
    /// Mean rate in each second of the trace (the last may be shorter), for limits in drain time.
    rates: Vec<Rate>,
    /// End of the trace: the period of a loop, the last instant otherwise.
    span: TimeDelta,
    /// Number of the opportunity in use since the start, laps included, and its unused bytes.
    number: u64,
    left: u64,
}

impl Capacity {
    /// Returns a constant capacity.
    pub fn constant(rate: Rate) -> Self {
        Self(Shape::Rates(Rates::new(Schedule::constant(rate), CapacityEnd::Hold)))
    }

    /// Returns a capacity of rates, each in force from its time on.
    ///
    /// # Errors
    /// Times do not start at 0, or a loop is shorter than its entries or serves nothing.
    pub fn rates(schedule: Schedule<Rate>, end: CapacityEnd) -> Result<Self, CapacityError> {
        let points = schedule.points();
        if points[0].0 != Time::ZERO {
            return Err(CapacityError::NotIncreasing);
        }
        if let CapacityEnd::Loop(period) = end {
            if Time::ZERO + period <= points[points.len() - 1].0 {
                return Err(CapacityError::ShortPeriod(period));
            }
            if points.iter().all(|(_, rate)| rate.is_zero()) {
                return Err(CapacityError::NothingServed);
            }
        }
        Ok(Self(Shape::Rates(Rates::new(schedule, end))))
    }

    /// Returns a capacity of delivery opportunities at instants since the start; equal instants are several
    /// opportunities.
    ///
    /// # Errors
    /// There is no instant, instants decrease, opportunities carry no bytes, or a loop is too short.
    pub fn opportunities(at: Vec<TimeDelta>, bytes_each: DataSize, end: CapacityEnd) -> Result<Self, CapacityError> {
        let last = *at.last().ok_or(CapacityError::Empty)?;
        if at[0] < TimeDelta::ZERO || at.windows(2).any(|w| w[1] < w[0]) {
            return Err(CapacityError::NotIncreasing);
        }
        if bytes_each == DataSize::ZERO {
            return Err(CapacityError::NoBytes);
        }
        let span = match end {
            CapacityEnd::Loop(period) if period < last || !period.is_positive() => {
                return Err(CapacityError::ShortPeriod(period));
            }
            CapacityEnd::Loop(period) => period,
            CapacityEnd::Hold => last,
        };
        let rates = rates(&at, bytes_each, span);
        let bytes_each = bytes_each.as_bytes();
        let left = bytes_each;
        Ok(Self(Shape::Opportunities(Opportunities { at, bytes_each, end, rates, span, number: 0, left })))
    }

    /// Returns the time at which a packet of `size` whose service begins at `start` has passed; [`Time::MAX`] for never,
    /// because this runs once per packet. Call in order of `start`.
    #[inline]
    pub(crate) fn finish(&mut self, start: Time, size: DataSize) -> Time {
        match &mut self.0 {
            Shape::Rates(rates) => rates.finish(start, size),
            Shape::Opportunities(o) => o.finish(start, size),
        }
    }

    /// Returns the rate at `now`. For opportunities this is the mean over the current second of the trace, whose last
    /// second may be shorter. An opportunity at the very end of a trace counts in its last second.
    #[inline]
    pub fn rate_at(&self, now: Time) -> Rate {
        match &self.0 {
            Shape::Rates(rates) => rates.segment(now).rate,
            Shape::Opportunities(o) => o.rate_at(now),
        }
    }

    /// Returns whether the capacity consists of rates, not of delivery opportunities.
    pub fn has_rates(&self) -> bool {
        matches!(self.0, Shape::Rates(_))
    }

    /// Returns the bytes that can pass from `from` (included) to `to` (excluded).
    pub fn volume(&self, from: Time, to: Time) -> DataSize {
        match &self.0 {
            Shape::Rates(rates) => DataSize::from_bytes((rates.bit_nanos(from, to) / BYTE_NANOS) as u64),
            Shape::Opportunities(o) => DataSize::from_bytes((o.count_before(to) - o.count_before(from)) * o.bytes_each),
        }
    }

    /// Returns the times after `now` at which a schedule changes the rate; none for opportunities. Of a loop only the first
    /// lap counts.
    pub(crate) fn changes_after(&self, now: Time) -> impl Iterator<Item = Time> {
        let points = match &self.0 {
            Shape::Rates(rates) => rates.schedule.points(),
            Shape::Opportunities(_) => &[],
        };
        let changes = points.windows(2).filter(|pair| pair[0].1 != pair[1].1).map(|pair| pair[1].0);
        changes.filter(move |at| *at > now)
    }

    /// Returns the rate over time from 0 to `until`, for plots: the start and the rate of each step. Opportunities are
    /// averaged over each `bin`. Adjacent steps differ.
    pub fn steps(&self, until: Time, bin: TimeDelta) -> Vec<(Time, Rate)> {
        let mut steps: Vec<(Time, Rate)> = self.segments(until, bin).collect();
        steps.dedup_by_key(|(_, rate)| *rate);
        steps
    }

    /// Returns the steps of [`Self::steps`], one after the other; adjacent ones may be equal.
    pub fn segments(&self, until: Time, bin: TimeDelta) -> impl Iterator<Item = (Time, Rate)> {
        let mut t = Time::ZERO;
        core::iter::from_fn(move || {
            let start = (t < until).then_some(t)?;
            let (rate, next) = match &self.0 {
                Shape::Rates(rates) => {
                    let Segment { rate, until, .. } = rates.segment(t);
                    (rate, until)
                }
                Shape::Opportunities(_) => {
                    let next = (t + bin).min(until);
                    (Rate::from_size_and_time(self.volume(t, next), next - t), next)
                }
            };
            t = next;
            Some((start, rate))
        })
    }

    /// Returns the end of an outage at `t`, [`Time::MAX`] for never; `None` if the rate is not zero. Opportunities have no
    /// outages.
    pub(crate) fn outage_end(&self, t: Time) -> Option<Time> {
        let Shape::Rates(rates) = &self.0 else { return None };
        let mut segment = rates.segment(t);
        if !segment.rate.is_zero() {
            return None;
        }
        while segment.rate.is_zero() && segment.until != Time::MAX {
            segment = rates.segment(segment.until);
        }
        Some(if segment.rate.is_zero() { Time::MAX } else { segment.from })
    }

    /// Returns the start of the first outage between two times; `None` if there is none. Opportunities have no outages.
    pub(crate) fn outage_start(&self, from: Time, to: Time) -> Option<Time> {
        let Shape::Rates(rates) = &self.0 else { return None };
        let mut t = from;
        while t < to {
            let Segment { rate, until, .. } = rates.segment(t);
            if rate.is_zero() {
                return Some(t);
            }
            t = until;
        }
        None
    }

    /// Returns the latest time, not before `from`, from which the capacity provides `volume` by `to`; `from` if it provides
    /// less.
    #[inline]
    pub(crate) fn provides_from(&mut self, volume: DataSize, from: Time, to: Time) -> Time {
        if from >= to {
            return from;
        }
        let since = match &mut self.0 {
            Shape::Rates(rates) => rates.provides_from(volume, from, to),
            Shape::Opportunities(_) => None,
        };
        since.unwrap_or_else(|| self.search_provides_from(volume, from, to))
    }

    /// Searches the time that [`provides_from`](Self::provides_from) returns, to the nanosecond.
    #[cold]
    fn search_provides_from(&self, volume: DataSize, from: Time, to: Time) -> Time {
        let (mut early, mut late) = (from, to);
        while early < late {
            let middle = early + (late - early) / 2;
            match self.volume(middle, to) > volume {
                true => early = middle + TimeDelta::from_nanos(1),
                false => late = middle,
            }
        }
        early
    }
}

impl Rates {
    fn new(schedule: Schedule<Rate>, end: CapacityEnd) -> Self {
        let current = Segment { from: Time::ZERO, until: Time::ZERO, rate: Rate::ZERO };
        Self { schedule, end, current, fill: FillTime::new(DataSize::ZERO, Rate::ZERO) }
    }

    /// Returns the segment that contains `t`.
    #[inline]
    fn segment(&self, t: Time) -> Segment {
        if self.current.from <= t && t < self.current.until { self.current } else { self.find(t) }
    }

    #[cold]
    fn find(&self, t: Time) -> Segment {
        let (within, begin) = fold(t, self.end);
        let points = self.schedule.points();
        let index = self.schedule.index_at(within);
        let until = match (points.get(index + 1), self.end) {
            (Some((next, _)), _) => begin + (*next - Time::ZERO),
            (None, CapacityEnd::Loop(period)) => begin + period,
            (None, CapacityEnd::Hold) => Time::MAX,
        };
        let (from, rate) = points[index];
        Segment { from: begin + (from - Time::ZERO), until, rate }
    }

    #[inline]
    fn finish(&mut self, start: Time, size: DataSize) -> Time {
        self.current = self.segment(start);
        let Segment { rate, until, .. } = self.current;
        let done = start + size / rate;
        // Also when both are "never".
        if done <= until { done } else { self.finish_across(start, size) }
    }

    /// Returns the departure of a packet during whose transmission the rate changes. Its rest is counted exactly, in
    /// bit-nanoseconds.
    #[cold]
    fn finish_across(&self, start: Time, size: DataSize) -> Time {
        let mut left = size.as_bits() as u128 * SECOND as u128;
        let mut t = start;
        loop {
            let Segment { rate, until, .. } = self.segment(t);
            let passes = rate.as_bps() as u128 * (until - t).as_nanos() as u128;
            if passes >= left {
                let bps = rate.as_bps() as u128;
                return t + TimeDelta::from_nanos(left.div_ceil(bps).min(i64::MAX as u128) as i64);
            }
            if until == Time::MAX {
                return Time::MAX;
            }
            left -= passes;
            t = until;
        }
    }

    /// Returns the integral of the rate, in bit-nanoseconds per second.
    fn bit_nanos(&self, from: Time, to: Time) -> u128 {
        let (mut sum, mut t) = (0, from);
        while t < to {
            let Segment { rate, until, .. } = self.segment(t);
            let until = until.min(to);
            sum += rate.as_bps() as u128 * (until - t).as_nanos() as u128;
            t = until;
        }
        sum
    }

    /// See [`Capacity::provides_from`]; `None` if the time must be searched, because the rate changes in between or is high.
    #[inline]
    fn provides_from(&mut self, volume: DataSize, from: Time, to: Time) -> Option<Time> {
        let Segment { from: begin, until, rate } = self.current;
        if from < begin || to >= until {
            return self.provides_from_across(volume, from, to);
        }
        if (self.fill.volume, self.fill.rate) != (volume, rate) {
            self.fill = FillTime::new(volume, rate);
        }
        let FillTime { exceeded_after, time, .. } = self.fill;
        if to - from < exceeded_after {
            return Some(from);
        }
        time.filter(|time| *time < to - from).map(|time| to - time)
    }

    /// The same for times that are not in the segment of the last departure.
    #[cold]
    fn provides_from_across(&self, volume: DataSize, from: Time, to: Time) -> Option<Time> {
        let bytes = volume.as_bytes() as u128;
        if self.bit_nanos(from, to) < (bytes + 1) * BYTE_NANOS {
            return Some(from);
        }
        let rate = self.segment(to).rate;
        if rate.is_zero() {
            return None;
        }
        let since = to - volume / rate;
        (since > from && is_exact(volume, self.bit_nanos(since, to))).then_some(since)
    }
}

impl FillTime {
    fn new(volume: DataSize, rate: Rate) -> Self {
        let (bytes, bps) = (volume.as_bytes() as u128, rate.as_bps() as u128);
        if bps == 0 {
            return Self { volume, rate, exceeded_after: TimeDelta::MAX, time: None };
        }
        let exceeded_after =
            TimeDelta::from_nanos(((bytes + 1) * BYTE_NANOS).div_ceil(bps).min(i64::MAX as u128) as i64);
        let time = volume / rate;
        let provided = bps * time.as_nanos() as u128;
        Self { volume, rate, exceeded_after, time: is_exact(volume, provided).then_some(time) }
    }
}

/// Returns whether `provided`, in bit-nanoseconds per second, is the volume, except for one byte of rounding.
fn is_exact(volume: DataSize, provided: u128) -> bool {
    let bytes = volume.as_bytes() as u128;
    provided + BYTE_NANOS >= bytes * BYTE_NANOS && provided < (bytes + 2) * BYTE_NANOS
}

/// Bit-nanoseconds per second in a byte.
const BYTE_NANOS: u128 = 8 * SECOND as u128;
/// In nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// Returns the mean rate in each second of `span`; an opportunity at its very end counts in the last second. A span of
/// 0 is one second.
fn rates(at: &[TimeDelta], bytes_each: DataSize, span: TimeDelta) -> Vec<Rate> {
    let span = span.as_nanos();
    let seconds = (span.max(1) as u64).div_ceil(SECOND as u64);
    let last = seconds as usize - 1;
    let mut counts = vec![0u64; last + 1];
    for t in at {
        counts[((t.as_nanos() / SECOND) as usize).min(last)] += 1;
    }
    let rate = |(second, count): (i64, u64)| {
        let length = if span == 0 { SECOND } else { SECOND.min(span - second * SECOND) };
        Rate::from_size_and_time(DataSize::from_bytes(bytes_each.as_bytes() * count), TimeDelta::from_nanos(length))
    };
    (0..).zip(counts).map(rate).collect()
}

/// Returns the time within the current lap, and the start of that lap.
fn fold(now: Time, end: CapacityEnd) -> (Time, Time) {
    match end {
        CapacityEnd::Loop(period) => {
            let lap = now.as_nanos().div_euclid(period.as_nanos());
            let begin = Time::ZERO + period * lap;
            (Time::ZERO + (now - begin), begin)
        }
        CapacityEnd::Hold => (now, Time::ZERO),
    }
}

impl Opportunities {
    fn rate_at(&self, now: Time) -> Rate {
        let within = fold(now, self.end).0 - Time::ZERO;
        if within > self.span {
            return Rate::ZERO; // after the end of a trace that does not loop
        }
        let second = (within.as_nanos() / SECOND) as usize;
        self.rates[second.min(self.rates.len() - 1)]
    }

    /// Returns the instant of opportunity number `n`, laps included; `None` after the last.
    fn instant(&self, n: u64) -> Option<Time> {
        let len = self.at.len() as u64;
        match self.end {
            CapacityEnd::Loop(period) => Some(Time::ZERO + period * (n / len) as i64 + self.at[(n % len) as usize]),
            CapacityEnd::Hold => self.at.get(n as usize).map(|d| Time::ZERO + *d),
        }
    }

    /// Returns the number of opportunities before `t`. An opportunity at the very end of a lap coincides with the start
    /// of the next lap, so at that instant it is not counted yet.
    fn count_before(&self, t: Time) -> u64 {
        let in_lap = |within: TimeDelta| self.at.partition_point(|d| *d < within) as u64;
        let since = t - Time::ZERO;
        let CapacityEnd::Loop(period) = self.end else { return in_lap(since) };
        let (laps, within) = (since.as_nanos() / period.as_nanos(), fold(t, self.end).0 - Time::ZERO);
        match within == TimeDelta::ZERO && laps > 0 {
            true => (laps - 1) as u64 * self.at.len() as u64 + in_lap(period),
            false => laps as u64 * self.at.len() as u64 + in_lap(within),
        }
    }

    fn finish(&mut self, start: Time, size: DataSize) -> Time {
        // The unused rest of an opportunity before the start of service is lost.
        match self.instant(self.number) {
            None => return Time::MAX,
            Some(t) if t < start => {
                self.number = self.count_before(start);
                self.left = self.bytes_each;
            }
            Some(_) => {}
        }
        let mut need = size.as_bytes();
        while need > self.left {
            need -= self.left;
            self.number += 1;
            self.left = self.bytes_each;
        }
        self.left -= need;
        let done = self.instant(self.number).unwrap_or(Time::MAX);
        if self.left == 0 {
            self.number += 1;
            self.left = self.bytes_each;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    fn ms(t: i64) -> Time {
        Time::from_millis(t)
    }
    fn bytes(n: u64) -> DataSize {
        DataSize::from_bytes(n)
    }
    fn steps(points: &[(i64, u64)], end: CapacityEnd) -> Capacity {
        let points = points.iter().map(|(t, kbps)| (ms(*t), Rate::from_kbps(*kbps))).collect();
        Capacity::rates(Schedule::new(points).unwrap(), end).unwrap()
    }

    fn looped(ms: i64) -> CapacityEnd {
        CapacityEnd::Loop(TimeDelta::from_millis(ms))
    }
    fn trace(at: &[i64], each: u64, end: CapacityEnd) -> Capacity {
        Capacity::opportunities(at.iter().map(|t| TimeDelta::from_millis(*t)).collect(), bytes(each), end).unwrap()
    }

    #[test]
    fn service_crosses_changes_of_rate_exactly() {
        // 1 Mbps to t = 10 ms, an outage to 30 ms, then 2 Mbps. 2500 B = 20,000 bit:
        // from 5 ms: 5,000 bit by 10 ms, none to 30 ms, the other 15,000 at 2 Mbps in 7.5 ms.
        let mut c = steps(&[(0, 1000), (10, 0), (30, 2000)], CapacityEnd::Hold);
        assert_eq!(c.finish(ms(5), bytes(2500)), Time::from_nanos(37_500_000));
        assert_eq!(c.finish(ms(40), bytes(250)), ms(41));
        assert_eq!(c.volume(ms(0), ms(40)), bytes((10_000 + 20_000) / 8));
        assert_eq!(c.rate_at(ms(20)), Rate::ZERO);
    }

    #[test]
    fn steps_merge_equal_rates_and_average_opportunities() {
        let bin = TimeDelta::from_millis(100);
        let kbps = |points: &[(i64, u64)]| -> Vec<(Time, Rate)> {
            points.iter().map(|(t, kbps)| (ms(*t), Rate::from_kbps(*kbps))).collect()
        };
        let held = steps(&[(0, 1000), (10, 1000), (30, 2000)], CapacityEnd::Hold);
        assert_eq!(held.steps(ms(40), bin), kbps(&[(0, 1000), (30, 2000)]));
        assert_eq!(held.steps(ms(30), bin), kbps(&[(0, 1000)]));
        let repeated = steps(&[(0, 1000), (10, 0)], looped(20));
        assert_eq!(repeated.steps(ms(35), bin), kbps(&[(0, 1000), (10, 0), (20, 1000), (30, 0)]));
        // Two opportunities of 1250 B in the first 100 ms, one in the second, none in the third and half a fourth.
        let trace = trace(&[0, 50, 150], 1250, CapacityEnd::Hold);
        assert_eq!(trace.steps(ms(350), bin), kbps(&[(0, 200), (100, 100), (200, 0)]));
    }

    /// The remembered times give what the sums of each call give: two volumes in turn, before and after a change of the rate and
    /// across it, at rates up to several bytes in a nanosecond.
    #[test]
    fn remembered_fill_times_are_those_that_are_computed() {
        let mut random = RandomStreams::new(1).stream("fill times");
        let mut below = |n: u64| random.bits() % n;
        let (mut full, mut short, mut searched) = (0, 0, 0);
        for _ in 0..2000 {
            let mut up_to_digits = |digits: u64| {
                let digits = 1 + below(digits) as u32;
                below(10u64.pow(digits))
            };
            let rates = [(); 2].map(|()| Rate::from_bps(up_to_digits(11)));
            let volumes = [(); 2].map(|()| bytes(up_to_digits(6)));
            let change = Time::from_secs(1);
            let schedule = Schedule::new(vec![(Time::ZERO, rates[0]), (change, rates[1])]).unwrap();
            let mut rates = Rates::new(schedule, CapacityEnd::Hold);
            for step in 0..20 {
                let volume = volumes[step % 2];
                let at = Time::from_nanos(below(2_000_000_000) as i64);
                rates.finish(at, bytes(1));
                let rate = rates.segment(at).rate;
                let near = if rate.is_zero() { 0 } else { (volume / rate).as_nanos() };
                let to = at + TimeDelta::from_nanos(1 + below(10) as i64 + near.saturating_mul(below(3) as i64));
                let since = rates.provides_from(volume, at, to);
                assert_eq!(since, rates.provides_from_across(volume, at, to), "{volume} at {rate} from {at} to {to}");
                match since {
                    None => searched += 1,
                    Some(since) if since == at => short += 1,
                    Some(_) => full += 1,
                }
            }
        }
        assert!(full > 1000 && short > 1000 && searched > 100, "{full} {short} {searched}");
    }

    #[test]
    fn final_outage_is_endless_unless_the_capacity_loops() {
        let mut c = steps(&[(0, 1000), (10, 0)], CapacityEnd::Hold);
        assert_eq!(c.finish(ms(9), bytes(1250)), Time::MAX);
        let mut c = steps(&[(0, 1000), (10, 0)], looped(20));
        // 10,000 bit from 9 ms: 1,000 by 10 ms, none to 20 ms, 9,000 more by 29 ms.
        assert_eq!(c.finish(ms(9), bytes(1250)), ms(29));
        assert_eq!(c.volume(ms(0), ms(40)), bytes(2 * 1250));
        assert_eq!(c.rate_at(ms(47)), Rate::from_kbps(1000));
    }

    #[test]
    fn opportunities_are_shared_split_or_lost() {
        let mut c = trace(&[10, 20, 20, 30], 1504, looped(30));
        assert_eq!(c.finish(ms(0), bytes(700)), ms(10)); // shares the first ...
        assert_eq!(c.finish(ms(10), bytes(700)), ms(10)); // ... with this one
        assert_eq!(c.finish(ms(10), bytes(1504)), ms(20)); // 104 of the first, 1400 of the second
        assert_eq!(c.finish(ms(20), bytes(104 + 1504)), ms(20)); // all that is left of both at 20 ms
        assert_eq!(c.finish(ms(20), bytes(1)), ms(30));
        // Idle until 35 ms: the rest at 30 ms is lost; the second lap begins at 30 ms, so 40 ms is next.
        assert_eq!(c.finish(ms(35), bytes(3008)), ms(50));
        assert_eq!(c.volume(ms(0), ms(31)), bytes(4 * 1504));
    }

    /// In every mahimahi file the last opportunity is at the period.
    #[test]
    fn last_opportunity_belongs_to_the_end_of_its_lap() {
        let trace = |at: &[i64], period| trace(at, 1504, looped(period));
        // At 0, 10, 20 | 20, 30, 40 | 40, ...
        let c = trace(&[0, 10, 20], 20);
        for (from, to, count) in
            [(0, 20, 2), (20, 21, 2), (20, 40, 3), (0, 40, 5), (0, 41, 7), (19, 20, 0), (40, 60, 3)]
        {
            assert_eq!(c.volume(ms(from), ms(to)), bytes(count * 1504), "{from} to {to}");
        }
        // Service that begins at the boundary can use the end of one lap and the start of the next.
        let mut c = trace(&[0, 10, 20], 20);
        assert_eq!(c.finish(ms(20), bytes(2 * 1504)), ms(20));
        assert_eq!(c.finish(ms(20), bytes(1)), ms(30));
        assert_eq!(c.finish(ms(40), bytes(2 * 1504 + 1)), ms(50));
        // Just after the boundary, neither.
        let mut c = trace(&[0, 10, 20], 20);
        assert_eq!(c.finish(ms(20) + TimeDelta::from_nanos(1), bytes(1)), ms(30));
        // The shortest file, one per millisecond: at 1, 2, 3, ... ms, and none at 0.
        let mut c = trace(&[1], 1);
        assert_eq!(c.volume(ms(0), ms(1)), bytes(0));
        assert_eq!(c.volume(ms(0), ms(1000)), bytes(999 * 1504));
        assert_eq!(c.volume(ms(1), ms(1001)), bytes(1000 * 1504));
        assert_eq!(c.finish(ms(7), bytes(1504)), ms(7));
        assert_eq!(c.finish(ms(7), bytes(1504)), ms(8));
    }

    #[test]
    fn rates_of_opportunities_are_means_over_each_second() {
        let of = |at: &[i64], end| trace(at, 1504, end);
        let check = |c: &Capacity, expected: &[(i64, u64)]| {
            for (t, bps) in expected {
                assert_eq!(c.rate_at(ms(*t)).as_bps(), *bps, "at {t} ms");
            }
        };
        // 1504 bytes a millisecond: 12.032 Mbps at any time.
        check(&of(&[1], looped(1)), &[(0, 12_032_000), (1, 12_032_000), (12_345, 12_032_000)]);
        // Two in the first second, 24,064 bit; two in the remaining half second, 48,128 bit/s.
        let c = of(&[0, 500, 1000, 1500], looped(1500));
        check(&c, &[(0, 24_064), (999, 24_064), (1000, 48_128), (1499, 48_128), (1500, 24_064), (2500, 48_128)]);
        // Whole seconds: the one at 2 s counts in the second second.
        check(&of(&[500, 1500, 2000], looped(2000)), &[(0, 12_032), (1000, 24_064), (1999, 24_064), (2000, 12_032)]);
        // Without a loop nothing passes after the end.
        let held = of(&[500, 1500], CapacityEnd::Hold);
        check(&held, &[(0, 12_032), (1000, 24_064), (1500, 24_064), (1501, 0), (1999, 0), (2000, 0), (9000, 0)]);
        check(&of(&[0], CapacityEnd::Hold), &[(0, 12_032), (1, 0)]);
    }

    #[test]
    fn held_trace_ends_and_invalid_input_is_rejected() {
        let at = vec![TimeDelta::from_millis(1)];
        let mut c = trace(&[1], 1504, CapacityEnd::Hold);
        assert_eq!(c.finish(ms(0), bytes(1504)), ms(1));
        assert_eq!(c.finish(ms(1), bytes(1)), Time::MAX);
        assert_eq!(Capacity::opportunities(vec![], bytes(1), CapacityEnd::Hold).unwrap_err(), CapacityError::Empty);
        assert_eq!(Capacity::opportunities(at, bytes(0), CapacityEnd::Hold).unwrap_err(), CapacityError::NoBytes);
    }
}
