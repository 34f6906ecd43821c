//! The processor of the sender is too slow for the encoder.

use super::{Cause, Evidence, Strength, ms};
use crate::facts::Facts;
use crate::model::{Limit, MarkKind, Quantity};
use paceline_units::TimeDelta;

pub(super) const CAUSE: Cause = Cause {
    id: "cpu",
    title: "CPU limit: the encoder could not keep up",
    advice: "use a hardware encoder, a simpler codec, a smaller picture or fewer streams; close other programs",
    examine,
};

/// Assumed: encoding takes this share of the time between two frames. libwebrtc's overuse detector has 0.85 as its high threshold
/// (`overuse_frame_detector.cc`).
const BUSY: f64 = 0.85;

fn examine(facts: &Facts<'_>) -> Option<Evidence> {
    // A sample is of the second before it. In statistics the time to encode shows a sample after the rate.
    let (from, seen) = facts.window();
    let to = seen.max(facts.episode.end + TimeDelta::from_secs(1));
    let said = facts.flow.marks(from, to).any(|mark| mark.kind == MarkKind::Limited(Limit::Cpu));
    let time = facts.flow.get(Quantity::EncodeTime).and_then(|series| series.max(from, to));
    let fps = facts.flow.get(Quantity::FrameRate).and_then(|series| series.quantile(from, to, 0.5));
    let source =
        facts.flow.get(Quantity::SourceFrameRate).and_then(|series| series.max(from - TimeDelta::from_secs(5), to));
    let busy = time.zip(source.or(fps)).filter(|(time, fps)| time * fps >= BUSY);
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
