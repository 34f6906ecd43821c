//! The calls of a run: who is at their ends, how they begin, what they say each second, how they end.

use crate::classify::{ByDescription, Directory, Rendered};
use crate::mode::{Mode, mode, trials};
use crate::browsers::Browsers;
use crate::signalling::{Description, SdpError, over_udp, with_rates};
use crate::stats::{Look, OLDEST, Statistics};
use paceline::Registry;
use paceline_chromium::{Error, Page};
use paceline_lab::plan::{FlowPlan, MediaPlan, Plan};
use paceline_lab::rows::Row;
use paceline_lab::sim;
use paceline_lab::world::WorldError;
use paceline_live::classify::ByPort;
use paceline_live::link::{Classify, Side};
use paceline_live::media::Lateness;
use paceline_live::track::{MediaEnds, Run, Track, address_of, sender_side};
use paceline_units::{FlowId, StreamId, Time, TimeDelta};
use serde_json::Value;
use std::thread;
use std::time::Duration;

/// How often it is asked what came to the screen: well within the second that rows may take.
const LOOK: TimeDelta = TimeDelta::from_millis(250);

/// Statistics are asked for with every so many looks: once a second.
const STATISTICS: u64 = 4;

/// Why a call broke.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Chromium did not do its part.
    #[error(transparent)]
    Chromium(#[from] Error),
    /// The ends cannot call each other.
    #[error(transparent)]
    Description(#[from] SdpError),
}

/// The media flows of a run.
pub struct Calls {
    /// By flow; none: not a media flow.
    calls: Vec<Option<Call>>,
    directory: Directory,
}

/// One of them.
struct Call {
    sender: Page,
    receiver: Page,
}

impl Calls {
    /// Opens a page for each end that is Chromium's.
    ///
    /// # Errors
    /// Chromium does not start.
    pub fn prepare(plan: &Plan, registry: &Registry, track: &Track, browsers: &mut Browsers) -> Result<Self, Error> {
        let mut calls = Vec::new();
        for flow in &plan.flows {
            let Some(media) = flow.media() else {
                calls.push(None);
                continue;
            };
            let entry = registry.get(&media.controller.name).expect("the plan was checked");
            let (trials, from) = (trials(entry), sender_side(flow.direction));
            let sender = browsers.page(track, from, trials, true)?;
            let receiver = browsers.page(track, from.other(), trials, false)?;
            calls.push(Some(Call { sender, receiver }));
        }
        Ok(Self { calls, directory: Directory::default() })
    }
}

/// What of a plan cannot be a call, and what to do about it.
pub fn refusal(plan: &Plan, registry: &Registry) -> Option<WorldError> {
    let refused = |cause: String, hint: &str| Some(WorldError::Unavailable { cause, hint: hint.to_owned() });
    for flow in &plan.flows {
        let Some(media) = flow.media() else { continue };
        let (id, name) = (&flow.id, &media.controller.name);
        let [stream] = &media.streams[..] else {
            return refused(format!("flow `{id}` has {} streams, and a call has one", media.streams.len()), "one stream of video is a call");
        };
        if stream.kind != paceline::MediaKind::Video {
            return refused(format!("flow `{id}` is of audio, and a call is of video"), "the worlds `sim` and `testbed` have audio");
        }
        let Some(entry) = registry.get(name) else {
            return Some(WorldError::UnknownController { flow: id.clone(), name: name.clone() });
        };
        match mode(entry) {
            Some(Mode::Browser) => {}
            Some(_) => return refused(format!("flow `{id}`: our own end is not built yet"), "use `chromium`"),
            None => {
                return refused(
                    format!("flow `{id}`: a browser can neither be steered by `{name}` nor report to it"),
                    "controllers that answer REMB at the receiver, that hear of each packet at the sender, or `chromium` can be in a call",
                );
            }
        }
    }
    None
}

impl MediaEnds for Calls {
    fn classify<'a>(&'a self, run: &Run<'a>) -> Box<dyn Classify + 'a> {
        let others = ByPort::new(run.plan, run.senders);
        Box::new(ByDescription { directory: &self.directory, others, clock: run.clock })
    }

    fn serve(&self, _: Side, _: &Run<'_>) -> Result<Lateness, WorldError> {
        Ok(Lateness::new_with_bounds(1, 10_000_000_000, 3).expect("these bounds are possible"))
    }

    fn conduct(&self, run: &Run<'_>) -> Result<(), WorldError> {
        thread::scope(|scope| {
            let calls = self.calls.iter().enumerate().filter_map(|(id, call)| Some((id, call.as_ref()?)));
            let running: Vec<_> = calls
                .map(|(id, call)| {
                    let flow = &run.plan.flows[id];
                    let media = flow.media().expect("calls are media flows");
                    let held = Held { id, flow, media, run, directory: &self.directory, call };
                    scope.spawn(move || {
                        let done = held.hold();
                        // One call that breaks ends the run.
                        if done.is_err() {
                            run.stop.store(true, std::sync::atomic::Ordering::Relaxed);
                        }
                        done.map_err(|error| WorldError::Broken { cause: format!("call `{}`: {error}", flow.id) })
                    })
                })
                .collect();
            let all = running.into_iter().map(|call| call.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            all.collect::<Vec<_>>().into_iter().collect()
        })
    }
}

/// A call on its own thread.
struct Held<'a> {
    id: usize,
    flow: &'a FlowPlan,
    media: &'a MediaPlan,
    run: &'a Run<'a>,
    directory: &'a Directory,
    call: &'a Call,
}

impl Held<'_> {
    fn hold(&self) -> Result<(), CallError> {
        if !self.wait(sim::begin(self.flow, self.run.streams)) {
            return Ok(());
        }
        self.begin()?;
        let mut sender = Statistics::new(FlowId(self.id as u16));
        let mut receiver = Statistics::new(FlowId(self.id as u16));
        let mut due = self.run.clock.now();
        for n in 0.. {
            due += LOOK;
            if due >= self.flow.stop || !self.wait(due) {
                break;
            }
            self.frames(&self.call.receiver)?;
            if n % STATISTICS == 0 {
                self.statistics(&self.call.sender, &mut sender)?;
                self.statistics(&self.call.receiver, &mut receiver)?;
            }
        }
        self.wait(self.flow.stop);
        self.call.sender.evaluate("hangUp()")?;
        self.call.receiver.evaluate("hangUp()")?;
        Ok(())
    }

    /// The ends tell each other of themselves, past the link; then they find each other over it.
    fn begin(&self) -> Result<(), CallError> {
        let Self { id, directory, call, .. } = *self;
        let side = self.run.senders[id];
        let (_, most) = self.media.streams[0].source.range();
        let offer = sdp(&call.sender, &format!("offer({})", most.as_bps()))?;
        let described = Description::read(&offer, "the sender", address_of(side))?;
        directory.call(id, side, &described);
        let answer = sdp(&call.receiver, &format!("answer({})", quoted(&offer)))?;
        let answering = Description::read(&answer, "the receiver", address_of(side.other()))?;
        directory.reachable(id, side.other(), &answering);
        let answer = with_rates(&answer, described.media, self.media.start_rate.as_bps(), self.media.min_rate.as_bps());
        call.sender.evaluate(&format!("accept({})", quoted(&answer)))?;
        Ok(())
    }

    /// What came to the receiver's screen since the last look.
    fn frames(&self, page: &Page) -> Result<(), Error> {
        let seen = page.evaluate("looked()")?;
        for frame in seen.as_array().into_iter().flatten() {
            let (Some(stamp), Some(timestamp)) = (frame[0].as_f64(), frame[1].as_u64()) else { continue };
            let Some(Rendered { captured, size, dropped }) = self.directory.rendered(self.id, timestamp as u32) else { continue };
            let (at, now) = (self.of_stamp(stamp), self.run.clock.now());
            let at = at.clamp(now - OLDEST, now);
            self.tell(Row::Frame { at, flow: FlowId(self.id as u16), stream: StreamId(0), captured, size, dropped });
        }
        Ok(())
    }

    fn statistics(&self, page: &Page, statistics: &mut Statistics) -> Result<(), Error> {
        let look = Look::read(page.evaluate("statistics()")?);
        let at = self.run.clock.now();
        statistics.looked(at, look, |stamp| self.of_stamp(stamp), self.run.signals, &mut |row| self.tell(row));
        Ok(())
    }

    fn of_stamp(&self, ms_since_1970: f64) -> Time {
        self.run.clock.of_stamp(Duration::from_secs_f64(ms_since_1970.max(0.0) / 1e3))
    }

    fn tell(&self, row: Row) {
        // Nobody listens any more once a run has failed.
        let _ = self.run.told.send(row);
    }

    /// Waits for a time of the run; whether it came before the run was over.
    fn wait(&self, until: Time) -> bool {
        const NAP: TimeDelta = TimeDelta::from_millis(20);
        loop {
            let left = until - self.run.clock.now();
            if self.run.is_over() {
                return false;
            }
            if left <= TimeDelta::ZERO {
                return true;
            }
            thread::sleep(Duration::from_nanos(left.min(NAP).as_nanos() as u64));
        }
    }
}

/// A description that a page makes.
fn sdp(page: &Page, expression: &str) -> Result<String, Error> {
    let sdp = page.evaluate(expression)?;
    Ok(over_udp(sdp.as_str().unwrap_or_default()))
}

/// Text as a script has it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
