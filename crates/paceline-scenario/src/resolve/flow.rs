// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows: times, routes and kind; media flows with their controller.

use super::changes::Limits;
use super::mtu::path_mtu;
use super::{Checked, Resolver, START_RATE, get, names};
use crate::error::{no_controller, suggestion};
use crate::file::{Flow, HostTable, ProtectionTable};
use crate::text_span::{HasTextSpan, Spanned, TextSpan};
use paceline::{ConfigError, FecScheme, Protection, ResendRule, Setup};
use paceline_netsim::plan::{
    ClockPlan, ControllerPlan, Direction, FlowKind, FlowPlan, HopPlan, HostPlan, MediaPlan, MediaUse, StreamPlan,
    Transport, with_headers,
};
use paceline_units::{DataSize, Dscp, Rate, Time, TimeDelta};

/// The longest interval of which no drawn one, at most 1.5 / 1.218 of it, exceeds the 3 s without a report after which a
/// sender slows down.
const RTCP_INTERVAL_CALM: TimeDelta = TimeDelta::from_millis(2400);
/// Longest name of a flow, a hop or a stream, in bytes.
const NAME_MAX: usize = 100;
/// Largest `count` of a flow.
const COUNT_MAX: u32 = 10_000;

impl Resolver<'_> {
    /// Returns the flows of a table: one, or `count` of them.
    pub(super) fn flows(
        &mut self,
        table: &Flow,
        hops: &[HopPlan],
        forward_hops: usize,
        end: Time,
    ) -> Checked<Vec<FlowPlan>> {
        let error = (&*format!("count must be 1 to {COUNT_MAX}"), "leave the key out for one flow");
        let count = self.valid(&table.count, |count| (1..=COUNT_MAX).contains(count), error)?;
        let flow = self.flow(table, hops, forward_hops, end)?;
        Ok(match count {
            None => vec![flow],
            Some(count) => {
                let nth = |n| FlowPlan { id: format!("{}-{n}", flow.id), group: Some(flow.id.clone()), ..flow.clone() };
                (1..=count).map(nth).collect()
            }
        })
    }

    fn flow(&mut self, flow: &Flow, hops: &[HopPlan], forward_hops: usize, end: Time) -> Checked<FlowPlan> {
        self.name(&flow.id)?;
        let kind = flow.kind.as_ref().map_or("media", |k| k.get());
        if let Some(spanned) = flow.kind.as_ref().filter(|k| FlowKind::NAMES.iter().all(|(n, _)| n != k.get())) {
            return self.unknown(spanned, "kind of flow", &names(&FlowKind::NAMES));
        }
        let (other, foreign) = match kind {
            "tcp" => ("media", flow.media.first_key(|_| true)),
            _ => ("tcp", flow.tcp.first_key(|_| true)),
        };
        if let Some((key, spanned)) = foreign {
            let help = format!("`{key}` belongs to flows of kind \"{other}\"");
            return self.fail(&spanned, format!("a flow of kind `{kind}` has no `{key}`"), help);
        }
        let start = get(&flow.start, Time::ZERO);
        let stop = get(&flow.stop, end);
        if let Some(spanned) = flow.stop.as_ref().filter(|_| stop <= start) {
            let message = format!("flow `{}` stops before it starts", flow.id.get());
            let help = format!("it starts at {start}; `stop` must be later, or absent for the end");
            return self.fail(spanned, message, help);
        }
        if let Some(spanned) = flow.start.as_ref().filter(|_| start >= end) {
            let message = format!("flow `{}` starts after the run has ended", flow.id.get());
            return self.fail(spanned, message, format!("the run lasts {}", end - Time::ZERO));
        }
        let start_spread = self.not_negative(&flow.start_spread)?;
        // A run that `--set` made shorter is the first part of the longer one, and may end before a flow begins.
        let latest = if self.shortened { flow.stop.as_ref().map(|s| *s.get()) } else { Some(stop.min(end)) };
        if let Some((spanned, latest)) =
            flow.start_spread.as_ref().zip(latest).filter(|(_, l)| start + start_spread >= *l)
        {
            let help = format!("it lasts {}; the spread must be shorter", latest - start);
            return self.fail(spanned, format!("flow `{}` might start after it stops", flow.id.get()), help);
        }
        let direction = flow.direction.unwrap_or_default();
        let forward = direction == Direction::Forward;
        let ways = [0..forward_hops, forward_hops..hops.len()];
        let route = self.route(&flow.route, hops, ways[usize::from(!forward)].clone())?;
        let stop = stop.min(end);
        let kind = match kind {
            "tcp" => FlowKind::Tcp(self.tcp(flow.tcp.get(), path_mtu(&route, hops, start..stop))?),
            _ => FlowKind::Media(self.media(flow, stop)?),
        };
        let plan = FlowPlan {
            id: flow.id.get().clone(),
            group: None,
            direction,
            start,
            start_spread,
            stop,
            route,
            return_route: self.route(&flow.report_route, hops, ways[usize::from(forward)].clone())?,
            access_delay: self.not_negative(&flow.access_delay)?,
            dscp: get(&flow.dscp, Dscp::DEFAULT),
            host: self.host(&flow.host, matches!(kind, FlowKind::Media(_)))?,
            kind,
        };
        self.note_packet_time(&plan);
        self.check_mtu(flow, &plan, hops)?;
        self.check_round_trip(flow, &plan, hops)?;
        Ok(plan)
    }

    /// Checks a name, which tables, files and captures contain.
    pub(super) fn name(&self, spanned: &Spanned<String>) -> Checked<()> {
        let name = spanned.get();
        if !name.trim().is_empty() && name.len() <= NAME_MAX && !name.contains(char::is_control) {
            return Ok(());
        }
        let help = format!("write 1 to {NAME_MAX} bytes, such as \"video\"");
        self.fail(spanned, "a name must be one line of text", help)
    }

    fn host(&self, spanned: &Option<Spanned<HostTable>>, is_media: bool) -> Checked<Option<HostPlan>> {
        let packet_time = if is_media { HostPlan::PACKET_TIME } else { TimeDelta::ZERO };
        let Some(spanned) = spanned else {
            return Ok(is_media.then(|| HostPlan { packet_time, ..HostPlan::default() }));
        };
        let host = spanned.get();
        if let Some(packet_time) = host.packet_time.as_ref().filter(|_| !is_media) {
            let help = "leave it out: TCP sends its bursts at once";
            return self.fail(packet_time, "only hosts of media flows take time for a packet", help);
        }
        if host.stall_every.is_some() != host.stall.is_some() {
            let help = "write both, like { stall_every = \"10 s\", stall = \"80 ms\" }, or neither";
            return self.fail(spanned, "stalls need a length and a time between them", help);
        }
        let stall_every = host.stall_every.as_ref().map(|_| self.positive(&host.stall_every, TimeDelta::ZERO));
        let is_short = |time: &TimeDelta| (TimeDelta::ZERO..=TimeDelta::from_millis(10)).contains(time);
        let error = ("a host takes at most 10 ms for a packet", "write a time such as \"80 us\"");
        Ok(Some(HostPlan {
            packet_time: self.valid(&host.packet_time, is_short, error)?.unwrap_or(packet_time),
            jitter: self.not_negative(&host.jitter)?,
            stall_every: stall_every.transpose()?,
            stall: self.not_negative(&host.stall)?,
        }))
    }

    /// Notes if the host is slower than the encoders.
    fn note_packet_time(&mut self, plan: &FlowPlan) {
        let (FlowKind::Media(media), Some(host)) = (&plan.kind, plan.host) else { return };
        let packet_time = host.packet_time;
        if packet_time > TimeDelta::ZERO && media.packet_size < media.max_rate() * packet_time {
            let most = Rate::from_size_and_time(media.packet_size, packet_time);
            self.notes.push(format!(
                "{}: the host takes {packet_time} for a packet, so it sends at most {most}; set host.packet_time or packet_size",
                plan.id
            ));
        }
    }

    fn media(&mut self, flow: &Flow, stop: Time) -> Checked<MediaPlan> {
        let id = flow.id.get();
        let streams = self.streams(flow)?;
        let packet_size = self.packet_size(&flow.media.get().packet_size)?;
        let limits = self.limits(flow.media.get())?;
        let start = get(&flow.start, Time::ZERO);
        let (controller, couples) = self.controller(flow, &streams, packet_size, &limits)?;
        let flow = flow.media.get();
        let least: Rate = streams.iter().map(|s| with_headers(s.source.range().0, packet_size)).sum();
        let floor = *limits.min.at(start);
        if floor < least && flow.min_rate.is_some() {
            self.notes.push(format!("{id}: the encoders need at least {least}, but min_rate is {floor}; below {least} the pacer drops frames. Set min_rate to {least} or lower encoder.min"));
        }
        let rtcp_interval = self.positive(&flow.rtcp_interval, MediaPlan::RTCP_INTERVAL)?;
        if rtcp_interval > RTCP_INTERVAL_CALM {
            self.notes.push(format!(
                "{id}: RFC 3550 draws intervals around {rtcp_interval}, so that more than 3 s may pass without a report; a \
                 controller without feedback of its own then slows down as in an outage"
            ));
        }
        let clock = flow.clock.as_ref().map(Spanned::get);
        let error = ("a clock drifts by at most 100000 ppm", "crystals are within 100 ppm of each other");
        let drift = clock.map_or(&None, |clock| &clock.drift_ppm);
        let drift_ppm = self.valid(drift, |drift| (-100_000.0..=100_000.0).contains(drift), error)?;
        let max = streams.iter().map(|s| with_headers(s.source.range().1, packet_size)).sum();
        let setup = Setup::new(get(&flow.start_rate, START_RATE), floor, max).with_packet_size(packet_size);
        Ok(MediaPlan {
            is_cross_traffic: get(&flow.cross_traffic, false),
            media_use: self.named(&flow.media_use, "use of media", &MediaUse::NAMES)?,
            coupling: self.coupling(flow, couples)?,
            changes: self.changes(flow, &limits, &setup, stop)?,
            controller,
            start_rate: get(&flow.start_rate, START_RATE),
            min_rate: floor,
            clock: ClockPlan {
                offset: clock.and_then(|c| c.offset),
                drift_ppb: drift_ppm.map_or(0, |drift| (drift * 1000.0) as i64),
            },
            streams,
            packet_size,
            rtcp_interval,
            feedback_interval: self.valid(
                &flow.feedback_interval,
                |interval| interval.is_positive(),
                ("this time must be > 0", "leave the key out for the controller's own"),
            )?,
            pacer_limit: self.positive(&flow.pacer_limit, MediaPlan::PACER_LIMIT)?,
            retransmit: get(&flow.retransmit, true),
            protection: flow.protection.as_ref().map_or(Ok(Protection::default()), |p| self.protection(p.get()))?,
            transport: self.named(&flow.transport, "transport", &Transport::NAMES)?,
        })
    }

    fn protection(&self, table: &ProtectionTable) -> Checked<Protection> {
        Ok(Protection {
            fec: self.named(&table.fec, "forward error correction", &FecScheme::NAMES)?,
            resend: self.named(&table.resend_budget, "budget for retransmissions", &ResendRule::NAMES)?,
        })
    }

    fn route(
        &self,
        names: &Option<Vec<Spanned<String>>>,
        hops: &[HopPlan],
        way: std::ops::Range<usize>,
    ) -> Checked<Vec<usize>> {
        let Some(names) = names else { return Ok(way.collect()) };
        let known: Vec<&str> = hops[way.clone()].iter().map(|h| h.id.as_str()).collect();
        let mut route = Vec::new();
        for spanned in names {
            let Some(index) = known.iter().position(|k| k == spanned.get()) else {
                let message = format!("no hop `{}` on this way", spanned.get());
                return self.fail(spanned, message, suggestion(spanned.get(), &known));
            };
            if route.contains(&(way.start + index)) {
                let message = format!("the route contains the hop `{}` twice", spanned.get());
                return self.fail(spanned, message, "a route crosses each hop once");
            }
            route.push(way.start + index);
        }
        Ok(route)
    }

    /// Returns the controller, and whether flows under it can be coupled.
    fn controller(
        &self,
        flow: &Flow,
        streams: &[StreamPlan],
        packet_size: DataSize,
        limits: &Limits,
    ) -> Checked<(ControllerPlan, bool)> {
        let media = flow.media.get();
        let Some(spanned) = &media.controller else {
            let help = "add `controller = \"gcc-2016\"`; `paceline list controllers` shows all";
            return self.fail(&flow.id, format!("the media flow `{}` needs a `controller`", flow.id.get()), help);
        };
        let name = spanned.get();
        let Some(entry) = self.registry.get(name) else {
            let known: Vec<&str> = self.registry.iter().map(|e| e.name()).collect();
            return self.fail(spanned, format!("no controller `{name}`"), no_controller(name, &known));
        };
        let numbers = media.config.get();
        let config: Vec<(String, f64)> = numbers.iter().map(|(k, v)| (k.clone(), *v.get())).collect();
        let setup = Setup::new(
            get(&media.start_rate, START_RATE),
            *limits.min.at(get(&flow.start, Time::ZERO)),
            streams.iter().map(|s| with_headers(s.source.range().1, packet_size)).sum(),
        )
        .with_packet_size(packet_size);
        let built = entry.build(&setup, &config).map_err(|error| {
            let (text_span, help): (TextSpan, String) = match &error {
                ConfigError::UnknownField { name, known, .. } => {
                    (media.config.key(name).unwrap_or(media.config.text_span()), suggestion(name, known))
                }
                ConfigError::OutOfRange { name, unit, .. } => {
                    let default = entry.fields().iter().find(|f| f.name == *name).map_or(0.0, |f| f.default);
                    (numbers[*name].text_span(), format!("its default is {}", format!("{default} {unit}").trim_end()))
                }
                ConfigError::Setup { .. } => {
                    let min = media.min_rate.as_ref().map(HasTextSpan::text_span);
                    let rate = min.or(media.start_rate.as_ref().map(HasTextSpan::text_span));
                    let text_span =
                        rate.or(media.encoder.as_ref().map(HasTextSpan::text_span)).unwrap_or(spanned.text_span());
                    (text_span, "change `min_rate` or `start_rate` of the flow, or the `max` of its sources".to_owned())
                }
                _ => (spanned.text_span(), "`paceline list controllers --json` shows all".to_owned()),
            };
            self.error(&text_span, error.to_string()).help(help)
        })?;
        let couples = built.send.is_some_and(|half| half.calculated_rate().is_some());
        Ok((ControllerPlan::new(entry, config), couples))
    }
}
