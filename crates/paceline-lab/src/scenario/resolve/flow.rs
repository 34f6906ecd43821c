//! Flows: when, over which hops, of which kind; media flows under which controller.

use super::{Checked, MIN_RATE, PACER_LIMIT, RTCP_INTERVAL, Resolver, START_RATE, get};
use crate::plan::{
    ClockPlan, ControllerPlan, Direction, FlowKind, FlowPlan, HopPlan, HostPlan, MediaPlan, StreamPlan, with_headers,
};
use crate::rows::HalfName;
use crate::scenario::file::{Flow, FlowDirection, HostTable, Placed, ProtectionTable};
use crate::scenario::problem::{Problem, no_controller, suggestion};
use paceline::{ConfigError, Entry, FecScheme, Protection, ResendRule, Setup, SignalShape};
use paceline_units::{Rate, Time, TimeDelta};

/// Up to here no drawn interval of reports, at most 1.5 / 1.218 of it, exceeds the 3 s after which a sender slows down.
const RTCP_INTERVAL_CALM: TimeDelta = TimeDelta::from_millis(2400);
/// Longest name of a flow, a hop or a stream, in bytes.
const NAME_MAX: usize = 100;
/// Flows that one table may stand for.
const COUNT_MAX: u32 = 10_000;

impl Resolver<'_> {
    /// The flows that a table stands for: one, or `count` of them.
    pub(super) fn flows(
        &mut self,
        place: &Placed<Flow>,
        hops: &[HopPlan],
        forward_hops: usize,
        end: Time,
    ) -> Checked<Vec<FlowPlan>> {
        let count = place.get().count.as_ref();
        if let Some(place) = count.filter(|c| !(1..=COUNT_MAX).contains(c.get())) {
            let problem = self.complain(place, format!("a table stands for 1 to {COUNT_MAX} flows"));
            return Err(problem.help("leave the key out for one"));
        }
        let flow = self.flow(place, hops, forward_hops, end)?;
        Ok(match count {
            None => vec![flow],
            Some(count) => {
                let nth = |n| FlowPlan { id: format!("{}-{n}", flow.id), group: Some(flow.id.clone()), ..flow.clone() };
                (1..=*count.get()).map(nth).collect()
            }
        })
    }

    fn flow(&mut self, place: &Placed<Flow>, hops: &[HopPlan], forward_hops: usize, end: Time) -> Checked<FlowPlan> {
        let flow = place.get();
        self.name(&flow.id)?;
        let kind = flow.kind.as_ref().map_or("media", |k| k.get());
        if let Some(place) = flow.kind.as_ref().filter(|k| FlowKind::NAMES.iter().all(|(n, _)| n != k.get())) {
            let known: Vec<&str> = FlowKind::NAMES.iter().map(|(n, _)| *n).collect();
            let problem = self.complain(place, format!("no kind of flow `{kind}`"));
            return Err(problem.help(suggestion(kind, &known)));
        }
        if let Some((other, key, span)) = flow.own_keys().into_iter().find(|(own, ..)| *own != kind) {
            let message = format!("a flow of kind `{kind}` has no `{key}`");
            let problem = Problem::at(&self.origin.name, self.text, span, message);
            return Err(problem.help(format!("`{key}` belongs to flows of kind \"{other}\"")));
        }
        let start = flow.start.as_ref().map_or(Time::ZERO, |s| *s.get());
        let stop = flow.stop.as_ref().map_or(end, |s| *s.get());
        if let Some(place) = flow.stop.as_ref().filter(|_| stop <= start) {
            let problem = self.complain(place, format!("flow `{}` stops before it starts", flow.id.get()));
            return Err(problem.help(format!("it starts at {start}; `stop` must be later, or absent for the end")));
        }
        if start >= end {
            let place = flow.start.as_ref().expect("it was written");
            let problem = self.complain(place, format!("flow `{}` starts after the run has ended", flow.id.get()));
            return Err(problem.help(format!("the run lasts {}", end - Time::ZERO)));
        }
        let start_spread = flow.start_spread.as_ref().map_or(Ok(TimeDelta::ZERO), |s| self.not_negative(s))?;
        // A run that `--set` made shorter is the first part of the longer one, and may end before a flow begins.
        let latest = if self.shortened { flow.stop.as_ref().map(|s| *s.get()) } else { Some(stop.min(end)) };
        if let Some((place, latest)) =
            flow.start_spread.as_ref().zip(latest).filter(|(_, l)| start + start_spread >= *l)
        {
            let problem = self.complain(place, format!("flow `{}` might start after it stops", flow.id.get()));
            return Err(problem.help(format!("it lives for {}; the spread must be shorter", latest - start)));
        }
        let (direction, forward) = match flow.direction {
            Some(FlowDirection::Reverse) => (Direction::Reverse, false),
            Some(FlowDirection::Forward) | None => (Direction::Forward, true),
        };
        let ways = [0..forward_hops, forward_hops..hops.len()];
        let kind = match kind {
            "tcp" => FlowKind::Tcp(self.tcp(flow)?),
            _ => FlowKind::Media(self.media(place)?),
        };
        Ok(FlowPlan {
            id: flow.id.get().clone(),
            group: None,
            direction,
            start,
            start_spread,
            stop: stop.min(end),
            route: self.route(&flow.route, hops, ways[usize::from(!forward)].clone())?,
            return_route: self.route(&flow.report_route, hops, ways[usize::from(forward)].clone())?,
            access_delay: flow.access_delay.as_ref().map_or(Ok(TimeDelta::ZERO), |delay| self.not_negative(delay))?,
            host: flow.host.as_ref().map(|place| self.host(place)).transpose()?,
            kind,
        })
    }

    /// Names stand in tables, files and captures.
    pub(super) fn name(&self, place: &Placed<String>) -> Checked<()> {
        let name = place.get();
        if !name.trim().is_empty() && name.len() <= NAME_MAX && !name.contains(char::is_control) {
            return Ok(());
        }
        let problem = self.complain(place, "a name is a line of text");
        Err(problem.help(format!("write 1 to {NAME_MAX} bytes, such as \"video\"")))
    }

    fn host(&self, place: &Placed<HostTable>) -> Checked<HostPlan> {
        let host = place.get();
        if host.stall_every.is_some() != host.stall.is_some() {
            let problem = self.complain(place, "stalls have a length and a time between them");
            return Err(problem.help("write both, like { stall_every = \"10 s\", stall = \"80 ms\" }, or neither"));
        }
        Ok(HostPlan {
            jitter: host.jitter.as_ref().map_or(Ok(TimeDelta::ZERO), |jitter| self.not_negative(jitter))?,
            stall_every: host
                .stall_every
                .as_ref()
                .map(|_| self.positive(&host.stall_every, TimeDelta::ZERO))
                .transpose()?,
            stall: host.stall.as_ref().map_or(Ok(TimeDelta::ZERO), |stall| self.not_negative(stall))?,
        })
    }

    fn media(&mut self, place: &Placed<Flow>) -> Checked<MediaPlan> {
        let flow = place.get();
        let streams = self.streams(place)?;
        let controller = self.controller(flow, &streams)?;
        let least: Rate = streams.iter().map(|s| with_headers(s.source.range().0)).sum();
        let floor = get(&flow.min_rate, MIN_RATE);
        if floor < least && flow.min_rate.is_some() {
            let id = flow.id.get();
            self.notes.push(format!("{id}: below {least} its sources send more than its controller allows ({floor})"));
        }
        let rtcp_interval = self.positive(&flow.rtcp_interval, RTCP_INTERVAL)?;
        if rtcp_interval > RTCP_INTERVAL_CALM {
            let id = flow.id.get();
            self.notes.push(format!("{id}: RFC 3550 draws intervals around {rtcp_interval}, so that more than 3 s may pass without a report; a controller without feedback of its own then slows down as in an outage"));
        }
        let clock = flow.clock.as_ref().map(Placed::get);
        let drift = clock.and_then(|c| c.drift_ppm.as_ref());
        if let Some(place) = drift.filter(|d| !(-100_000.0..=100_000.0).contains(d.get())) {
            let problem = self.complain(place, "a clock drifts by at most 100000 ppm");
            return Err(problem.help("crystals are within 100 ppm of each other"));
        }
        Ok(MediaPlan {
            controller,
            start_rate: get(&flow.start_rate, START_RATE),
            min_rate: floor,
            clock: ClockPlan {
                offset: clock.and_then(|c| c.offset),
                drift_ppb: drift.map_or(0, |d| (d.get() * 1000.0) as i64),
            },
            streams,
            rtcp_interval,
            pacer_limit: self.positive(&flow.pacer_limit, PACER_LIMIT)?,
            retransmit: get(&flow.retransmit, true),
            protection: flow.protection.as_ref().map_or(Ok(Protection::default()), |p| self.protection(p.get()))?,
        })
    }

    fn protection(&self, table: &ProtectionTable) -> Checked<Protection> {
        Ok(Protection {
            fec: self.named(&table.fec, "forward error correction", &FecScheme::NAMES)?,
            resend: self.named(&table.resend_budget, "budget for retransmissions", &ResendRule::NAMES)?,
        })
    }

    /// The value of this name, or the default.
    fn named<T: Copy + Default>(&self, place: &Option<Placed<String>>, what: &str, known: &[(&str, T)]) -> Checked<T> {
        let Some(place) = place else { return Ok(T::default()) };
        known.iter().find(|(name, _)| name == place.get()).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let problem = self.complain(place, format!("no {what} `{}`", place.get()));
            problem.help(suggestion(place.get(), &names))
        })
    }

    /// A time above nothing, or its default.
    pub(super) fn positive(&self, place: &Option<Placed<TimeDelta>>, default: TimeDelta) -> Checked<TimeDelta> {
        match place {
            Some(p) if !p.get().is_positive() => {
                let problem = self.complain(p, "this time must be more than nothing");
                Err(problem.help(format!("leave the key out for {default}")))
            }
            Some(p) => Ok(*p.get()),
            None => Ok(default),
        }
    }

    pub(super) fn route(
        &self,
        names: &Option<Vec<Placed<String>>>,
        hops: &[HopPlan],
        way: std::ops::Range<usize>,
    ) -> Checked<Vec<usize>> {
        let Some(names) = names else { return Ok(way.collect()) };
        let known: Vec<&str> = hops[way.clone()].iter().map(|h| h.id.as_str()).collect();
        let find = |place: &Placed<String>| match known.iter().position(|k| k == place.get()) {
            Some(index) => Ok(way.start + index),
            None => {
                let problem = self.complain(place, format!("no hop `{}` on this way", place.get()));
                Err(problem.help(suggestion(place.get(), &known)))
            }
        };
        let route = names.iter().map(find).collect::<Checked<Vec<usize>>>()?;
        let again = (1..route.len()).find(|n| route[..*n].contains(&route[*n]));
        if let Some(place) = again.map(|n| &names[n]) {
            let problem = self.complain(place, format!("the route names the hop `{}` again", place.get()));
            return Err(problem.help("a route crosses each hop once"));
        }
        Ok(route)
    }

    pub(super) fn controller(&self, flow: &Flow, streams: &[StreamPlan]) -> Checked<ControllerPlan> {
        let Some(place) = &flow.controller else {
            let problem = self.complain(&flow.id, format!("the media flow `{}` needs a `controller`", flow.id.get()));
            return Err(problem.help("add `controller = \"gcc-2016\"`; `paceline list controllers` shows all"));
        };
        let name = place.get();
        let Some(entry) = self.registry.get(name) else {
            let known: Vec<&str> = self.registry.iter().map(|e| e.name()).collect();
            return Err(self.complain(place, format!("no controller `{name}`")).help(no_controller(name, &known)));
        };
        let config: Vec<(String, f64)> = flow.config.iter().map(|(k, v)| (k.clone(), *v.get())).collect();
        let setup = Setup {
            start: flow.start_rate.as_ref().map_or(START_RATE, |r| *r.get()),
            min: flow.min_rate.as_ref().map_or(MIN_RATE, |r| *r.get()),
            max: streams.iter().map(|s| with_headers(s.source.range().1)).sum(),
        };
        entry.build(&setup, &config).map_err(|error| match &error {
            ConfigError::UnknownField { name, known, .. } => {
                self.complain_of_key(name, &flow.config[name], error.to_string()).help(suggestion(name, known))
            }
            ConfigError::OutOfRange { name, unit, .. } => {
                let default = entry.fields().iter().find(|f| f.name == *name).map_or(0.0, |f| f.default);
                let problem = self.complain(&flow.config[*name], error.to_string());
                problem.help(format!("its default is {}", format!("{default} {unit}").trim_end()))
            }
            ConfigError::Setup { .. } => {
                let rate = flow.min_rate.as_ref().or(flow.start_rate.as_ref());
                let problem = match (rate, &flow.encoder) {
                    (Some(place), _) => self.complain(place, error.to_string()),
                    (None, Some(encoder)) => self.complain(encoder, error.to_string()),
                    (None, None) => self.complain(place, error.to_string()),
                };
                problem.help("change `min_rate` or `start_rate` of the flow, or the `max` of its sources")
            }
            _ => self.complain(place, error.to_string()).help("`paceline list controllers --json` shows all"),
        })?;
        Ok(ControllerPlan { name: name.clone(), config, overuse: overuse(entry) })
    }
}

/// Where a controller's signals tell of over-use: the state called `usage`, in either half.
fn overuse(entry: &Entry) -> Option<(HalfName, u8, f64)> {
    let (send, receive) = entry.signals();
    [(HalfName::Send, send), (HalfName::Receive, receive)].into_iter().find_map(|(half, signals)| {
        let index = signals.iter().position(|s| s.name == "usage")?;
        let SignalShape::State(states) = signals[index].shape else { return None };
        let over = states.iter().position(|state| *state == "overuse")?;
        Some((half, index as u8, over as f64))
    })
}
