// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor of the sender is too slow for the encoder.

use super::{Cause, Evidence, Strength, ms};
use crate::episodes::EpisodeKind;
use crate::facts::{Facts, PLATEAU_SHARE};
use crate::model::{Limit, MarkKind, Quantity};
use paceline_units::{Time, TimeDelta};

pub(super) const CAUSE: Cause = Cause {
    id: "cpu",
    title: "CPU limit: the encoder could not keep up",
    advice: "use a hardware encoder, a simpler codec, a smaller picture or fewer streams; close other programs",
    examine,
};

/// Assumed: encoding takes this share of the time between two frames. libwebrtc's overuse detector has 0.85 as its high threshold
/// (`overuse_frame_detector.cc`).
const BUSY: f64 = 0.85;

/// Assumed: an encoder that cannot keep up works for at least this share of the time.
const AT_WORK: f64 = 0.5;

/// Returns whether frames were encoded for much of the time, in a plateau on average. A few slow frames before a pause say nothing.
fn encodes(facts: &Facts<'_>, from: Time, to: Time) -> bool {
    let (Some(times), Some(rates)) = (facts.flow.get(Quantity::EncodeTime), facts.flow.get(Quantity::FrameRate)) else {
        return true;
    };
    let loads = times.within(from, to).iter().filter_map(|(at, time)| Some(time * rates.at(*at)?));
    let load = match facts.episode.kind {
        EpisodeKind::Plateau => loads.sum::<f64>() / (to - from).as_secs_f64().max(1.0),
        _ => loads.fold(0.0, f64::max),
    };
    load >= AT_WORK
}

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    // A sample is of the second before it. In statistics the time to encode shows a sample after the rate.
    let (from, seen) = facts.window();
    let to = seen.max(facts.episode.end + TimeDelta::from_secs(1));
    // Each sample says so while it is so. What holds a plateau lasts. What a paused stream says of its encoder is old.
    let said = facts.flow.marks(from, to).filter(|mark| mark.kind == MarkKind::Limited(Limit::Cpu)).count();
    let said = said > 0
        && facts.paused().is_none()
        && (facts.episode.kind != EpisodeKind::Plateau
            || facts.flow.interval.max(TimeDelta::from_secs(1)) * said as i64 >= (to - from).scale(PLATEAU_SHARE));
    let time = facts.flow.get(Quantity::EncodeTime).and_then(|series| series.max(from, to));
    let fps = facts.flow.get(Quantity::FrameRate).and_then(|series| series.quantile(from, to, 0.5));
    let source =
        facts.flow.get(Quantity::SourceFrameRate).and_then(|series| series.max(from - TimeDelta::from_secs(5), to));
    let busy = time.zip(source.or(fps)).filter(|(time, fps)| time * fps >= BUSY && encodes(facts, from, to));
    let text = match (said, busy) {
        (true, Some((time, _))) => format!("the encoder says that the CPU limits it, and needs {} per frame", ms(time)),
        (true, None) => "the encoder says that the CPU limits it".to_owned(),
        (false, Some((time, fps))) => format!("a frame takes {} to encode, and {fps:.0} are due per second", ms(time)),
        (false, None) => return None,
    };
    Some(Evidence {
        strength: Strength::Strong,
        text,
        series: vec![Quantity::EncodeTime, Quantity::FrameRate, Quantity::SentRate],
        span: (from, to),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mark;
    use crate::test_flow::{drop_between, statistics};

    #[test]
    fn a_few_slow_frames_before_a_pause_are_no_limit_of_the_processor() {
        let is_cpu = |frames: f64| {
            let until = 30.0;
            let flow = statistics(&[
                (Quantity::EncodeTime, &|at| if at < until { 0.05 } else { f64::NAN }),
                (Quantity::FrameRate, &|at| if at < until { frames } else { 0.0 }),
                (Quantity::SourceFrameRate, &|_| 30.0),
            ]);
            examine(&Facts { flow: &flow, episode: &drop_between(30.0, 31.0) }).is_some()
        };
        assert_eq!([is_cpu(20.0), is_cpu(4.0)], [true, false]);
    }

    /// The causes of the only fall of a stream from 30 s on: its target, what is encoded and whether it is switched off; the encoder
    /// says that the CPU limits it.
    fn causes_of(target: f64, frames: f64, is_off: bool) -> Vec<&'static str> {
        let from_30 = |before: f64, after: f64| move |at: f64| if at < 30.0 { before } else { after };
        let (target, frames, sent) = (from_30(1.5e6, target), from_30(30.0, frames), from_30(1.54e6, 4e4));
        let mut flow = statistics(&[
            (Quantity::Target, &target),
            (Quantity::Estimate, &|_| 2.5e6),
            (Quantity::FrameRate, &frames),
            (Quantity::SentRate, &sent),
        ]);
        let mut mark = |at, kind| flow.marks.push(Mark { at: Time::from_secs(at), kind });
        (28..60).for_each(|at| mark(at, MarkKind::Limited(Limit::Cpu)));
        if is_off {
            mark(30, MarkKind::Active(false));
        }
        let found = crate::diagnosis::of_flow(&flow).into_iter();
        let falls = found.filter(|found| [EpisodeKind::Drop, EpisodeKind::SentDrop].contains(&found.episode.kind));
        falls.map(|found| found.cause).collect()
    }

    #[test]
    fn a_paused_stream_is_limited_by_its_source_whatever_the_encoder_says() {
        assert_eq!(causes_of(1.5e6, 5.0, false), ["cpu"], "some frames are encoded");
        assert_eq!(causes_of(1.5e6, 0.0, false), ["application"], "no frame is encoded");
        assert_eq!(causes_of(1.5e6, 5.0, true), ["application"], "it is switched off");
        assert_eq!(causes_of(0.0, 5.0, false), ["application"], "its target is 0");
    }
}
