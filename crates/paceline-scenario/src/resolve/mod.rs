// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the typed file to the scenario: fills in every default, and checks what depends on several keys.

mod changes;
mod coupling;
mod each;
mod expect;
mod flow;
mod mtu;
mod parameters;
mod path;
mod source;
mod tcp;

pub(crate) use source::default_source;

use super::catalogue::Origin;
use super::error::{ScenarioError, suggestion};
use super::evaluation::{Constant, LossMeasure, Measure, QueueMeasure, RATES, Scenario};
use super::file::ScenarioFile;
use super::text_span::{HasTextSpan, Sources, Spanned, Table, TextSpan};
use crate::Registries;
use paceline::Registry;
use paceline_netsim::flow::IP_UDP_HEADERS;
use paceline_netsim::link::{LossModel, MediumPlan, Schedule};
use paceline_netsim::plan::{Direction, FlowPlan, HopPlan, Plan};
use paceline_netsim::records::{Label, MetricCatalogue};
use paceline_units::{DataSize, Rate, Time, TimeDelta};

const QUEUE_LIMIT: TimeDelta = TimeDelta::from_millis(300);
const START_RATE: Rate = Rate::from_kbps(300);
const MIN_RATE: Rate = Rate::from_kbps(30);
const FORMATS: &str = "`paceline list traces` shows the formats";
const OWN_ID: &str = "results identify it by its `id`; give each its own";
const DURATION_MAX: TimeDelta = TimeDelta::from_secs(7 * 86_400);

/// The properties of a scenario that its file does not hold.
#[derive(Clone, Default)]
pub(crate) struct Background {
    /// The label of its case.
    pub case: Label,
    /// The constants of its paper.
    pub constants: Vec<Constant>,
    /// A note on those that apply.
    pub constants_note: Option<String>,
    /// A note on the preset of the path.
    pub preset_note: Option<String>,
    /// Whether `--set` changes the duration of a run.
    pub shortened: bool,
}

/// Fills in every default, or returns the first error.
pub(crate) fn resolve(
    file: ScenarioFile,
    sources: &Sources<'_>,
    origin: &Origin,
    background: Background,
    registries: Registries<'_>,
) -> Result<Scenario, ScenarioError> {
    let Registries { controllers: registry, metrics } = registries;
    let (shortened, media, notes) = (background.shortened, Vec::new(), Vec::new());
    let (last_step, duration, traced) = (Time::ZERO, *file.duration.get(), Traced::default());
    Resolver { sources, origin, registry, metrics, shortened, media, last_step, duration, traced, notes }
        .scenario(file, background)
}

struct Resolver<'a> {
    sources: &'a Sources<'a>,
    origin: &'a Origin,
    registry: &'a Registry,
    metrics: Option<MetricCatalogue>,
    /// Whether `--set` changes the duration of a run.
    shortened: bool,
    /// The part of each hop in a shared medium, with the name of the hop.
    media: Vec<(String, MediumPlan)>,
    /// The latest time in a schedule of the file.
    last_step: Time,
    duration: TimeDelta,
    traced: Traced,
    notes: Vec<String>,
}

/// What the last trace has besides its capacity.
#[derive(Default)]
struct Traced {
    loss: Option<Schedule<LossModel>>,
    /// Half of the round-trip time of the first trace that has one.
    half_rtt: Option<Schedule<TimeDelta>>,
}

type Checked<T> = Result<T, ScenarioError>;

impl Resolver<'_> {
    fn error(&self, at: &impl HasTextSpan, message: impl Into<String>) -> ScenarioError {
        self.sources.error(at, message)
    }

    fn fail<T>(&self, at: &impl HasTextSpan, message: impl Into<String>, help: impl Into<String>) -> Checked<T> {
        Err(self.error(at, message).help(help))
    }

    /// Returns an error about something that is missing from the file.
    fn fail_without_location<T>(&self, message: impl Into<String>, help: impl Into<String>) -> Checked<T> {
        self.fail(&TextSpan::default(), message, help)
    }

    /// Returns an error about a name that is not in `known`.
    fn unknown<T>(&self, spanned: &Spanned<String>, what: &str, known: &[&str]) -> Checked<T> {
        self.fail(spanned, format!("no {what} `{}`", spanned.get()), suggestion(spanned.get(), known))
    }

    /// Returns the value of a name in `known`, or the default.
    fn named<T: Copy + Default>(
        &self,
        spanned: &Option<Spanned<String>>,
        what: &str,
        known: &[(&'static str, T)],
    ) -> Checked<T> {
        let Some(spanned) = spanned else { return Ok(T::default()) };
        self.position(spanned, what, &names(known)).map(|index| known[index].1)
    }

    /// Returns the index of a name in `known`.
    fn position(&self, spanned: &Spanned<String>, what: &str, known: &[&str]) -> Checked<usize> {
        let found = known.iter().position(|name| name == spanned.get());
        found.map_or_else(|| self.unknown(spanned, what, known), Ok)
    }

    /// Returns an error if a table has a key that its kind does not allow; `kind` is the key of the kind.
    fn reject_unknown_keys<T>(
        &self,
        table: &Table<T>,
        kind: &Spanned<String>,
        what: &str,
        allowed_keys: &[&str],
    ) -> Checked<()> {
        let own = |key: &str| allowed_keys.contains(&key) || table.value(key) == Some(kind.text_span());
        let Some((key, text_span)) = table.first_key(|key| !own(key)) else { return Ok(()) };
        let help = if allowed_keys.is_empty() { "leave it out".to_owned() } else { suggestion(key, allowed_keys) };
        self.fail(&text_span, format!("the {what} `{}` has no `{key}`", kind.get()), help)
    }

    /// Returns the error about a key that a table of this kind needs.
    fn needs<T>(&self, kind: &Spanned<String>, what: &str, key: &str, example: &str) -> Checked<T> {
        let message = format!("the {what} `{}` needs `{key}`", kind.get());
        self.fail(kind, message, format!("add `{key} = {example}`"))
    }

    /// Returns the value of a key; an error with this message and hint if it is not valid.
    fn valid<T: Copy>(
        &self,
        spanned: &Option<Spanned<T>>,
        is_valid: impl Fn(&T) -> bool,
        (message, help): (&str, &str),
    ) -> Checked<Option<T>> {
        match spanned {
            Some(spanned) if !is_valid(spanned.get()) => self.fail(spanned, message, help),
            spanned => Ok(spanned.as_ref().map(|spanned| *spanned.get())),
        }
    }

    /// Returns a delay that is not negative; absent is 0.
    fn not_negative(&self, spanned: &Option<Spanned<TimeDelta>>) -> Checked<TimeDelta> {
        let error = ("a delay must not be negative", "0 ms is the least");
        Ok(self.valid(spanned, |delay| *delay >= TimeDelta::ZERO, error)?.unwrap_or_default())
    }

    /// Returns a time above 0, or its default.
    fn positive(&self, spanned: &Option<Spanned<TimeDelta>>, default: TimeDelta) -> Checked<TimeDelta> {
        let help = format!("leave the key out for {default}");
        Ok(self.valid(spanned, |time| time.is_positive(), ("this time must be > 0", &help))?.unwrap_or(default))
    }

    /// Returns a weight; absent is 1.
    fn priority(&self, spanned: &Option<Spanned<f64>>) -> Checked<f64> {
        let error = ("priority must be above 0", "1 is the usual weight");
        Ok(self.valid(spanned, |priority| priority.is_finite() && *priority > 0.0, error)?.unwrap_or(1.0))
    }

    fn scenario(mut self, file: ScenarioFile, background: Background) -> Checked<Scenario> {
        let Background { case, constants, constants_note, preset_note, shortened } = background;
        let duration = *file.duration.get();
        if !duration.is_positive() || duration > DURATION_MAX {
            return self.fail(&file.duration, "duration must be > 0 and at most a week", "write it like \"60 s\"");
        }
        let error = ("repeats must be 1 to 10000", "leave the key out for one; `run --repeats` takes a number too");
        let repeats = self.valid(&file.repeats, |repeats| (1..=10_000).contains(repeats), error)?.unwrap_or(1);
        if file.id.get().is_empty() || file.id.get().contains(char::is_whitespace) {
            let word = file.id.get().split_whitespace().collect::<Vec<_>>().join("-");
            let word = if word.is_empty() { "my-scenario" } else { &word };
            return self.fail(
                &file.id,
                "an id must not be empty or contain spaces",
                format!("write it like \"{word}\""),
            );
        }

        let rtt = self.not_negative(&file.path.rtt)?;
        let half = file.path.rtt.as_ref().map(|_| Schedule::constant(rtt / 2));
        let mut hops = self.way(file.path.forward.as_ref(), "forward", half.clone())?;
        let forward_hops = hops.len();
        hops.extend(self.way(file.path.reverse.as_ref(), "reverse", half)?);
        // The round trip of a trace is that of the path, half of it each way, except on ways with a delay of their own.
        if let Some(half) = self.traced.half_rtt.take().filter(|_| file.path.rtt.is_none()) {
            for (first, way) in [(0, &file.path.forward), (forward_hops, &file.path.reverse)] {
                if !way.as_ref().is_some_and(path::has_delay) {
                    hops[first].delay = half.clone();
                    self.notes.push(format!("{}: its delay is half of the trace's rtt", hops[first].id));
                }
            }
        }
        let twice = |(index, hop): &(usize, &HopPlan)| hops[..*index].iter().any(|other| other.id == hop.id);
        if let Some((_, hop)) = hops.iter().enumerate().find(twice) {
            let ways = [&file.path.forward, &file.path.reverse].into_iter().flatten();
            let written = ways.filter_map(|way| way.hops.as_ref()).flat_map(|hops| hops.get());
            let named = written.filter_map(|h| h.id.as_ref()).rfind(|id| *id.get() == hop.id);
            let text_span = named.map_or(TextSpan::default(), HasTextSpan::text_span);
            return self.fail(&text_span, format!("two hops have the id `{}`", hop.id), OWN_ID);
        }
        for (index, hop) in hops.iter().enumerate() {
            let shares = |(other, plan): (usize, &HopPlan)| other != index && medium_of(plan) == medium_of(hop);
            if let Some(medium) = medium_of(hop).filter(|_| !hops.iter().enumerate().any(shares)) {
                self.notes.push(format!("{}: no other hop shares its medium `{medium}`", hop.id));
            }
        }
        let end = Time::ZERO + duration;

        if file.flow.is_empty() {
            let help = "add [[flow]] with id = \"video\" and controller = \"gcc-2016\"";
            return self.fail_without_location("a scenario needs at least one [[flow]]", help);
        }
        let mut flows: Vec<FlowPlan> = Vec::new();
        for flow in &file.flow {
            for plan in self.flows(flow, &hops, forward_hops, end)? {
                if flows.iter().any(|other| other.id == plan.id) {
                    return self.fail(&flow.id, format!("two flows have the id `{}`", plan.id), OWN_ID);
                }
                flows.push(plan);
            }
        }
        if flows.len() > usize::from(u16::MAX) {
            return self
                .fail_without_location(format!("{} flows are too many", flows.len()), "a run has at most 65535");
        }

        self.check_groups(&file.flow, &flows)?;

        let bottleneck = bottleneck(&hops, &flows, end);
        let measure = Measure {
            queue: self.named(&file.measure.queue, "queue measure", &QueueMeasure::NAMES)?,
            loss: self.named(&file.measure.loss, "loss measure", &LossMeasure::NAMES)?,
        };
        let error = ("`oracle_rate` must be above zero", "leave it out for a path without an oracle");
        let oracle_rate = self.valid(&file.measure.oracle_rate, |rate| !rate.is_zero(), error)?;
        if oracle_rate.is_some() && hops[bottleneck].server.service.shared_medium().is_none() {
            self.notes.push("oracle_rate has no effect: the bottleneck shares no medium".to_owned());
        }
        let include_if =
            file.measure.include_if.as_ref().map(|spanned| self.include_if(spanned, &flows, end)).transpose()?;
        let scope = expect::Scope { file: &file, case: &case, flows: &flows, hops: &hops, end, shortened };
        let expect::Expectations { expects, asserts, references, other_case_count, after_end_count } =
            self.expectations(&scope)?;
        if other_case_count > 0 {
            let name = if self.origin.is_shipped() { file.id.get() } else { &self.origin.name };
            let what = "of its published values and bounds compare cases or belong to other cases";
            self.notes.push(format!("{other_case_count} {what}: run `paceline reproduce {name}` for them"));
        }
        if after_end_count > 0 {
            let what = "of its published values and bounds lie beyond the end of this shorter run";
            self.notes.push(format!("{after_end_count} {what}"));
        }
        if !self.shortened && self.last_step >= end {
            let (step, duration) = (self.last_step, end - Time::ZERO);
            self.notes.push(format!("the step at {step} of a schedule has no effect: the run lasts {duration}"));
        }
        self.notes.extend(preset_note);
        self.notes.extend(constants_note);
        self.notes.push(format!(
            "{RATES}: {IP_UDP_HEADERS} of IP and UDP headers on each, and RTP with its \
             extensions"
        ));
        let (id, title, source) = (file.id.get().clone(), file.title, file.source);
        Ok(Scenario {
            plan: Plan { id, title, source, case, duration, hops, forward_hops, bottleneck, flows },
            is_shipped: self.origin.is_shipped(),
            repeats,
            measure,
            include_if,
            oracle_rate,
            cases: file.case.iter().map(|c| c.label.get().clone()).collect(),
            constants,
            expects,
            asserts,
            references,
            notes: self.notes,
        })
    }
}

fn medium_of(hop: &HopPlan) -> Option<&str> {
    hop.server.service.shared_medium().map(|medium| medium.name.as_str())
}

/// Returns the hop with the least capacity over the run among those that forward flows cross; without a forward flow, among
/// those that any flow crosses.
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

fn get<T: Copy>(spanned: &Option<Spanned<T>>, default: T) -> T {
    spanned.as_ref().map_or(default, |p| *p.get())
}

fn names<T>(known: &[(&'static str, T)]) -> Vec<&'static str> {
    known.iter().map(|(name, _)| *name).collect()
}
