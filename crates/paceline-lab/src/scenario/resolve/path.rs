//! The network: hops with their capacity, queue, delay, jitter and loss.

use super::{Checked, FILES, FORMATS, QUEUE_LIMIT, Resolver, get};
use crate::plan::{HopPlan, QueuePlan};
use crate::scenario::file::{
    CapacityValue, Hop, JitterTable, Order, Placed, Queue, TraceDirection, TraceEnd, TraceTable, Way,
};
use crate::scenario::problem::{Problem, suggestion};
use crate::scenario::values::{Limit, Loss, Timed};
use crate::trace::{self, Shape, Trace};
use paceline_link::queue::{DISCIPLINES, DropTailLimit};
use paceline_link::{Capacity, End, Jitter, JitterOrder, LossModel, Schedule};
use paceline_units::{DataSize, Fraction, Rate, Time, TimeDelta};

impl Resolver<'_> {
    pub(super) fn way(&mut self, way: Option<&Way>, name: &str, half_rtt: Option<TimeDelta>) -> Checked<Vec<HopPlan>> {
        let none = Hop { id: None, capacity: None, burst: None, queue: None, delay: None, jitter: None, loss: None };
        let Some(way) = way else { return Ok(vec![self.hop(&none, name.to_owned(), half_rtt)?]) };
        let hops = way.hops.iter().flat_map(Placed::get);
        if half_rtt.is_some() && (way.delay.is_some() || hops.clone().any(|h| h.delay.is_some())) {
            self.notes.push(format!("{name}: its own delay stands in place of half of path.rtt"));
        }
        let short = Hop {
            capacity: way.capacity.clone(),
            burst: way.burst.clone(),
            queue: way.queue.clone(),
            delay: way.delay.clone(),
            jitter: way.jitter.clone(),
            loss: way.loss.clone(),
            ..none
        };
        let Some(hops) = &way.hops else { return Ok(vec![self.hop(&short, name.to_owned(), half_rtt)?]) };
        let beside = [
            way.capacity.as_ref().map(Placed::span),
            way.burst.as_ref().map(Placed::span),
            way.queue.as_ref().map(Placed::span),
            way.delay.as_ref().map(Placed::span),
            way.jitter.as_ref().map(Placed::span),
            way.loss.as_ref().map(Placed::span),
        ];
        if let Some(span) = beside.into_iter().flatten().next() {
            let message = "with `hops`, nothing may stand beside it";
            return Err(Problem::at(&self.origin.name, self.text, span, message).help("move it into a hop"));
        }
        let (place, hops) = (hops, hops.get());
        if hops.is_empty() {
            let problem = self.complain(place, format!("path.{name}.hops has no hop"));
            return Err(problem.help("leave the key out for one unlimited hop"));
        }
        // The first hop carries the delay that nobody claims.
        let claimed = hops.iter().any(|h| h.delay.is_some());
        let mut plans = Vec::new();
        for (index, hop) in hops.iter().enumerate() {
            hop.id.iter().try_for_each(|id| self.name(id))?;
            let id = hop.id.as_ref().map_or_else(|| format!("{name}/{index}"), |id| id.get().clone());
            let delay = half_rtt.filter(|_| index == 0 && !claimed);
            plans.push(self.hop(hop, id, delay)?);
        }
        Ok(plans)
    }

    pub(super) fn hop(&mut self, hop: &Hop, id: String, delay: Option<TimeDelta>) -> Checked<HopPlan> {
        let (capacity, nominal) = hop.capacity.as_ref().map(|c| self.capacity(c, &id)).transpose()?.unzip();
        let queue = self.queue(hop.queue.as_ref(), nominal, &id)?;
        let delay = match &hop.delay {
            Some(place) => {
                let schedule = self.schedule(place, place.get(), |d| Ok(*d))?;
                if schedule.points().iter().any(|(_, d)| *d < TimeDelta::ZERO) {
                    return Err(self.complain(place, "a delay is not negative").help("0 ms is the least"));
                }
                schedule
            }
            None => Schedule::constant(delay.unwrap_or(TimeDelta::ZERO)),
        };
        let jitter = hop.jitter.as_ref().map(|j| self.jitter(j)).transpose()?;
        let loss = match &hop.loss {
            Some(place) => self.schedule(place, place.get(), |l| self.loss(l))?,
            None => Schedule::constant(LossModel::NONE),
        };
        let burst = hop.burst.as_ref().map(|b| self.burst(b, hop.capacity.as_ref())).transpose()?;
        Ok(HopPlan { id, capacity, burst, queue, delay, jitter, loss })
    }

    fn burst(&self, place: &Placed<DataSize>, capacity: Option<&Placed<CapacityValue>>) -> Checked<DataSize> {
        if *place.get() < DataSize::from_bytes(1500) {
            let problem = self.complain(place, "a token bucket holds at least one packet of 1500 bytes");
            return Err(problem.help("leave the key out for a line, on which every packet takes its own time"));
        }
        match capacity.map(Placed::get) {
            Some(CapacityValue::Rates(_)) => Ok(*place.get()),
            Some(CapacityValue::Trace(_)) | None => {
                let problem = self.complain(place, "a token bucket needs a capacity that is a rate");
                Err(problem.help("give the hop a `capacity` like \"1 Mbps\", or leave `burst` out"))
            }
        }
    }

    /// A capacity, and the rate that stands for it where one must: of rates the first, of a trace the mean of a lap.
    pub(super) fn capacity(&mut self, place: &Placed<CapacityValue>, id: &str) -> Checked<(Capacity, Rate)> {
        match place.get() {
            CapacityValue::Rates(rates) => {
                let schedule = self.schedule(place, rates, |r| Ok(*r))?;
                if schedule.points().iter().all(|(_, r)| r.is_zero()) {
                    return Err(self
                        .complain(place, "a capacity of nothing carries nothing")
                        .help("leave the key out for an unlimited hop"));
                }
                let first = schedule.points()[0].1;
                Capacity::rates(schedule, End::Hold)
                    .map(|capacity| (capacity, first))
                    .map_err(|e| self.complain(place, e.to_string()).help("write it like \"1 Mbps\""))
            }
            CapacityValue::Trace(table) => self.trace(table, id),
        }
    }

    pub(super) fn trace(&mut self, table: &TraceTable, id: &str) -> Checked<(Capacity, Rate)> {
        let file = table.trace.get();
        let text = self.origin.read(file).map_err(|e| self.complain(&table.trace, e).help(FILES))?;
        let direction = match table.direction {
            Some(TraceDirection::Uplink) => trace::Direction::Uplink,
            Some(TraceDirection::Downlink) | None => trace::Direction::Downlink,
        };
        let trace = Trace::read(&text, direction).map_err(|e| {
            let message = format!("{file}, line {}: {} (`{}`)", e.line, e.cause, e.text);
            self.complain(&table.trace, message).help(e.hint)
        })?;
        let end = match (table.end, trace.end) {
            (Some(TraceEnd::Hold), _) => End::Hold,
            (Some(TraceEnd::Loop), trace::End::Loop { period }) => End::Loop(period),
            (Some(TraceEnd::Loop), trace::End::Hold) if trace.duration().is_positive() => End::Loop(trace.duration()),
            (Some(TraceEnd::Loop), trace::End::Hold) => {
                let problem = self.complain(&table.trace, "a trace of one entry has no length to loop over");
                return Err(problem.help("write end = \"hold\""));
            }
            (None, trace::End::Loop { period }) => End::Loop(period),
            (None, trace::End::Hold) => End::Hold,
        };
        let then = match (end, &trace.shape) {
            (End::Loop(period), _) => format!("loops after {period}"),
            (End::Hold, Shape::Rates(_)) => "holds its last rate".to_owned(),
            (End::Hold, Shape::Opportunities { .. }) => "nothing passes after its end".to_owned(),
        };
        self.notes.push(format!("{id}: {}; {then}", trace.describe()));
        let mean = trace.mean_rate();
        let capacity = match trace.shape {
            Shape::Rates(points) => {
                let points = points.into_iter().map(|(t, r)| (Time::ZERO + t, r)).collect();
                let schedule = Schedule::new(points).expect("a trace's times start at 0 and increase");
                Capacity::rates(schedule, end)
            }
            Shape::Opportunities { at, bytes_each } => Capacity::opportunities(at, bytes_each, end),
        };
        capacity
            .map(|capacity| (capacity, mean))
            .map_err(|e| self.complain(&table.trace, format!("{file}: {e}")).help(FORMATS))
    }

    pub(super) fn queue(
        &mut self,
        place: Option<&Placed<Queue>>,
        nominal: Option<Rate>,
        id: &str,
    ) -> Checked<QueuePlan> {
        let Some(place) = place else {
            return Ok(QueuePlan::DropTail { limit: DropTailLimit::DrainTime(QUEUE_LIMIT), mark: None });
        };
        let queue = place.get();
        let discipline = queue.discipline.as_ref().map(|place| (place, place.get().as_str()));
        let limit = self.level(&queue.limit, queue, nominal, id, "limit")?;
        let nothing = match limit {
            DropTailLimit::Bytes(bytes) => bytes < DataSize::from_bytes(1500),
            DropTailLimit::Packets(packets) => packets == 0,
            DropTailLimit::DrainTime(time) => !time.is_positive(),
        };
        if nothing {
            let problem = self.complain(&queue.limit, "a queue must hold at least one packet of 1500 bytes");
            return Err(problem.help("for the shortest queue write \"1 packet\""));
        }
        if let DropTailLimit::DrainTime(time) = limit
            && nominal.is_some()
        {
            self.notes.push(format!("{id}: the queue's limit of {time} follows each change of capacity"));
        }
        let mark = queue.mark.as_ref().map(|place| self.level(place, queue, nominal, id, "mark")).transpose()?;
        if let (Some(place), Some(mark)) = (&queue.mark, mark) {
            let never = match (mark, limit) {
                (DropTailLimit::Bytes(mark), DropTailLimit::Bytes(limit)) => mark >= limit,
                (DropTailLimit::Packets(mark), DropTailLimit::Packets(limit)) => mark >= limit,
                (DropTailLimit::DrainTime(mark), DropTailLimit::DrainTime(limit)) => mark >= limit,
                _ => false,
            };
            if never {
                let problem = self.complain(place, "what does not fit below the limit is dropped, and never marked");
                return Err(problem.help("write a mark below the limit, or leave it out"));
            }
        }
        match discipline {
            None | Some((_, "drop-tail")) => Ok(QueuePlan::DropTail { limit, mark }),
            Some((place, other)) => {
                let known: Vec<&str> = DISCIPLINES.iter().map(|(n, _)| *n).collect();
                let problem = self.complain(place, format!("no queue discipline `{other}`"));
                Err(problem.help(suggestion(other, &known)))
            }
        }
    }

    /// A queue's `limit` or `mark`, whichever `what` says.
    fn level(
        &mut self,
        place: &Placed<Limit>,
        queue: &Queue,
        nominal: Option<Rate>,
        id: &str,
        what: &str,
    ) -> Checked<DropTailLimit> {
        Ok(match *place.get() {
            Limit::Bytes(bytes) => DropTailLimit::Bytes(bytes),
            Limit::Packets(packets) => DropTailLimit::Packets(packets),
            Limit::Time(time) if queue.follows_capacity.unwrap_or(true) => DropTailLimit::DrainTime(time),
            Limit::Time(time) => {
                let Some(rate) = nominal else {
                    let problem = self.complain(place, "a drain time needs a capacity to drain at");
                    return Err(problem.help(format!("give the hop a `capacity`, or write the {what} like \"60 KB\"")));
                };
                let level = rate * time;
                let bytes = level.as_bytes();
                self.notes
                    .push(format!("{id}: the queue's {what} of {time} is {bytes} bytes, at {rate}, and stays so"));
                DropTailLimit::Bytes(level)
            }
        })
    }

    pub(super) fn jitter(&self, place: &Placed<JitterTable>) -> Checked<Jitter> {
        let table = place.get();
        let std = *table.std.get();
        if !std.is_positive() {
            let problem = self.complain(&table.std, "a standard deviation is more than nothing");
            return Err(problem.help("leave `jitter` out for none"));
        }
        let limit = table.limit.as_ref().map_or(std * 3, |l| *l.get());
        if let Some(place) = table.limit.as_ref().filter(|l| !l.get().is_positive()) {
            let problem = self.complain(place, "the largest jitter is more than nothing");
            return Err(problem.help("leave `limit` out for three standard deviations"));
        }
        let order = match table.order {
            Some(Order::Reorder) => JitterOrder::Reorder,
            Some(Order::Keep) | None => JitterOrder::Keep,
        };
        Ok(Jitter { std, limit, order })
    }

    pub(super) fn loss(&self, loss: &Loss) -> Checked<LossModel> {
        let table = match loss {
            Loss::Fraction(probability) => return Ok(LossModel::Bernoulli { probability: *probability }),
            Loss::Model(table) => table,
        };
        let model = table.model.get().as_str();
        let numbers = [
            ("probability", &table.probability),
            ("to_bad", &table.to_bad),
            ("to_good", &table.to_good),
            ("good", &table.good),
            ("bad", &table.bad),
        ];
        let takes_only = |takes: &[&str]| match numbers.iter().find(|(key, v)| v.is_some() && !takes.contains(key)) {
            Some((key, Some(place))) => {
                let problem = self.complain_of_key(key, place, format!("the loss model `{model}` has no `{key}`"));
                Err(problem.help(suggestion(key, takes)))
            }
            _ => Ok(()),
        };
        let needed = |key: &str, value: &Option<Placed<Fraction>>| match value {
            Some(place) => Ok(*place.get()),
            None => {
                let problem = self.complain(&table.model, format!("the loss model `{model}` needs `{key}`"));
                Err(problem.help(format!("add `{key} = \"1 %\"`")))
            }
        };
        match model {
            "bernoulli" => {
                takes_only(&["probability"])?;
                Ok(LossModel::Bernoulli { probability: needed("probability", &table.probability)? })
            }
            "gilbert-elliott" => {
                takes_only(&["to_bad", "to_good", "good", "bad"])?;
                Ok(LossModel::GilbertElliott {
                    to_bad: needed("to_bad", &table.to_bad)?,
                    to_good: needed("to_good", &table.to_good)?,
                    good: get(&table.good, Fraction::ZERO),
                    bad: get(&table.bad, Fraction::ONE),
                })
            }
            other => {
                let known: Vec<&str> = LossModel::NAMES.iter().map(|(n, _)| *n).collect();
                let problem = self.complain(&table.model, format!("no loss model `{other}`"));
                Err(problem.help(suggestion(other, &known)))
            }
        }
    }

    pub(super) fn schedule<P, T, U>(
        &self,
        place: &Placed<P>,
        timed: &Timed<T>,
        convert: impl Fn(&T) -> Checked<U>,
    ) -> Checked<Schedule<U>> {
        match timed {
            Timed::Constant(value) => convert(value).map(Schedule::constant),
            Timed::Schedule(points) => {
                let first = points.first().map(|(t, _)| *t);
                let points = points.iter().map(|(t, v)| Ok((*t, convert(v)?))).collect::<Checked<Vec<_>>>()?;
                let back = points.windows(2).find(|pair| pair[1].0 <= pair[0].0).map(|pair| (pair[0].0, pair[1].0));
                let complaint = || {
                    let message = match back {
                        Some((before, after)) => format!("times must increase, and {after} comes after {before}"),
                        None => "times must start at 0s".to_owned(),
                    };
                    self.complain(place, message).help("write it like [[\"0s\", …], [\"50s\", …]]")
                };
                if first != Some(Time::ZERO) {
                    return Err(complaint());
                }
                Schedule::new(points).ok_or_else(complaint)
            }
        }
    }
}
