// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline send`.

mod bounds;
mod document;
mod frozen;
mod live;
mod scenario;
mod survey;

use super::host_recording::forget_frames;
use super::host_session::{self, PORT};
use super::metrics_server::{Metric, MetricsServer, gauge};
use super::release::Release;
use super::{Variation, check_controllers, reject_external, user};
use crate::errors::world_error;
use crate::output;
use crate::progress::StatusLine;
use bounds::{Unmeasured, is_of_frames};
use clap::ValueEnum;
use document::{Document, Judged, describe};
use frozen::FrozenStreams;
use live::{ControllerState, live_text};
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::capture::Capture;
use paceline_lab::results::{Store, Verdict};
use paceline_lab::run::{RunResult, Runner, summarise};
use paceline_lab::run_identity::whole_values;
use paceline_live::hosts::report::{End, SendReport};
use paceline_live::hosts::sender::{Peer, Progress};
use paceline_live::hosts::session_plan::SOURCES;
use paceline_live::hosts::world::TwoHosts;
use paceline_live::testbed::socket::Socket;
use paceline_live::testbed::timing::Timing;
use paceline_live::watch::{LiveObserver, WatchServer, WatchedRun};
use paceline_netsim::preview::PreviewImages;
use paceline_netsim::records::{EventObserver, EventRecord, RunHeader};
use paceline_netsim::world::{World, WorldError};
use paceline_scenario::{Assert, Scenario};
use paceline_units::{Rate, TimeDelta};
use scenario::{Planned, plan};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Arguments of `send`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Host on which `paceline recv` runs: a name or an address, with a UDP port if that is not 9777.
    host: String,
    /// Sends the media flows of this scenario, an id or a file, and evaluates its bounds unless --compare is given; its path
    /// does not apply. --set and --case change it.
    #[arg(long, value_name = "SCENARIO", conflicts_with_all = ["source", "max_rate", "start_rate", "min_rate", "flows", "both"])]
    scenario: Option<String>,
    #[command(flatten)]
    variation: Variation,
    /// Controller of the media flows; if absent, those of the scenario, or googcc. `paceline list controllers` shows all.
    #[arg(long, value_name = "NAME")]
    controller: Option<String>,
    /// Sends under several controllers in turns, in random order, and reports which differences from the first one are larger than the
    /// variation of the path.
    #[arg(long, value_name = "A,B[,…]", value_delimiter = ',', conflicts_with_all = ["controller", "out", "both", "pcap", "metrics"])]
    compare: Vec<String>,
    /// With --compare: number of turns of each controller.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=100), requires = "compare")]
    turns: u8,
    /// Source of the media: encoder, ideal or screen. `paceline list sources` describes them.
    #[arg(long, default_value = SOURCES[0], value_name = "NAME")]
    source: String,
    /// Highest rate of the source.
    #[arg(long, default_value = "2Mbps", value_name = "RATE")]
    max_rate: Rate,
    /// First target rate; the highest rate if that is lower.
    #[arg(long, default_value = "300kbps", value_name = "RATE")]
    start_rate: Rate,
    /// Lowest target rate.
    #[arg(long, default_value = "30kbps", value_name = "RATE")]
    min_rate: Rate,
    /// Number of flows, up to 256, each with these rates.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    flows: u16,
    /// Lets the receiver send as many flows, too.
    #[arg(long)]
    both: bool,
    /// Runs a flow of the kernel's TCP from this host to the receiver beside the media, to the TCP port with the receiver's number.
    #[arg(long, value_enum, value_name = "KIND")]
    with: Option<Beside>,
    /// Duration of the media, up to 1h, with --compare of each turn. If absent, that of the scenario; without a scenario 20s, or 10s for
    /// each turn of --compare.
    #[arg(long, value_name = "TIME")]
    duration: Option<TimeDelta>,
    /// File with a secret of at least 16 bytes that both ends have: the session is encrypted. The environment variable
    /// PACELINE_SECRET if absent.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Gives up the rights of root for those of this user once the command has its socket and its secret, and with them real-time
    /// priority.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// How packets are released: `sleep` uses kernel timers; `precise` polls the clock shortly before the due time, which uses part of a
    /// core.
    #[arg(long, value_enum, default_value_t = Release::Sleep)]
    timing: Release,
    /// Seed of the random streams of both ends.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Writes events and results into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Serves metrics for Prometheus at http://ADDRESS/metrics while the session runs; on the loopback only.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Serves a page on this machine that shows the session live, and prints its address.
    #[arg(long, conflicts_with = "compare")]
    watch: bool,
    /// Writes every packet that this host sends, and RTCP that it receives, into this pcapng file.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Prints one JSON document.
    #[arg(long)]
    json: bool,
}

/// What runs beside the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Beside {
    // One bulk flow with the congestion control that this system uses by default.
    Tcp,
}

const EXAMPLES: &str = "\
Examples:
  paceline send 192.0.2.7
  paceline send host.example:9000 --controller scream-v2 --max-rate 10Mbps
  paceline send 192.0.2.7 --max-rate 10Mbps --with tcp
  paceline send 192.0.2.7 --scenario call.toml --out results
  paceline send 192.0.2.7 --compare googcc,scream-v2,nada --max-rate 10Mbps
  paceline send 192.0.2.7 --scenario call.toml --compare googcc,scream-v2";

/// Why external controllers are refused.
const NAMED: &str = "two hosts run controllers that both have by name";

/// The controller without a scenario.
const CONTROLLER: &str = "googcc";

/// `--timing precise`: a virtual machine may need more than 100 µs to wake up.
const PRECISE: Timing = Timing::Polls(TimeDelta::from_micros(200));

/// Sends media and prints the result.
pub fn send(arguments: &Arguments) -> Result<ExitCode> {
    let named: Vec<String> = arguments.controller.iter().chain(&arguments.compare).cloned().collect();
    let hint =
        "`paceline run SCENARIO --world testbed --controllers NAME` sends its packets through the kernel of this host";
    reject_external(&named, NAMED, hint)?;
    let registry = Registry::standard();
    check_controllers(&named, &registry)?;
    let turns = survey::turns(arguments, &registry)?;
    let controller = arguments.compare.first().or(arguments.controller.as_ref());
    let planned = plan(arguments, controller.map(String::as_str), arguments.seed, &registry)?;
    planned.notes.iter().for_each(|note| eprintln!("{}: {note}", planned.scenario.plan.id));
    let stop = host_session::stop_flag()?;
    let peer = resolve(&arguments.host)?;
    let secret = host_session::secret(arguments.secret_file.as_deref())?;
    let (socket, line) = (socket(peer)?, StatusLine::default());
    user::become_named(arguments.user.as_deref())?;
    let timing = arguments.timing.timing(PRECISE);
    let peer = Arc::new(Peer { socket, address: peer, secret, timing, stop });
    if !turns.is_empty() {
        return survey::survey(arguments, &turns, &registry, &peer, &line);
    }
    let Planned { terms, scenario, inputs, .. } = &planned;
    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let header = scenario.plan.header(&registry, TwoHosts::NAME, terms.seed);
    let events = store.as_ref().map(|store| store.run(&header, inputs.manifest(scenario, &registry)));
    let mut events = events.transpose().into_diagnostic()?.map(|events| events.in_parts(true));
    let pcap = arguments.pcap.as_deref();
    let mut capture = pcap.map(|file| Capture::create(file, &scenario.plan, &header)).transpose().into_diagnostic()?;
    // What has no reader is not measured: with many flows it would need much memory.
    let is_measured = store.is_some() || !scenario.asserts.is_empty();
    let server = arguments.metrics.map(MetricsServer::start).transpose()?;
    let state = Arc::new(ControllerState::new(&scenario.plan.describe(&registry)));
    let frozen = Arc::new(FrozenStreams::new(&scenario.plan));
    let (shown, (state_now, frozen_now)) = (line.clone(), (state.clone(), frozen.clone()));
    let show = move |now: &Progress| {
        shown.show(&live_text(now, frozen_now.count(), state_now.name()));
        if let Some(server) = &server {
            server.set(&metrics(now));
        }
    };
    let hosts = TwoHosts::new(peer.clone(), terms.clone(), Box::new(show));
    let page = arguments.watch.then(|| serve_page(scenario, &header, &registry)).transpose()?;
    let mut watching = page.as_ref().map(|page| InOrder(page.observer()));
    let observers = &mut ((&*state, &*frozen), ((&mut events, &mut capture), &mut watching));
    let run = if is_measured {
        let started = Instant::now();
        let clock = || started.elapsed().as_secs_f64();
        let runner = Runner { clock: &clock, ..Runner::new(&hosts, &registry) };
        runner.run_to(scenario, terms.seed, Some(observers), &|| hosts.lasted()).map(Some)
    } else {
        hosts.run(&scenario.plan, &registry, terms.seed, observers).map(|_| None)
    };
    line.clear();
    let run = match run {
        Ok(run) => run,
        Err(error) => {
            page.into_iter().for_each(|page| page.finish("the session failed"));
            return Err(session_error(error));
        }
    };
    let mut report = hosts.into_report().expect("the session was made");
    let freeze_ratio = frozen.ratio_of(&report);
    report.set_frozen(freeze_ratio);
    let judged = judge(arguments.scenario.is_some(), &planned, &report, run.as_ref());
    let none_fails = judged.assertions.iter().all(|assertion| assertion.judgement.verdict != Verdict::Fails);
    let (world, report) = (TwoHosts::NAME, &report);
    let document = Document { world, peer: peer.address, terms, report, freeze_ratio, judged };
    let session = serde_json::to_value(&document).into_diagnostic()?;
    let stored = events.zip(run).map(|(events, mut run)| {
        if !report.knows_frames {
            forget_frames(&mut run.whole);
        }
        let mut value = serde_json::to_value(&run).expect("names and numbers become JSON");
        value["session"] = session;
        events.finish(&value, whole_values(scenario, &run.whole))
    });
    let captured = capture.map(Capture::finish);
    output::print_results(arguments.json, &document, || describe(&document))?;
    stored.transpose().into_diagnostic()?;
    captured.transpose().into_diagnostic()?;
    if let Some(file) = pcap {
        eprintln!("packets are in {}", file.display());
    }
    if let Some(dir) = &arguments.out {
        eprintln!("events and results are in {}", dir.display());
    }
    page.into_iter().for_each(|page| page.finish(&format!("{}: {}", report.verdict.name(), report.why)));
    let lacks_tcp = report.tcp.as_ref().is_some_and(|tcp| tcp.sent.problem.is_some());
    // Bounds of a session that ends early are not judged, and so they do not hold.
    let is_judged = report.end == End::Complete || planned.scenario.asserts.is_empty();
    output::exit_code(report.end != End::Silence && !lacks_tcp && none_fails && is_judged)
}

/// Serves the page of a session.
fn serve_page(scenario: &Scenario, header: &RunHeader, registry: &Registry) -> Result<WatchServer> {
    let watched = WatchedRun {
        plan: scenario.plan.clone(),
        header: header.clone(),
        description: scenario.plan.describe(registry),
        link_control: None,
        preview_images: PreviewImages::default(),
    };
    let page = WatchServer::serve(watched, 0).map_err(|error| miette!("cannot serve a page: {error}"))?;
    eprintln!("watch the session: {}", page.url());
    Ok(page)
}

/// Passes events to a page once their order is known; the page accepts any order.
struct InOrder(LiveObserver);

impl EventObserver for InOrder {
    fn on_event(&mut self, event: &EventRecord) {
        self.0.on_unordered_event(event);
    }
    fn wants_signals(&self) -> bool {
        self.0.wants_signals()
    }
}

/// Judges the bounds of a session, if there are any and it was measured.
fn judge<'a>(has_file: bool, planned: &'a Planned, report: &SendReport, run: Option<&RunResult>) -> Judged<'a> {
    let Planned { scenario, unmeasured, .. } = planned;
    // Windows of bounds may lie after the end.
    let run = run.filter(|_| report.end == End::Complete);
    let is_known = |bound: &Assert| run.is_some() && (report.knows_frames || !is_of_frames(bound));
    let others = scenario.asserts.iter().filter(|bound| !is_known(bound));
    let others = others.map(|bound| Unmeasured::of(bound, &scenario.plan));
    let assertions = run.map_or(Vec::new(), |run| summarise(scenario, vec![run.clone()]).assertions);
    let known = assertions.into_iter().zip(&scenario.asserts).filter(|(_, bound)| is_known(bound));
    Judged {
        scenario: has_file.then_some(scenario.plan.id.as_str()),
        case: case(scenario),
        assertions: known.map(|(assertion, _)| assertion).collect(),
        unmeasured: others.chain(unmeasured.iter().cloned()).collect(),
    }
}

/// Returns the case of a scenario, as `--case` has it; `None` without one.
fn case(scenario: &Scenario) -> Option<String> {
    let case = &scenario.plan.case;
    (!case.is_empty()).then(|| case.to_string())
}

/// Creates a socket of the address family of the peer.
fn socket(peer: SocketAddr) -> Result<Socket> {
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    UdpSocket::bind(any).and_then(Socket::new).into_diagnostic()
}

/// Returns the metrics of a session; times in seconds, as is usual there.
fn metrics(now: &Progress) -> Vec<Metric> {
    let seconds = |time: Option<TimeDelta>| time.map_or(f64::NAN, TimeDelta::as_secs_f64);
    vec![
        gauge("elapsed_seconds", "Time since the start of the session.", now.elapsed.as_secs_f64()),
        gauge("received_bps", "Received rate in the last half second, bit/s.", now.received.as_bps_f64()),
        gauge("target_bps", "Sum of the targets of the controllers, bit/s.", now.target.as_bps_f64()),
        gauge("delay_variation_seconds", "Mean one-way delay above the smallest one.", seconds(now.variation)),
        gauge("rtt_seconds", "Latest round-trip time.", seconds(now.rtt)),
        gauge("fraction_lost", "Fraction lost of the last receiver reports.", now.loss),
    ]
}

/// Returns the first address of a host, with the port if it names one.
fn resolve(host: &str) -> Result<SocketAddr> {
    // `2001:db8::1:5000` is an address without a port.
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok((address, PORT).into());
    }
    let mut named = host.to_socket_addrs().or_else(|_| (host.trim_matches(['[', ']']), PORT).to_socket_addrs());
    let first = named.as_mut().ok().and_then(Iterator::next);
    first.ok_or_else(|| {
        let help = "write a name or an address, such as 192.0.2.7, [2001:db8::7]:9777 or host.example";
        miette!(help = help, "cannot find the host `{host}`")
    })
}

/// Converts the error of a session.
fn session_error(error: WorldError) -> miette::Report {
    match error {
        WorldError::Unavailable { cause, hint } => miette!(help = hint, "{cause}"),
        WorldError::Broken { cause } => miette!("{cause}"),
        other => world_error(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_port_or_the_default() {
        for (text, address) in [
            ("127.0.0.1", "127.0.0.1:9777"),
            ("127.0.0.1:5000", "127.0.0.1:5000"),
            ("::1", "[::1]:9777"),
            ("[::1]", "[::1]:9777"),
            ("[::1]:5000", "[::1]:5000"),
            ("2001:db8::1:5000", "[2001:db8::1:5000]:9777"),
        ] {
            assert_eq!(resolve(text).unwrap(), address.parse::<SocketAddr>().unwrap(), "{text}");
        }
        assert!(resolve("not a host").is_err());
    }
}
