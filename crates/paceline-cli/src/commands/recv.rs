// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline recv`.

use super::host_recording::Recording;
use super::host_session::{self, PORT};
use super::metrics_server::{Metric, MetricsServer, counter, gauge};
use super::user;
use crate::output;
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::results::Store;
use paceline_live::hosts::listener::Counters;
use paceline_live::hosts::message::Totals;
use paceline_live::hosts::receiver::{Receiver, ReceiverState};
use paceline_live::hosts::report::{End, ReceiveReport};
use paceline_live::hosts::terms::{FlowTerms, Terms};
use paceline_live::testbed::socket::Socket;
use paceline_netsim::plan::FlowPlan;
use paceline_netsim::records::{EventRecord, MetricKind};
use paceline_units::Rate;
use serde::Serialize;
use std::cell::RefCell;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `recv`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Address and UDP port to listen at. With the default, only this machine can reach it; 0.0.0.0:9777 or [::]:9777 lets other
    /// machines reach it.
    #[arg(long, value_name = "ADDRESS", default_value_t = SocketAddr::from(([127, 0, 0, 1], PORT)))]
    bind: SocketAddr,
    /// File with a secret of at least 16 bytes that both ends have. Sessions are then encrypted, and others are refused. The environment
    /// variable PACELINE_SECRET if absent.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Serves metrics for Prometheus at http://ADDRESS/metrics; on the loopback only.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Gives up the rights of root for those of this user once the command has its socket and its secret, and with them real-time
    /// priority.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Highest rate of all flows together that a sender may let this end send (`send --both`).
    #[arg(long, value_name = "RATE", default_value = "100Mbps")]
    max_back_rate: Rate,
    /// Ends after the first session.
    #[arg(long)]
    once: bool,
    /// Writes events and results of the flows that this end sends (`send --both`, or those of `send --scenario` with
    /// `direction = "reverse"`) into this folder.
    #[arg(long, value_name = "DIR", requires = "once")]
    out: Option<PathBuf>,
    /// Prints one JSON document for each session, and one with the counted datagrams at the end.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  paceline recv --once
  paceline recv --bind 0.0.0.0:9777";

/// The counted datagrams, as `--json` prints them.
#[derive(Serialize)]
struct Counted {
    datagrams: Counters,
}

/// Serves sessions and prints the result of each.
pub fn recv(arguments: &Arguments) -> Result<ExitCode> {
    let bound = UdpSocket::bind(arguments.bind).map_err(|error| {
        let help = "name an address of this machine and a free UDP port, such as --bind 127.0.0.1:9778";
        miette!(help = help, "cannot listen at {}: {error}", arguments.bind)
    })?;
    let socket = Socket::new(bound).into_diagnostic()?;
    let secret = host_session::secret(arguments.secret_file.as_deref())?;
    user::become_named(arguments.user.as_deref())?;
    let registry = Registry::standard();
    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let recording: RefCell<Option<Recording>> = RefCell::default();
    let not_stored = RefCell::new(None);
    let on_start = |terms: &Terms, flows: Vec<FlowPlan>| {
        // That of a session that was refused after it was built.
        recording.take();
        if let Some(store) = store.as_ref().filter(|_| !flows.is_empty()) {
            match Recording::start(store, terms.own_plan(flows), terms.seed, &registry) {
                Ok(started) => drop(recording.replace(Some(started))),
                Err(error) => drop(not_stored.replace(Some(error))),
            }
        }
        let flow = |flow: &FlowTerms| {
            let back = if flow.back { "back: " } else { "" };
            let each = if flow.count > 1 { format!("{} flows, each ", flow.count) } else { String::new() };
            let sources: Vec<&str> = flow.streams.iter().map(|stream| &*stream.source).collect();
            format!("{back}{}, {}, {each}up to {}", flow.controller, sources.join(" + "), flow.max())
        };
        let each: Vec<String> = terms.flows.iter().map(flow).collect();
        let beside = if terms.tcp { ", beside a TCP flow" } else { "" };
        eprintln!("session: {}; for {}{beside}", each.join("; "), terms.duration());
    };
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| miette!("the system has no random numbers: {error}"))?;
    let stop = host_session::stop_flag()?;
    let server = arguments.metrics.map(MetricsServer::start).transpose()?;
    eprintln!("listening at {}; Ctrl-C ends", socket.address().into_diagnostic()?);
    let on_event = |event: &EventRecord| {
        if let Some(recording) = &mut *recording.borrow_mut() {
            recording.push(event);
        }
    };
    let receiver = Receiver {
        socket: &socket,
        key,
        secret,
        registry: &registry,
        max_back_rate: arguments.max_back_rate,
        signals: store.is_some(),
        on_start: &on_start,
        on_event: &on_event,
        stop: &stop,
    };
    let (mut printed, mut over) = (Ok(()), None);
    let mut on_end = |report: &ReceiveReport| {
        over = Some(report.clone());
        printed = output::print_result(arguments.json, report, || describe(report));
        !arguments.once && printed.is_ok()
    };
    let counters = receiver.run(&mut on_end, &mut |state| {
        if let Some(server) = &server {
            server.set(&metrics(state));
        }
    });
    printed?;
    if let Some(error) = not_stored.take() {
        return Err(error);
    }
    // Not before the sender has its answer.
    match (&arguments.out, recording.take(), over) {
        (Some(dir), Some(recording), Some(report)) => {
            recording.finish(&report)?;
            eprintln!("events and results of the flows that this end sent are in {}", dir.display());
        }
        (Some(_), ..) => eprintln!("nothing is stored: this end sent no flows"),
        (None, ..) => {}
    }
    let counters = counters.into_diagnostic()?;
    match arguments.json {
        true => output::print_json(&Counted { datagrams: counters })?,
        false => refused(&counters).iter().for_each(|line| eprintln!("{line}")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the metrics of a receiver.
fn metrics(state: &ReceiverState) -> Vec<Metric> {
    let ReceiverState { counters, sessions, running, totals } = state;
    let all: u64 = counters.dropped().iter().map(|(count, _)| count).sum();
    let dropped = all - counters.refused - counters.unauthentic;
    vec![
        counter("received_packets", "RTP packets that arrived.", totals.packets),
        counter("received_bytes", "Their bytes, with IP and UDP headers.", totals.bytes),
        counter("marked_packets", "RTP packets that arrived marked as congestion experienced.", totals.marked),
        counter("frames", "Frames that were rendered.", totals.frames),
        counter("frames_dropped", "Frames that were given up.", totals.frames_dropped),
        counter("sessions", "Sessions that were accepted.", *sessions),
        gauge("running_sessions", "Sessions that run now.", *running as f64),
        counter("hellos", "Requests of a token.", counters.hellos),
        counter("refused_sessions", "Sessions that were refused.", counters.refused),
        counter("unauthentic_datagrams", "Datagrams of sealed sessions that were not authentic.", counters.unauthentic),
        counter("dropped_datagrams", "All other datagrams that were dropped.", dropped),
    ]
}

fn describe(report: &ReceiveReport) -> String {
    let ReceiveReport { peer, received_bps, lasted_s, .. } = report;
    let Totals { packets, marked, frames, frames_dropped, .. } = report.totals;
    let rate = MetricKind::Rate.show(*received_bps);
    let end = match report.end {
        End::Complete => "",
        End::Interrupted => "; interrupted",
        End::PeerLeft => "; the sender left",
        End::Silence => "; the sender was silent for 10 s",
    };
    let text = format!(
        "{peer}: {packets} packets in {lasted_s:.1} s, {rate}, {marked} marked (CE); {frames} frames, {frames_dropped} given up{end}"
    );
    let back = report
        .back
        .as_ref()
        .map(|back| format!("; sent back {} packets, of which {} arrived", back.sent_packets, back.received_packets));
    let tcp = report.tcp.as_ref().map(|tcp| match tcp.bytes {
        Some(bytes) => format!("; TCP: {:.1} MB, {} other connections", bytes as f64 / 1e6, tcp.refused),
        None => format!("; TCP: no connection, {} others", tcp.refused),
    });
    output::wrap(&(text + &back.unwrap_or_default() + &tcp.unwrap_or_default()))
}

/// Returns a line if datagrams were dropped.
fn refused(counters: &Counters) -> Option<String> {
    let kinds = counters.dropped().into_iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(count, kind)| format!("{count} {kind}")).collect();
    (!kinds.is_empty()).then(|| format!("dropped datagrams: {}", kinds.join(", ")))
}
