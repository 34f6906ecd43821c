// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many processes in one folder of results: started, killed, finished, with scenarios that change meanwhile. Afterwards every stored
//! row is that of a fresh run of its own parameters.
//!
//! `PACELINE_STRESS_STEPS` sets the number of steps, `PACELINE_STRESS_BINARY` another build of the command.

use super::{document, folder, paceline};
use paceline_lab::results::Store;
use paceline_lab::results::database::{Database, JobRun};
use paceline_lab::results::tables::RunTables;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CONTROLLERS: [&str; 2] = ["gcc-2016", "fixed"];
const SEEDS: u64 = 3;

/// The scenario with one of two capacities.
fn scenario(variant: usize) -> String {
    format!(
        "id = \"test/shared\"\ntitle = \"A call\"\nduration = \"2s\"\n[path.forward]\ncapacity = \"{}Mbps\"\n[[flow]]\nid = \
         \"call\"\ncontroller = \"gcc-2016\"\nencoder = {{ source = \"ideal\" }}\n",
        1 + 2 * variant
    )
}

fn sweep(variant: usize) -> String {
    let rates = ["300, 400, 500", "350, 450, 550"][variant];
    format!(
        "id = \"test/rates\"\ntitle = \"Rates\"\nrepeats = 2\n[[axis]]\nkey = \"media.start_rate\"\nvalues = [{}]\n[[measure]]\n\
         name = \"used\"\nscenario = \"fixed.toml\"\nmetric = \"utilization\"\n",
        rates.split(", ").map(|rate| format!("\"{rate}kbps\"")).collect::<Vec<_>>().join(", ")
    )
}

/// The random choices of the test.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % end as u64) as usize
    }
}

/// The folder, and the processes that run.
struct Shared {
    dir: PathBuf,
    binary: PathBuf,
    /// Whether processes can be started in a PID namespace of their own.
    has_namespaces: bool,
    running: Vec<(Child, String)>,
    random: Random,
    ended: BTreeMap<String, usize>,
}

impl Shared {
    fn start(&mut self, arguments: &[&str]) {
        let mut command = Command::new(&self.binary);
        if self.has_namespaces && self.random.below(2) == 0 {
            command = Command::new("unshare");
            command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]).arg(&self.binary);
        }
        command.args(arguments).current_dir(&self.dir).stdout(Stdio::null()).stderr(Stdio::piped());
        self.running.push((command.spawn().unwrap(), arguments.join(" ")));
    }

    fn step(&mut self) {
        let seed = (1 + self.random.below(SEEDS as usize)).to_string();
        let controller = CONTROLLERS[self.random.below(2)];
        match self.random.below(12) {
            0..3 => self.start(&["run", "own.toml", "--controller", controller, "--seed", &seed, "--out", "out"]),
            3 => {
                let compare =
                    ["compare", "own.toml", "--controllers", "gcc-2016,fixed", "--repeats", "2", "--out", "out"];
                self.start(&compare);
            }
            4 => {
                let file = ["one.sweep.toml", "two.sweep.toml"][self.random.below(2)];
                let out = format!("sweep{}", self.random.below(3));
                self.start(&["sweep", file, "--out", &out, "--resume"]);
            }
            5 => {
                // As editors do.
                fs::write(self.dir.join("new.toml"), scenario(self.random.below(2))).unwrap();
                fs::rename(self.dir.join("new.toml"), self.dir.join("own.toml")).unwrap();
            }
            6..9 if !self.running.is_empty() => {
                let wait = self.random.below(60) as u64;
                std::thread::sleep(Duration::from_millis(wait));
                let which = self.random.below(self.running.len());
                let (mut child, _) = self.running.swap_remove(which);
                child.kill().unwrap();
                child.wait().unwrap();
                *self.ended.entry("killed".to_owned()).or_default() += 1;
            }
            _ => self.finish_one(),
        }
        if self.running.len() > 6 {
            self.finish_one();
        }
    }

    fn finish_one(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let which = self.random.below(self.running.len());
        let (child, arguments) = self.running.swap_remove(which);
        let output = child.wait_with_output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        // A sweep is refused if its folder is used, or has another sweep.
        let is_refused = code == Some(2)
            && arguments.starts_with("sweep")
            && (messages.contains("another process uses") || messages.contains("cannot be resumed"));
        assert!(matches!(code, Some(0 | 1)) || is_refused, "{arguments}: {code:?} {messages}");
        let what = if is_refused { "refused" } else { "finished" };
        *self.ended.entry(what.to_owned()).or_default() += 1;
    }
}

/// What fresh runs give: the trace hash by hash of the scenario, controller and seed; and by changes and seed for the sweeps.
struct Expected {
    runs: BTreeMap<(String, String, u64), String>,
    jobs: BTreeMap<(String, u64), String>,
}

fn expected(dir: &Path) -> Expected {
    let (mut runs, mut jobs) = (BTreeMap::new(), BTreeMap::new());
    for variant in 0..2 {
        let out = format!("fresh{variant}");
        fs::write(dir.join("fresh.toml"), scenario(variant)).unwrap();
        for controller in CONTROLLERS {
            let repeats = SEEDS.to_string();
            let run = ["run", "fresh.toml", "--controller", controller, "--repeats", &repeats, "--json", "--out", &out];
            document(&paceline(dir, &run), 0);
        }
        let contents = Store::read(&dir.join(&out)).unwrap();
        for run in contents.runs {
            let controller = run.about.run.controllers[0].clone().unwrap();
            let key = (run.about.inputs.scenario_hash, controller, run.about.run.seed);
            runs.insert(key, run.about.run.trace_hash.unwrap());
        }
        for rate in ["300", "400", "500", "350", "450", "550"] {
            let set = format!("media.start_rate={rate}kbps");
            let run = document(&paceline(dir, &["run", "fixed.toml", "--set", &set, "--repeats", "2", "--json"]), 0);
            for run in run["runs"].as_array().unwrap() {
                let key = (rate.to_owned(), run["seed"].as_u64().unwrap());
                jobs.insert(key, run["trace_hash"].as_str().unwrap().to_owned());
            }
        }
    }
    Expected { runs, jobs }
}

/// Checks that every stored row is that of a fresh run, and returns the numbers of runs and jobs.
fn check(dir: &Path, expected: &Expected) -> (usize, usize) {
    let out = dir.join("out");
    if !Store::exists(&out) {
        return (0, 0);
    }
    // As the next command does.
    Store::create(&out).unwrap();
    let contents = Store::read(&out).unwrap();
    for run in &contents.runs {
        let about = &run.about;
        let controller = about.run.controllers[0].clone().unwrap();
        let key = (about.inputs.scenario_hash.clone(), controller, about.run.seed);
        assert_eq!(about.run.trace_hash.as_ref(), Some(&expected.runs[&key]), "{key:?}");
        assert_eq!(run.result["trace_hash"].as_str(), about.run.trace_hash.as_deref());
        // The checksum of each table is verified.
        RunTables::new(&run.dir, about).packets(|_| ()).unwrap();
    }
    let hash = contents.runs.first().map(|run| run.about.inputs.scenario_hash.clone());
    for group in &contents.groups {
        let controller = group.controllers[0].clone().unwrap();
        for run in &group.per_run {
            let key = (hash.clone().unwrap(), controller.clone(), run.seed);
            assert_eq!(run.trace_hash, expected.runs[&key], "a group of {key:?}");
        }
    }
    let names = fs::read_dir(out.join("runs")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> =
        names.filter(|name| [".tmp-", ".old-"].iter().any(|mark| name.to_string_lossy().contains(mark))).collect();
    assert!(left.is_empty(), "{left:?}");
    let mut jobs = 0;
    for folder in ["sweep0", "sweep1", "sweep2"].map(|name| dir.join(name)).iter().filter(|dir| Database::exists(dir)) {
        let database = Database::open(folder).unwrap();
        let Some(sweep) = database.experiment("sweep").unwrap() else { continue };
        let is_first = sweep.document.contains("300kbps");
        let each = |JobRun { run, .. }: JobRun| -> Result<bool, paceline_lab::results::StoreError> {
            let set = run.changes.last().unwrap();
            let rate: String = set.chars().filter(char::is_ascii_digit).collect();
            assert_eq!(["300", "400", "500"].contains(&&*rate), is_first, "{set}");
            assert_eq!(run.trace_hash, expected.jobs[&(rate, run.seed)], "{set}");
            jobs += 1;
            Ok(true)
        };
        database.each_job(&sweep, each).unwrap();
    }
    (contents.runs.len(), jobs)
}

#[test]
#[cfg(target_os = "linux")]
fn stored_rows_equal_fresh_runs() {
    let steps: usize = std::env::var("PACELINE_STRESS_STEPS").map_or(60, |steps| steps.parse().unwrap());
    let binary =
        std::env::var_os("PACELINE_STRESS_BINARY").map_or(env!("CARGO_BIN_EXE_paceline").into(), PathBuf::from);
    let (one, two) = (sweep(0), sweep(1));
    let own = scenario(0);
    let files = [("own.toml", &*own), ("fixed.toml", &*own), ("one.sweep.toml", &*one), ("two.sweep.toml", &*two)];
    let dir = folder("shared-folder", &files);
    let expected = expected(&dir);
    assert_eq!((expected.runs.len(), expected.jobs.len()), (12, 12));
    let namespace = Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).output();
    let has_namespaces = namespace.is_ok_and(|output| output.status.success());
    let random = Random(2026);
    let mut shared =
        Shared { dir: dir.clone(), binary, has_namespaces, running: Vec::new(), random, ended: BTreeMap::new() };
    let (mut runs, mut jobs) = (0, 0);
    for step in 0..steps {
        shared.step();
        if step % 500 == 499 || step + 1 == steps {
            while !shared.running.is_empty() {
                shared.finish_one();
            }
            let found = check(&dir, &expected);
            (runs, jobs) = (runs + found.0, jobs + found.1);
            for used in ["sweep0", "sweep1", "sweep2"] {
                let _ = fs::remove_dir_all(dir.join(used));
            }
        }
    }
    eprintln!(
        "{steps} steps, namespaces: {has_namespaces}, commands {:?}; {runs} runs, {jobs} jobs checked",
        shared.ended
    );
    assert!(runs > 0 && shared.ended.len() >= 2, "{runs} runs, {:?}", shared.ended);
}
