//! `paceline link`: the network model as a real link, for any program.

use super::{Variation, refused};
use crate::output;
use crate::table::{Table, maybe, shown};
use clap::ValueEnum;
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::machine::Percentiles;
use paceline_lab::metrics::{self, Collector, Kind, LinkResult};
use paceline_lab::plan::{FlowKind, Plan};
use paceline_lab::run;
use paceline_lab::scenario::{self, Catalogue, Changes, Origin, Setting};
use paceline_lab::store::{self, RunManifest, Store};
use paceline_live::emulate::{Emulated, Emulation, relay_of};
use paceline_live::relay::Relay;
use paceline_live::wait::Timing;
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
    /// Takes the path of this scenario, and leaves its flows; a path of unlimited capacity without delay if absent.
    scenario: Option<String>,
    #[command(flatten)]
    variation: Variation,
    /// Capacity each way: a rate, or the file of a trace.
    #[arg(long, value_name = "RATE|FILE")]
    capacity: Option<String>,
    /// Capacity of the way out, from the command.
    #[arg(long, value_name = "RATE|FILE")]
    up: Option<String>,
    /// Capacity of the way back, to the command.
    #[arg(long, value_name = "RATE|FILE")]
    down: Option<String>,
    /// Propagation delay each way, such as 25ms.
    #[arg(long)]
    delay: Option<String>,
    /// Limit of the queue each way, as time, bytes or packets: 300ms, 64KB, 50packets.
    #[arg(long, value_name = "LIMIT")]
    queue: Option<String>,
    /// Random loss each way, such as 1%.
    #[arg(long)]
    loss: Option<String>,
    /// How packets are released: `precise` looks at the clock at last, for part of a core; `sleep` leaves it to the kernel.
    #[arg(long, value_enum, default_value_t = Release::Precise)]
    timing: Release,
    /// Draws losses and jitter.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ends the link, and the command with it (exit status 124), after so long.
    #[arg(long, default_value = "24h", value_name = "TIME")]
    duration: String,
    /// Joins two UDP sockets in place of a command; needs no privilege. LISTEN is where clients send to.
    #[arg(long, value_name = "LISTEN=TARGET", value_parser = relay_of, conflicts_with = "command")]
    relay: Option<(SocketAddr, SocketAddr)>,
    /// Writes every packet's fate into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints one JSON document; what the command writes to stdout then goes to stderr.
    #[arg(long)]
    json: bool,
    /// What to run at the near side, in a network of its own. It finds the far side's address in PACELINE_FAR.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  paceline link --capacity 5Mbps --delay 25ms -- sh -c 'ping -c 3 $PACELINE_FAR'
  paceline link --down trace.down --queue 50packets -- firefox
  paceline link mmsys16/table1 --relay 127.0.0.1:5004=127.0.0.1:6004";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Release {
    Precise,
    Sleep,
}

/// Exit status for a command that ran out of time, as that of `timeout`.
const TIME_IS_OVER: u8 = 124;

/// A path that adds nothing, and a flow that stands for all traffic.
const BARE: &str = r#"
id = "link"
title = "A link alone"
[path.forward]
[path.reverse]
[[flow]]
id = "traffic"
kind = "tcp"
"#;

/// What the link came to, as `--json` prints it.
#[derive(Serialize)]
struct Document<'a> {
    world: &'static str,
    scenario: &'a str,
    duration_s: f64,
    trace_hash: String,
    links: &'a [LinkResult],
    /// Packets that came, that no device took, and that were not IPv4 or came too early.
    packets: u64,
    refused: u64,
    strangers: u64,
    /// How late packets were released, µs.
    late_us: Percentiles,
    /// Share of a core.
    busy: f64,
    /// Exit status of the command.
    status: Option<i32>,
}

/// Makes a link and says what it did.
pub fn link(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.command.is_empty() && arguments.relay.is_none() {
        let help = "paceline link --capacity 5Mbps --delay 25ms -- sh, or --relay LISTEN=TARGET without privilege";
        return Err(miette!(help = help, "a link wants something to run behind it, or sockets to join"));
    }
    let (plan, text) = plan(arguments)?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = vec![SIGTERM, SIGHUP];
    if arguments.command.is_empty() {
        signals.push(SIGINT);
    } else {
        // An interrupt from the terminal is the command's to answer.
        signal_hook::flag::register(SIGINT, Arc::default()).into_diagnostic()?;
    }
    for signal in signals {
        signal_hook::flag::register(signal, stop.clone()).into_diagnostic()?;
    }
    let timing = match arguments.timing {
        Release::Precise => Timing::Precise,
        Release::Sleep => Timing::Sleep,
    };
    let emulation = Emulation { plan: &plan, seed: arguments.seed, timing, stop: &stop, to_stderr: arguments.json };

    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let header = run::header(&plan, &Registry::standard(), "link", arguments.seed);
    let made_from = RunManifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_text: text,
        changes: settings(arguments)?.iter().map(Setting::to_string).collect(),
        setting: Some(store::Setting::of(&plan, &Registry::standard())),
        ..RunManifest::default()
    };
    let rows = store.as_ref().map(|s| s.run(&header, made_from)).transpose().into_diagnostic()?;
    let mut rows = rows.map(|rows| rows.in_parts(true));
    let mut collector = Collector::new(&plan, &[], &|| ());
    let sink = &mut (&mut collector, &mut rows);
    let emulated = match arguments.relay {
        Some((listen, target)) => {
            let near = Relay::near(listen).map_err(|e| miette!("cannot listen at {listen}: {e}"))?;
            let far = Relay::far(target).map_err(|e| miette!("cannot reach {target}: {e}"))?;
            eprintln!("from {} to {target} and back; Ctrl-C ends it", near.address().into_diagnostic()?);
            emulation.relay(near, far, sink)
        }
        None => emulation.behind_device(&arguments.command, sink, |near, far| {
            eprintln!("the command is at {near}, this side at {far}");
        }),
    };
    let emulated = emulated.map_err(refused)?;
    let (results, _) = collector.finish_at(Time::ZERO + emulated.lasted);
    let document = document(&plan, &emulated, &results[0].links);
    if let Some(rows) = rows {
        rows.finish(&serde_json::to_value(&document).into_diagnostic()?).into_diagnostic()?;
    }
    match arguments.json {
        true => output::print_json(&document)?,
        false => output::print(&describe(&document))?,
    }
    let cut = !arguments.command.is_empty() && emulated.status.is_none() && !stop.load(Ordering::Relaxed);
    if cut {
        eprintln!("the link's time was over, and the command was ended with it; --duration gives it more");
        return Ok(ExitCode::from(TIME_IS_OVER));
    }
    Ok(ExitCode::from(
        emulated.status.map_or(0, |status| status.code().unwrap_or(128 + status.signal().unwrap_or(0)) as u8),
    ))
}

/// The plan of the path, with one flow for all traffic, and the text that it was made from.
fn plan(arguments: &Arguments) -> Result<(Plan, String)> {
    let origin = match &arguments.scenario {
        Some(name) => Catalogue.find(name)?,
        None => bare(&arguments.duration),
    };
    let text = origin.text.clone();
    let changes = Changes { settings: settings(arguments)?, case: arguments.variation.label(), ..Changes::default() };
    let mut plan = scenario::load(&origin, &changes, &Registry::standard())?;
    let all = scenario::load(&bare("1s"), &Changes::default(), &Registry::standard())?;
    let mut traffic = all.flows.into_iter().next().expect("there is one");
    (traffic.route, traffic.return_route) =
        ((0..plan.forward_hops).collect(), (plan.forward_hops..plan.hops.len()).collect());
    traffic.stop = Time::MAX;
    debug_assert!(matches!(traffic.kind, FlowKind::Tcp(_)));
    plan.flows = vec![traffic];
    (plan.expects, plan.asserts, plan.keep) = (Vec::new(), Vec::new(), None);
    plan.references.clear();
    Ok((plan, text))
}

fn bare(duration: &str) -> Origin {
    Origin::from_text("link", format!("duration = {duration:?}{BARE}"))
}

/// The options as settings of a scenario.
fn settings(arguments: &Arguments) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    let mut set = |key: &str, value: &str| -> Result<()> {
        settings.push(format!("{key}={value}").parse().map_err(|error: String| miette!("{error}"))?);
        Ok(())
    };
    if arguments.scenario.is_some() {
        // Its own says how long its flows are watched, and they are not here.
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
        if let Some(limit) = &arguments.queue {
            set(&format!("path.{way}.queue"), &format!("{{ discipline = \"drop-tail\", limit = \"{limit}\" }}"))?;
        }
    }
    settings.extend(arguments.variation.settings.iter().cloned());
    Ok(settings)
}

/// A rate as it is, a file as a trace.
fn capacity_value(text: &str) -> Result<String> {
    if text.parse::<Rate>().is_ok() {
        return Ok(text.to_owned());
    }
    let file = Path::new(text).canonicalize();
    let file = file
        .map_err(|e| miette!(help = "such as 5Mbps, or a mahimahi trace", "`{text}` is no rate, and no file: {e}"))?;
    Ok(format!("{{ trace = {:?} }}", file.display().to_string()))
}

fn document<'a>(plan: &'a Plan, emulated: &Emulated, links: &'a [LinkResult]) -> Document<'a> {
    let handling = &emulated.handling;
    Document {
        world: "link",
        scenario: &plan.id,
        duration_s: emulated.lasted.as_secs_f64(),
        trace_hash: format!("{:016x}", emulated.outcome.trace_hash),
        links,
        packets: handling.came,
        refused: handling.refused,
        strangers: handling.strangers,
        late_us: handling.late_us(),
        busy: emulated.busy,
        status: emulated.status.and_then(|status| status.code()),
    }
}

/// The same for people.
fn describe(document: &Document<'_>) -> String {
    let headings = ["hop", "capacity", "used", "dropped", "marked", "queue p50", "p95", "max"];
    let mut table = Table::new(&headings, 1);
    for link in document.links {
        let queue = |of: fn(&metrics::Distribution) -> f64| maybe(link.queue_ms.as_ref().map(of), Kind::Delay);
        table.row(vec![
            link.id.clone(),
            maybe(link.capacity_bps, Kind::Rate),
            maybe(link.utilization, Kind::Utilization),
            format!("{} ({})", link.dropped_packets, shown(link.loss_ratio, Kind::Loss)),
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
        text += &format!("  · {} packets were due and no device or socket took them\n", document.refused);
    }
    text
}
