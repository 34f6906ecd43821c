// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of a run: setup, signalling, polling of statistics and rendered frames, and hang-up.

use crate::call::browsers::{Browsers, CallPage};
use crate::call::call_roles::{CallRoles, field_trials, roles_for};
use crate::call::classify::{CallClassifier, FlowDirectory, Rendered};
use crate::call::encoder_load::EncoderLoad;
use crate::call::endpoint::{Endpoint, EndpointError, check_supported};
use crate::call::local_endpoint::{Action, EndpointHandle, LocalEndpoint, Request, encoder, source};
use crate::call::signalling::{Description, SdpError, over_udp, with_rates};
use crate::call::stats::{ConnectionState, MAX_EVENT_AGE, StatsSample, StatsTracker};
use crate::chromium::{Error, Page};
use paceline::Registry;
use paceline_live::testbed::classify::{ByPort, port_of};
use paceline_live::testbed::lateness::Lateness;
use paceline_live::testbed::link::{Classifier, Side};
use paceline_live::testbed::media_endpoint;
use paceline_live::testbed::testbed_network::{MediaEndpoints, TestbedNetwork, TestbedRun, address_of, sender_side};
use paceline_netsim::network::FlowEnd;
use paceline_netsim::plan::{FlowChange, FlowPlan, MediaPlan, Plan};
use paceline_netsim::preview::PreviewImages;
use paceline_netsim::records::EventRecord;
use paceline_netsim::sim;
use paceline_netsim::world::WorldError;
use paceline_units::{FlowId, Rate, StreamId, Time, TimeDelta};
use serde_json::{Value, json};
use std::iter::Peekable;
use std::net::SocketAddrV4;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Interval at which rendered frames are read: well below the second by which events may be late.
const POLL_INTERVAL: TimeDelta = TimeDelta::from_millis(250);

/// Statistics are read once per this many polls: once a second.
const POLLS_PER_SAMPLE: u64 = 4;

/// Longest time to connect. Offer, answer, ICE and DTLS take a few round trips.
const CONNECT_TIMEOUT: TimeDelta = TimeDelta::from_secs(10);

/// Size of a page that is shown in the preview, px.
const PREVIEW_SIZE: (u32, u32) = (640, 360);

/// One of this many screen refreshes, 60 per second, becomes a preview image.
const PREVIEW_EVERY_NTH_FRAME: u32 = 5;

/// An error of a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Chromium failed.
    #[error(transparent)]
    Chromium(#[from] Error),
    /// A session description cannot be used.
    #[error(transparent)]
    Description(#[from] SdpError),
    /// The local endpoint failed.
    #[error("local endpoint: {0}")]
    Local(#[from] EndpointError),
    /// The local endpoint has ended.
    #[error("the local endpoint does not reply")]
    NoReply,
    /// ICE or DTLS did not complete in time.
    #[error("the endpoints did not connect over the link within {}", CONNECT_TIMEOUT)]
    NotConnected,
    /// The connection failed after it was established.
    #[error("the connection is lost")]
    Lost,
}

/// The media flows of a run.
pub struct Calls {
    /// By flow; `None` for flows other than media.
    calls: Vec<Option<Call>>,
    /// Request channels of local endpoints by flow and side, until the endpoints are created.
    pending: Mutex<Vec<(usize, Side, Receiver<Request>)>>,
    directory: FlowDirectory,
    encoder_load: EncoderLoad,
    /// The name and content of each dump.
    dumps: Mutex<Vec<(String, Vec<u8>)>>,
}

struct Call {
    sender: CallEndpoint,
    receiver: CallEndpoint,
}

/// The implementation of one endpoint.
enum CallEndpoint {
    Chromium(CallPage),
    Local(EndpointHandle),
}

impl Calls {
    /// Opens a page for each endpoint that is Chromium.
    pub fn prepare(
        plan: &Plan,
        registry: &Registry,
        network: &TestbedNetwork,
        browsers: &mut Browsers,
    ) -> Result<Self, Error> {
        let (mut calls, mut pending) = (Vec::new(), Vec::new());
        for (id, flow) in plan.flows.iter().enumerate() {
            let Some(media) = flow.media() else {
                calls.push(None);
                continue;
            };
            let entry = registry.get(&media.controller.name).expect("the plan was checked");
            let (roles, trials, from) = (roles_for(entry), field_trials(entry), sender_side(flow.direction));
            let mut endpoint = |side: Side, sends: bool, local: bool| match local {
                false => browsers.page(network, side, trials, sends).map(CallEndpoint::Chromium),
                true => {
                    let (handle, requests) = EndpointHandle::new();
                    pending.push((id, side, requests));
                    Ok(CallEndpoint::Local(handle))
                }
            };
            let sender = endpoint(from, true, roles == Some(CallRoles::LocalSender))?;
            let receiver = endpoint(from.other(), false, roles == Some(CallRoles::LocalReceiver))?;
            calls.push(Some(Call { sender, receiver }));
        }
        let (directory, encoder_load, dumps) = Default::default();
        Ok(Self { calls, pending: Mutex::new(pending), directory, encoder_load, dumps })
    }

    /// Returns the name and content of the webrtc-internals dump of each Chromium that held an end of a call.
    pub fn dumps(&self) -> Vec<(String, Vec<u8>)> {
        self.dumps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends preview images of Chromium's pages to `preview_images` until the pages close.
    pub fn show(&self, preview_images: &PreviewImages) -> Result<(), Error> {
        for (id, call) in self.calls.iter().enumerate() {
            let Some(call) = call else { continue };
            for (end, endpoint) in [(FlowEnd::Sender, &call.sender), (FlowEnd::Receiver, &call.receiver)] {
                let Some(page) = endpoint.page() else { continue };
                let preview_images = preview_images.clone();
                let size =
                    json!({"width": PREVIEW_SIZE.0, "height": PREVIEW_SIZE.1, "deviceScaleFactor": 1, "mobile": false});
                page.call("Emulation.setDeviceMetricsOverride", size)?;
                page.screencast(PREVIEW_SIZE.0, PREVIEW_EVERY_NTH_FRAME, move |jpeg| {
                    preview_images.put(id, end, jpeg)
                })?;
            }
        }
        Ok(())
    }

    /// Creates the local endpoints of one side. The calling thread must be in the network namespace of that side.
    fn local_endpoints(&self, side: Side, run: &TestbedRun<'_>) -> Result<Vec<LocalEndpoint>, WorldError> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let (here, elsewhere) = pending.drain(..).partition(|(_, of, _)| *of == side);
        *pending = elsewhere;
        let endpoints = Vec::into_iter(here).map(|(id, _, requests)| {
            let flow = &run.plan.flows[id];
            let at = SocketAddrV4::new(address_of(side), port_of(id));
            let (end, source) =
                if run.senders[id] == side { (FlowEnd::Sender, source()) } else { (FlowEnd::Receiver, None) };
            let endpoint = Endpoint::new(end, (id, flow), (run.registry, run.streams, run.signals), at, source);
            let endpoint = endpoint.map_err(|error| broken(flow, &error.into()))?;
            Ok(LocalEndpoint { endpoint, requests, stop: flow.stop })
        });
        endpoints.collect()
    }
}

fn broken(flow: &FlowPlan, error: &CallError) -> WorldError {
    WorldError::Broken { cause: format!("call `{}`: {error}", flow.id) }
}

impl CallEndpoint {
    /// Makes a step of the signalling, and returns its session description.
    fn signal(&self, action: Action) -> Result<String, CallError> {
        let end = match self {
            Self::Chromium(end) => end,
            Self::Local(handle) => return Ok(handle.request(action).ok_or(CallError::NoReply)??),
        };
        let sdp = end.page.evaluate(&match action {
            Action::Offer(max) => format!("offer({})", max.as_bps()),
            Action::Answer(offer) => format!("answer({})", Value::from(offer)),
            Action::Accept(answer) => format!("accept({})", Value::from(answer)),
        })?;
        Ok(over_udp(sdp.as_str().unwrap_or_default()))
    }

    fn page(&self) -> Option<&Page> {
        self.chromium().map(|end| &end.page)
    }

    fn chromium(&self) -> Option<&CallPage> {
        match self {
            Self::Chromium(end) => Some(end),
            Self::Local(_) => None,
        }
    }
}

/// Returns the first reason why calls cannot carry this plan, with a hint.
pub fn unsupported(plan: &Plan, registry: &Registry) -> Option<WorldError> {
    for flow in &plan.flows {
        let Some(media) = flow.media() else { continue };
        let (id, name) = (&flow.id, &media.controller.name);
        let Some(entry) = registry.get(name) else {
            return Some(WorldError::UnknownController { flow: id.clone(), name: name.clone() });
        };
        let supported = match roles_for(entry) {
            Some(CallRoles::BothChromium) => check_supported(flow, media, None),
            Some(CallRoles::LocalReceiver) => check_supported(flow, media, Some(FlowEnd::Receiver)),
            Some(CallRoles::LocalSender) => {
                check_supported(flow, media, Some(FlowEnd::Sender)).and_then(|()| encoder())
            }
            None => {
                let cause = format!("flow `{id}`: controller `{name}` cannot work with a browser");
                let hint = "use `chromium`, a controller that sends REMB, or one that reads per-packet feedback";
                Err(WorldError::Unavailable { cause, hint: hint.to_owned() })
            }
        };
        if let Err(error) = supported {
            return Some(error);
        }
    }
    None
}

impl MediaEndpoints for Calls {
    fn classify<'a>(&'a self, run: &TestbedRun<'a>) -> Box<dyn Classifier + 'a> {
        let others = ByPort::new(run.plan, run.senders);
        Box::new(CallClassifier { directory: &self.directory, others, clock: run.clock })
    }

    fn serve(&self, side: Side, run: &TestbedRun<'_>) -> Result<Lateness, WorldError> {
        media_endpoint::run(self.local_endpoints(side, run)?, run)
    }

    fn disturbed(&self) -> Option<String> {
        self.encoder_load.disturbed()
    }

    fn conduct(&self, run: &TestbedRun<'_>) -> Result<(), WorldError> {
        thread::scope(|scope| {
            let calls = self.calls.iter().enumerate().filter_map(|(id, call)| Some((id, call.as_ref()?)));
            let running: Vec<_> = calls
                .map(|(id, call)| {
                    let flow = &run.plan.flows[id];
                    let media = flow.media().expect("calls are media flows");
                    let running = RunningCall { id, flow, media, run, calls: self, call };
                    scope.spawn(move || {
                        let done = running.run_to_end();
                        // A failed call ends the run.
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

/// A call, run by its own thread.
struct RunningCall<'a> {
    id: usize,
    flow: &'a FlowPlan,
    media: &'a MediaPlan,
    run: &'a TestbedRun<'a>,
    calls: &'a Calls,
    call: &'a Call,
}

impl RunningCall<'_> {
    fn run_to_end(&self) -> Result<(), CallError> {
        if !self.wait(sim::start_time(self.flow, self.run.streams)) {
            return Ok(());
        }
        self.connect()?;
        let (sends, receives) = (self.call.sender.page(), self.call.receiver.page());
        let mut sender = StatsTracker::new(FlowId(self.id as u16));
        let mut receiver = StatsTracker::new(FlowId(self.id as u16));
        let begun = self.run.clock.now();
        let (mut due, mut connected) = (begun, false);
        let mut changes = sender_changes(self.media).peekable();
        for n in 0.. {
            due += POLL_INTERVAL;
            self.change_sender(sends, due.min(self.flow.stop), &mut changes)?;
            if due >= self.flow.stop || !self.wait(due) {
                break;
            }
            receives.map_or(Ok(()), |page| self.frames(page))?;
            if n % POLLS_PER_SAMPLE == 0 {
                for (page, statistics, is_sender) in [(sends, &mut sender, true), (receives, &mut receiver, false)] {
                    let Some(page) = page else { continue };
                    match self.statistics(page, statistics)? {
                        ConnectionState::Connected => connected = true,
                        ConnectionState::Waiting if connected || due - begun < CONNECT_TIMEOUT => {}
                        ConnectionState::Failed if connected => return Err(CallError::Lost),
                        ConnectionState::Waiting | ConnectionState::Failed => return Err(CallError::NotConnected),
                    }
                    if is_sender {
                        self.calls.encoder_load.record_sample(statistics.is_limited_by_cpu());
                    }
                }
            }
        }
        self.wait(self.flow.stop);
        // Without the frames since the last poll, the call would end with a gap.
        receives.map_or(Ok(()), |page| self.frames(page))?;
        if let Some(page) = sends {
            page.evaluate("stopSending()")?;
        }
        self.take_dumps();
        for page in [sends, receives].into_iter().flatten() {
            page.evaluate("hangUp()")?;
        }
        Ok(())
    }

    /// Takes the dump of each Chromium, which a call can do without.
    fn take_dumps(&self) {
        for (endpoint, end) in [(&self.call.sender, "sender"), (&self.call.receiver, "receiver")] {
            let Some(dump) = endpoint.chromium().and_then(CallPage::dump) else { continue };
            let name = format!("{}-{end}.webrtc-internals.txt", self.flow.id);
            self.calls.dumps.lock().unwrap_or_else(PoisonError::into_inner).push((name, dump.into_bytes()));
        }
    }

    /// Exchanges the session descriptions outside the link; the endpoints then connect over it.
    fn connect(&self) -> Result<(), CallError> {
        let Self { id, call, media, calls: Calls { directory, .. }, .. } = *self;
        let side = self.run.senders[id];
        let (_, most) = media.streams[0].source.range();
        let offer = call.sender.signal(Action::Offer(most))?;
        let described = Description::read(&offer, "the sender", address_of(side))?;
        directory.add_call(id, side, &described);
        let answer = call.receiver.signal(Action::Answer(offer))?;
        let answering = Description::read(&answer, "the receiver", address_of(side.other()))?;
        directory.add_ports(id, side.other(), &answering);
        let (start, min) = (media.start_rate.as_bps(), media.min_rate.as_bps());
        let answer = match call.sender {
            CallEndpoint::Chromium(_) => with_rates(&answer, described.media, start, min),
            CallEndpoint::Local(_) => answer,
        };
        call.sender.signal(Action::Accept(answer)).map(drop)
    }

    /// Makes each change that falls due until a time of the run, at its time, at a Chromium that sends.
    fn change_sender(
        &self,
        sender: Option<&Page>,
        until: Time,
        changes: &mut Peekable<impl Iterator<Item = (Time, SenderChange)>>,
    ) -> Result<(), Error> {
        while let (Some(page), Some((at, change))) = (sender, changes.next_if(|(at, _)| *at <= until)) {
            if self.wait(at) {
                page.evaluate(&match change {
                    SenderChange::Limit(max) => format!("limit({})", max.as_bps()),
                    SenderChange::Mute(muted) => format!("mute({muted})"),
                })?;
            }
        }
        Ok(())
    }

    /// Emits the frames that the receiver rendered since the last poll.
    fn frames(&self, page: &Page) -> Result<(), Error> {
        let rendered = page.evaluate("renderedFrames()")?;
        for frame in rendered.as_array().into_iter().flatten() {
            let (Some(stamp), Some(timestamp)) = (frame[0].as_f64(), frame[1].as_u64()) else { continue };
            let Some(Rendered { captured, size, dropped }) = self.calls.directory.rendered(self.id, timestamp as u32)
            else {
                continue;
            };
            let (at, now) = (self.time_of_stamp(stamp), self.run.clock.now());
            // Events older than this cannot be sorted into the run any more.
            self.calls.encoder_load.record_frame(at < now - MAX_EVENT_AGE);
            let at = at.clamp(now - MAX_EVENT_AGE, now);
            self.emit(EventRecord::Frame {
                at,
                flow: FlowId(self.id as u16),
                stream: StreamId(0),
                captured,
                size,
                dropped,
            });
        }
        Ok(())
    }

    /// Emits the statistics of an endpoint and returns the state of its connection.
    fn statistics(&self, page: &Page, statistics: &mut StatsTracker) -> Result<ConnectionState, Error> {
        let sample = StatsSample::read(page.evaluate("statistics()")?);
        let (at, state) = (self.run.clock.now(), sample.state);
        statistics.update(at, sample, |stamp| self.time_of_stamp(stamp), &mut |row| {
            if self.run.signals || !matches!(row, EventRecord::Signal { .. }) {
                self.emit(row);
            }
        });
        Ok(state)
    }

    fn time_of_stamp(&self, ms_since_1970: f64) -> Time {
        self.run.clock.from_wall_clock(Duration::from_secs_f64(ms_since_1970.max(0.0) / 1e3))
    }

    fn emit(&self, row: EventRecord) {
        // The receiver is gone if the run has failed.
        let _ = self.run.events.send(row);
    }

    /// Waits until a time of the run. Returns false if the run ended first.
    fn wait(&self, until: Time) -> bool {
        const MAX_SLEEP: TimeDelta = TimeDelta::from_millis(20);
        loop {
            let left = until - self.run.clock.now();
            if self.run.is_over() {
                return false;
            }
            if left <= TimeDelta::ZERO {
                return true;
            }
            thread::sleep(Duration::from_nanos(left.min(MAX_SLEEP).as_nanos() as u64));
        }
    }
}

/// A change at a Chromium that sends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SenderChange {
    /// The encoder's maximum.
    Limit(Rate),
    /// Whether the camera sends black pictures.
    Mute(bool),
}

/// Returns the changes of a flow: the maximum of its encoder, the lower one of the flow's and the source's, and its muted camera.
fn sender_changes(media: &MediaPlan) -> impl Iterator<Item = (Time, SenderChange)> {
    let stream = &media.streams[0];
    let (_, most) = stream.source.range();
    let limits = media.changes.iter().filter_map(move |(at, change)| match change {
        FlowChange::Bounds(bounds) => Some((*at, SenderChange::Limit(bounds.max.min(most)))),
        FlowChange::Route(_)
        | FlowChange::Availability(_)
        | FlowChange::Remb(_)
        | FlowChange::StreamMax(..)
        | FlowChange::StreamMuted(..)
        | FlowChange::StreamEnd(_) => None,
    });
    let mutes = stream.muted.points().iter().map(|(at, muted)| (*at, SenderChange::Mute(*muted)));
    let mut changes: Vec<_> = limits.chain(mutes).collect();
    changes.sort_by_key(|(at, _)| *at);
    changes.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::endpoint::check_supported;
    use paceline_scenario::{Changes, Origin, load};

    fn plan(more: &str) -> Plan {
        let text = format!(
            "id = \"a\"\ntitle = \"a\"\nduration = \"60s\"\n[path]\n[[flow]]\nid = \"a\"\ncontroller = \"gcc-2016\"\n{more}"
        );
        load(&Origin::from_text("a.toml", text), &Changes::default(), &Registry::standard()).unwrap().plan
    }

    const CAMERA: &str = "[[flow.stream]]\nid = \"camera\"\nencoder = { max = \"2 Mbps\" }\n";

    #[test]
    fn changes_of_a_sending_chromium_are_in_order_of_time() {
        let limits = "max_rate = [[\"0s\", \"9 Mbps\"], [\"20s\", \"1 Mbps\"], [\"40s\", \"9 Mbps\"]]\n";
        let muted = "muted = [[\"0s\", false], [\"10s\", true], [\"30s\", false]]\n";
        let plan = plan(&format!("{limits}{CAMERA}{muted}"));
        let media = plan.flows[0].media().unwrap();
        let (_, most) = media.streams[0].source.range();
        let changes: Vec<_> = sender_changes(media).filter(|(at, _)| *at > Time::ZERO).collect();
        let (s, mute, limit) = (Time::from_secs, SenderChange::Mute, SenderChange::Limit);
        let one = Rate::from_kbps(1000);
        assert_eq!(changes, [(s(10), mute(true)), (s(20), limit(one)), (s(30), mute(false)), (s(40), limit(most))]);
    }

    #[test]
    fn a_call_refuses_what_its_ends_cannot_do() {
        let (muted, local) = (
            format!("{CAMERA}muted = [[\"0s\", false], [\"10s\", true]]\n"),
            [None, Some(FlowEnd::Receiver), Some(FlowEnd::Sender)],
        );
        let refused = |more: &str| {
            let plan = plan(more);
            local.map(|local| check_supported(&plan.flows[0], plan.flows[0].media().unwrap(), local).is_err())
        };
        assert_eq!(refused(CAMERA), [false, false, false]);
        assert_eq!(refused(&muted), [false, false, true], "Paceline's encoder has no black pictures");
        assert_eq!(refused(&format!("{CAMERA}stop = \"20s\"\n")), [true, true, true]);
        let remb = format!("remb = [[\"10s\", \"500 kbps\"]]\n{CAMERA}");
        assert_eq!(refused(&remb), [true, false, true], "only Paceline's receiver can lower its own REMB");
    }
}
