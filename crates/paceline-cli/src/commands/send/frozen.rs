// SPDX-License-Identifier: MIT OR Apache-2.0
//! The freezes of the video of a session, without streams that may pause.

use paceline::MediaKind;
use paceline_lab::metrics::Freezes;
use paceline_live::hosts::report::SendReport;
use paceline_netsim::plan::{FlowChange, Plan};
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_units::{FlowId, StreamId, Time, TimeDelta};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The streams of video that are planned to send all the time.
pub(super) struct FrozenStreams(Mutex<BTreeMap<(FlowId, StreamId), Stream>>);

/// A stream, from its start to its end.
struct Stream {
    start: Time,
    stop: Time,
    freezes: Freezes,
}

impl FrozenStreams {
    /// Creates them without a frame.
    pub(super) fn new(plan: &Plan) -> Self {
        let mut streams = BTreeMap::new();
        let end = Time::ZERO + plan.duration;
        for (number, flow, media) in
            plan.flows.iter().enumerate().filter_map(|(n, flow)| Some((n, flow, flow.media()?)))
        {
            if media.changes.iter().any(|(_, change)| matches!(change, FlowChange::Availability(_))) {
                continue;
            }
            for (index, stream) in media.streams.iter().enumerate() {
                if stream.kind == MediaKind::Video && !stream.changes_during_run() {
                    let (id, stop) = ((FlowId(number as u16), StreamId(index as u8)), flow.stop.min(end));
                    streams.insert(id, Stream { start: flow.start, stop, freezes: Freezes::default() });
                }
            }
        }
        Self(Mutex::new(streams))
    }

    fn streams(&self) -> MutexGuard<'_, BTreeMap<(FlowId, StreamId), Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of freezes so far.
    pub(super) fn count(&self) -> u64 {
        self.streams().values().map(|stream| stream.freezes.count).sum()
    }

    /// Returns the largest share of freezes of a stream in a session; `None` if there is none, or if its frames are not known.
    pub(super) fn ratio_of(&self, report: &SendReport) -> Option<f64> {
        self.ratio(Time::ZERO + TimeDelta::from_secs_f64(report.lasted_s)).filter(|_| report.knows_frames)
    }

    /// Returns the largest share of freezes of a stream, if the session ended at this time; `None` without a stream.
    fn ratio(&self, end: Time) -> Option<f64> {
        let ratio = |Stream { start, stop, freezes }: &Stream| {
            let (mut freezes, stop) = (freezes.clone(), (*stop).min(end));
            freezes.finish(*start, stop);
            (*start < stop).then(|| freezes.total.as_secs_f64() / (stop - *start).as_secs_f64())
        };
        self.streams().values().filter_map(ratio).reduce(f64::max)
    }
}

impl EventObserver for &FrozenStreams {
    fn on_event(&mut self, event: &EventRecord) {
        if let EventRecord::Frame { at, flow, stream, .. } = *event
            && let Some(stream) = self.streams().get_mut(&(flow, stream))
            && at < stream.stop
        {
            stream.freezes.rendered(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::Registry;
    use paceline_units::DataSize;

    #[test]
    fn the_stream_with_the_most_freezes_counts_unless_it_may_pause() {
        let registry = Registry::standard();
        let flow = |id: &str, more: &str| format!("[[flow]]\nid = \"{id}\"\ncontroller = \"googcc\"\n{more}\n");
        let layers = "encoder = { source = \"simulcast-720p\" }\naudio = {}";
        let text = "id = \"x\"\ntitle = \"\"\nduration = \"10 s\"\n[path]\n".to_owned()
            + &flow("a", "")
            + &flow("b", "start = \"5 s\"")
            + &flow("c", layers)
            + &flow("d", "available = [[\"0 s\", true], [\"1 s\", false]]");
        let origin = paceline_scenario::Origin::from_text("x", text);
        let plan = paceline_scenario::load(&origin, &Default::default(), &registry).unwrap().plan;
        let frozen = FrozenStreams::new(&plan);
        let render = |flow: u16, stream: u8, from_ms: i64, to_ms: i64| {
            for ms in (from_ms..=to_ms).step_by(40) {
                let (at, size) = (Time::from_millis(ms), DataSize::from_bytes(9));
                let (flow, stream) = (FlowId(flow), StreamId(stream));
                (&frozen).on_event(&EventRecord::Frame { at, flow, stream, captured: at, size, dropped: 0 });
            }
        };
        render(0, 0, 0, 4000);
        render(0, 0, 6000, 10_000);
        render(1, 0, 5000, 10_000);
        render(2, 0, 0, 10_000);
        // The other layers never send, audio is no video, and the last flow has no network.
        assert_eq!((frozen.count(), frozen.ratio(Time::from_secs(10))), (1, Some(0.2)));
        render(1, 0, 10_000, 10_000);
        assert_eq!(frozen.ratio(Time::from_secs(20)), Some(0.2), "flows end with the session");
        assert_eq!(FrozenStreams::new(&Plan { flows: Vec::new(), ..plan }).ratio(Time::from_secs(10)), None);
    }
}
