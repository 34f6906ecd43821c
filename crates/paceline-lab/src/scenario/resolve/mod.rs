//! File to plan: the one place where defaults live, and where what only makes sense together is checked.

mod expect;
mod flow;
mod path;
mod source;
mod tcp;

pub(crate) use source::reads as source_reads;

use super::catalogue::Origin;
use super::file::{Placed, ScenarioFile};
use super::problem::{Problem, suggestion};
use crate::label::Label;
use crate::plan::{Constant, Direction, FlowPlan, HopPlan, LossMeasure, Measure, Plan, QueueMeasure};
use expect::Expectations;
use paceline::Registry;
use paceline_flow::IP_UDP_HEADERS;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

const QUEUE_LIMIT: TimeDelta = TimeDelta::from_millis(300);
const START_RATE: Rate = Rate::from_kbps(300);
const MIN_RATE: Rate = Rate::from_kbps(30);
const RTCP_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const PACER_LIMIT: TimeDelta = TimeDelta::from_secs(2);
const FPS: f64 = 30.0;
const SOURCE_MIN: Rate = Rate::from_kbps(50);
const SOURCE_MAX: Rate = Rate::from_kbps(2000);
const FILES: &str = "files are looked up beside the scenario file, then from the working directory";
const FORMATS: &str = "`paceline list traces` shows the formats";
const DURATION_MAX: TimeDelta = TimeDelta::from_secs(7 * 86_400);

/// What is known of a scenario besides its text.
#[derive(Clone, Default)]
pub(crate) struct Background {
    /// Which case it is.
    pub case: Label,
    /// What was assumed in it.
    pub constants: Vec<Constant>,
    /// A line on that.
    pub constants_note: Option<String>,
    /// Whether `--set` says how long a run lasts.
    pub shortened: bool,
}

/// Fills in every default, or complains.
pub(crate) fn resolve(
    file: ScenarioFile,
    text: &str,
    origin: &Origin,
    background: Background,
    registry: &Registry,
) -> Result<Plan, Problem> {
    Resolver { text, origin, registry, shortened: background.shortened, notes: Vec::new() }.plan(file, background)
}

struct Resolver<'a> {
    text: &'a str,
    origin: &'a Origin,
    registry: &'a Registry,
    /// `--set` says how long a run lasts.
    shortened: bool,
    notes: Vec<String>,
}

type Checked<T> = Result<T, Problem>;

impl Resolver<'_> {
    fn complain<T>(&self, place: &Placed<T>, message: impl Into<String>) -> Problem {
        Problem::at(&self.origin.name, self.text, place.span(), message)
    }

    /// A complaint about the key before a value.
    fn complain_of_key<T>(&self, key: &str, value: &Placed<T>, message: impl Into<String>) -> Problem {
        let value = value.span();
        let start = self.text[..value.start].rfind(key);
        let span = start.map_or(value, |start| start..start + key.len());
        Problem::at(&self.origin.name, self.text, span, message)
    }

    fn not_negative(&self, place: &Placed<TimeDelta>) -> Checked<TimeDelta> {
        match *place.get() {
            negative if negative < TimeDelta::ZERO => {
                Err(self.complain(place, "a delay is not negative").help("0 ms is the least"))
            }
            delay => Ok(delay),
        }
    }

    fn plan(mut self, file: ScenarioFile, background: Background) -> Checked<Plan> {
        let Background { case, constants, constants_note, shortened } = background;
        let duration = *file.duration.get();
        if !duration.is_positive() || duration > DURATION_MAX {
            return Err(self
                .complain(&file.duration, "a run lasts longer than nothing and at most a week")
                .help("write it like \"60 s\""));
        }
        let repeats = file.repeats.as_ref().map_or(1, |r| *r.get());
        if let Some(place) = file.repeats.as_ref().filter(|r| !(1..=10_000).contains(r.get())) {
            return Err(self
                .complain(place, "repeats are 1 to 10000")
                .help("leave the key out for one; `run --repeats` takes a number too"));
        }
        if file.id.get().is_empty() || file.id.get().contains(char::is_whitespace) {
            let word = file.id.get().split_whitespace().collect::<Vec<_>>().join("-");
            let word = if word.is_empty() { "my-scenario" } else { &word };
            return Err(self.complain(&file.id, "an id is a word").help(format!("write it like \"{word}\"")));
        }

        let half = file.path.rtt.as_ref().map(|rtt| self.not_negative(rtt)).transpose()?.map(|rtt| rtt / 2);
        let mut hops = self.way(file.path.forward.as_ref(), "forward", half)?;
        let forward_hops = hops.len();
        hops.extend(self.way(file.path.reverse.as_ref(), "reverse", half)?);
        for (index, hop) in hops.iter().enumerate() {
            if hops[..index].iter().any(|other| other.id == hop.id) {
                let message = format!("two hops are called `{}`", hop.id);
                let written = [&file.path.forward, &file.path.reverse].into_iter().flatten();
                let hops = written.filter_map(|way| way.hops.as_ref()).flat_map(|hops| hops.get());
                let named = hops.filter_map(|h| h.id.as_ref()).rfind(|id| *id.get() == hop.id);
                let problem = match named {
                    Some(place) => self.complain(place, message),
                    None => Problem::of(&self.origin.name, self.text, message),
                };
                return Err(problem.help("results name hops by `id`; give each a name of its own"));
            }
        }
        let end = Time::ZERO + duration;

        if file.flow.is_empty() {
            let problem = Problem::of(&self.origin.name, self.text, "a scenario needs at least one [[flow]]");
            return Err(problem.help("add [[flow]] with id = \"video\" and controller = \"gcc-2016\""));
        }
        let mut flows: Vec<FlowPlan> = Vec::new();
        for flow in &file.flow {
            for plan in self.flows(flow, &hops, forward_hops, end)? {
                if flows.iter().any(|other| other.id == plan.id) {
                    let problem = self.complain(&flow.get().id, format!("two flows are called `{}`", plan.id));
                    return Err(problem.help("results name flows by `id`; give each a name of its own"));
                }
                flows.push(plan);
            }
        }
        if flows.len() > usize::from(u16::MAX) {
            let problem = Problem::of(&self.origin.name, self.text, format!("{} flows are too many", flows.len()));
            return Err(problem.help("a run has at most 65535"));
        }

        let bottleneck = bottleneck(&hops, &flows, end);
        let measure = self.measure(&file)?;
        let keep = file.measure.keep.as_ref().map(|place| self.keep(place, &flows, end)).transpose()?;
        let scope = expect::Scope { file: &file, case: &case, flows: &flows, end, shortened };
        let Expectations { expects, asserts, references, elsewhere, beyond } = self.expectations(&scope)?;
        if elsewhere > 0 {
            let name = if self.origin.is_shipped() { file.id.get() } else { &self.origin.name };
            let what = "of its published values and bounds compare cases or belong to others";
            self.notes.push(format!("{elsewhere} {what}: they take `paceline reproduce {name}`"));
        }
        if beyond > 0 {
            self.notes
                .push(format!("{beyond} of its published values and bounds lie beyond the end of so short a run"));
        }
        self.notes.extend(constants_note);
        self.notes.push(format!(
            "rates and sizes count whole IP packets: {} of IP and UDP headers on each, and RTP with its extensions",
            IP_UDP_HEADERS
        ));
        let (id, title, source) = (file.id.get().clone(), file.title, file.source);
        let notes = self.notes;
        Ok(Plan {
            id,
            title,
            source,
            duration,
            repeats,
            hops,
            forward_hops,
            bottleneck,
            flows,
            measure,
            keep,
            case,
            cases: file.case.iter().map(|c| c.label.get().clone()).collect(),
            constants,
            expects,
            asserts,
            references,
            notes,
        })
    }

    fn measure(&self, file: &ScenarioFile) -> Checked<Measure> {
        let unknown = |place: &Placed<String>, known: &[&str]| {
            self.complain(place, format!("no way to measure called `{}`", place.get()))
                .help(suggestion(place.get(), known))
        };
        let queue = match file.measure.queue.as_ref().map(|q| (q, q.get().as_str())) {
            None | Some((_, "packet")) => QueueMeasure::Packet,
            Some((_, "rtcp")) => QueueMeasure::Rtcp,
            Some((_, "one-way")) => QueueMeasure::OneWay,
            Some((place, _)) => return Err(unknown(place, &["packet", "rtcp", "one-way"])),
        };
        let loss = match file.measure.loss.as_ref().map(|l| (l, l.get().as_str())) {
            None | Some((_, "sent")) => LossMeasure::Sent,
            Some((_, "received")) => LossMeasure::Received,
            Some((place, _)) => return Err(unknown(place, &["sent", "received"])),
        };
        Ok(Measure { queue, loss })
    }
}

/// The slowest hop over the run of those that forward flows cross; of any flow's, where none goes forward.
fn bottleneck(hops: &[HopPlan], flows: &[FlowPlan], end: Time) -> usize {
    let crossed = |hop: usize, forward: bool| {
        flows.iter().any(|f| (!forward || f.direction == Direction::Forward) && f.route.contains(&hop))
    };
    let volume = |hop: &usize| {
        let capacity = hops[*hop].capacity.as_ref();
        capacity.map_or(DataSize::from_bytes(u64::MAX), |c| c.volume(Time::ZERO, end))
    };
    let slowest = |forward| (0..hops.len()).filter(|h| crossed(*h, forward)).min_by_key(volume);
    slowest(true).or_else(|| slowest(false)).unwrap_or(0)
}

/// What was written, or its default.
fn get<T: Copy>(place: &Option<Placed<T>>, default: T) -> T {
    place.as_ref().map_or(default, |p| *p.get())
}
