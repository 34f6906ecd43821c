// SPDX-License-Identifier: MIT OR Apache-2.0
//! The generated paths on which the numbers of delivery-rate control were chosen, with the goal of each measure, and the paths of
//! what a viewer and the others on the path see of it.
//!
//! They are written here or come from `CellularLink` with seeds of their own. They share no seed and no file with the suites,
//! which are validation.

use paceline::Registry;
use paceline_lab::metrics::find;
use paceline_lab::run::{RunResult, Runner};
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_scenario::cellular::CellularLink;
use paceline_scenario::{Changes, Origin, load};
use std::fmt::Write as _;

pub struct Measure {
    pub name: &'static str,
    pub value: f64,
    pub goal: (f64, f64),
}

/// The goal of a measure that is printed and not judged.
const SHOWN: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

impl Measure {
    pub fn is_goal(&self) -> bool {
        self.goal != SHOWN
    }

    pub fn reached(&self) -> bool {
        (self.goal.0..=self.goal.1).contains(&self.value)
    }
}

/// The targets of the first flow, one each 100 ms.
#[derive(Default)]
struct Targets {
    last: f64,
    kept: Vec<f64>,
}

impl Targets {
    const STEP_S: f64 = 0.1;

    /// Returns the targets from second `from` on.
    fn from(&self, from: usize) -> &[f64] {
        &self.kept[(from as f64 / Self::STEP_S) as usize..]
    }

    fn mean(&self, from: usize) -> f64 {
        self.from(from).iter().sum::<f64>() / self.from(from).len() as f64
    }

    /// Returns the coefficient of variation from second `from` on.
    fn variation(&self, from: usize) -> f64 {
        let (targets, mean) = (self.from(from), self.mean(from));
        let squares = targets.iter().map(|target| (target - mean) * (target - mean)).sum::<f64>();
        (squares / targets.len() as f64).sqrt() / mean
    }

    /// Returns the 95th percentile of the swing in 2 s: largest less smallest, over the mean.
    fn swing(&self, from: usize) -> f64 {
        let swing = |part: &[f64]| {
            let (low, high) = part.iter().fold((f64::MAX, 0.0_f64), |(low, high), &of| (low.min(of), high.max(of)));
            (high - low) / self.mean(from)
        };
        let mut swings: Vec<f64> = self.from(from).windows((2.0 / Self::STEP_S) as usize).map(swing).collect();
        swings.sort_by(f64::total_cmp);
        swings[swings.len() * 95 / 100]
    }

    /// Returns the changes of direction by 20 % of the extreme before, in a minute.
    fn reversals(&self, from: usize) -> f64 {
        let (mut count, mut extreme, mut rises) = (0.0, None, false);
        for &target in self.from(from) {
            let last = *extreme.get_or_insert(target);
            let further = if rises { target > last } else { target < last };
            if further {
                extreme = Some(target);
            } else if if rises { target < 0.8 * last } else { target > 1.2 * last } {
                (count, extreme, rises) = (count + 1.0, Some(target), !rises);
            }
        }
        count / (self.from(from).len() as f64 * Self::STEP_S / 60.0)
    }
}

impl EventObserver for Targets {
    fn on_event(&mut self, event: &EventRecord) {
        let &EventRecord::Decision { at, flow, target, .. } = event else { return };
        if flow.0 == 0 {
            while self.kept.len() as f64 * Self::STEP_S < at.as_secs_f64() {
                self.kept.push(self.last);
            }
            self.last = target.as_bps_f64();
        }
    }
}

/// Takes a measure from a run and the targets of its first flow.
type Value = dyn Fn(&RunResult, &Targets) -> f64 + Sync;

/// A measure of a path, with the goal of its value.
struct Wanted {
    name: &'static str,
    value: Box<Value>,
    goal: (f64, f64),
}

fn wanted(
    name: &'static str,
    low: f64,
    high: f64,
    value: impl Fn(&RunResult, &Targets) -> f64 + Sync + 'static,
) -> Wanted {
    Wanted { name, value: Box::new(value), goal: (low, high) }
}

/// Returns a measure whose value should be from `low` to `high`.
fn goal(name: &'static str, low: f64, high: f64, value: impl Fn(&RunResult) -> f64 + Sync + 'static) -> Wanted {
    wanted(name, low, high, move |run, _| value(run))
}

/// Returns a measure that is printed and not judged.
fn shown(name: &'static str, value: impl Fn(&RunResult) -> f64 + Sync + 'static) -> Wanted {
    goal(name, SHOWN.0, SHOWN.1, value)
}

/// Returns the goal of what the first flow receives from second `from` to `until`, over `mbps`.
fn received_of(name: &'static str, (from, until): (usize, usize), mbps: f64, least: f64, most: f64) -> Wanted {
    goal(name, least, most, move |run| received(run, 0, from, until) / (mbps * 1e6))
}

/// Returns the goal of the use of a link, from second 10 to `until`.
fn used(until: usize, mbps: f64, least: f64) -> Wanted {
    received_of("use", (10, until), mbps, least, 1.0)
}

fn queue(most_ms: f64) -> Wanted {
    goal("queue", 0.0, most_ms, p95)
}

fn loss(most: f64) -> Wanted {
    goal("loss", 0.0, most, |run| run.whole.link.loss_ratio)
}

fn shown_queue() -> Wanted {
    shown("queue", p95)
}

fn shown_score() -> Wanted {
    shown("score", metric("score"))
}

/// What a flow received from second `from` to `until`, bit/s.
fn received(run: &RunResult, flow: usize, from: usize, until: usize) -> f64 {
    let bytes: u64 = run.seconds[flow].iter().skip(from).take(until - from).sum();
    bytes as f64 * 8.0 / (until - from) as f64
}

fn p95(run: &RunResult) -> f64 {
    run.whole.link.queue_ms.map_or(f64::NAN, |queue| queue.p95)
}

/// Returns a function that returns a metric of the first flow.
fn metric(name: &'static str) -> impl Fn(&RunResult) -> f64 {
    move |run| (find(name).expect("a metric").value)(&run.whole, Some(0), &Default::default()).unwrap_or(f64::NAN)
}

/// Returns the sum of what these flows received, over `mbps`.
fn sum(flows: usize, (from, until): (usize, usize), mbps: f64) -> impl Fn(&RunResult) -> f64 {
    move |run| (0..flows).map(|flow| received(run, flow, from, until)).sum::<f64>() / (mbps * 1e6)
}

fn jain(flows: usize, (from, until): (usize, usize)) -> impl Fn(&RunResult) -> f64 {
    move |run| {
        let rates: Vec<f64> = (0..flows).map(|flow| received(run, flow, from, until)).collect();
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
        sum * sum / (flows as f64 * squares)
    }
}

/// Returns the share of the first of two flows.
fn share(from: usize, until: usize) -> impl Fn(&RunResult) -> f64 {
    move |run| {
        let (own, other) = (received(run, 0, from, until), received(run, 1, from, until));
        own / (own + other)
    }
}

pub struct Path {
    pub name: String,
    text: String,
    measures: Vec<Wanted>,
}

impl Path {
    fn new(name: impl Into<String>, duration: usize, body: &str, measures: Vec<Wanted>) -> Self {
        let name = name.into();
        let text = format!(
            "id = \"training/path\"\ntitle = '{name}'\nduration = \"{duration} s\"\n[measure]\nqueue = \"packet\"\n{body}"
        );
        Self { name, text, measures }
    }

    /// Creates a path for one flow.
    fn alone(
        name: impl Into<String>,
        duration: usize,
        rtt_ms: u32,
        forward: &str,
        max_mbps: f64,
        measures: Vec<Wanted>,
    ) -> Self {
        Self::new(name, duration, &(path(rtt_ms, forward) + &flow(0, max_mbps, "")), measures)
    }

    /// Runs the path under a controller with these settings of its flows, each `KEY=VALUE`.
    pub fn run(&self, controller: &str, config: &[String], seed: u64) -> Vec<Measure> {
        self.observe(controller, config, seed, None)
    }

    /// The same, with an observer.
    pub fn observe(
        &self,
        controller: &str,
        config: &[String],
        seed: u64,
        observer: Option<&mut dyn EventObserver>,
    ) -> Vec<Measure> {
        let registry = Registry::standard();
        let flows = self.text.matches("id = \"f").count();
        let settings = config.iter().flat_map(|setting| {
            (0..flows).map(move |flow| format!("flow.f{flow}.config.{setting}").parse().expect("KEY=VALUE"))
        });
        let changes =
            Changes { controller: Some(controller.to_owned()), settings: settings.collect(), ..Changes::default() };
        let origin = Origin::from_text("path.toml", &self.text);
        let scenario = load(&origin, &changes, paceline_lab::registries(&registry)).unwrap_or_else(|problem| {
            panic!("{}: {problem} {:?} {:?}", self.name, problem.offending(), problem.hint())
        });
        let mut targets = Targets::default();
        let runner = Runner::simulator(&registry);
        let observer = observer.unwrap_or(&mut targets);
        let run = runner.run(&scenario, seed, Some(observer)).expect("the simulator runs");
        let measure = |of: &Wanted| Measure { name: of.name, value: (of.value)(&run, &targets), goal: of.goal };
        self.measures.iter().map(measure).collect()
    }
}

fn flow(n: usize, max_mbps: f64, more: &str) -> String {
    format!(
        "[[flow]]\nid = \"f{n}\"\ncontroller = \"drc\"\nmax_rate = \"{max_mbps} Mbps\"\n\
         encoder = {{ max = \"{max_mbps} Mbps\" }}\n{more}\n"
    )
}

fn tcp(congestion: &str) -> String {
    format!("[[flow]]\nid = \"tcp\"\nkind = \"tcp\"\nstart = \"5 s\"\ncongestion = \"{congestion}\"\n")
}

/// A flow that does not react.
fn constant(mbps: f64) -> String {
    format!(
        "[[flow]]\nid = \"constant\"\ncontroller = \"fixed\"\ncross_traffic = true\npacket_size = \"1472 B\"\n\
         start = \"10 s\"\nmax_rate = \"{mbps} Mbps\"\n\
         encoder = {{ source = \"ideal\", min = \"{mbps} Mbps\", max = \"{mbps} Mbps\" }}\n"
    )
}

fn path(rtt_ms: u32, forward: &str) -> String {
    format!("[path]\nrtt = \"{rtt_ms} ms\"\n[path.forward]\n{forward}\n")
}

const TAIL: &str = "limit = \"300 ms\"";

/// A hop with a constant capacity and a queue.
fn hop(mbps: f64, queue: &str) -> String {
    format!("capacity = \"{mbps} Mbps\"\nqueue = {{ {queue} }}")
}

/// A hop whose capacity changes: each second, Mbit/s.
fn steps(steps: &[(usize, f64)], queue: &str) -> String {
    let steps: Vec<String> = steps.iter().map(|(at, mbps)| format!("[\"{at} s\", \"{mbps} Mbps\"]")).collect();
    format!("capacity = [{}]\nqueue = {{ {queue} }}", steps.join(", "))
}

/// A path of 40 ms in each direction, with jitter in both.
fn with_jitter(std_ms: u32, forward: &str) -> String {
    let ends = format!("delay = \"40 ms\"\njitter = {{ std = \"{std_ms} ms\", limit = \"{} ms\" }}", 3 * std_ms);
    format!("[path]\n[path.forward]\n{ends}\n{forward}\n[path.reverse]\n{ends}\n")
}

/// A path of 3 Mbit/s whose delay changes, without a notice to the flow.
fn with_delays(forward: &str, reverse: &str) -> String {
    let hop = hop(3.0, TAIL);
    format!("[path.forward]\n{hop}\ndelay = {forward}\n[path.reverse]\ndelay = {reverse}\n") + &flow(0, 6.0, "")
}

/// Returns the forward hop of a cellular link: its capacity for 120 s, and a queue of 150 KB.
fn cellular_hop(link: &str, seed: u64) -> String {
    let csv = CellularLink::find(link).expect("a model").csv(seed, 120);
    let mut capacity = String::from("capacity = [");
    for line in csv.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let (time, rate) = line.split_once(',').expect("two columns");
        _ = write!(capacity, "[\"{time} s\", \"{rate} Mbps\"], ");
    }
    format!("{capacity}]\nqueue = {{ limit = \"150 KB\" }}")
}

/// The share of the possible times min(1, 100 ms / p95 of the queue).
fn share_and_queue(run: &RunResult) -> f64 {
    metric("link_share")(run) * (100.0 / p95(run)).min(1.0)
}

fn cellular(link: &'static str, max_mbps: f64, seed: u64, least: f64) -> Path {
    let measures =
        vec![goal("score", least, 1.0, share_and_queue), shown("share", metric("link_share")), shown_queue()];
    Path::alone(format!("{link} {max_mbps} seed {seed}"), 120, 60, &cellular_hop(link, seed), max_mbps, measures)
}

/// A start; the goal of its queue, if it is judged, is up to this many ms.
fn start(mbps: f64, most_queue: Option<f64>) -> Path {
    let measures =
        vec![received_of("rate after 3 s", (3, 4), mbps, 0.9, 1.1), most_queue.map_or_else(shown_queue, queue)];
    Path::alone(format!("start {mbps}"), 10, 50, &hop(mbps, TAIL), 2.0 * mbps, measures)
}

fn outage(seconds: usize) -> Path {
    let end = 15 + seconds;
    let forward = steps(&[(0, 3.0), (15, 0.0), (end, 3.0)], "limit = \"100 KB\"");
    let measures = vec![received_of("rate after 5 s", (end + 5, end + 6), 3.0, 0.9, 1.1)];
    Path::alone(format!("outage {seconds}"), end + 15, 60, &forward, 6.0, measures)
}

fn beside(name: String, congestion: &str, queue: &str, mbps: f64, measures: Vec<Wanted>) -> Path {
    let body = path(60, &hop(mbps, queue)) + &flow(0, 2.0 * mbps, "") + &tcp(congestion);
    Path::new(name, 90, &body, measures)
}

fn fair(flows: usize, mbps: f64, limit: &'static str) -> Path {
    let mut body = path(60, &hop(mbps, limit));
    for n in 0..flows {
        body += &flow(n, mbps, &format!("start = \"{} s\"", 8 * n));
    }
    let last = 8 * (flows - 1);
    let end = (last + 30, last + 60);
    let part = move |flow| move |run: &RunResult| received(run, flow, end.0, end.1) / mbps / 1e6 * flows as f64;
    let measures = vec![
        goal("jain 30-60 s", 0.95, 1.0, jain(flows, end)),
        goal("use", 0.8, 1.0, sum(flows, (last + 20, last + 60), mbps)),
        queue(80.0),
        goal("first", 0.5, 2.0, part(0)),
        goal("last", 0.5, 2.0, part(flows - 1)),
    ];
    Path::new(format!("{flows} flows, {mbps} Mbit/s, {limit}"), last + 60, &body, measures)
}

/// Three flows with jitter of the path.
fn jittery() -> Path {
    let mut body = with_jitter(8, &steps(&[(0, 3.0), (90, 2.0)], TAIL));
    for n in 0..3 {
        body += &flow(n, 2.0, &format!("start = \"{} s\"", 10 * n));
    }
    let measures = vec![
        goal("jain 30-60 s", 0.95, 1.0, jain(3, (50, 80))),
        goal("use", 0.8, 1.0, sum(3, (40, 90), 3.0)),
        goal("use after", 0.8, 1.0, sum(3, (95, 120), 2.0)),
        queue(80.0),
        loss(0.001),
    ];
    Path::new("3 flows with jitter", 120, &body, measures)
}

/// The seeds of the cellular models in the training set. The suites have 1 to 4 and other lengths.
pub const TRAINING: [u64; 2] = [101, 102];

/// Every path of the training set, with these seeds of the cellular models.
pub fn training(cellular_seeds: &[u64]) -> Vec<Path> {
    let mut paths: Vec<Path> = [1.0, 5.0, 20.0].map(|mbps| start(mbps, Some(100.0))).into();
    paths.extend([outage(3), outage(10)]);
    let deep = vec![queue(50.0), used(40, 50.0, 0.85)];
    paths.push(Path::alone("50 Mbit/s, 1 s", 40, 50, &hop(50.0, "limit = \"1 s\""), 100.0, deep));
    for loss in [1, 5] {
        let forward = format!("loss = \"{loss} %\"\n{}", hop(3.0, TAIL));
        let measures = vec![used(60, 3.0, 0.85), queue(100.0)];
        paths.push(Path::alone(format!("{loss} % of loss"), 60, 80, &forward, 6.0, measures));
    }
    let policer = hop(20.0, "discipline = \"srtcm\", rate = \"1.5 Mbps\", burst = \"20 KB\"");
    let own_loss = goal("loss", 0.0, 0.05, |run| run.whole.flows[0].loss_ratio);
    let measures = vec![received_of("use", (10, 60), 1.5, 0.6, 1.02), own_loss];
    paths.push(Path::alone("policer", 60, 40, &policer, 4.0, measures));
    let slow =
        path(60, &steps(&[(0, 3.0), (30, 1.2)], "limit = \"2 s\"")) + &flow(0, 4.0, "feedback_interval = \"1 s\"");
    let measures = vec![
        received_of("before", (15, 30), 3.0, 0.7, 1.0),
        received_of("after", (36, 60), 1.2, 0.7, 1.0),
        queue(250.0),
    ];
    paths.push(Path::new("slow feedback", 60, &slow, measures));
    // From 10 to 150 ms.
    let delay = "[[\"0 s\", \"5 ms\"], [\"20 s\", \"75 ms\"]]";
    let measures = vec![received_of("use after a minute", (90, 120), 3.0, 0.85, 1.0)];
    paths.push(Path::new("longer path", 120, &with_delays(delay, delay), measures));
    let drift = path(50, "capacity = \"150 kbps\"")
        + "[[flow]]\nid = \"f0\"\ncontroller = \"drc\"\nstart_rate = \"50 kbps\"\nmin_rate = \"20 kbps\"\nclock = { drift_ppm = 150 }\n\
           encoder = { source = \"ideal\", fps = 5, min = \"15 kbps\", max = \"80 kbps\" }\n";
    let measures = vec![
        goal("late/early", 0.9, 1.1, |run| received(run, 0, 500, 600) / received(run, 0, 20, 80)),
        received_of("rate", (60, 600), 0.08, 0.85, 1.3),
    ];
    paths.push(Path::new("drift", 600, &drift, measures));
    for (tcp, queue) in [
        ("cubic", "limit = \"60 ms\""),
        ("cubic", TAIL),
        ("cubic", "discipline = \"fq-codel\""),
        ("bbr", "limit = \"60 ms\""),
        ("bbr", TAIL),
        ("bbr", "discipline = \"fq-codel\""),
        ("prague", "discipline = \"dualpi2\""),
    ] {
        let measures = vec![goal("share", 0.333, 0.667, share(30, 90))];
        paths.push(beside(format!("beside {tcp}, 6 Mbit/s, {queue}"), tcp, queue, 6.0, measures));
    }
    for queue in [TAIL, "discipline = \"codel\"", "discipline = \"dualpi2\""] {
        paths.extend([fair(2, 3.0, queue), fair(5, 5.0, queue)]);
    }
    paths.push(fair(12, 6.0, TAIL));
    for discipline in ["codel", "pie"] {
        let queue = format!("discipline = \"{discipline}\", {TAIL}");
        let body = with_jitter(5, &steps(&[(0, 1.5), (40, 0.8)], &queue)) + &flow(0, 3.0, "");
        let measures = vec![used(40, 1.5, 0.8), received_of("use after", (45, 80), 0.8, 0.8, 1.0), loss(0.02)];
        paths.push(Path::new(format!("1.5 and 0.8 Mbit/s, {discipline}"), 80, &body, measures));
        let body = path(80, &hop(2.0, &queue)) + &flow(0, 3.0, "") + &constant(0.8);
        let measures = vec![received_of("use", (20, 60), 1.2, 0.8, 1.05), loss(0.02)];
        paths.push(Path::new(format!("beside 0.8 Mbit/s of UDP, {discipline}"), 60, &body, measures));
    }
    paths.push(jittery());
    // Shorter than the queue that the controller allows.
    let short = hop(3.0, "limit = \"12 ms\"");
    paths.push(Path::alone("queue of 12 ms", 60, 40, &short, 6.0, vec![used(60, 3.0, 0.7), loss(0.03)]));
    let marked = steps(&[(0, 8.0), (20, 3.0), (40, 8.0)], "discipline = \"dualpi2\"");
    let measures = vec![
        received_of("first", (10, 20), 8.0, 0.8, 1.0),
        received_of("low", (25, 40), 3.0, 0.8, 1.0),
        received_of("again", (45, 60), 8.0, 0.8, 1.0),
        queue(40.0),
    ];
    paths.push(Path::alone("steps with DualPI2", 60, 30, &marked, 15.0, measures));
    let round_trips = path(20, &hop(4.0, TAIL)) + &flow(0, 4.0, "") + &flow(1, 4.0, "access_delay = \"90 ms\"");
    let ratio = goal("ratio", 0.5, 2.0, |run| received(run, 0, 30, 90) / received(run, 1, 30, 90));
    let measures = vec![ratio, goal("use", 0.8, 1.0, sum(2, (30, 90), 4.0)), queue(80.0)];
    paths.push(Path::new("RTT 20 and 200 ms", 90, &round_trips, measures));
    for &seed in cellular_seeds {
        for (link, mbps, least) in [
            ("lte-drive", 1.7, 0.92),
            ("lte-drive", 8.0, 0.7),
            ("lte-stand", 8.0, 0.7),
            ("3g-drive", 1.7, 0.45),
            ("3g-stand", 1.7, 0.45),
        ] {
            paths.push(cellular(link, mbps, seed, least));
        }
    }
    paths
}

fn steady(mbps: f64) -> Path {
    let measures = vec![
        wanted("variation", 0.0, 0.06, |_, targets| targets.variation(10)),
        wanted("swing", 0.0, 0.18, |_, targets| targets.swing(10)),
        wanted("reversals", 0.0, 0.0, |_, targets| targets.reversals(10)),
        used(70, mbps, 0.93),
        queue(65.0),
        goal("frame", 0.0, 145.0, metric("frame_delay_p95_ms")),
    ];
    Path::alone(format!("steady {mbps}"), 70, 50, &hop(mbps, TAIL), 2.0 * mbps, measures)
}

fn cellular_frames(link: &str, max_mbps: f64, seed: u64) -> Path {
    let (least_f, least_q) = if max_mbps < 2.0 { (0.45, 0.55) } else { (0.28, 0.4) };
    let frame = metric("frame_delay_p95_ms");
    let measures = vec![
        goal("score_q", least_q, 1.0, share_and_queue),
        goal("score_f", least_f, 1.0, move |run| metric("link_share")(run) * (230.0 / frame(run)).min(1.0)),
        shown("share", metric("link_share")),
        shown_queue(),
        shown("frame", metric("frame_delay_p95_ms")),
        shown_score(),
    ];
    Path::alone(format!("{link} {seed} {max_mbps}"), 120, 60, &cellular_hop(link, seed), max_mbps, measures)
}

fn beside_googcc(mbps: f64, first: bool) -> Path {
    let other = if first { "start = \"30 s\"" } else { "" };
    let body = path(60, &hop(mbps, TAIL))
        + &flow(0, 2.0 * mbps, "")
        + &format!(
            "[[flow]]\nid = \"g\"\ncontroller = \"googcc\"\ncross_traffic = true\nmax_rate = \"{0} Mbps\"\nencoder = {{ max = \"{0} Mbps\" }}\n{other}\n",
            2.0 * mbps
        );
    let part = move |flow| move |run: &RunResult| received(run, flow, 40, 120) / (mbps * 5e5);
    let measures = vec![goal("part", 0.4, 1.6, part(1)), shown("own", part(0)), shown_queue(), shown_score()];
    Path::new(format!("beside googcc, {mbps}{}", if first { ", 30 s later" } else { "" }), 120, &body, measures)
}

fn beside_tcp(tcp: &'static str, queue: u32, mbps: f64) -> Path {
    let measures = vec![
        goal("share", 0.25, 0.75, share(30, 90)),
        shown("frozen", metric("freeze_ratio")),
        shown_queue(),
        shown_score(),
    ];
    let name = format!("beside {tcp}, {queue} ms, {mbps}");
    beside(name, tcp, &format!("limit = \"{queue} ms\""), mbps, measures)
}

/// A path that is only looked at.
fn looked_at(name: impl Into<String>, rtt: u32, forward: &str, mbps: f64, more: &str) -> Path {
    let measures = vec![
        shown("use", move |run| received(run, 0, 10, 90) / mbps / 1e6),
        shown("loss", |run| run.whole.flows[0].loss_ratio),
        shown_queue(),
        shown("frozen", metric("freeze_ratio")),
        shown_score(),
    ];
    Path::new(name, 90, &(path(rtt, forward) + &flow(0, 2.0 * mbps, more)), measures)
}

/// Every path of the goals, with these seeds of the cellular models.
pub fn goals(cellular_seeds: &[u64]) -> Vec<Path> {
    let mut paths: Vec<Path> = [1.0, 2.5, 6.0, 15.0, 50.0].map(steady).into();
    paths.extend([1.0, 5.0, 20.0].map(|mbps| start(mbps, None)));
    for &seed in cellular_seeds {
        for (link, mbps) in [("lte-drive", 1.7), ("lte-drive", 8.0), ("lte-stand", 8.0), ("3g-drive", 1.7)] {
            paths.push(cellular_frames(link, mbps, seed));
        }
    }
    let adsl = "[path.forward]\ncapacity = \"24 Mbps\"\ndelay = \"20 ms\"\n[path.reverse]\ncapacity = \"1 Mbps\"\ndelay = \"20 ms\"\nqueue = { limit = \"500 ms\" }\n".to_owned()
        + &flow(0, 3.0, "")
        + "[[flow]]\nid = \"upload\"\nkind = \"tcp\"\ndirection = \"reverse\"\nstart = \"10 s\"\n";
    let measures = vec![goal("freezes", 0.0, 0.0, metric("freeze_ratio")), goal("score", 85.0, 100.0, metric("score"))];
    paths.push(Path::new("ADSL, upload", 60, &adsl, measures));
    for (name, delays) in [
        ("route +37 ms", "[[\"0 s\", \"20 ms\"], [\"20 s\", \"57 ms\"]]"),
        (
            "delay steps",
            "[[\"0 s\", \"20 ms\"], [\"12 s\", \"35 ms\"], [\"24 s\", \"25 ms\"], [\"30 s\", \"60 ms\"], [\"45 s\", \"30 ms\"], [\"50 s\", \"45 ms\"]]",
        ),
    ] {
        let measures = vec![used(60, 3.0, 0.85), queue(65.0), loss(0.001)];
        paths.push(Path::new(name, 60, &with_delays(delays, "\"20 ms\""), measures));
    }
    for mbps in [3.0, 10.0] {
        paths.extend([beside_googcc(mbps, false), beside_googcc(mbps, true)]);
    }
    for (tcp, queue) in [("cubic", 60), ("cubic", 300), ("bbr", 60), ("bbr", 300)] {
        paths.push(beside_tcp(tcp, queue, 6.0));
    }
    for aqm in ["codel", "pie", "fq-codel"] {
        for (rtt, mbps) in [(40, 2.2), (120, 1.3), (120, 6.0)] {
            let forward = hop(mbps, &format!("discipline = \"{aqm}\", {TAIL}"));
            paths.push(looked_at(format!("alone behind {aqm}, {rtt} ms, {mbps}"), rtt, &forward, mbps, ""));
        }
    }
    let lossy = |mbps, loss: &str| format!("loss = {loss}\n{}", hop(mbps, TAIL));
    let bursts = "{ model = \"gilbert-elliott\", to_bad = \"1 %\", to_good = \"30 %\" }";
    let slow = steps(&[(0, 2.6), (40, 1.4)], TAIL);
    paths.extend([
        looked_at("far away", 560, &hop(4.0, TAIL), 4.0, ""),
        looked_at("far away, loss", 560, &lossy(4.0, "\"0.5 %\""), 4.0, ""),
        looked_at("reports each 0.8 s", 70, &slow, 2.0, "feedback_interval = \"800 ms\""),
        looked_at("short queue", 40, &hop(2.4, "limit = \"25 ms\""), 2.4, ""),
        looked_at("bursts of loss", 60, &lossy(2.4, bursts), 2.4, ""),
        looked_at("beside UDP", 60, &hop(2.4, "limit = \"250 ms\""), 2.4, &constant(1.1)),
        beside_tcp("cubic", 120, 12.0),
        beside_tcp("bbr", 120, 12.0),
    ]);
    for (std, order) in [(40, "keep"), (15, "reorder")] {
        let forward = format!("jitter = {{ std = \"{std} ms\", order = \"{order}\" }}\n{}", hop(3.0, TAIL));
        let measures = vec![used(60, 3.0, 0.7), queue(100.0), shown_score()];
        paths.push(Path::alone(format!("jitter {std} {order}"), 60, 100, &forward, 6.0, measures));
    }
    for loss in [2, 5] {
        let measures = vec![used(60, 3.0, 0.85), queue(60.0), shown_score()];
        let forward = lossy(3.0, &format!("\"{loss} %\""));
        paths.push(Path::alone(format!("{loss} % of loss"), 60, 50, &forward, 6.0, measures));
    }
    let fall = steps(&[(0, 3.0), (20, 1.0), (40, 3.0)], "limit = \"500 ms\"");
    let measures = vec![
        received_of("low", (24, 40), 1.0, 0.85, 1.0),
        received_of("again", (46, 60), 3.0, 0.85, 1.0),
        shown_queue(),
        shown_score(),
    ];
    paths.push(Path::alone("fall", 60, 50, &fall, 6.0, measures));
    paths
}
