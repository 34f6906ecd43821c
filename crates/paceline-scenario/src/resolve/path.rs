// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network: hops with their capacity, queue, delay, jitter and loss.

use super::parameters::Chosen;
use super::{Checked, FORMATS, QUEUE_LIMIT, Resolver, Traced};
use crate::file::{HopKeys, JitterTable, Order, Queue, Way};
use crate::forms::Timed;
use crate::parameters::Given;
use crate::text_span::{HasTextSpan, Spanned, TextSpan};
use crate::trace::{Conditions, Shape, Trace};
use crate::values::{CapacityValue, Loss, Server, ServerTable, TraceEnd, TraceTable};
use paceline_netsim::link::loss::LOSS_MODELS;
use paceline_netsim::link::queue::{DISCIPLINES, QueueLimit, QueuePlan};
use paceline_netsim::link::server::{CapacityNeed, SERVERS, ServerPlan};
use paceline_netsim::link::{Capacity, CapacityEnd, Jitter, JitterOrder, LossModel, MTU, MediumPlan, Schedule};
use paceline_netsim::plan::HopPlan;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// Returns whether a way has a delay of its own.
pub(super) fn has_delay(way: &Way) -> bool {
    way.hop.get().delay.is_some() || way.hops.iter().flat_map(Spanned::get).any(|hop| hop.keys.get().delay.is_some())
}

impl Resolver<'_> {
    pub(super) fn way(
        &mut self,
        way: Option<&Way>,
        name: &str,
        half_rtt: Option<Schedule<TimeDelta>>,
    ) -> Checked<Vec<HopPlan>> {
        let Some(way) = way else { return Ok(vec![self.hop(&HopKeys::default(), name.to_owned(), half_rtt)?]) };
        let keys = way.hop.get();
        let has_delay = has_delay(way);
        if half_rtt.is_some() && has_delay {
            self.notes.push(format!("{name}: its own delay replaces half of path.rtt"));
        }
        let Some(hops) = &way.hops else { return Ok(vec![self.hop(keys, name.to_owned(), half_rtt)?]) };
        if let Some((key, text_span)) = way.hop.first_key(|_| true) {
            return self.fail(&text_span, format!("`{key}` is not allowed together with `hops`"), "move it into a hop");
        }
        if hops.get().is_empty() {
            let help = "leave the key out for one unlimited hop";
            return self.fail(hops, format!("path.{name}.hops has no hop"), help);
        }
        let mut plans = Vec::new();
        for (index, hop) in hops.get().iter().enumerate() {
            hop.id.iter().try_for_each(|id| self.name(id))?;
            let id = hop.id.as_ref().map_or_else(|| format!("{name}/{index}"), |id| id.get().clone());
            // Where no hop has a delay of its own, the first one has half of the round trip.
            let delay = half_rtt.clone().filter(|_| index == 0 && !has_delay);
            plans.push(self.hop(hop.keys.get(), id, delay)?);
        }
        Ok(plans)
    }

    fn hop(&mut self, hop: &HopKeys, id: String, delay: Option<Schedule<TimeDelta>>) -> Checked<HopPlan> {
        let (capacity, nominal) = hop.capacity.as_ref().map(|c| self.capacity(c, &id)).transpose()?.unzip();
        let is_traced = matches!(hop.capacity.as_ref().map(Spanned::get), Some(CapacityValue::Trace(_)));
        let mtu = hop.mtu.as_ref().map_or(Ok(Schedule::constant(MTU)), |spanned| self.mtu(spanned))?;
        let queue = self.queue(hop.queue.as_ref().map(Spanned::get), nominal, &mtu, &id)?;
        let delay = match &hop.delay {
            Some(spanned) => {
                let schedule = self.schedule(spanned, spanned.get(), |_, d| Ok(*d))?;
                if schedule.points().iter().any(|(_, d)| *d < TimeDelta::ZERO) {
                    return self.fail(spanned, "a delay must not be negative", "0 ms is the least");
                }
                schedule
            }
            None => delay.unwrap_or(Schedule::constant(TimeDelta::ZERO)),
        };
        let jitter = hop.jitter.as_ref().map(|j| self.jitter(j.get())).transpose()?.flatten();
        let loss = match &hop.loss {
            Some(spanned) => self.schedule(spanned, spanned.get(), |resolver, loss| resolver.loss(loss, &id))?,
            None => {
                let loss = self.traced.loss.take().filter(|_| is_traced);
                self.notes.extend(loss.is_some().then(|| format!("{id}: its loss is that of the trace")));
                loss.unwrap_or(Schedule::constant(LossModel::NONE))
            }
        };
        let clears_ecn = hop.clears_ecn.as_ref().is_some_and(|clears| *clears.get());
        let server = self.server(hop, capacity.as_ref(), &id)?;
        Ok(HopPlan { id, capacity, server, queue, delay, jitter, loss, mtu, clears_ecn })
    }

    fn server(&mut self, hop: &HopKeys, capacity: Option<&Capacity>, id: &str) -> Checked<ServerPlan> {
        let Some(Server(table)) = &hop.server else { return Ok(ServerPlan::default()) };
        let ServerTable { kind, parameters } = table.get();
        let given = |key: &str| table.value(key);
        let chosen = self.choose(kind.as_ref(), parameters, &SERVERS[0], &[])?;
        let values = self.values(&chosen, parameters, &format!("hop `{id}`"), |_, _, _, level| Ok(level))?;
        let Chosen { entry, at } = chosen;
        for (_, given) in parameters.get().iter() {
            if let Given::Text(spanned) = given {
                self.name(spanned)?;
            }
        }
        let service = (entry.build)(&values)
            .map_err(|error| self.error(&given(error.parameter).unwrap_or(at), error.message).help(error.hint))?;
        let is_written = matches!(hop.capacity.as_ref().map(Spanned::get), Some(CapacityValue::Rates(_)));
        let unmet = match entry.needs {
            CapacityNeed::Rates(message) if !capacity.is_some_and(Capacity::has_rates) => Some(message),
            CapacityNeed::WrittenRates(message) if !is_written => Some(message),
            _ => None,
        };
        if let Some(message) = unmet {
            let help = "give the hop a `capacity` like \"1 Mbps\", or leave `server` out";
            return self.fail(&entry.implied_by.and_then(given).unwrap_or(at), message, help);
        }
        if let Some(medium) = service.shared_medium() {
            self.join_medium(medium, id, |key| given(key).unwrap_or(at))?;
        }
        Ok(ServerPlan { entry, service })
    }

    /// Adds a hop to its medium; an error if it contradicts a hop that shares it. `at` returns the location of a key.
    fn join_medium(&mut self, medium: &MediumPlan, id: &str, at: impl Fn(&str) -> TextSpan) -> Checked<()> {
        let name = &medium.name;
        for (other, of_other) in self.media.iter().filter(|(_, other)| other.name == *name) {
            if of_other.kind != medium.kind {
                let message = format!("`{name}` is the medium `{}` of the hop `{other}`", of_other.kind.name());
                return self.fail(&at("medium"), message, "all hops of a medium have the same server");
            }
            if let Some(key) = medium.conflict(of_other) {
                let message = format!("`{key}` differs from that of the hop `{other}`, with which it shares `{name}`");
                let help =
                    format!("write the same `{key}` in both hops, or give them other names of medium or station");
                return self.fail(&at(key), message, help);
            }
        }
        self.media.push((id.to_owned(), medium.clone()));
        Ok(())
    }

    /// Returns a capacity and its nominal rate: of rates the first, of a trace the mean of one round.
    fn capacity(&mut self, spanned: &Spanned<CapacityValue>, id: &str) -> Checked<(Capacity, Rate)> {
        match spanned.get() {
            CapacityValue::Rates(rates) => {
                let schedule = self.schedule(spanned, rates, |_, r| Ok(*r))?;
                if schedule.points().iter().all(|(_, r)| r.is_zero()) {
                    return self.fail(spanned, "capacity must be > 0", "leave the key out for an unlimited hop");
                }
                let first = schedule.points()[0].1;
                Capacity::rates(schedule, CapacityEnd::Hold)
                    .map(|capacity| (capacity, first))
                    .map_err(|e| self.error(spanned, e.to_string()).help("write it like \"1 Mbps\""))
            }
            CapacityValue::Trace(table) => self.trace(table, id),
        }
    }

    fn trace(&mut self, table: &TraceTable, id: &str) -> Checked<(Capacity, Rate)> {
        let file = table.trace.get();
        let text = self.origin.read(file).map_err(|e| self.error(&table.trace, e).help(self.origin.lookup()))?;
        let trace = Trace::read(&text, table.direction.unwrap_or_default()).map_err(|e| {
            let message = format!("{file}, line {}: {}{}", e.line, e.cause, numbers_only(&e.text));
            self.error(&table.trace, message).help(e.hint)
        })?;
        let end = match (table.end, trace.end) {
            (Some(TraceEnd::Hold), _) => CapacityEnd::Hold,
            (Some(TraceEnd::Loop), CapacityEnd::Hold) if !trace.duration.is_positive() => {
                let message = "a trace of one entry has no length to loop over";
                return self.fail(&table.trace, message, "write end = \"hold\"");
            }
            (Some(TraceEnd::Loop), CapacityEnd::Hold) => CapacityEnd::Loop(trace.duration),
            (_, end) => end,
        };
        let then = match (end, &trace.shape) {
            (CapacityEnd::Loop(period), _) => format!("loops after {period}"),
            (CapacityEnd::Hold, Shape::Rates(_)) => "holds its last rate".to_owned(),
            (CapacityEnd::Hold, Shape::Opportunities { .. }) => "nothing passes after its end".to_owned(),
        };
        self.notes.push(format!("{id}: {}; {then}", trace.describe()));
        let mean = trace.mean_rate();
        let Conditions { loss, rtt } = &trace.conditions;
        self.traced = Traced {
            loss: over_time(loss, end, self.duration, |share| LossModel::Bernoulli(*share)),
            half_rtt: self.traced.half_rtt.take().or_else(|| over_time(rtt, end, self.duration, |rtt| *rtt / 2)),
        };
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
            .map_err(|e| self.error(&table.trace, format!("{file}: {e}")).help(FORMATS))
    }

    fn queue(
        &mut self,
        queue: Option<&Queue>,
        nominal: Option<Rate>,
        mtu: &Schedule<DataSize>,
        id: &str,
    ) -> Checked<QueuePlan> {
        let Some(queue) = queue else { return Ok(QueuePlan::drop_tail(QueueLimit::DrainTime(QUEUE_LIMIT))) };
        let chosen = self.choose(queue.discipline.as_ref(), &queue.parameters, &DISCIPLINES[0], &[])?;
        let discipline = chosen.entry;
        let limit = match &queue.limit {
            Some(spanned) => self.level(spanned, spanned.get().0, queue, nominal, (id, "limit"))?,
            None => match (discipline.default_limit(), nominal) {
                (QueueLimit::DrainTime(time), Some(rate)) if queue.follows_capacity == Some(false) => {
                    QueueLimit::Bytes(rate * time)
                }
                (limit, _) => limit,
            },
        };
        let packet = mtu.points().iter().map(|(_, mtu)| *mtu).fold(MTU, DataSize::min);
        let nothing = match limit {
            QueueLimit::Bytes(bytes) => bytes < packet,
            QueueLimit::Packets(packets) => packets == 0,
            QueueLimit::DrainTime(time) => !time.is_positive(),
        };
        if let Some(spanned) = queue.limit.as_ref().filter(|_| nothing) {
            let help = "for the shortest queue write \"1 packet\"";
            let message = format!("a queue must hold at least one packet of {} bytes", packet.as_bytes());
            return self.fail(spanned, message, help);
        }
        if let QueueLimit::DrainTime(time) = limit
            && nominal.is_some()
        {
            self.notes.push(format!("{id}: the queue's limit of {time} follows each change of capacity"));
        }
        let values =
            self.values(&chosen, &queue.parameters, &format!("hop `{id}`"), |resolver, name, spanned, level| {
                let level = resolver.level(spanned, level, queue, nominal, (id, name))?;
                let never = match (level, limit) {
                    (QueueLimit::Bytes(level), QueueLimit::Bytes(limit)) => level >= limit,
                    (QueueLimit::Packets(level), QueueLimit::Packets(limit)) => level >= limit,
                    (QueueLimit::DrainTime(level), QueueLimit::DrainTime(limit)) => level >= limit,
                    _ => false,
                };
                if never {
                    let message =
                        format!("the level `{name}` has no effect: the queue drops packets before they reach it");
                    return resolver.fail(
                        spanned,
                        message,
                        format!("write a `{name}` below the limit, or leave it out"),
                    );
                }
                Ok(level)
            })?;
        Ok(QueuePlan { discipline, limit, values })
    }

    /// Returns a level of the queue of a hop, its `limit` or another key, in bytes if it does not follow the capacity.
    fn level(
        &mut self,
        spanned: &impl HasTextSpan,
        level: QueueLimit,
        queue: &Queue,
        nominal: Option<Rate>,
        (id, key): (&str, &str),
    ) -> Checked<QueueLimit> {
        let QueueLimit::DrainTime(time) = level else { return Ok(level) };
        if queue.follows_capacity.unwrap_or(true) {
            return Ok(level);
        }
        let Some(rate) = nominal else {
            let help = format!("give the hop a `capacity`, or write the {key} like \"60 KB\"");
            return self.fail(spanned, format!("a `{key}` in drain time needs a capacity"), help);
        };
        let (level, bytes) = (rate * time, (rate * time).as_bytes());
        self.notes.push(format!("{id}: the queue's {key} of {time} is {bytes} bytes, at {rate}, and stays so"));
        Ok(QueueLimit::Bytes(level))
    }

    /// Returns the jitter of a hop; a standard deviation of 0 is none, so that a sweep may begin there.
    fn jitter(&self, table: &JitterTable) -> Checked<Option<Jitter>> {
        let std = *table.std.get();
        if std < TimeDelta::ZERO {
            return self.fail(&table.std, "std must not be negative", "0 ms is no jitter");
        }
        let error = ("the largest jitter must be > 0", "leave `limit` out for three standard deviations");
        let limit = self.valid(&table.limit, |limit| limit.is_positive(), error)?.unwrap_or(std * 3);
        let order = match table.order {
            Some(Order::Reorder) => JitterOrder::Reorder,
            Some(Order::Keep) | None => JitterOrder::Keep,
        };
        let jitter = Jitter { std, limit, order };
        Ok(Some(jitter).filter(|jitter| jitter.std.is_positive()))
    }

    fn loss(&mut self, loss: &Loss, hop: &str) -> Checked<LossModel> {
        let table = match loss {
            Loss::Fraction(probability) => return Ok(LossModel::Bernoulli(*probability)),
            Loss::Model(table) => table.get(),
        };
        let chosen = self.choose(Some(&table.model), &table.parameters, &LOSS_MODELS[0], &[])?;
        let values = self.values(&chosen, &table.parameters, &format!("hop `{hop}`"), |_, _, _, level| Ok(level))?;
        Ok((chosen.entry.build)(&values))
    }

    pub(super) fn schedule<P: HasTextSpan, T, U>(
        &mut self,
        spanned: &P,
        timed: &Timed<T>,
        mut convert: impl FnMut(&mut Self, &T) -> Checked<U>,
    ) -> Checked<Schedule<U>> {
        match timed {
            Timed::Constant(value) => convert(self, value).map(Schedule::constant),
            Timed::Schedule(points) => {
                let points = points.iter().map(|(t, v)| Ok((*t, convert(self, v)?))).collect::<Checked<Vec<_>>>()?;
                let help = "[[\"0s\", …], [\"50s\", …]]";
                self.check_increasing(spanned, points.iter().map(|(at, _)| *at), false, help)?;
                self.last_step = self.last_step.max(points.last().map_or(Time::ZERO, |(at, _)| *at));
                if points.first().is_none_or(|(at, _)| *at != Time::ZERO) {
                    return self.fail(spanned, "times must start at 0s", format!("write it like {help}"));
                }
                Ok(Schedule::new(points).expect("the times increase"))
            }
        }
    }
}

/// Values of a trace during a run at most: bounds the memory.
const POINTS_MAX: usize = 1 << 20;

/// Returns values of a trace over a run, again in each round; `None` if there are none.
fn over_time<T, U: Clone>(
    points: &[(TimeDelta, T)],
    end: CapacityEnd,
    duration: TimeDelta,
    convert: impl Fn(&T) -> U,
) -> Option<Schedule<U>> {
    let round: Vec<(TimeDelta, U)> = points.iter().map(|(at, value)| (*at, convert(value))).collect();
    let (first, last) = (round.first()?.1.clone(), round.last()?.1.clone());
    let period = match end {
        CapacityEnd::Loop(period) => period,
        CapacityEnd::Hold => duration.max(TimeDelta::from_nanos(1)),
    };
    let (mut all, mut begin) = (Vec::new(), TimeDelta::ZERO);
    while begin < duration && all.len() + round.len() < POINTS_MAX {
        // Before the first value holds the last of the round before.
        if round[0].0.is_positive() {
            all.push((Time::ZERO + begin, if all.is_empty() { first.clone() } else { last.clone() }));
        }
        all.extend(round.iter().map(|(at, value)| (Time::ZERO + begin + *at, value.clone())));
        begin += period;
    }
    Schedule::new(all)
}

/// Returns a quotation of numbers; empty for other text. The file that a scenario names may be no trace but a secret.
fn numbers_only(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || " \t.,+-".contains(c);
    if !text.is_empty() && text.chars().all(is_number) { format!(" (`{text}`)") } else { String::new() }
}
