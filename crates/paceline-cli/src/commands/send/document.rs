//! The result of `paceline send`: as JSON, and as text.

use super::bounds::{Unmeasured, describe_unmeasured};
use super::frozen::FrozenStreams;
use super::highest;
use crate::commands::run::assertion_line;
use crate::output;
use crate::table::Table;
use paceline_lab::results::Assertion;
use paceline_live::hosts::diagnosis::{Diagnosis, Evidence, diagnose};
use paceline_live::hosts::message::Totals;
use paceline_live::hosts::send_side::FlowReport;
use paceline_live::hosts::sender::{BackReport, End, SendReport};
use paceline_live::hosts::summary::Summary;
use paceline_live::hosts::terms::Terms;
use paceline_live::hosts::world::TwoHosts;
use paceline_live::testbed::lateness;
use paceline_netsim::plan::Plan;
use paceline_netsim::records::{MetricKind, ratio_interval};
use paceline_units::Time;
use serde::Serialize;
use std::net::SocketAddr;

/// Quantiles of a time.
#[derive(Serialize)]
pub(super) struct Quantiles {
    pub(super) p50: Option<f64>,
    pub(super) p95: Option<f64>,
    pub(super) p99: Option<f64>,
}

/// The result, as `--json` prints it.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    pub(super) world: &'static str,
    pub(super) peer: SocketAddr,
    pub(super) terms: &'a Terms,
    pub(super) end: End,
    pub(super) lasted_s: f64,
    pub(super) sent_packets: u64,
    pub(super) sent_bps: f64,
    pub(super) received_packets: u64,
    pub(super) received_bps: f64,
    /// Mean target.
    pub(super) target_bps: f64,
    /// Received rate relative to the mean target.
    pub(super) target_use: f64,
    /// Round-trip times of receiver reports.
    pub(super) rtt_ms: Quantiles,
    /// One-way delay above the smallest one; the clocks of the hosts are not synchronised.
    pub(super) delay_variation_ms: Quantiles,
    pub(super) loss_ratio: f64,
    /// 95 % interval, if losses are independent.
    pub(super) loss_interval: (f64, f64),
    pub(super) marked_packets: u64,
    pub(super) frames: Option<u64>,
    pub(super) frames_dropped: Option<u64>,
    /// Duration of freezes over that of the media, of the video stream with the most, without streams that may pause; `null` if there is no
    /// such stream, and if reports of frames are missing.
    pub(super) freeze_ratio: Option<f64>,
    /// Whether the receiver confirmed its totals at the end.
    pub(super) confirmed: bool,
    /// Reported arrivals that match no packet, and datagrams that are not of the session.
    pub(super) unknown_arrivals: u64,
    pub(super) stranger_datagrams: u64,
    /// Each flow.
    pub(super) flows: Vec<FlowDocument>,
    /// The flows of the other direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) back: Option<BackDocument>,
    /// The TCP flow beside the media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tcp: Option<TcpDocument>,
    pub(super) verdict: Diagnosis,
    pub(super) why: String,
    pub(super) evidence: Evidence,
    #[serde(flatten)]
    pub(super) judged: Judged<'a>,
}

/// The bounds of a scenario.
#[derive(Default, Serialize)]
pub(super) struct Judged<'a> {
    /// Its id; `None` without a scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scenario: Option<&'a str>,
    /// Its case, as `--case` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) case: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) assertions: Vec<Assertion>,
    /// Bounds that were not measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unmeasured: Vec<Unmeasured>,
}

/// The TCP flow, as `--json` prints it.
#[derive(Serialize)]
pub(super) struct TcpDocument {
    /// Congestion control of the kernel; `null` without a connection.
    congestion: Option<String>,
    /// Bytes that the kernel of this host accepted. Some of them wait at the end of the session.
    sent_bytes: u64,
    /// Bytes that the receiver read, and their rate over the duration of the media; `null` if it did not say so.
    received_bytes: Option<u64>,
    received_bps: Option<f64>,
    /// Why there was no connection, or why it ended before the session.
    pub(super) problem: Option<String>,
}

/// A flow, as `--json` prints it. Its rates are over the time in which it was active.
#[derive(Serialize)]
pub(super) struct FlowDocument {
    id: String,
    sent_packets: u64,
    sent_bps: f64,
    /// As far as reports say.
    received_packets: u64,
    received_bps: f64,
    target_bps: f64,
    rtt_ms: Quantiles,
    delay_variation_ms: Quantiles,
    loss_ratio: f64,
    marked_packets: u64,
}

/// The flows of the other direction, as `--json` prints them: what arrived here, and what the receiver measured.
#[derive(Serialize)]
pub(super) struct BackDocument {
    received_packets: u64,
    received_bps: f64,
    frames: u64,
    frames_dropped: u64,
    flows: Vec<BackFlow>,
    /// `null` if the goodbye of the receiver did not arrive.
    measured: Option<BackMeasured>,
}

/// A flow of the other direction.
#[derive(Serialize)]
struct BackFlow {
    received_packets: u64,
    /// Over the whole session, also of a flow that starts later.
    received_bps: f64,
}

/// What the receiver measured of the flows that it sent.
#[derive(Serialize)]
struct BackMeasured {
    sent_packets: u64,
    sent_bps: f64,
    target_bps: f64,
    rtt_ms: Quantiles,
    delay_variation_ms: Quantiles,
    loss_ratio: f64,
    loss_interval: (f64, f64),
}

/// Returns the result of the flows of this plan, and of their streams.
pub(super) fn document<'a>(
    report: &SendReport,
    peer: SocketAddr,
    terms: &'a Terms,
    plan: &Plan,
    (ids, frozen): (&[String], &FrozenStreams),
    judged: Judged<'a>,
) -> Document<'a> {
    let SendReport { sent, received, lasted, .. } = report;
    let seconds = lasted.as_secs_f64().max(1e-9);
    let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
    let lost = report.known_packets.saturating_sub(received.packets);
    let loss_ratio = lost as f64 / report.known_packets.max(1) as f64;
    let sum = |of: &dyn Fn(&FlowReport) -> f64| report.flows.iter().map(of).sum::<f64>();
    let target = sum(&|flow| flow.target.as_bps_f64() * flow.lasted.as_secs_f64() / seconds);
    let late_target = sum(&|flow| flow.late_target.as_bps_f64());
    let variation = quantiles(report.variation.percentiles_ms());
    let tcp = report.tcp.as_ref().map(|tcp| TcpDocument {
        congestion: tcp.sent.congestion.clone(),
        sent_bytes: tcp.sent.bytes,
        received_bytes: tcp.received,
        received_bps: tcp.received.map(rate),
        problem: tcp.sent.problem.clone(),
    });
    let evidence = Evidence {
        received_packets: received.packets,
        silent: report.end == End::Silence,
        loss_ratio,
        target_share: target_share(late_target, highest(plan).as_bps_f64()),
        variation_p95_ms: variation.p95.unwrap_or(0.0),
        drift: report.drift,
        late_p99_ms: lateness::percentiles(&report.lateness).p99 / 1e3,
        send_failures: report.send_failures,
        tcp_bps: tcp.as_ref().and_then(|tcp| tcp.received_bps),
    };
    let (verdict, why) = diagnose(&evidence);
    Document {
        world: TwoHosts::NAME,
        peer,
        terms,
        end: report.end,
        lasted_s: lasted.as_secs_f64(),
        sent_packets: sent.packets,
        sent_bps: rate(sent.bytes),
        received_packets: received.packets,
        received_bps: rate(received.bytes),
        target_bps: target,
        target_use: if target > 0.0 { rate(received.bytes) / target } else { 0.0 },
        rtt_ms: quantiles(report.rtt.percentiles_ms()),
        delay_variation_ms: variation,
        loss_ratio,
        loss_interval: ratio_interval(lost, report.known_packets),
        marked_packets: received.marked,
        frames: report.confirmed.then_some(received.frames),
        frames_dropped: report.confirmed.then_some(received.frames_dropped),
        freeze_ratio: frozen.ratio(Time::ZERO + *lasted).filter(|_| report.knows_frames),
        confirmed: report.confirmed,
        unknown_arrivals: report.unknown_arrivals,
        stranger_datagrams: report.strangers,
        flows: report.flows.iter().zip(ids).map(|(flow, id)| flow_document(flow, id)).collect(),
        back: report.back.as_ref().map(|back| back_document(back, seconds)),
        tcp,
        verdict,
        why,
        evidence,
        judged,
    }
}

/// Returns the share of the highest rate, at most 1: a controller may hold its target while all streams pause.
fn target_share(target: f64, highest: f64) -> f64 {
    if target < highest { target / highest } else { 1.0 }
}

fn quantiles([p50, p95, p99]: [Option<f64>; 3]) -> Quantiles {
    Quantiles { p50, p95, p99 }
}

fn flow_document(flow: &FlowReport, id: &str) -> FlowDocument {
    let seconds = flow.lasted.as_secs_f64().max(1e-9);
    let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
    let lost = flow.known_packets.saturating_sub(flow.received.packets);
    FlowDocument {
        id: id.to_owned(),
        sent_packets: flow.sent.packets,
        sent_bps: rate(flow.sent.bytes),
        received_packets: flow.received.packets,
        received_bps: rate(flow.received.bytes),
        target_bps: flow.target.as_bps_f64(),
        rtt_ms: quantiles(flow.rtt_ms),
        delay_variation_ms: quantiles(flow.variation_ms),
        loss_ratio: lost as f64 / flow.known_packets.max(1) as f64,
        marked_packets: flow.received.marked,
    }
}

fn back_document(back: &BackReport, seconds: f64) -> BackDocument {
    let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
    let sum = |of: fn(&Totals) -> u64| back.flows.iter().map(of).sum::<u64>();
    let received_packets = sum(|flow| flow.packets);
    let flow = |flow: &Totals| BackFlow { received_packets: flow.packets, received_bps: rate(flow.bytes) };
    let measured = |measured: &Summary| {
        // Packets that were under way at the end are not lost.
        let known = measured.known_packets.max(1);
        let lost = measured.known_packets.saturating_sub(measured.received_packets);
        BackMeasured {
            sent_packets: measured.sent_packets,
            sent_bps: rate(measured.sent_bytes),
            target_bps: measured.target_bps as f64,
            rtt_ms: quantiles(measured.rtt_ms),
            delay_variation_ms: quantiles(measured.delay_variation_ms),
            loss_ratio: lost as f64 / known as f64,
            loss_interval: ratio_interval(lost, known),
        }
    };
    BackDocument {
        received_packets,
        received_bps: rate(sum(|flow| flow.bytes)),
        frames: sum(|flow| flow.frames),
        frames_dropped: sum(|flow| flow.frames_dropped),
        flows: back.flows.iter().map(flow).collect(),
        measured: back.measured.as_ref().map(measured),
    }
}

pub(super) fn describe(document: &Document<'_>) -> String {
    let rate = |bps: f64| MetricKind::Rate.show(bps);
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    let ms = |value: Option<f64>| value.map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
    let mut table = Table::new(["", "measured", "p95", "p99"], 1);
    let mut row = |name: &str, cells: [String; 3]| {
        table.row([name.to_owned()].into_iter().chain(cells).collect());
    };
    let one = |text: String| [text, String::new(), String::new()];
    row("sent", one(rate(document.sent_bps)));
    row("received", one(rate(document.received_bps)));
    row("target, mean", one(rate(document.target_bps)));
    row("received / target", one(percent(document.target_use)));
    let quantiles = |q: &Quantiles| [ms(q.p50), ms(q.p95), ms(q.p99)];
    row("round trip, median", quantiles(&document.rtt_ms));
    row("delay variation, median", quantiles(&document.delay_variation_ms));
    row("lost", one(percent(document.loss_ratio)));
    row("marked (CE)", one(document.marked_packets.to_string()));
    if let (Some(frames), Some(dropped)) = (document.frames, document.frames_dropped) {
        row("frames, given up", one(format!("{frames}, {dropped}")));
    }
    if let Some(frozen) = document.freeze_ratio {
        row("frozen", one(percent(frozen)));
    }
    if let Some(tcp) = &document.tcp {
        let name = tcp.congestion.as_ref().map_or("TCP: received".to_owned(), |name| format!("TCP ({name}): received"));
        row(&name, one(tcp.received_bps.map_or("–".to_owned(), rate)));
    }
    if let Some(back) = &document.back {
        row("back: received", one(rate(back.received_bps)));
        if let Some(measured) = &back.measured {
            row("back: sent", one(rate(measured.sent_bps)));
            row("back: target, mean", one(rate(measured.target_bps)));
            row("back: round trip, median", quantiles(&measured.rtt_ms));
            row("back: delay variation, median", quantiles(&measured.delay_variation_ms));
            row("back: lost", one(percent(measured.loss_ratio)));
        }
    }
    let Terms { flows, seed, .. } = document.terms;
    let mut what: Vec<&str> = document.judged.scenario.into_iter().chain(document.judged.case.as_deref()).collect();
    let sources = flows.iter().flat_map(|flow| &flow.streams).map(|stream| &*stream.source);
    for name in flows.iter().map(|flow| &*flow.controller).chain(sources) {
        if !what.contains(&name) {
            what.push(name);
        }
    }
    let mut text = format!(
        "{} to {}: {}, {:.1} s, seed {seed}\n\n{}\n",
        output::bold("hosts"),
        document.peer,
        what.join(", "),
        document.lasted_s,
        table.render()
    );
    if document.flows.len() > 1 {
        let mut flows = Table::new(["flow", "received", "target", "delay variation p95", "lost"], 1);
        for flow in &document.flows {
            flows.row(vec![
                flow.id.clone(),
                rate(flow.received_bps),
                rate(flow.target_bps),
                ms(flow.delay_variation_ms.p95),
                percent(flow.loss_ratio),
            ]);
        }
        text += &format!("{}\n", flows.render());
    }
    for assertion in &document.judged.assertions {
        text += &format!("{}\n", output::wrap(&assertion_line(assertion)));
    }
    let verdict = format!("{}: {}", document.verdict.name(), document.why);
    text += &format!("{}\n", output::wrap(&verdict));
    let (low, high) = document.loss_interval;
    let mut notes = vec![
        format!("Loss is from {} to {} (95 %), if losses are independent.", percent(low), percent(high)),
        "Delay variation is above the smallest one-way delay, because the clocks of the hosts are not synchronised. It \
         includes their drift."
            .to_owned(),
    ];
    match document.end {
        End::Complete => {}
        End::Interrupted => notes.push("The session was interrupted.".to_owned()),
        End::PeerLeft => notes.push("The receiver ended the session.".to_owned()),
        End::Silence => notes.push(
            "The receiver reported no arrival for 10 s, so the sender stopped; totals and loss are those up to its last \
             report."
                .to_owned(),
        ),
    }
    if !document.confirmed && document.end == End::Complete {
        notes.push("The receiver did not confirm its totals, so the fate of the last packets is not known.".to_owned());
    }
    if let Some(problem) = document.tcp.as_ref().and_then(|tcp| tcp.problem.as_ref()) {
        notes.push(format!(
            "There was no TCP flow, or not to the end: {problem}. Let TCP to the receiver's port pass its firewall."
        ));
    }
    notes.extend(describe_unmeasured(&document.judged.unmeasured));
    if document.unknown_arrivals + document.stranger_datagrams > 0 {
        notes.push(format!(
            "{} reported arrivals match no packet, {} datagrams were not of the session.",
            document.unknown_arrivals, document.stranger_datagrams
        ));
    }
    notes.iter().for_each(|note| text += &format!("{}\n", output::hang("· ", note)));
    text
}
