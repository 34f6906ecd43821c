//! `paceline call`: a run with real browsers, and `--watch`, which serves a page where it is seen and its link is moved.

use super::report::report_within;
use super::run::{self, describe};
use super::stored::{command, inputs};
use super::{controllers, refused};
use crate::output;
use crate::worlds::{Hands, world_by_hand};
use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::group::{Group, Making};
use paceline_lab::moves::{self, Move};
use paceline_lab::plan::Plan;
use paceline_lab::rows::{Row, RowSink};
use paceline_lab::run::{RunResult, Runner, header, summarise};
use paceline_lab::store::{RunStore, Setting, Store};
use paceline_units::Time;
use paceline_watch::{Look, Watch};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::cell::Cell;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The scenario of `call`, if none is named.
pub const SCENARIO: &str = "watch/call";

/// Chromium's own controller; only one world has it.
const CHROMIUM: &str = "chromium";

/// Arguments of `call`.
#[derive(clap::Args)]
#[group(id = "call")]
pub struct Arguments {
    #[command(flatten)]
    run: run::Arguments,
    /// Serves a page on this machine that shows the call as it goes, and moves its link. Ctrl-C ends the call.
    #[arg(long)]
    watch: bool,
    /// Port of that page; any that is free if absent.
    #[arg(long, requires = "watch", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

/// Holds a call.
pub fn call(arguments: &Arguments) -> Result<ExitCode> {
    match arguments.watch {
        false => run::run(&arguments.run),
        true => watch(&arguments.run, arguments.port),
    }
}

fn watch(arguments: &run::Arguments, port: u16) -> Result<ExitCode> {
    let selection = &arguments.selection;
    let registry = selection.registry();
    if arguments.repeats != 1 || arguments.controller.len() > 1 || arguments.pcap.is_some() {
        return Err(miette!("--watch shows one run: leave out --repeats and --pcap, and name one controller"));
    }
    let mut controller = controllers(&arguments.controller, &registry)?.pop();
    if controller.is_none() && selection.scenario == SCENARIO {
        // Where Chromium can be at both ends there are two pictures to see.
        controller = registry.get(CHROMIUM).map(|own| own.name().to_owned());
    }
    let hands = Hands::default();
    let world = match world_by_hand(selection.world_name(), Some(&hands))? {
        Ok(world) => world,
        Err(code) => return Ok(code),
    };
    if !world.real_time() {
        let help = "--world testbed, or --world browser";
        return Err(miette!(help = help, "a run in `{}` is over before anybody looks", world.name()));
    }
    let mut scenario = selection.plan(controller.as_deref(), &registry)?;
    // What is expected of the scenario is not expected of a link that somebody moves.
    (scenario.expects, scenario.asserts, scenario.keep) = (Vec::new(), Vec::new(), None);
    scenario.references.clear();

    let header = header(&scenario, &registry, world.name(), selection.seed);
    let manifest = inputs(selection, &scenario, &registry)?;
    let version = manifest.version.clone();
    let store = arguments.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
    let rows = store.as_ref().map(|s| s.run(&header, manifest)).transpose().into_diagnostic()?;
    let look = Look {
        setting: Setting::of(&scenario, &registry),
        plan: scenario.clone(),
        header,
        moves: hands.moves.clone(),
        pictures: hands.pictures.clone(),
    };
    let page = Watch::serve(look, port).map_err(|error| miette!("cannot serve a page at port {port}: {error}"))?;
    eprintln!("watch the call, and move its link: {}", page.url());
    eprintln!("the address is for you alone; Ctrl-C ends the call");
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The second time it ends the command as it would have ended it.
        let again = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_default(signal, again.clone()).into_diagnostic()?;
        signal_hook::flag::register(signal, again).into_diagnostic()?;
        signal_hook::flag::register(signal, hands.moves.stop_flag()).into_diagnostic()?;
    }

    let last = Cell::new(Time::ZERO);
    let mut kept = Kept {
        rows: rows.map(|rows| rows.in_parts(true)),
        moves: Vec::new(),
        plan: scenario.clone(),
        scenario: &scenario,
        registry: &registry,
        last: &last,
    };
    let began = Instant::now();
    let clock = || began.elapsed().as_secs_f64();
    let runner = Runner { world: &*world, registry: &registry, clock: &clock, ticked: &|| () };
    let lasted = || match hands.moves.is_stopped() {
        true => last.get() - Time::ZERO,
        false => scenario.duration,
    };
    let result = runner.run_to(&scenario, selection.seed, Some(&mut (&mut kept, page.sink())), &lasted);
    let Kept { rows, moves, mut plan, .. } = kept;
    let result = match result {
        Ok(result) => result,
        Err(error) => {
            page.over("it broke off");
            return Err(refused(error));
        }
    };
    page.over(&came_to(&result));

    plan.duration = lasted();
    plan.notes.extend(moves::notes(&plan, &moves));
    let mut folders = Vec::new();
    if let Some(mut rows) = rows {
        rows.set(Setting::of(&plan, &registry));
        let folder = rows.finish(&serde_json::to_value(&result).into_diagnostic()?).into_diagnostic()?;
        folders.extend(folder.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    let result = summarise(&plan, vec![result]);
    let command = command("call --watch", selection, controller.as_deref(), 1);
    let making = Making { version, command, changes: selection.changes(), runs: folders };
    if let Some((store, group)) = store.as_ref().zip(Group::of(&plan, &result, making)) {
        store.group(&group).into_diagnostic()?;
    }
    match selection.json {
        true => output::print_json(&result)?,
        false => output::print(&describe(&plan, &result, &selection.changes()))?,
    }
    if let Some(dir) = &arguments.out {
        eprintln!("rows and results are in {}", dir.display());
        report_within(dir);
    }
    Ok(ExitCode::SUCCESS)
}

/// What the page says at the end.
fn came_to(result: &RunResult) -> String {
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

/// What is kept of a run that is watched: its rows, if that was asked for, and how its link was moved.
struct Kept<'a> {
    rows: Option<RunStore>,
    moves: Vec<(Time, usize, Move)>,
    /// As its links were.
    plan: Plan,
    scenario: &'a Plan,
    registry: &'a Registry,
    last: &'a Cell<Time>,
}

impl RowSink for Kept<'_> {
    fn row(&mut self, row: &Row) {
        self.last.set(self.last.get().max(row.at()));
        if let Row::Moved { at, hop, to } = *row {
            self.plan.move_hop(self.scenario, at, hop.into(), to);
            self.moves.push((at, hop.into(), to));
            if let Some(rows) = &mut self.rows {
                // Parts that are on disk already say how it was until then.
                rows.set(Setting::of(&self.plan, self.registry));
            }
        }
        self.rows.row(row);
    }
    fn wants_signals(&self) -> bool {
        true
    }
    fn wants_artefacts(&self) -> bool {
        self.rows.wants_artefacts()
    }
    fn artefact(&mut self, name: &str, bytes: Vec<u8>) {
        self.rows.artefact(name, bytes);
    }
}
