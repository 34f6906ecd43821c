// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of `paceline send`: as JSON, and as text.

use super::bounds::{Unmeasured, describe_unmeasured};
use crate::commands::run::assertion_line;
use crate::output;
use crate::table::Table;
use paceline_lab::results::Assertion;
use paceline_live::hosts::report::{End, FlowReport, Measured, Quantiles, SendReport};
use paceline_live::hosts::terms::Terms;
use paceline_netsim::records::MetricKind;
use serde::Serialize;
use std::net::SocketAddr;

/// The result, as `--json` prints it.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    pub(super) world: &'static str,
    pub(super) peer: SocketAddr,
    pub(super) terms: &'a Terms,
    #[serde(flatten)]
    pub(super) report: &'a SendReport,
    /// Duration of freezes over that of the media, of the video stream with the most, without streams that may pause; `null` if there is no
    /// such stream, and if reports of frames are missing.
    pub(super) freeze_ratio: Option<f64>,
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

pub(super) fn describe(document: &Document<'_>) -> String {
    let rate = |bps: f64| MetricKind::Rate.show(bps);
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    let ms = |value: Option<f64>| value.map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
    let mut table = Table::new(["", "measured", "p95", "p99"], 1);
    let mut row = |name: &str, cells: [String; 3]| {
        table.row([name.to_owned()].into_iter().chain(cells).collect());
    };
    let one = |text: String| [text, String::new(), String::new()];
    let quantiles = |q: &Quantiles| [ms(q.p50), ms(q.p95), ms(q.p99)];
    let Document { report, terms, judged, .. } = document;
    let Measured { loss_interval: (low, high), .. } = report.measured;
    row("sent", one(rate(report.measured.sent_bps)));
    row("received", one(rate(report.measured.received_bps)));
    row("target, mean", one(rate(report.measured.target_bps)));
    row("received / target", one(percent(report.target_use)));
    row("round trip, median", quantiles(&report.measured.rtt_ms));
    row("delay variation, median", quantiles(&report.measured.delay_variation_ms));
    row("lost", one(percent(report.measured.loss_ratio)));
    row("marked (CE)", one(report.measured.marked_packets.to_string()));
    if let (Some(frames), Some(dropped)) = (report.frames, report.frames_dropped) {
        row("frames, given up", one(format!("{frames}, {dropped}")));
    }
    if let Some(frozen) = document.freeze_ratio {
        row("frozen", one(percent(frozen)));
    }
    if let Some(tcp) = &report.tcp {
        let name = tcp.sent.congestion.as_ref();
        let name = name.map_or("TCP: received".to_owned(), |name| format!("TCP ({name}): received"));
        row(&name, one(tcp.received_bps.map_or("–".to_owned(), rate)));
    }
    if let Some(back) = &report.back {
        row("back: received", one(rate(back.received.received_bps)));
        if let Some(measured) = &back.measured {
            row("back: sent", one(rate(measured.sent_bps)));
            row("back: target, mean", one(rate(measured.target_bps)));
            row("back: round trip, median", quantiles(&measured.rtt_ms));
            row("back: delay variation, median", quantiles(&measured.delay_variation_ms));
            row("back: lost", one(percent(measured.loss_ratio)));
        }
    }
    let Terms { flows, seed, .. } = terms;
    let mut what: Vec<&str> = judged.scenario.into_iter().chain(judged.case.as_deref()).collect();
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
        report.lasted_s,
        table.render()
    );
    if report.flows.len() > 1 {
        let mut flows = Table::new(["flow", "received", "target", "delay variation p95", "lost"], 1);
        for FlowReport { id, measured } in &report.flows {
            flows.row(vec![
                id.clone(),
                rate(measured.received_bps),
                rate(measured.target_bps),
                ms(measured.delay_variation_ms.p95),
                percent(measured.loss_ratio),
            ]);
        }
        text += &format!("{}\n", flows.render());
    }
    for assertion in &judged.assertions {
        text += &format!("{}\n", output::wrap(&assertion_line(assertion)));
    }
    let verdict = format!("{}: {}", report.verdict.name(), report.why);
    text += &format!("{}\n", output::wrap(&verdict));
    let mut notes = vec![
        format!("Loss is from {} to {} (95 %), if losses are independent.", percent(low), percent(high)),
        "Delay variation is above the smallest one-way delay, because the clocks of the hosts are not synchronised. It \
         includes their drift."
            .to_owned(),
    ];
    match report.end {
        End::Complete => {}
        End::Interrupted => notes.push("The session was interrupted.".to_owned()),
        End::PeerLeft => notes.push("The receiver ended the session.".to_owned()),
        End::Silence => notes.push(
            "The receiver reported no arrival for 10 s, so the sender stopped; totals and loss are those up to its last \
             report."
                .to_owned(),
        ),
    }
    if !report.confirmed && report.end == End::Complete {
        notes.push("The receiver did not confirm its totals, so the fate of the last packets is not known.".to_owned());
    }
    if let Some(problem) = report.tcp.as_ref().and_then(|tcp| tcp.sent.problem.as_ref()) {
        notes.push(format!(
            "There was no TCP flow, or not to the end: {problem}. Let TCP to the receiver's port pass its firewall."
        ));
    }
    notes.extend(describe_unmeasured(&judged.unmeasured));
    if report.unknown_arrivals + report.stranger_datagrams > 0 {
        notes.push(format!(
            "{} reported arrivals match no packet, {} datagrams were not of the session.",
            report.unknown_arrivals, report.stranger_datagrams
        ));
    }
    notes.iter().for_each(|note| text += &format!("{}\n", output::hang("· ", note)));
    text
}
