//! The generated paths on which the numbers of delivery-rate control were chosen, with the goal of each measure.
//!
//! They share no seed and no file with the suites, which are validation.

use super::goals::Targets;
use paceline::Registry;
use paceline_lab::metrics::find;
use paceline_lab::run::{RunResult, Runner};
use paceline_netsim::records::EventObserver;
use paceline_scenario::cellular::CellularLink;
use paceline_scenario::{Changes, Origin, load};
use std::fmt::Write as _;

/// A measure of a run, and its goal.
pub struct Measure {
    pub name: &'static str,
    pub value: f64,
    pub goal: (f64, f64),
}

/// The goal of a measure that is printed and not judged.
const SHOWN: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// Returns a measure that is printed and not judged.
pub fn shown(name: &'static str, value: f64) -> Measure {
    Measure { name, value, goal: SHOWN }
}

/// Returns a measure whose value should be from `low` to `high`.
pub fn goal(name: &'static str, value: f64, low: f64, high: f64) -> Measure {
    Measure { name, value, goal: (low, high) }
}

impl Measure {
    pub fn is_goal(&self) -> bool {
        self.goal != SHOWN
    }

    pub fn reached(&self) -> bool {
        (self.goal.0..=self.goal.1).contains(&self.value)
    }
}

/// Takes the measures of a run and of the targets of its first flow.
type Measures = dyn Fn(&RunResult, &Targets) -> Vec<Measure> + Sync;

/// A path of the training set.
pub struct Path {
    pub name: String,
    text: String,
    measures: Box<Measures>,
}

impl Path {
    pub fn new(
        name: &str,
        duration: u32,
        body: &str,
        measures: impl Fn(&RunResult) -> Vec<Measure> + Sync + 'static,
    ) -> Self {
        Self::with_targets(name, duration, body, move |run, _| measures(run))
    }

    /// Creates a path whose measures are also of the targets of the first flow.
    pub fn with_targets(
        name: &str,
        duration: u32,
        body: &str,
        measures: impl Fn(&RunResult, &Targets) -> Vec<Measure> + Sync + 'static,
    ) -> Self {
        let text = format!(
            "id = \"training/path\"\ntitle = '{name}'\nduration = \"{duration} s\"\n[measure]\nqueue = \"packet\"\n{body}"
        );
        Self { name: name.to_owned(), text, measures: Box::new(measures) }
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
        (self.measures)(&run, &targets)
    }
}

pub fn flow(n: usize, max_mbps: f64, more: &str) -> String {
    format!(
        "[[flow]]\nid = \"f{n}\"\ncontroller = \"drc\"\nmax_rate = \"{max_mbps} Mbps\"\n\
         encoder = {{ max = \"{max_mbps} Mbps\" }}\n{more}\n"
    )
}

pub fn path(rtt_ms: u32, forward: &str) -> String {
    format!("[path]\nrtt = \"{rtt_ms} ms\"\n[path.forward]\n{forward}\n")
}

/// What a flow received from second `from` to `until`, bit/s.
pub fn received(run: &RunResult, flow: usize, from: usize, until: usize) -> f64 {
    let bytes: u64 = run.seconds[flow].iter().skip(from).take(until - from).sum();
    bytes as f64 * 8.0 / (until - from) as f64
}

pub fn p95(run: &RunResult) -> f64 {
    run.whole.link.queue_ms.map_or(f64::NAN, |queue| queue.p95)
}

/// Returns a metric of the first flow.
pub fn metric(run: &RunResult, name: &str) -> f64 {
    (find(name).expect("a metric").value)(&run.whole, Some(0), &Default::default()).unwrap_or(f64::NAN)
}

fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
    sum * sum / (rates.len() as f64 * squares)
}

/// Returns the forward hop of a cellular link: its capacity for 120 s, and a queue of 150 KB.
pub fn cellular_hop(link: &str, seed: u64) -> String {
    let csv = CellularLink::find(link).expect("a model").csv(seed, 120);
    let mut capacity = String::from("capacity = [");
    for line in csv.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let (time, rate) = line.split_once(',').expect("two columns");
        _ = write!(capacity, "[\"{time} s\", \"{rate} Mbps\"], ");
    }
    format!("{capacity}]\nqueue = {{ limit = \"150 KB\" }}")
}

/// The share of the possible times min(1, 100 ms / p95 of the queue).
fn cellular(link: &'static str, max_mbps: f64, seed: u64, least: f64) -> Path {
    let name = format!("{link} {max_mbps} seed {seed}");
    let body = path(60, &cellular_hop(link, seed)) + &flow(0, max_mbps, "");
    Path::new(&name, 120, &body, move |run| {
        let (share, queue) = (metric(run, "link_share"), p95(run));
        let value = share * (100.0 / queue).min(1.0);
        vec![goal("score", value, least, 1.0), shown("share", share), shown("queue", queue)]
    })
}

/// A start; the goal of its queue, if it is judged, is up to this many ms.
pub fn start(mbps: f64, most_queue: Option<f64>) -> Path {
    let forward = format!("capacity = \"{mbps} Mbps\"\nqueue = {{ limit = \"300 ms\" }}");
    Path::new(&format!("start {mbps}"), 10, &(path(50, &forward) + &flow(0, 2.0 * mbps, "")), move |run| {
        let queue = most_queue.map_or(shown("queue", p95(run)), |most| goal("queue", p95(run), 0.0, most));
        vec![goal("rate after 3 s", received(run, 0, 3, 4) / (mbps * 1e6), 0.9, 1.1), queue]
    })
}

fn outage(seconds: usize) -> Path {
    let end = 15 + seconds;
    let forward = format!(
        "capacity = [[\"0 s\", \"3 Mbps\"], [\"15 s\", \"0 bps\"], [\"{end} s\", \"3 Mbps\"]]\nqueue = {{ limit = \"100 KB\" }}"
    );
    let duration = end + 15;
    Path::new(&format!("outage {seconds}"), duration as u32, &(path(60, &forward) + &flow(0, 6.0, "")), move |run| {
        let part = received(run, 0, end + 5, end + 6) / 3e6;
        vec![goal("rate after 5 s", part, 0.9, 1.1)]
    })
}

fn deep() -> Path {
    let body = path(50, "capacity = \"50 Mbps\"\nqueue = { limit = \"1 s\" }") + &flow(0, 100.0, "");
    Path::new("50 Mbit/s, 1 s", 40, &body, |run| {
        vec![goal("queue", p95(run), 0.0, 50.0), goal("use", received(run, 0, 10, 40) / 50e6, 0.85, 1.0)]
    })
}

fn lossy(loss: &'static str) -> Path {
    let body = path(80, &format!("capacity = \"3 Mbps\"\nloss = \"{loss} %\"\nqueue = {{ limit = \"300 ms\" }}"))
        + &flow(0, 6.0, "");
    Path::new(&format!("{loss} % of loss"), 60, &body, |run| {
        vec![goal("use", received(run, 0, 10, 60) / 3e6, 0.85, 1.0), goal("queue", p95(run), 0.0, 100.0)]
    })
}

fn policer() -> Path {
    let body =
        path(40, "capacity = \"20 Mbps\"\nqueue = { discipline = \"srtcm\", rate = \"1.5 Mbps\", burst = \"20 KB\" }")
            + &flow(0, 4.0, "");
    Path::new("policer", 60, &body, |run| {
        vec![
            goal("use", received(run, 0, 10, 60) / 1.5e6, 0.6, 1.02),
            goal("loss", run.whole.flows[0].loss_ratio, 0.0, 0.05),
        ]
    })
}

fn slow_feedback() -> Path {
    let body = path(60, "capacity = [[\"0 s\", \"3 Mbps\"], [\"30 s\", \"1.2 Mbps\"]]\nqueue = { limit = \"2 s\" }")
        + &flow(0, 4.0, "feedback_interval = \"1 s\"");
    Path::new("slow feedback", 60, &body, |run| {
        vec![
            goal("before", received(run, 0, 15, 30) / 3e6, 0.7, 1.0),
            goal("after", received(run, 0, 36, 60) / 1.2e6, 0.7, 1.0),
            goal("queue", p95(run), 0.0, 250.0),
        ]
    })
}

/// The round-trip time grows from 10 to 150 ms, without a notice to the flow.
fn longer() -> Path {
    let body = "[path.forward]\ncapacity = \"3 Mbps\"\nqueue = { limit = \"300 ms\" }\ndelay = [[\"0 s\", \"5 ms\"], [\"20 s\", \"75 ms\"]]\n\
         [path.reverse]\ndelay = [[\"0 s\", \"5 ms\"], [\"20 s\", \"75 ms\"]]\n"
        .to_owned()
        + &flow(0, 6.0, "");
    Path::new("longer path", 120, &body, |run| {
        vec![goal("use after a minute", received(run, 0, 90, 120) / 3e6, 0.85, 1.0)]
    })
}

fn drift() -> Path {
    let body = path(50, "capacity = \"150 kbps\"")
        + "[[flow]]\nid = \"f0\"\ncontroller = \"drc\"\nstart_rate = \"50 kbps\"\nmin_rate = \"20 kbps\"\nclock = { drift_ppm = 150 }\n\
           encoder = { source = \"ideal\", fps = 5, min = \"15 kbps\", max = \"80 kbps\" }\n";
    Path::new("drift", 600, &body, |run| {
        let [early, late] = [(20, 80), (500, 600)].map(|(from, until)| received(run, 0, from, until));
        vec![goal("late/early", late / early, 0.9, 1.1), goal("rate", received(run, 0, 60, 600) / 80e3, 0.85, 1.3)]
    })
}

fn beside(tcp: &'static str, queue: &'static str, mbps: f64) -> Path {
    let body = path(60, &format!("capacity = \"{mbps} Mbps\"\nqueue = {{ {queue} }}"))
        + &flow(0, 2.0 * mbps, "")
        + &format!("[[flow]]\nid = \"tcp\"\nkind = \"tcp\"\nstart = \"5 s\"\ncongestion = \"{tcp}\"\n");
    Path::new(&format!("beside {tcp}, {mbps} Mbit/s, {queue}"), 90, &body, |run| {
        let (own, other) = (received(run, 0, 30, 90), received(run, 1, 30, 90));
        vec![goal("share", own / (own + other), 0.333, 0.667)]
    })
}

fn fair(flows: usize, mbps: f64, queue: &'static str) -> Path {
    let mut body = path(60, &format!("capacity = \"{mbps} Mbps\"\nqueue = {{ {queue} }}"));
    for n in 0..flows {
        body += &flow(n, mbps, &format!("start = \"{} s\"", 8 * n));
    }
    let last = 8 * (flows - 1);
    Path::new(&format!("{flows} flows, {mbps} Mbit/s, {queue}"), last as u32 + 60, &body, move |run| {
        let rates = |from: usize, until: usize| (0..flows).map(|n| received(run, n, from, until)).collect::<Vec<_>>();
        vec![
            goal("jain 30-60 s", jain(&rates(last + 30, last + 60)), 0.95, 1.0),
            goal("use", rates(last + 20, last + 60).iter().sum::<f64>() / mbps / 1e6, 0.8, 1.0),
            goal("queue", p95(run), 0.0, 80.0),
            goal("first", received(run, 0, last + 30, last + 60) / mbps / 1e6 * flows as f64, 0.5, 2.0),
            goal("last", received(run, flows - 1, last + 30, last + 60) / mbps / 1e6 * flows as f64, 0.5, 2.0),
        ]
    })
}

/// Three flows with jitter of the path.
fn jittery() -> Path {
    const JITTER: &str = "jitter = { std = \"8 ms\", limit = \"24 ms\" }";
    let mut body = format!(
        "[path]\n[path.forward]\ndelay = \"40 ms\"\ncapacity = [[\"0 s\", \"3 Mbps\"], [\"90 s\", \"2 Mbps\"]]\n{JITTER}\nqueue = {{ limit = \"300 ms\" }}\n\
         [path.reverse]\ndelay = \"40 ms\"\n{JITTER}\n"
    );
    for n in 0..3 {
        body += &flow(n, 2.0, &format!("start = \"{} s\"", 10 * n));
    }
    Path::new("3 flows with jitter", 120, &body, |run| {
        let rates = |from: usize, until: usize| (0..3).map(|n| received(run, n, from, until)).collect::<Vec<_>>();
        vec![
            goal("jain 30-60 s", jain(&rates(50, 80)), 0.95, 1.0),
            goal("use", rates(40, 90).iter().sum::<f64>() / 3e6, 0.8, 1.0),
            goal("use after", rates(95, 120).iter().sum::<f64>() / 2e6, 0.8, 1.0),
            goal("queue", p95(run), 0.0, 80.0),
            goal("loss", run.whole.link.loss_ratio, 0.0, 0.001),
        ]
    })
}

/// A drop-tail queue that is shorter than the queue that the controller allows.
fn short_queue() -> Path {
    let body = path(40, "capacity = \"3 Mbps\"\nqueue = { limit = \"12 ms\" }") + &flow(0, 6.0, "");
    Path::new("queue of 12 ms", 60, &body, |run| {
        vec![goal("use", received(run, 0, 10, 60) / 3e6, 0.7, 1.0), goal("loss", run.whole.link.loss_ratio, 0.0, 0.03)]
    })
}

/// A queue that drops early.
fn aqm(discipline: &'static str) -> Path {
    const JITTER: &str = "jitter = { std = \"5 ms\", limit = \"15 ms\" }";
    let body = format!(
        "[path]\n[path.forward]\ndelay = \"40 ms\"\ncapacity = [[\"0 s\", \"1.5 Mbps\"], [\"40 s\", \"0.8 Mbps\"]]\n{JITTER}\n\
         queue = {{ discipline = \"{discipline}\", limit = \"300 ms\" }}\n[path.reverse]\ndelay = \"40 ms\"\n{JITTER}\n"
    ) + &flow(0, 3.0, "");
    Path::new(&format!("1.5 and 0.8 Mbit/s, {discipline}"), 80, &body, |run| {
        vec![
            goal("use", received(run, 0, 10, 40) / 1.5e6, 0.8, 1.0),
            goal("use after", received(run, 0, 45, 80) / 0.8e6, 0.8, 1.0),
            goal("loss", run.whole.link.loss_ratio, 0.0, 0.02),
        ]
    })
}

/// Beside a flow of 0.8 Mbit/s that does not react.
fn beside_constant(discipline: &'static str) -> Path {
    let body = path(
        80,
        &format!("capacity = \"2 Mbps\"\nqueue = {{ discipline = \"{discipline}\", limit = \"300 ms\" }}"),
    ) + &flow(0, 3.0, "")
        + "[[flow]]\nid = \"constant\"\ncontroller = \"fixed\"\ncross_traffic = true\npacket_size = \"1472 B\"\nstart = \"10 s\"\n\
           max_rate = \"0.8 Mbps\"\nencoder = { source = \"ideal\", min = \"0.8 Mbps\", max = \"0.8 Mbps\" }\n";
    Path::new(&format!("beside 0.8 Mbit/s of UDP, {discipline}"), 60, &body, |run| {
        vec![
            goal("use", received(run, 0, 20, 60) / 1.2e6, 0.8, 1.05),
            goal("loss", run.whole.link.loss_ratio, 0.0, 0.02),
        ]
    })
}

/// Steps of the capacity under DualPI2.
fn marked_steps() -> Path {
    let body = path(
        30,
        "capacity = [[\"0 s\", \"8 Mbps\"], [\"20 s\", \"3 Mbps\"], [\"40 s\", \"8 Mbps\"]]\nqueue = { discipline = \"dualpi2\" }",
    ) + &flow(0, 15.0, "");
    Path::new("steps with DualPI2", 60, &body, |run| {
        vec![
            goal("first", received(run, 0, 10, 20) / 8e6, 0.8, 1.0),
            goal("low", received(run, 0, 25, 40) / 3e6, 0.8, 1.0),
            goal("again", received(run, 0, 45, 60) / 8e6, 0.8, 1.0),
            goal("queue", p95(run), 0.0, 40.0),
        ]
    })
}

fn round_trips() -> Path {
    let body = path(20, "capacity = \"4 Mbps\"\nqueue = { limit = \"300 ms\" }")
        + &flow(0, 4.0, "")
        + &flow(1, 4.0, "access_delay = \"90 ms\"");
    Path::new("RTT 20 and 200 ms", 90, &body, |run| {
        let ratio = received(run, 0, 30, 90) / received(run, 1, 30, 90);
        vec![
            goal("ratio", ratio, 0.5, 2.0),
            goal("use", (received(run, 0, 30, 90) + received(run, 1, 30, 90)) / 4e6, 0.8, 1.0),
            goal("queue", p95(run), 0.0, 80.0),
        ]
    })
}

/// The seeds of the cellular models in the training set. The suites have 1 to 4 and other lengths.
pub const TRAINING: [u64; 2] = [101, 102];

/// Every path, with these seeds of the cellular models.
pub fn all(cellular_seeds: &[u64]) -> Vec<Path> {
    const TAIL: &str = "limit = \"300 ms\"";
    let mut paths = vec![
        start(1.0, Some(100.0)),
        start(5.0, Some(100.0)),
        start(20.0, Some(100.0)),
        outage(3),
        outage(10),
        deep(),
        lossy("1"),
        lossy("5"),
        policer(),
        slow_feedback(),
        longer(),
        drift(),
    ];
    for (tcp, queue) in [
        ("cubic", "limit = \"60 ms\""),
        ("cubic", TAIL),
        ("cubic", "discipline = \"fq-codel\""),
        ("bbr", "limit = \"60 ms\""),
        ("bbr", TAIL),
        ("bbr", "discipline = \"fq-codel\""),
        ("prague", "discipline = \"dualpi2\""),
    ] {
        paths.push(beside(tcp, queue, 6.0));
    }
    for queue in [TAIL, "discipline = \"codel\"", "discipline = \"dualpi2\""] {
        paths.push(fair(2, 3.0, queue));
        paths.push(fair(5, 5.0, queue));
    }
    paths.push(fair(12, 6.0, TAIL));
    for discipline in ["codel", "pie"] {
        paths.push(aqm(discipline));
        paths.push(beside_constant(discipline));
    }
    paths.push(jittery());
    paths.push(short_queue());
    paths.push(marked_steps());
    paths.push(round_trips());
    for &seed in cellular_seeds {
        paths.push(cellular("lte-drive", 1.7, seed, 0.92));
        paths.push(cellular("lte-drive", 8.0, seed, 0.7));
        paths.push(cellular("lte-stand", 8.0, seed, 0.7));
        paths.push(cellular("3g-drive", 1.7, seed, 0.45));
        paths.push(cellular("3g-stand", 1.7, seed, 0.45));
    }
    paths
}
