// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline link`: emulates a link for any program.

use super::release::Release;
use super::{Variation, user};
use crate::environment::environment;
use crate::errors::world_error;
use crate::output;
use crate::table::{Table, value_text};
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::metrics::{self, Collector, LinkResult};
use paceline_lab::registries;
use paceline_lab::results::{RunInputs, Store};
use paceline_lab::run_identity::{ScenarioHashes, whole_values};
use paceline_live::testbed::command_user::{CommandUser, is_host_root};
use paceline_live::testbed::link_emulator::{EmulationResult, LinkEmulator, parse_relay};
use paceline_live::testbed::relay::Relay;
use paceline_live::testbed::timing::Timing;
use paceline_netsim::link::queue::DISCIPLINES;
use paceline_netsim::plan::FlowKind;
use paceline_netsim::records::{MetricKind, Percentiles};
use paceline_scenario::{self, Catalogue, Changes, Origin, Override, Scenario, path_names, path_preset};
use paceline_units::{Rate, Time};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Arguments of `link`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Uses the path of this scenario, without its flows; a path with unlimited capacity and no delay if absent.
    scenario: Option<String>,
    /// Uses this typical access network, see `paceline list paths`: with `5g-drive` or `5g-drive-up` COMMAND is at the user, with
    /// `5g-drive-down` on the other side. Other options replace its values.
    #[arg(long, value_name = "NAME", conflicts_with = "scenario")]
    preset: Option<String>,
    #[command(flatten)]
    variation: Variation,
    /// Capacity in each direction: a rate, or a trace file.
    #[arg(long, value_name = "RATE|FILE")]
    capacity: Option<String>,
    /// Capacity from the command to the far side.
    #[arg(long, value_name = "RATE|FILE")]
    up: Option<String>,
    /// Capacity from the far side to the command.
    #[arg(long, value_name = "RATE|FILE")]
    down: Option<String>,
    /// Propagation delay in each direction, such as 25ms.
    #[arg(long)]
    delay: Option<String>,
    /// Queue in each direction: a limit as time, bytes or packets (300ms, 64KB, 50packets), a discipline such as fq-codel, which
    /// classifies packets by their five-tuple or DSCP, or both (codel,100ms). `paceline list queues` shows all; `--set` sets
    /// their parameters.
    #[arg(long, value_name = "LIMIT|DISCIPLINE")]
    queue: Option<String>,
    /// Random loss in each direction, such as 1%.
    #[arg(long)]
    loss: Option<String>,
    /// How packets are released: `precise` polls the clock shortly before the due time, which uses part of a core; `sleep` uses
    /// kernel timers.
    #[arg(long, value_enum, default_value_t = Release::Precise)]
    timing: Release,
    /// Seed of losses and jitter.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ends the link and the command (exit status 124) after this time.
    #[arg(long, default_value = "24h", value_name = "TIME")]
    duration: String,
    /// Connects two UDP sockets instead of a command; needs no privilege. Clients send to LISTEN.
    #[arg(long, value_name = "LISTEN=TARGET", value_parser = parse_relay, conflicts_with = "command")]
    relay: Option<(SocketAddr, SocketAddr)>,
    /// Lets COMMAND reach the networks that this machine reaches, with its name servers (needs nftables). IPv6 only if this machine
    /// forwards it.
    #[arg(long, requires = "command")]
    nat: bool,
    /// User as whom COMMAND runs; the caller of `sudo` if absent.
    #[arg(long, value_name = "NAME", requires = "command")]
    user: Option<String>,
    /// Lets COMMAND run as root. Without `sudo`, as in a container, root must choose this or --user.
    #[arg(long, requires = "command", conflicts_with = "user")]
    keep_root: bool,
    /// Writes an event record of every packet (arrival, departure or drop) into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints one JSON document; stdout of the command goes to stderr.
    #[arg(long)]
    json: bool,
    /// Command to run at the near side, in a network namespace. PACELINE_FAR and
    /// PACELINE_FAR6 hold the addresses of the far side.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  paceline link --capacity 5Mbps --delay 25ms -- sh -c 'ping -c 3 $PACELINE_FAR'
  paceline link --capacity 20Mbps --delay 10ms --queue fq-codel -- sh
  sudo paceline link --preset 5g-drive --nat -- firefox
  paceline link mmsys16/table1 --relay 127.0.0.1:5004=127.0.0.1:6004";

/// Exit status if the time is over before the command ends, as with `timeout`.
const TIMED_OUT: u8 = 124;

/// A flow for all traffic.
const TRAFFIC: &str = r#"
[[flow]]
id = "traffic"
kind = "tcp"
workload = { kind = "short", size = ["1 B", "1 B"], pause = "1 s" }
"#;

/// A path without limits.
const BARE: &str = r#"
[path.forward]
mtu = "65535 B"
[path.reverse]
mtu = "65535 B"
"#;

/// The result, as `--json` prints it.
#[derive(Serialize)]
struct Document<'a> {
    world: &'static str,
    scenario: &'a str,
    duration_s: f64,
    trace_hash: String,
    links: &'a [LinkResult],
    /// Packets that arrived.
    packets: u64,
    /// Packets that no device or socket accepted.
    refused: u64,
    /// Packets that were not IP, went to an IPv6 multicast address, or arrived before the link was ready.
    strangers: u64,
    /// Release time minus due time, µs.
    late_us: Percentiles,
    /// CPU time of the link, as a share of one core.
    busy: f64,
    /// Exit status of the command.
    status: Option<i32>,
}

/// Runs a link and prints its statistics.
pub fn link(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.command.is_empty() && arguments.relay.is_none() {
        let help = "add a command after `--`, such as `-- sh`; without privilege, use --relay LISTEN=TARGET";
        return Err(miette!(help = help, "a link needs a command to run, or two sockets to connect"));
    }
    let (scenario, text) = load(arguments)?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = vec![SIGTERM, SIGHUP];
    if arguments.command.is_empty() {
        signals.push(SIGINT);
    } else {
        // The command handles an interrupt from the terminal.
        signal_hook::flag::register(SIGINT, Arc::default()).into_diagnostic()?;
    }
    for signal in signals {
        signal_hook::flag::register(signal, stop.clone()).into_diagnostic()?;
    }
    let emulation = LinkEmulator {
        plan: &scenario.plan,
        seed: arguments.seed,
        timing: arguments.timing.timing(Timing::PRECISE),
        stop: &stop,
        to_stderr: arguments.json,
        nat: arguments.nat,
        user: command_user(arguments)?,
    };

    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let header = scenario.plan.header(&Registry::standard(), "link", arguments.seed);
    let hashes = ScenarioHashes::of(&scenario);
    let manifest = RunInputs {
        plan_hash: hashes.plan,
        scenario_hash: hashes.scenario,
        environment: environment().clone(),
        scenario_text: text,
        changes: settings(arguments)?.iter().map(Override::to_string).collect(),
        setting: Some(scenario.plan.describe(&Registry::standard())),
        ..RunInputs::default()
    };
    let events = store.as_ref().map(|s| s.run(&header, manifest)).transpose().into_diagnostic()?;
    let mut events = events.map(|events| events.in_parts(true));
    let mut collector = Collector::new(&scenario, &[], &|| ());
    let observer = &mut (&mut collector, &mut events);
    let emulated = match arguments.relay {
        Some((listen, target)) => {
            let near = Relay::near(listen).map_err(|e| {
                miette!(
                    help = "LISTEN must be a free UDP address of this machine, such as 127.0.0.1:5004",
                    "cannot listen at {listen}: {e}"
                )
            })?;
            let far = Relay::far(target).map_err(|e| {
                miette!(
                    help = "TARGET must be an address that this machine can send to, such as 127.0.0.1:6004",
                    "cannot reach {target}: {e}"
                )
            })?;
            if !listen.ip().is_loopback() {
                eprintln!(
                    "{listen} may be reachable from other machines: the first that sends a datagram is the client"
                );
            }
            eprintln!("from {} to {target} and back; Ctrl-C ends the link", near.address().into_diagnostic()?);
            let refused = near.refused();
            let emulated = emulation.relay(near, far, observer);
            match refused.load(Ordering::Relaxed) {
                0 => {}
                count => {
                    eprintln!("{count} datagrams were refused: empty, or not of the client that sent the first one")
                }
            }
            emulated
        }
        None => emulation.behind_device(&arguments.command, observer, |near, far| {
            eprintln!("the command is at {near}, this side at {far}");
        }),
    };
    let emulated = emulated.map_err(world_error)?;
    let (results, _) = collector.finish_at(Time::ZERO + emulated.lasted);
    let document = document(&scenario, &emulated, &results[0].links);
    let value = serde_json::to_value(&document).into_diagnostic()?;
    let stored = events.map(|events| events.finish(&value, whole_values(&scenario, &results[0]))).transpose();
    output::print_results(arguments.json, &document, || describe(&document))?;
    stored.into_diagnostic()?;
    let cut = !arguments.command.is_empty() && emulated.status.is_none() && !stop.load(Ordering::Relaxed);
    if cut {
        eprintln!("the link ended after its --duration, and the command with it; use a longer --duration");
        return Ok(ExitCode::from(TIMED_OUT));
    }
    Ok(ExitCode::from(
        emulated.status.map_or(0, |status| status.code().unwrap_or(128 + status.signal().unwrap_or(0)) as u8),
    ))
}

/// Returns the user as whom the command runs; `None`: the user of this process.
fn command_user(arguments: &Arguments) -> Result<Option<CommandUser>> {
    let user = match &arguments.user {
        Some(name) => Some(user::named(name)?),
        None if arguments.keep_root => None,
        None => CommandUser::of_sudo().into_diagnostic()?,
    };
    let is_chosen = arguments.keep_root || arguments.user.is_some();
    if is_chosen && user.as_ref().map_or_else(is_host_root, CommandUser::is_root) {
        eprintln!("warning: COMMAND runs as root");
    }
    if user.is_none() && !is_chosen && !arguments.command.is_empty() && is_host_root() {
        let help = "--user NAME runs it as that user, such as nobody; --keep-root lets it be root";
        return Err(miette!(help = help, "COMMAND would run as root, because no `sudo` started the link"));
    }
    Ok(user)
}

/// Loads the path, with one flow for all traffic, and returns the text of the scenario.
fn load(arguments: &Arguments) -> Result<(Scenario, String)> {
    let origin = match (&arguments.scenario, &arguments.preset) {
        (Some(name), _) => Catalogue.find(name)?,
        (None, Some(name)) => {
            let preset = path_preset(name).ok_or_else(|| no_preset(name))?;
            of_path("A link of a preset", &arguments.duration, &format!("[path]\npreset = {:?}", preset.name))
        }
        (None, None) => of_path("A link alone", &arguments.duration, BARE),
    };
    let text = origin.text.clone();
    let changes = Changes { settings: settings(arguments)?, ..arguments.variation.changes(None) };
    let mut scenario = paceline_scenario::load(&origin, &changes, registries(&Registry::standard()))?;
    let bare = of_path("A link alone", "1s", BARE);
    let all = paceline_scenario::load(&bare, &Changes::default(), registries(&Registry::standard()))?;
    let mut traffic = all.plan.flows.into_iter().next().expect("the bare link has one flow");
    let plan = &mut scenario.plan;
    (traffic.route, traffic.return_route) =
        ((0..plan.forward_hops).collect(), (plan.forward_hops..plan.hops.len()).collect());
    traffic.stop = Time::MAX;
    debug_assert!(matches!(traffic.kind, FlowKind::Tcp(_)));
    plan.flows = vec![traffic];
    (scenario.expects, scenario.asserts, scenario.include_if) = (Vec::new(), Vec::new(), None);
    scenario.references.clear();
    Ok((scenario, text))
}

/// Returns the scenario of a link with this path.
fn of_path(title: &str, duration: &str, path: &str) -> Origin {
    Origin::from_text("link", format!("id = \"link\"\ntitle = {title:?}\nduration = {duration:?}\n{path}\n{TRAFFIC}"))
}

fn no_preset(name: &str) -> miette::Report {
    let known = path_names();
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let help = format!("{}; `paceline list paths` shows them", paceline_scenario::suggestion(name, &names));
    miette!(help = help, "there is no path preset `{name}`")
}

fn settings(arguments: &Arguments) -> Result<Vec<Override>> {
    let mut settings = Vec::new();
    let mut set = |key: &str, value: &str| -> Result<()> {
        settings.push(format!("{key}={value}").parse().map_err(|error: String| miette!("{error}"))?);
        Ok(())
    };
    if arguments.scenario.is_some() {
        // Its own duration belongs to its flows, which are not used.
        set("duration", &arguments.duration)?;
    }
    let ways = [("forward", &arguments.up), ("reverse", &arguments.down)];
    for (way, own) in ways {
        if let Some(capacity) = own.as_ref().or(arguments.capacity.as_ref()) {
            set(&format!("path.{way}.capacity"), &capacity_value(capacity)?)?;
        }
        let others = [("delay", &arguments.delay), ("loss", &arguments.loss)];
        for (key, value) in others {
            if let Some(value) = value {
                set(&format!("path.{way}.{key}"), value)?;
            }
        }
        if let Some(queue) = &arguments.queue {
            set(&format!("path.{way}.queue"), &queue_value(queue)?)?;
        }
    }
    settings.extend(arguments.variation.settings.iter().cloned());
    Ok(settings)
}

/// Returns the value of a queue: a limit, a discipline, or both.
fn queue_value(text: &str) -> Result<String> {
    let (discipline, limit) = match text.split_once(',') {
        Some((discipline, limit)) => (discipline.trim(), Some(limit)),
        None if text.starts_with(|first: char| first.is_ascii_digit()) => (DISCIPLINES[0].name, Some(text)),
        None => (text, None),
    };
    let known: Vec<&str> = DISCIPLINES.iter().map(|entry| entry.name).collect();
    if !known.contains(&discipline) {
        let help = paceline_scenario::suggestion(discipline, &known);
        return Err(miette!(help = help, "`{discipline}` is neither a queue discipline nor a limit such as 300ms"));
    }
    let limit = limit.map_or(String::new(), |limit| format!(", limit = {:?}", limit.trim()));
    Ok(format!("{{ discipline = \"{discipline}\"{limit} }}"))
}

/// Returns the value of a capacity: a rate, or a trace file.
fn capacity_value(text: &str) -> Result<String> {
    if text.parse::<Rate>().is_ok() {
        return Ok(text.to_owned());
    }
    let file = Path::new(text).canonicalize();
    let file = file.map_err(|e| {
        miette!(
            help = "write a rate such as 5Mbps, or the path of a mahimahi trace",
            "`{text}` is neither a rate nor a file: {e}"
        )
    })?;
    Ok(format!("{{ trace = {:?} }}", file.display().to_string()))
}

fn document<'a>(scenario: &'a Scenario, emulated: &EmulationResult, links: &'a [LinkResult]) -> Document<'a> {
    let stats = &emulated.stats;
    Document {
        world: "link",
        scenario: &scenario.plan.id,
        duration_s: emulated.lasted.as_secs_f64(),
        trace_hash: format!("{:016x}", emulated.outcome.trace_hash),
        links,
        packets: stats.received,
        refused: stats.send_failures,
        strangers: stats.unclassified,
        late_us: stats.late_us(),
        busy: emulated.busy,
        status: emulated.status.and_then(|status| status.code()),
    }
}

fn describe(document: &Document<'_>) -> String {
    let mut table = Table::new(["hop", "capacity", "used", "dropped", "marked", "queue p50", "p95", "max"], 1);
    for link in document.links {
        let queue =
            |of: fn(&metrics::Distribution) -> f64| value_text(link.queue_ms.as_ref().map(of), MetricKind::Delay);
        table.row(vec![
            link.id.clone(),
            value_text(link.capacity_bps, MetricKind::Rate),
            value_text(link.utilization, MetricKind::Utilization),
            format!("{} ({})", link.dropped_packets, MetricKind::Loss.show(link.loss_ratio)),
            link.marked_packets.to_string(),
            queue(|q| q.p50),
            queue(|q| q.p95),
            queue(|q| q.max),
        ]);
    }
    let late = &document.late_us;
    let mut text = format!(
        "{}: {} packets in {:.1} s\n\n{}\n",
        document.scenario,
        document.packets,
        document.duration_s,
        table.render()
    );
    text += &format!(
        "  released late by: median {:.0} µs, 99 % below {:.0} µs, at most {:.0} µs; {:.0} % of a core\n",
        late.p50,
        late.p99,
        late.max,
        document.busy * 100.0
    );
    if document.refused > 0 {
        text += &format!(
            "  · {} packets could not be sent: the device or socket rejected them; reduce the rate or the load of the machine\n",
            document.refused
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_a_limit_a_discipline_or_both() {
        for (text, value) in [
            ("300ms", "{ discipline = \"drop-tail\", limit = \"300ms\" }"),
            ("fq-codel", "{ discipline = \"fq-codel\" }"),
            ("codel, 50packets", "{ discipline = \"codel\", limit = \"50packets\" }"),
        ] {
            assert_eq!(queue_value(text).unwrap(), value);
        }
        for text in ["fq-codle", "", "300ms,codel", "\"}"] {
            assert!(queue_value(text).is_err(), "{text}");
        }
    }
}
