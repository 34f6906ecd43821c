// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline call`: a run with real browsers. `--watch` serves a live page that also controls the link.

use super::report::finish_folder;
use super::run::{self, describe};
use crate::errors::world_error;
use crate::output;
use crate::worlds::{self, WatchHandles};
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::group::{Provenance, group_of};
use paceline_lab::results::{RunStore, Store};
use paceline_lab::run::{RunResult, Runner, summarise};
use paceline_lab::run_identity::whole_values;
use paceline_live::watch::{WatchServer, WatchedRun};
use paceline_netsim::link_control;
use paceline_netsim::records::{EventObserver, EventRecord, LinkUpdate};
use paceline_scenario::Scenario;
use paceline_units::Time;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::cell::Cell;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Default scenario.
pub const SCENARIO: &str = "watch/call";

/// Chromium's own controller. Only the world `browser` has it.
const CHROMIUM: &str = "chromium";

/// Arguments of `call`.
#[derive(clap::Args)]
#[group(id = "call")]
pub struct Arguments {
    #[command(flatten)]
    pub run: run::Arguments,
    /// Serves a page on this machine that shows the call live and controls its link. Ctrl-C ends the call.
    #[arg(long)]
    watch: bool,
    /// Port of that page; any free port if absent.
    #[arg(long, requires = "watch", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

/// Runs a call.
pub fn call(arguments: &Arguments) -> Result<ExitCode> {
    match arguments.watch {
        false => run::run(&arguments.run),
        true => watch(&arguments.run, arguments.port),
    }
}

fn watch(run::Arguments { runs: arguments, pcap }: &run::Arguments, port: u16) -> Result<ExitCode> {
    let (selection, options) = (&arguments.selection, &arguments.selection.options);
    let (names, seeds) = (&arguments.controllers.names, options.seeds.list(1)?);
    let [seed] = seeds[..] else {
        return Err(miette!(help = "--seed selects the run", "--watch shows one run, not {}", seeds.len()));
    };
    if names.len() > 1 || pcap.is_some() {
        let help = "leave out --pcap, and name one controller";
        return Err(miette!(help = help, "--watch shows one run, without a capture"));
    }
    let registry = selection.registry(names)?;
    let named = arguments.controllers.without_oracles(&registry)?;
    let mut controller = named[0].as_deref();
    if controller.is_none() && selection.scenario == SCENARIO {
        // With Chromium at both ends the page can show two videos.
        controller = Some(CHROMIUM).filter(|own| registry.get(own).is_some());
    }
    let handles = WatchHandles::default();
    let world = worlds::open(&options.world, Some(&handles))?;
    if !world.real_time() {
        let help = "use --world testbed or --world browser";
        return Err(miette!(help = help, "--watch needs a world in real time, and `{}` is not", world.name()));
    }
    let mut scenario = selection.load(controller, &registry)?;
    // Published values and bounds do not apply to a link that the user changes.
    (scenario.expects, scenario.asserts, scenario.include_if) = (Vec::new(), Vec::new(), None);
    scenario.references.clear();

    let header = scenario.plan.header(&registry, world.name(), seed);
    let inputs = selection.inputs("call --watch", controller, &[seed])?;
    let manifest = inputs.manifest(&scenario, &registry);
    let version = manifest.environment.version.clone();
    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let events = store.as_ref().map(|s| s.run(&header, manifest)).transpose().into_diagnostic()?;
    let watched = WatchedRun {
        description: scenario.plan.describe(&registry),
        plan: scenario.clone().plan,
        header,
        link_control: Some(handles.link.clone()),
        preview_images: handles.preview.clone(),
    };
    let page = WatchServer::serve(watched, port).map_err(|error| {
        miette!(
            help = "use another --port, or leave it out for any free port",
            "cannot serve a page at port {port}: {error}"
        )
    })?;
    eprintln!("watch the call, and control its link: {}", page.url());
    eprintln!("the address is private to you; Ctrl-C ends the call");
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The second signal ends the process at once.
        let again = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_default(signal, again.clone()).into_diagnostic()?;
        signal_hook::flag::register(signal, again).into_diagnostic()?;
        signal_hook::flag::register(signal, handles.link.stop_flag()).into_diagnostic()?;
    }

    let last = Cell::new(Time::ZERO);
    let mut recorder = Recorder {
        events: events.map(|events| events.in_parts(true)),
        updates: Vec::new(),
        current: scenario.clone(),
        scenario: &scenario,
        registry: &registry,
        last: &last,
    };
    let started = Instant::now();
    let clock = || started.elapsed().as_secs_f64();
    let runner = Runner { world: &*world, registry: &registry, clock: &clock, ticked: &|| () };
    let lasted = || match handles.link.is_stopped() {
        true => last.get() - Time::ZERO,
        false => scenario.plan.duration,
    };
    let result = runner.run_to(&scenario, seed, Some(&mut (&mut recorder, page.observer())), &lasted);
    let Recorder { events, updates, mut current, .. } = recorder;
    let result = match result {
        Ok(result) => result,
        Err(error) => {
            page.finish("the call failed");
            return Err(world_error(error));
        }
    };
    page.finish(&closing_text(&result));

    current.plan.duration = lasted();
    current.notes.extend(link_control::describe_updates(&current.plan, &updates));
    let folder = events.map(|mut events| {
        events.set(current.plan.describe(&registry));
        let document = serde_json::to_value(&result).expect("names and numbers become JSON");
        events.finish(&document, whole_values(&current, &result.whole))
    });
    let result = summarise(&current, vec![result]);
    let stored = folder.transpose().and_then(|folder| {
        let name = folder.and_then(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()));
        let runs = name.into_iter().collect();
        let making = Provenance { version, command: inputs.command, changes: inputs.changes, runs };
        let group = store.as_ref().zip(group_of(&current, &result, making));
        group.map_or(Ok(()), |(store, group)| store.group(&group))
    });
    output::print_results(options.json, &result, || describe(&current, &result))?;
    stored.into_diagnostic()?;
    finish_folder(arguments.out.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

fn closing_text(result: &RunResult) -> String {
    let Some(flow) = result.whole.flows.iter().find(|flow| !flow.streams.is_empty()) else {
        return format!("after {:.0} s", result.duration_s);
    };
    let freezes: u64 = flow.streams.iter().map(|s| s.freezes).sum();
    format!(
        "{:.0} s, {:.2} Mbit/s received on average, {:.1} % lost, {freezes} freezes",
        result.duration_s,
        flow.throughput_bps / 1e6,
        100.0 * flow.loss_ratio
    )
}

/// Records a watched run: its events, if they are stored, and the changes of its link.
struct Recorder<'a> {
    events: Option<RunStore>,
    updates: Vec<(Time, usize, LinkUpdate)>,
    /// The scenario with the link as the user changed it.
    current: Scenario,
    scenario: &'a Scenario,
    registry: &'a Registry,
    last: &'a Cell<Time>,
}

impl EventObserver for Recorder<'_> {
    fn on_event(&mut self, event: &EventRecord) {
        self.last.set(self.last.get().max(event.at()));
        if let EventRecord::LinkUpdated { at, hop, to } = *event {
            self.current.plan.update_hop(&self.scenario.plan, at, hop.into(), to);
            self.updates.push((at, hop.into(), to));
            if let Some(events) = &mut self.events {
                // Parts that are on disk already describe the link until then.
                events.set(self.current.plan.describe(self.registry));
            }
        }
        self.events.on_event(event);
    }
    fn wants_signals(&self) -> bool {
        true
    }
    fn wants_attachments(&self) -> bool {
        self.events.wants_attachments()
    }
    fn on_attachment(&mut self, name: &str, bytes: &[u8]) {
        self.events.on_attachment(name, bytes);
    }
}
