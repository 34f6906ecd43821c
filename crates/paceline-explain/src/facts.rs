// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the series show around an episode. Rules compare these with their thresholds.

use crate::episodes::{Episode, EpisodeKind};
use crate::model::{Confidence, Flow, Limit, MarkKind, Quantity, Series, sorted};
use paceline_units::{Time, TimeDelta};

/// The time before a drop in which its cause is looked for. Assumed: the longest interval of reports in use (1 s) and a round trip.
pub const BEFORE: TimeDelta = TimeDelta::from_millis(1500);
/// Series of packets may show a cause this much later than its effect. Assumed: an interval for each end, and one for the grid of rates.
const VISIBLE_AFTER: TimeDelta = TimeDelta::from_millis(300);
/// The longest time after a gap of packets or reports in which the rate reacts to it. Assumed: two reports of 1 s and a round trip.
pub const REACTION: TimeDelta = TimeDelta::from_millis(3000);
/// The time before that, for comparison. Assumed: several reports of 1 s.
const BASELINE: TimeDelta = TimeDelta::from_millis(3000);

/// Assumed: ICE notices so much later that nothing arrives any more (libwebrtc, `p2p_constants.cc`: 5 s without an answer).
const NOTICED: TimeDelta = TimeDelta::from_secs(5);
/// Assumed: with more seconds between two samples, several events are between them.
const SPARSE: TimeDelta = TimeDelta::from_secs(4);
/// Assumed for such samples: the number of them that shows what is usual, and the share of them that is.
const SPARSE_HISTORY: (i64, f64) = (6, 0.75);

/// The time in which the path without a queue is looked for, and the spread of the delays of a path without a queue, s
/// and as a share of its step. Assumed: most queues are shorter, and jitter of a path is a few milliseconds.
const PATH_HISTORY: TimeDelta = TimeDelta::from_secs(15);
const PATH_SPREAD: (f64, f64) = (0.004, 0.1);

/// Assumed: a round-trip time is back near the base at this share of its rise. A queue of seconds is not, one report later.
const RECOVERED_SHARE: f64 = 0.35;
/// The time before an episode in which a queue may have stood. Assumed: controllers drain their own queue in less.
const QUEUE_HISTORY: TimeDelta = TimeDelta::from_secs(3);

/// A share of lost packets below this is not called loss by itself: libwebrtc's loss-based control ignores up to 2 %
/// (`send_side_bandwidth_estimation.cc`).
pub const LOSS: f64 = 0.02;
/// Packets without which a share of losses says nothing. Assumed: two may be the losses of any path.
pub const LOST_MIN: f64 = 3.0;
/// Assumed: of this number of lost packets on, it shows whether they come at once.
const BURST_MIN: f64 = 10.0;
/// Assumed: a smaller share is loss if it is so many times the usual one. SCReAM and NADA react to single losses.
const LOSS_SMALL: f64 = 0.005;
const LOSS_TIMES: f64 = 4.0;

/// Assumed: near the peak is a delay of at least this share of it. A queue drops at its peak, and is seen an interval later.
const PEAK_SHARE: f64 = 0.4;
/// Assumed: losses without a queue go on after it, for longer than a queue needs to drain.
const LOSS_TAIL: TimeDelta = TimeDelta::from_secs(6);
/// Assumed: losses of a queue are this many times as frequent near the peak as elsewhere. Fewer packets elsewhere show no share.
const PEAK_LOSS_FACTOR: f64 = 2.0;
const SAMPLE_MIN: f64 = 30.0;

/// Assumed: what holds a plateau lasts for at least this share of it.
pub const PLATEAU_SHARE: f64 = 0.5;
/// Assumed: an estimate this many times the target does not limit it. Headers take less.
const SPARE_FACTOR: f64 = 1.15;
/// From this estimate on libwebrtc sends suspended video again, bit/s: its minimum of 30 kbit/s and 20 more (`bitrate_allocator.cc`).
const RESUMES: f64 = 50e3;
/// Assumed: an estimate that falls by less has no part in the fall of the target, and one that varies more limits at times.
const STEADY_SHARE: f64 = 0.9;

/// From the first to the second of these shares of the delays, a floor rises by at most [`FLOOR_SPREAD`], s. Assumed: the least delay may
/// be a single early packet, and jitter of a path without a queue is of that size.
const FLOOR_SHARES: (f64, f64) = (0.03, 0.2);
const FLOOR_SPREAD: f64 = 0.004;

/// Assumed: a longer queue than this may lower a rate to nearly nothing, s.
pub const SHORT_QUEUE: f64 = 0.1;

/// Lost and sent packets near the peak of the delay, and elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossesByQueue {
    /// Lost and sent near the peak.
    pub at_peak: (f64, f64),
    /// Lost and sent elsewhere.
    pub elsewhere: (f64, f64),
}

impl LossesByQueue {
    /// Returns whether nothing was lost without the queue, of enough packets.
    pub fn has_none_elsewhere(&self) -> bool {
        self.elsewhere.1 >= SAMPLE_MIN && self.elsewhere.0 == 0.0
    }

    /// Returns whether losses near the peak are less than twice as frequent as elsewhere.
    pub fn is_random(&self) -> bool {
        let share = |(lost, sent): (f64, f64)| lost / f64::max(sent, 1.0);
        self.elsewhere.1 >= SAMPLE_MIN && share(self.at_peak) < PEAK_LOSS_FACTOR * share(self.elsewhere)
    }
}

/// Delays around an episode, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delays {
    /// The lower end before the episode.
    pub base: f64,
    /// The largest rise of the lower end above [`base`](Self::base), its median in a plateau: a queue delays every packet.
    pub rise: f64,
    /// The largest rise of any packet.
    pub spike: f64,
    /// The median rise of the lower end from 1 s to 4 s after the episode.
    pub after: f64,
    /// The spread of delays before the episode: largest less smallest of an interval, 90 % of intervals.
    pub jitter: f64,
    /// Whether these are one-way delays and not round-trip times.
    pub is_one_way: bool,
}

/// An episode and the flow that it belongs to.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub flow: &'a Flow,
    pub episode: &'a Episode,
}

impl Facts<'_> {
    /// Returns the span in which a cause shows.
    pub fn window(&self) -> (Time, Time) {
        if self.episode.kind == EpisodeKind::SlowReturn {
            // What slows a return is there until its end.
            return (self.episode.start + (self.episode.end - self.episode.start).scale(0.5), self.episode.end);
        }
        let coarse = self.is_coarse();
        // Statistics show a cause up to two samples before its effect, or after it.
        let samples = self.flow.interval.max(TimeDelta::from_secs(1)) * 2;
        let before = if coarse { BEFORE + samples } else { BEFORE };
        if self.episode.kind == EpisodeKind::Plateau {
            // What ends a plateau does not hold it.
            return (self.episode.start, self.episode.start.max(self.episode.end - before));
        }
        let after = if coarse { samples } else { VISIBLE_AFTER };
        (self.episode.start - before, self.episode.end + after)
    }

    /// Returns whether the rate may still react to a gap of packets or reports: a cause comes before its effect, and not long before.
    pub fn may_follow(&self, gap: (Time, Time)) -> bool {
        let seen = if self.is_coarse() { TimeDelta::from_secs(1) } else { TimeDelta::ZERO };
        gap.0 <= self.episode.end + seen && gap.1 >= self.episode.start - REACTION
    }

    /// Returns when the connection was lost, if the rate may be due to it. It shows in a plateau only while it lasts.
    pub fn disconnection(&self) -> Option<(Time, Time)> {
        let (from, to) = match self.episode.kind {
            EpisodeKind::Plateau => (self.episode.start, self.episode.end),
            EpisodeKind::SlowReturn => return None,
            _ => (self.episode.start - REACTION.max(self.flow.interval), self.window().1),
        };
        let lasts = |span: &(Time, Time)| {
            self.episode.kind != EpisodeKind::Plateau || span.1 - span.0 >= (to - from).scale(PLATEAU_SHARE)
        };
        self.flow.disconnections().into_iter().find(|span| span.0 - NOTICED <= to && span.1 >= from && lasts(span))
    }

    /// Returns whether samples are so rare that a cause and its effect are in one interval.
    pub fn is_sparse(&self) -> bool {
        self.flow.interval >= SPARSE
    }

    /// Returns whether the input has statistics and no packets.
    pub fn is_coarse(&self) -> bool {
        let quantities = [Quantity::SentRate, Quantity::ReceivedRate];
        quantities.iter().filter_map(|q| self.flow.get(*q)).all(|series| series.confidence < Confidence::Exact)
    }

    /// Returns the delays around the episode.
    pub fn delays(&self) -> Option<Delays> {
        let (from, to) = self.window();
        // A queue that holds a plateau stands.
        let level = |series: &Series| match self.episode.kind {
            EpisodeKind::Plateau => series.quantile(from, to, 0.5),
            _ => series.max(from, to),
        };
        let calm = from - BASELINE;
        let end = self.episode.end;
        let (after_from, after_to) = (end + TimeDelta::from_secs(1), end + TimeDelta::from_secs(4));
        if let (Some(low), Some(high)) = (self.flow.get(Quantity::DelayLow), self.flow.get(Quantity::DelayHigh)) {
            let base = self.base(low, from).or_else(|| low.min(from, to))?;
            let spreads = low.within(calm, from).iter().zip(high.within(calm, from));
            let spreads = sorted(spreads.map(|(low, high)| high.1 - low.1));
            let jitter = spreads.get(spreads.len() * 9 / 10).copied().unwrap_or(0.0);
            return Some(Delays {
                base,
                rise: level(low)? - base,
                spike: high.max(from, to)? - base,
                after: low.quantile(after_from, after_to, 0.5).map_or(0.0, |value| value - base),
                jitter,
                is_one_way: true,
            });
        }
        let rtt = self.flow.get(Quantity::RoundTrip)?;
        // Round-trip times of statistics come late: RTCP reports have intervals of 1 s and more.
        let (history, usual) = match self.is_sparse() {
            true => (self.flow.interval * SPARSE_HISTORY.0, SPARSE_HISTORY.1),
            false => (TimeDelta::from_secs(6), 0.9),
        };
        let calm = calm - history;
        let base = self.base(rtt, from).or_else(|| rtt.min(from, to))?;
        let rise = level(rtt)? - base;
        let (after_from, after_to) = (after_from + TimeDelta::from_secs(3), after_to + TimeDelta::from_secs(5));
        let after = rtt.quantile(after_from, after_to, 0.7).map_or(0.0, |value| value - base);
        let jitter = rtt.quantile(calm, from, usual).map_or(0.0, |value| value - base);
        Some(Delays { base, rise, spike: rise, after, jitter, is_one_way: false })
    }

    /// Returns the share of packets lost in the window of the cause, and their number.
    pub fn loss(&self) -> Option<(f64, f64)> {
        let (from, to) = self.window();
        self.loss_within(from, to)
    }

    /// Returns the loss in the window of the cause, if it is more than usual: [`LOSS`], or several times that of the seconds before,
    /// which is enough for controllers that react to each loss (SCReAM, NADA).
    pub fn notable_loss(&self) -> Option<(f64, f64)> {
        let (from, to) = self.window();
        let (share, lost) = self.loss()?;
        // The median: losses may come again and again.
        let second = TimeDelta::from_secs(1);
        let seconds = (1..=20).filter_map(|index| self.loss_within(from - second * index, from - second * (index - 1)));
        let shares = sorted(seconds.map(|(share, _)| share));
        let usual = shares.get(shares.len() / 2).copied().unwrap_or(0.0);
        let is_much = share >= LOSS && lost >= LOST_MIN;
        let is_more = share >= LOSS_SMALL && lost > LOST_MIN && share >= LOSS_TIMES * usual && to > from;
        (is_much || is_more).then_some((share, lost))
    }

    /// Returns whether losses do not come at once: in a plateau, no tenth of the window of the cause has more than half of many
    /// lost packets. What holds a rate lasts.
    pub fn losses_last(&self) -> bool {
        let (from, to) = self.window();
        let Some((_, lost)) = self.loss_within(from, to) else { return true };
        if self.episode.kind != EpisodeKind::Plateau || lost < BURST_MIN {
            return true;
        }
        let tenth = (to - from).scale(0.1);
        let tenths = (0..10).filter_map(|index| self.flow.losses(from + tenth * index, from + tenth * (index + 1)));
        tenths.map(|(lost, _)| lost).fold(0.0, f64::max) <= 0.5 * lost
    }

    /// Returns lost and sent packets near the peak of the delay and elsewhere, in the window of the cause and shortly after; `None`
    /// without packets.
    pub fn losses_by_queue(&self, delays: &Delays) -> Option<LossesByQueue> {
        let (from, to) = self.window();
        let [losses, sent, high] =
            [Quantity::PacketsLost, Quantity::PacketsSent, Quantity::DelayHigh].map(|quantity| self.flow.get(quantity));
        let (losses, sent, high) = (losses?, sent?, high?);
        let step = crate::packets::BIN;
        let mut all = LossesByQueue { at_peak: (0.0, 0.0), elsewhere: (0.0, 0.0) };
        for (at, lost) in losses.within(from, to + LOSS_TAIL) {
            let around = high.max(*at - step * 2, *at + step * 3);
            let is_peak = around.is_some_and(|value| value - delays.base >= PEAK_SHARE * delays.spike);
            let counts = if is_peak { &mut all.at_peak } else { &mut all.elsewhere };
            *counts = (counts.0 + lost, counts.1 + sent.at(*at).unwrap_or(0.0));
        }
        Some(all)
    }

    /// Returns whether losses do not depend on a queue: with packets, whether they are as frequent without it; else whether they are
    /// as frequent at the lower rate, in the last third of a long drop or seconds after it.
    pub fn loses_at_random(&self, delays: Option<&Delays>) -> bool {
        if let Some(by_queue) = delays.and_then(|delays| self.losses_by_queue(delays)) {
            return by_queue.is_random();
        }
        let (end, second) = (self.episode.end, TimeDelta::from_secs(1));
        let third = (end - self.episode.start).scale(1.0 / 3.0);
        let share = |loss: Option<(f64, f64)>| loss.map_or(0.0, |(share, _)| share);
        let loss = share(self.loss());
        let goes_on = |from, to| share(self.loss_within(from, to)) >= loss;
        loss >= LOSS && (goes_on(end + second * 4, end + second * 8) || (third >= second && goes_on(end - third, end)))
    }

    /// Returns the share of packets lost in a span, and their number.
    pub fn loss_within(&self, from: Time, to: Time) -> Option<(f64, f64)> {
        let (lost, sent) = self.flow.losses(from, to)?;
        (sent >= 1.0).then_some((lost / sent, lost))
    }

    /// Returns the longest span in `[from, to)` in which every value of a quantity is 0, of those to which the rate may react.
    pub fn silence(&self, quantity: Quantity, from: Time, to: Time) -> Option<(Time, Time)> {
        let points = self.flow.get(quantity)?.within(from, to);
        let step = points.windows(2).map(|pair| pair[1].0 - pair[0].0).min()?;
        let runs = points.chunk_by(|a, b| a.1 == 0.0 && b.1 == 0.0).filter(|run| run[0].1 == 0.0);
        // A gap within a plateau does not hold it.
        let least = match self.episode.kind {
            EpisodeKind::Plateau => (self.episode.end - self.episode.start).scale(PLATEAU_SHARE),
            _ => TimeDelta::ZERO,
        };
        let gaps = runs.map(|run| (run[0].0, run[run.len() - 1].0 + step));
        let gaps = gaps.filter(|gap| self.may_follow(*gap) && gap.1 - gap.0 >= least);
        gaps.max_by_key(|(from, to)| *to - *from)
    }

    /// Returns the lower end of delays before a time, without a queue. A higher one of the last seconds is a longer path if it is
    /// flat, and a standing queue if it is not.
    fn base(&self, low: &Series, from: Time) -> Option<f64> {
        // Statistics have few samples.
        let scale = match self.is_coarse() {
            true if self.is_sparse() => self.flow.interval.as_secs_f64().ceil() as i64 * SPARSE_HISTORY.0 / 3,
            true => 3,
            false => 1,
        };
        let (calm, long) = (from - BASELINE * scale, from - PATH_HISTORY * scale);
        let recent = low.quantile(calm, from, 0.1)?;
        let long = low.quantile(long, from, 0.05)?;
        let spread = low.quantile(calm, from, 0.95)? - low.quantile(calm, from, 0.05)?;
        let is_path = spread <= PATH_SPREAD.0.max(PATH_SPREAD.1 * (recent - long));
        if is_path {
            return Some(recent);
        }
        // A step just before: the delays of many intervals return to the new floor.
        let floor = floor(low.within(self.episode.start - BASELINE, self.episode.start));
        Some(floor.filter(|_| !self.is_coarse()).unwrap_or(long))
    }

    /// Returns the largest rise of a round-trip time around the episode, if the samples before and after it are back near the base.
    pub fn isolated_round_trip(&self) -> Option<f64> {
        let delays = self.delays().filter(|delays| !delays.is_one_way)?;
        let (from, to) = self.window();
        let second = TimeDelta::from_secs(1);
        let points = self.flow.get(Quantity::RoundTrip)?.within(from - second * 2, to + second * 4);
        let (at, most) = points.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
        let (before, after) = (points.get(at.checked_sub(1)?)?, points.get(at + 1)?);
        let rise = most.1 - delays.base;
        let near = |point: &(Time, f64)| point.1 - delays.base <= RECOVERED_SHARE * rise;
        (near(before) && near(after)).then_some(rise)
    }

    /// Returns the smallest rise of the delay in the seconds before the episode, unless a queue was draining.
    pub fn stood(&self, base: f64) -> Option<f64> {
        let (coarse, start) = (self.is_coarse(), self.episode.start);
        let delay = self.flow.get(Quantity::DelayLow).or_else(|| self.flow.get(Quantity::RoundTrip))?;
        let points = delay.within(start - QUEUE_HISTORY * if coarse { 2 } else { 1 }, start);
        // A single lower delay does not show that a queue drains.
        let low = 0.8 * points.first()?.1;
        let drains = points.iter().rev().take(2).all(|(_, value)| *value < low);
        let least = points.iter().map(|(_, value)| value - base).fold(f64::MAX, f64::min);
        // Statistics have a report every second or two.
        let enough = if coarse { 3 } else { 4 };
        (points.len() >= enough && !drains).then_some(least)
    }

    /// Returns the estimate, if it is steady and well above the rate that the episode ends with.
    pub fn spare_estimate(&self) -> Option<f64> {
        let (from, to) = self.window();
        let (quantity, _) = self.flow.rate()?;
        let estimate = self.flow.get(Quantity::Estimate).filter(|_| quantity == Quantity::Target)?;
        let steady = estimate.min(from, to)? >= STEADY_SHARE * estimate.max(from, to)?;
        estimate.quantile(from, to, 0.5).filter(|bps| steady && *bps >= SPARE_FACTOR * self.episode.to)
    }

    /// Returns why the source gave nothing to send, if it did not: a stream was switched off, its target is 0 although the estimate
    /// allows more, or no frame was encoded on a path without loss and queue. An encoder stops on a bad path, too.
    pub fn paused(&self) -> Option<&'static str> {
        let second = TimeDelta::from_secs(1);
        let (start, end) = (self.episode.start, self.episode.end);
        let is_plateau = self.episode.kind == EpisodeKind::Plateau;
        let (from, to) = match self.episode.kind {
            EpisodeKind::SlowReturn => return None,
            EpisodeKind::Plateau => (start, end),
            EpisodeKind::Drop | EpisodeKind::SentDrop => (end, end + self.flow.interval.max(second * 2)),
        };
        let is_off = self.flow.marks(start - second * 2, to).filter_map(|mark| match mark.kind {
            MarkKind::Active(is_active) => Some(!is_active),
            _ => None,
        });
        if !is_plateau && is_off.last() == Some(true) {
            return Some("a stream was switched off");
        }
        let is_zero = |quantity| self.flow.get(quantity).is_some_and(|series| series.max(from, to) == Some(0.0));
        let is_clean = self.loss().is_none_or(|(share, _)| share < LOSS)
            && self.delays().is_none_or(|delays| delays.rise < SHORT_QUEUE);
        // A stack whose estimate is below the encoder's minimum sets the target to 0, too.
        let allows_more =
            || self.spare_estimate().is_some_and(|bps| bps >= RESUMES.max(STEADY_SHARE * self.episode.from));
        if is_clean && is_zero(Quantity::Target) && allows_more() {
            return Some("the target is 0, and the estimate is not");
        }
        (is_clean && is_zero(Quantity::FrameRate)).then_some("no frame was encoded")
    }

    /// Returns what limited the encoder at the end of the episode, by its own words.
    pub fn limit(&self) -> Option<Limit> {
        let until = self.episode.end + TimeDelta::from_secs(1);
        let limits = self.flow.marks(Time::ZERO, until).filter_map(|mark| match mark.kind {
            MarkKind::Limited(limit) => Some(limit),
            _ => None,
        });
        limits.last()
    }

    /// Returns the mean sent rate of a span.
    pub fn sent(&self, from: Time, to: Time) -> Option<f64> {
        self.flow.get(Quantity::SentRate)?.mean(from, to)
    }
}

/// Returns the delay of the path, if these delays return to it.
pub fn floor(delay: &[(Time, f64)]) -> Option<f64> {
    let values = sorted(delay.iter().map(|(_, value)| *value));
    let at = |share: f64| values.get((values.len() as f64 * share) as usize).copied();
    let (least, near) = (at(FLOOR_SHARES.0)?, at(FLOOR_SHARES.1)?);
    (near - least <= FLOOR_SPREAD).then_some(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_flow::{drop_between, packets, statistics};

    /// Delays with a queue of 100 ms.
    fn delays(is_one_way: bool) -> Delays {
        Delays { base: 0.0, rise: 0.1, spike: 0.1, after: 0.0, jitter: 0.0, is_one_way }
    }

    #[test]
    fn with_packets_losses_at_random_go_on_without_the_queue() {
        let at_random = |lost: &dyn Fn(f64) -> f64| {
            let flow = packets(&[
                (Quantity::SentRate, &|_| 1e6),
                (Quantity::PacketsSent, &|_| 10.0),
                (Quantity::PacketsLost, lost),
                (Quantity::DelayLow, &|_| 0.0),
                (Quantity::DelayHigh, &|at| if (29.0..31.0).contains(&at) { 0.1 } else { 0.0 }),
            ]);
            Facts { flow: &flow, episode: &drop_between(30.0, 31.0) }.loses_at_random(Some(&delays(true)))
        };
        assert!(at_random(&|_| 1.0));
        assert!(!at_random(&|at| if (29.0..31.0).contains(&at) { 1.0 } else { 0.0 }));
    }

    #[test]
    fn with_statistics_losses_at_random_go_on_at_the_lower_rate() {
        let at_random = |until: f64| {
            let flow = statistics(&[
                (Quantity::SentRate, &|_| 1e6),
                (Quantity::PacketsSent, &|_| 100.0),
                (Quantity::PacketsLost, &|at| if (25.0..until).contains(&at) { 10.0 } else { 0.0 }),
            ]);
            Facts { flow: &flow, episode: &drop_between(30.0, 31.0) }.loses_at_random(Some(&delays(false)))
        };
        assert!(at_random(60.0));
        assert!(!at_random(33.0));
    }

    #[test]
    fn a_queue_stood_before_a_drop_unless_it_was_draining() {
        let stood = |delay: &dyn Fn(f64) -> f64| {
            let flow = statistics(&[(Quantity::SentRate, &|_| 1e6), (Quantity::RoundTrip, delay)]);
            Facts { flow: &flow, episode: &drop_between(30.0, 31.0) }.stood(0.1).map(|least| (1e3 * least).round())
        };
        assert_eq!(stood(&|_| 0.4), Some(300.0));
        assert_eq!(stood(&|at| if at < 29.0 { 0.4 } else { 0.2 }), Some(100.0), "one lower delay");
        assert_eq!(stood(&|at| if at < 28.0 { 0.4 } else { 0.2 }), None, "it drains");
    }
}
