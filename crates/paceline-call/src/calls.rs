//! The calls of a run: who is at their ends, how they begin, what they say each second, how they end.

use crate::browsers::Browsers;
use crate::classify::{ByDescription, Directory, Rendered};
use crate::endpoint::{Endpoint, EndpointError, carries};
use crate::mode::{Mode, mode, trials};
use crate::ours::{OurEnd, Ours, Question, encoder, source};
use crate::signalling::{Description, SdpError, over_udp, with_rates};
use crate::stats::{Look, OLDEST, State, Statistics};
use crate::strain::Strain;
use paceline::Registry;
use paceline_chromium::{Error, Page};
use paceline_lab::network::End;
use paceline_lab::pictures::Pictures;
use paceline_lab::plan::{FlowPlan, MediaPlan, Plan};
use paceline_lab::rows::Row;
use paceline_lab::sim;
use paceline_lab::world::WorldError;
use paceline_live::classify::{ByPort, port_of};
use paceline_live::link::{Classify, Side};
use paceline_live::media::{self, Lateness};
use paceline_live::track::{MediaEnds, Run, Track, address_of, sender_side};
use paceline_units::{FlowId, StreamId, Time, TimeDelta};
use serde_json::{Value, json};
use std::net::SocketAddrV4;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often it is asked what came to the screen: well within the second that rows may take.
const LOOK: TimeDelta = TimeDelta::from_millis(250);

/// Statistics are asked for with every so many looks: once a second.
const STATISTICS: u64 = 4;

/// A call is up by then, or it is none: offer and answer, ICE and DTLS take a few round trips.
const UP_WITHIN: TimeDelta = TimeDelta::from_secs(10);

/// How large a page is on which somebody watches a call, px.
const SHOWN: (u32, u32) = (640, 360);

/// Of the pictures that a screen shows, 60 a second, one in so many.
const SHOWN_ONE_IN: u32 = 5;

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
    /// Our end did not do its part.
    #[error("our end: {0}")]
    Ours(#[from] EndpointError),
    /// Our end is gone.
    #[error("our end does not answer")]
    Silent,
    /// The ends did not find each other over the link.
    #[error("the ends have not found each other over the link in {}", UP_WITHIN)]
    NotUp,
    /// They had found each other, and did no longer.
    #[error("the connection is lost")]
    Lost,
}

/// The media flows of a run.
pub struct Calls {
    /// By flow; none: not a media flow.
    calls: Vec<Option<Call>>,
    /// Where our ends hear, by flow and side, until they are made.
    ours: Mutex<Vec<(usize, Side, Receiver<Question>)>>,
    directory: Directory,
    strain: Strain,
}

/// One of them.
struct Call {
    sender: Party,
    receiver: Party,
}

/// Who is at an end.
enum Party {
    Chromium(Page),
    Ours(Ours),
}

impl Calls {
    /// Opens a page for each end that is Chromium's.
    ///
    /// # Errors
    /// Chromium does not start.
    pub fn prepare(plan: &Plan, registry: &Registry, track: &Track, browsers: &mut Browsers) -> Result<Self, Error> {
        let (mut calls, mut hear) = (Vec::new(), Vec::new());
        for (id, flow) in plan.flows.iter().enumerate() {
            let Some(media) = flow.media() else {
                calls.push(None);
                continue;
            };
            let entry = registry.get(&media.controller.name).expect("the plan was checked");
            let (mode, trials, from) = (mode(entry), trials(entry), sender_side(flow.direction));
            let mut party = |side: Side, sends: bool, ours: bool| match ours {
                false => browsers.page(track, side, trials, sends).map(Party::Chromium),
                true => {
                    let (ours, questions) = Ours::new();
                    hear.push((id, side, questions));
                    Ok(Party::Ours(ours))
                }
            };
            let sender = party(from, true, mode == Some(Mode::SendSide))?;
            let receiver = party(from.other(), false, mode == Some(Mode::ReceiveSide))?;
            calls.push(Some(Call { sender, receiver }));
        }
        Ok(Self { calls, ours: Mutex::new(hear), directory: Directory::default(), strain: Strain::default() })
    }

    /// Shows what Chromium's ends look like, for as long as they are there.
    ///
    /// # Errors
    /// Chromium shows nothing.
    pub fn show(&self, pictures: &Pictures) -> Result<(), Error> {
        for (id, call) in self.calls.iter().enumerate() {
            let Some(call) = call else { continue };
            for (end, party) in [(End::Sender, &call.sender), (End::Receiver, &call.receiver)] {
                let Some(page) = party.page() else { continue };
                let pictures = pictures.clone();
                let size = json!({"width": SHOWN.0, "height": SHOWN.1, "deviceScaleFactor": 1, "mobile": false});
                page.call("Emulation.setDeviceMetricsOverride", size)?;
                page.screencast(SHOWN.0, SHOWN_ONE_IN, move |jpeg| pictures.put(id, end, jpeg))?;
            }
        }
        Ok(())
    }

    /// Our ends on one side, whose namespace the calling thread is in.
    fn our_ends(&self, side: Side, run: &Run<'_>) -> Result<Vec<OurEnd>, WorldError> {
        let mut hear = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        let (here, elsewhere) = hear.drain(..).partition(|(_, of, _)| *of == side);
        *hear = elsewhere;
        let made = Vec::into_iter(here).map(|(id, _, questions)| {
            let flow = &run.plan.flows[id];
            let media = flow.media().expect("calls are media flows");
            let at = SocketAddrV4::new(address_of(side), port_of(id));
            let (registry, streams, signals) = (run.registry, run.streams, run.signals);
            let endpoint = match run.senders[id] == side {
                true => Endpoint::sender(id, flow, media, registry, streams, signals, at, source()),
                false => Endpoint::receiver(id, flow, media, registry, streams, signals, at),
            };
            let endpoint = endpoint.map_err(|error| broken(flow, &error.into()))?;
            Ok(OurEnd { endpoint, questions, stop: flow.stop })
        });
        made.collect()
    }
}

fn broken(flow: &FlowPlan, error: &CallError) -> WorldError {
    WorldError::Broken { cause: format!("call `{}`: {error}", flow.id) }
}

impl Party {
    /// What a sender offers; as Chromium it sends no more than `most`, bit/s.
    fn offer(&self, most: u64) -> Result<String, CallError> {
        match self {
            Self::Chromium(page) => sdp(page, &format!("offer({most})")),
            Self::Ours(ours) => Ok(ours.offer().ok_or(CallError::Silent)??),
        }
    }

    /// What a receiver answers.
    fn answer(&self, offer: &str) -> Result<String, CallError> {
        match self {
            Self::Chromium(page) => sdp(page, &format!("answer({})", quoted(offer))),
            Self::Ours(ours) => Ok(ours.answer(offer).ok_or(CallError::Silent)??),
        }
    }

    /// The sender hears the answer.
    fn accept(&self, answer: &str) -> Result<(), CallError> {
        match self {
            Self::Chromium(page) => page.evaluate(&format!("accept({})", quoted(answer))).map(|_| ())?,
            Self::Ours(ours) => ours.accept(answer).ok_or(CallError::Silent)?.map(|_| ())?,
        }
        Ok(())
    }

    fn page(&self) -> Option<&Page> {
        match self {
            Self::Chromium(page) => Some(page),
            Self::Ours(_) => None,
        }
    }
}

/// What of a plan cannot be a call, and what to do about it.
pub fn refusal(plan: &Plan, registry: &Registry) -> Option<WorldError> {
    for flow in &plan.flows {
        let Some(media) = flow.media() else { continue };
        let (id, name) = (&flow.id, &media.controller.name);
        let Some(entry) = registry.get(name) else {
            return Some(WorldError::UnknownController { flow: id.clone(), name: name.clone() });
        };
        let can_be = match mode(entry) {
            Some(Mode::Browser) => carries(flow, media, None),
            Some(Mode::ReceiveSide) => carries(flow, media, Some(End::Receiver)),
            Some(Mode::SendSide) => carries(flow, media, Some(End::Sender)).and_then(|()| encoder()),
            None => {
                let cause = format!("flow `{id}`: a browser can neither be steered by `{name}` nor report to it");
                let hint = "controllers that answer REMB at the receiver, that hear of each packet at the sender, or `chromium` can be in a call";
                Err(WorldError::Unavailable { cause, hint: hint.to_owned() })
            }
        };
        if let Err(refused) = can_be {
            return Some(refused);
        }
    }
    None
}

impl MediaEnds for Calls {
    fn classify<'a>(&'a self, run: &Run<'a>) -> Box<dyn Classify + 'a> {
        let others = ByPort::new(run.plan, run.senders);
        Box::new(ByDescription { directory: &self.directory, others, clock: run.clock })
    }

    fn serve(&self, side: Side, run: &Run<'_>) -> Result<Lateness, WorldError> {
        let ends = self.our_ends(side, run)?;
        let broken = |error: std::io::Error| WorldError::Broken { cause: error.to_string() };
        media::run(ends, run).map_err(|error| error.downcast().unwrap_or_else(broken))
    }

    fn disturbed(&self) -> Option<String> {
        self.strain.disturbed()
    }

    fn conduct(&self, run: &Run<'_>) -> Result<(), WorldError> {
        thread::scope(|scope| {
            let calls = self.calls.iter().enumerate().filter_map(|(id, call)| Some((id, call.as_ref()?)));
            let running: Vec<_> = calls
                .map(|(id, call)| {
                    let flow = &run.plan.flows[id];
                    let media = flow.media().expect("calls are media flows");
                    let held = Held { id, flow, media, run, directory: &self.directory, strain: &self.strain, call };
                    scope.spawn(move || {
                        let done = held.hold();
                        // One call that breaks ends the run.
                        run.stop.fetch_or(done.is_err(), Ordering::Relaxed);
                        done.map_err(|error| broken(flow, &error))
                    })
                })
                .collect();
            let all =
                running.into_iter().map(|call| call.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
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
    strain: &'a Strain,
    call: &'a Call,
}

impl Held<'_> {
    fn hold(&self) -> Result<(), CallError> {
        if !self.wait(sim::begin(self.flow, self.run.streams)) {
            return Ok(());
        }
        self.begin()?;
        let (sends, receives) = (self.call.sender.page(), self.call.receiver.page());
        let mut sender = Statistics::new(FlowId(self.id as u16));
        let mut receiver = Statistics::new(FlowId(self.id as u16));
        let begun = self.run.clock.now();
        let (mut due, mut is_up) = (begun, false);
        for n in 0.. {
            due += LOOK;
            if due >= self.flow.stop || !self.wait(due) {
                break;
            }
            receives.map_or(Ok(()), |page| self.frames(page))?;
            if n % STATISTICS == 0 {
                for (page, statistics, is_sender) in [(sends, &mut sender, true), (receives, &mut receiver, false)] {
                    let Some(page) = page else { continue };
                    match self.statistics(page, statistics)? {
                        State::Up => is_up = true,
                        State::Waiting if is_up || due - begun < UP_WITHIN => {}
                        State::Failed if is_up => return Err(CallError::Lost),
                        State::Waiting | State::Failed => return Err(CallError::NotUp),
                    }
                    if is_sender {
                        self.strain.looked(statistics.is_limited_by_cpu());
                    }
                }
            }
        }
        self.wait(self.flow.stop);
        // What came to the screen since the last look: without it the call would end in a gap.
        receives.map_or(Ok(()), |page| self.frames(page))?;
        for page in [sends, receives].into_iter().flatten() {
            page.evaluate("hangUp()")?;
        }
        Ok(())
    }

    /// The ends tell each other of themselves, past the link; then they find each other over it.
    fn begin(&self) -> Result<(), CallError> {
        let Self { id, directory, call, media, .. } = *self;
        let side = self.run.senders[id];
        let (_, most) = media.streams[0].source.range();
        let offer = call.sender.offer(most.as_bps())?;
        let described = Description::read(&offer, "the sender", address_of(side))?;
        directory.call(id, side, &described);
        let answer = call.receiver.answer(&offer)?;
        let answering = Description::read(&answer, "the receiver", address_of(side.other()))?;
        directory.reachable(id, side.other(), &answering);
        match call.sender.page() {
            Some(_) => {
                let (start, min) = (media.start_rate.as_bps(), media.min_rate.as_bps());
                call.sender.accept(&with_rates(&answer, described.media, start, min))
            }
            None => call.sender.accept(&answer),
        }
    }

    /// What came to the receiver's screen since the last look.
    fn frames(&self, page: &Page) -> Result<(), Error> {
        let seen = page.evaluate("looked()")?;
        for frame in seen.as_array().into_iter().flatten() {
            let (Some(stamp), Some(timestamp)) = (frame[0].as_f64(), frame[1].as_u64()) else { continue };
            let Some(Rendered { captured, size, dropped }) = self.directory.rendered(self.id, timestamp as u32) else {
                continue;
            };
            let (at, now) = (self.of_stamp(stamp), self.run.clock.now());
            // An older one would come after rows that are later.
            self.strain.rendered(at < now - OLDEST);
            let at = at.clamp(now - OLDEST, now);
            self.tell(Row::Frame { at, flow: FlowId(self.id as u16), stream: StreamId(0), captured, size, dropped });
        }
        Ok(())
    }

    /// What an end says of itself, and how far its connection is.
    fn statistics(&self, page: &Page, statistics: &mut Statistics) -> Result<State, Error> {
        let look = Look::read(page.evaluate("statistics()")?);
        let (at, state) = (self.run.clock.now(), look.state);
        statistics.looked(at, look, |stamp| self.of_stamp(stamp), &mut |row| {
            if self.run.signals || !matches!(row, Row::Signal { .. }) {
                self.tell(row);
            }
        });
        Ok(state)
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
fn sdp(page: &Page, expression: &str) -> Result<String, CallError> {
    let sdp = page.evaluate(expression)?;
    Ok(over_udp(sdp.as_str().unwrap_or_default()))
}

/// Text as a script has it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
