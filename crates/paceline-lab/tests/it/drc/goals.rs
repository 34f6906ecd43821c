//! The goals of delivery-rate control: what a viewer and the others on the path see of it.
//!
//! The paths are written here or come from `CellularLink` with seeds of their own. They share no file with the suites.

use super::paths::{Path, cellular_hop, flow, goal, metric, p95, path, received, shown, start};
use paceline_netsim::records::{EventObserver, EventRecord};

/// The targets of the first flow, one each 100 ms.
#[derive(Default)]
pub struct Targets {
    last: f64,
    kept: Vec<f64>,
}

impl Targets {
    const STEP_S: f64 = 0.1;

    /// Returns the coefficient of variation from second `from` on, the 95th percentile of the swing in 2 s (largest less smallest, over
    /// the mean), and the reversals of 20 % in a minute.
    pub fn variation(&self, from: usize) -> (f64, f64, f64) {
        let targets = &self.kept[(from as f64 / Self::STEP_S) as usize..];
        let n = targets.len() as f64;
        let mean = targets.iter().sum::<f64>() / n;
        let deviation = (targets.iter().map(|target| (target - mean) * (target - mean)).sum::<f64>() / n).sqrt();
        let mut swings: Vec<f64> = targets
            .windows((2.0 / Self::STEP_S) as usize)
            .map(|part| {
                let (low, high) = part.iter().fold((f64::MAX, 0.0_f64), |(low, high), &of| (low.min(of), high.max(of)));
                (high - low) / mean
            })
            .collect();
        swings.sort_by(f64::total_cmp);
        (deviation / mean, swings[swings.len() * 95 / 100], self.reversals(from) / (n * Self::STEP_S / 60.0))
    }

    /// Counts changes of direction by 20 % of the extreme before.
    fn reversals(&self, from: usize) -> f64 {
        let (mut count, mut extreme, mut rises) = (0.0, None, false);
        for &target in &self.kept[(from as f64 / Self::STEP_S) as usize..] {
            let last = *extreme.get_or_insert(target);
            let further = if rises { target > last } else { target < last };
            if further {
                extreme = Some(target);
            } else if if rises { target < 0.8 * last } else { target > 1.2 * last } {
                (count, extreme, rises) = (count + 1.0, Some(target), !rises);
            }
        }
        count
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

fn steady(mbps: f64) -> Path {
    let body =
        path(50, &format!("capacity = \"{mbps} Mbps\"\nqueue = {{ limit = \"300 ms\" }}")) + &flow(0, 2.0 * mbps, "");
    Path::with_targets(&format!("steady {mbps}"), 70, &body, move |run, targets| {
        let (variation, swing, reversals) = targets.variation(10);
        vec![
            goal("variation", variation, 0.0, 0.06),
            goal("swing", swing, 0.0, 0.18),
            goal("reversals", reversals, 0.0, 0.0),
            goal("use", received(run, 0, 10, 70) / mbps / 1e6, 0.93, 1.0),
            goal("queue", p95(run), 0.0, 65.0),
            goal("frame", metric(run, "frame_delay_p95_ms"), 0.0, 145.0),
        ]
    })
}

fn cellular(link: &str, max_mbps: f64, seed: u64) -> Path {
    let (least_f, least_q) = if max_mbps < 2.0 { (0.45, 0.55) } else { (0.28, 0.4) };
    let body = path(60, &cellular_hop(link, seed)) + &flow(0, max_mbps, "");
    Path::new(&format!("{link} {seed} {max_mbps}"), 120, &body, move |run| {
        let share = metric(run, "link_share");
        let (queue, frame) = (p95(run), metric(run, "frame_delay_p95_ms"));
        vec![
            goal("score_q", share * (100.0 / queue).min(1.0), least_q, 1.0),
            goal("score_f", share * (230.0 / frame).min(1.0), least_f, 1.0),
            shown("share", share),
            shown("queue", queue),
            shown("frame", frame),
            shown("score", metric(run, "score")),
        ]
    })
}

fn adsl() -> Path {
    let body = "[path.forward]\ncapacity = \"24 Mbps\"\ndelay = \"20 ms\"\n[path.reverse]\ncapacity = \"1 Mbps\"\ndelay = \"20 ms\"\nqueue = { limit = \"500 ms\" }\n".to_owned()
        + &flow(0, 3.0, "")
        + "[[flow]]\nid = \"upload\"\nkind = \"tcp\"\ndirection = \"reverse\"\nstart = \"10 s\"\n";
    Path::new("ADSL, upload", 60, &body, |run| {
        vec![goal("freezes", metric(run, "freeze_ratio"), 0.0, 0.0), goal("score", metric(run, "score"), 85.0, 100.0)]
    })
}

/// The route becomes longer by 37 ms, without notice.
fn longer(name: &'static str, delays: &str) -> Path {
    let body = format!(
        "[path.forward]\ncapacity = \"3 Mbps\"\nqueue = {{ limit = \"300 ms\" }}\ndelay = {delays}\n[path.reverse]\ndelay = \"20 ms\"\n"
    ) + &flow(0, 6.0, "");
    Path::new(name, 60, &body, |run| {
        vec![
            goal("use", received(run, 0, 10, 60) / 3e6, 0.85, 1.0),
            goal("queue", p95(run), 0.0, 65.0),
            goal("loss", run.whole.link.loss_ratio, 0.0, 0.001),
        ]
    })
}

fn beside_googcc(mbps: f64, first: bool) -> Path {
    let (own, other) = if first { ("", "start = \"30 s\"") } else { ("", "") };
    let body = path(60, &format!("capacity = \"{mbps} Mbps\"\nqueue = {{ limit = \"300 ms\" }}"))
        + &flow(0, 2.0 * mbps, own)
        + &format!(
            "[[flow]]\nid = \"g\"\ncontroller = \"googcc\"\ncross_traffic = true\nmax_rate = \"{0} Mbps\"\nencoder = {{ max = \"{0} Mbps\" }}\n{other}\n",
            2.0 * mbps
        );
    Path::new(&format!("beside googcc, {mbps}{}", if first { ", 30 s later" } else { "" }), 120, &body, move |run| {
        vec![
            goal("part", received(run, 1, 40, 120) / (mbps * 5e5), 0.4, 1.6),
            shown("own", received(run, 0, 40, 120) / (mbps * 5e5)),
            shown("queue", p95(run)),
            shown("score", metric(run, "score")),
        ]
    })
}

fn beside(tcp: &'static str, queue: u32, mbps: f64) -> Path {
    let body = path(60, &format!("capacity = \"{mbps} Mbps\"\nqueue = {{ limit = \"{queue} ms\" }}"))
        + &flow(0, 2.0 * mbps, "")
        + &format!("[[flow]]\nid = \"tcp\"\nkind = \"tcp\"\nstart = \"5 s\"\ncongestion = \"{tcp}\"\n");
    Path::new(&format!("beside {tcp}, {queue} ms, {mbps}"), 90, &body, |run| {
        let (own, other) = (received(run, 0, 30, 90), received(run, 1, 30, 90));
        vec![
            goal("share", own / (own + other), 0.25, 0.75),
            shown("frozen", metric(run, "freeze_ratio")),
            shown("queue", p95(run)),
            shown("score", metric(run, "score")),
        ]
    })
}

fn jitter(std: u32, order: &str) -> Path {
    let body = path(
        100,
        &format!(
            "capacity = \"3 Mbps\"\nqueue = {{ limit = \"300 ms\" }}\njitter = {{ std = \"{std} ms\", order = \"{order}\" }}"
        ),
    ) + &flow(0, 6.0, "");
    Path::new(&format!("jitter {std} {order}"), 60, &body, |run| {
        vec![
            goal("use", received(run, 0, 10, 60) / 3e6, 0.7, 1.0),
            goal("queue", p95(run), 0.0, 100.0),
            shown("score", metric(run, "score")),
        ]
    })
}

fn lossy(loss: u32) -> Path {
    let body = path(50, &format!("capacity = \"3 Mbps\"\nloss = \"{loss} %\"\nqueue = {{ limit = \"300 ms\" }}"))
        + &flow(0, 6.0, "");
    Path::new(&format!("{loss} % of loss"), 60, &body, |run| {
        vec![
            goal("use", received(run, 0, 10, 60) / 3e6, 0.85, 1.0),
            goal("queue", p95(run), 0.0, 60.0),
            shown("score", metric(run, "score")),
        ]
    })
}

fn fall() -> Path {
    let body = path(
        50,
        "capacity = [[\"0 s\", \"3 Mbps\"], [\"20 s\", \"1 Mbps\"], [\"40 s\", \"3 Mbps\"]]\nqueue = { limit = \"500 ms\" }",
    ) + &flow(0, 6.0, "");
    Path::new("fall", 60, &body, |run| {
        vec![
            goal("low", received(run, 0, 24, 40) / 1e6, 0.85, 1.0),
            goal("again", received(run, 0, 46, 60) / 3e6, 0.85, 1.0),
            shown("queue", p95(run)),
            shown("score", metric(run, "score")),
        ]
    })
}

/// A path that is only looked at.
fn looked_at(name: &str, rtt: u32, forward: &str, mbps: f64, more: &str) -> Path {
    let body = path(rtt, forward) + &flow(0, 2.0 * mbps, more);
    Path::new(name, 90, &body, move |run| {
        vec![
            shown("use", received(run, 0, 10, 90) / mbps / 1e6),
            shown("loss", run.whole.flows[0].loss_ratio),
            shown("queue", p95(run)),
            shown("frozen", metric(run, "freeze_ratio")),
            shown("score", metric(run, "score")),
        ]
    })
}

/// Every path of the goals, with these seeds of the cellular models.
pub fn all(cellular_seeds: &[u64]) -> Vec<Path> {
    let mut paths: Vec<Path> = [1.0, 2.5, 6.0, 15.0, 50.0].map(steady).into();
    paths.extend([1.0, 5.0, 20.0].map(|mbps| start(mbps, None)));
    for &seed in cellular_seeds {
        for (link, mbps) in [("lte-drive", 1.7), ("lte-drive", 8.0), ("lte-stand", 8.0), ("3g-drive", 1.7)] {
            paths.push(cellular(link, mbps, seed));
        }
    }
    paths.push(adsl());
    paths.push(longer("route +37 ms", "[[\"0 s\", \"20 ms\"], [\"20 s\", \"57 ms\"]]"));
    paths.push(longer("delay steps", "[[\"0 s\", \"20 ms\"], [\"12 s\", \"35 ms\"], [\"24 s\", \"25 ms\"], [\"30 s\", \"60 ms\"], [\"45 s\", \"30 ms\"], [\"50 s\", \"45 ms\"]]"));
    for mbps in [3.0, 10.0] {
        paths.push(beside_googcc(mbps, false));
        paths.push(beside_googcc(mbps, true));
    }
    for (tcp, queue) in [("cubic", 60), ("cubic", 300), ("bbr", 60), ("bbr", 300)] {
        paths.push(beside(tcp, queue, 6.0));
    }
    for aqm in ["codel", "pie", "fq-codel"] {
        for (rtt, mbps) in [(40, 2.2), (120, 1.3), (120, 6.0)] {
            let forward =
                format!("capacity = \"{mbps} Mbps\"\nqueue = {{ discipline = \"{aqm}\", limit = \"300 ms\" }}");
            paths.push(looked_at(&format!("alone behind {aqm}, {rtt} ms, {mbps}"), rtt, &forward, mbps, ""));
        }
    }
    paths.push(looked_at("far away", 560, "capacity = \"4 Mbps\"\nqueue = { limit = \"300 ms\" }", 4.0, ""));
    paths.push(looked_at(
        "far away, loss",
        560,
        "capacity = \"4 Mbps\"\nloss = \"0.5 %\"\nqueue = { limit = \"300 ms\" }",
        4.0,
        "",
    ));
    paths.push(looked_at(
        "reports each 0.8 s",
        70,
        "capacity = [[\"0 s\", \"2.6 Mbps\"], [\"40 s\", \"1.4 Mbps\"]]\nqueue = { limit = \"300 ms\" }",
        2.0,
        "feedback_interval = \"800 ms\"",
    ));
    paths.push(looked_at("short queue", 40, "capacity = \"2.4 Mbps\"\nqueue = { limit = \"25 ms\" }", 2.4, ""));
    paths.push(looked_at("bursts of loss", 60, "capacity = \"2.4 Mbps\"\nloss = { model = \"gilbert-elliott\", to_bad = \"1 %\", to_good = \"30 %\" }\nqueue = { limit = \"300 ms\" }", 2.4, ""));
    paths.push(looked_at("beside UDP", 60, "capacity = \"2.4 Mbps\"\nqueue = { limit = \"250 ms\" }", 2.4, "[[flow]]\nid = \"constant\"\ncontroller = \"fixed\"\ncross_traffic = true\npacket_size = \"1472 B\"\nstart = \"10 s\"\nmax_rate = \"1.1 Mbps\"\nencoder = { source = \"ideal\", min = \"1.1 Mbps\", max = \"1.1 Mbps\" }\n"));
    for (tcp, queue) in [("cubic", 120), ("bbr", 120)] {
        paths.push(beside(tcp, queue, 12.0));
    }
    paths.extend([jitter(40, "keep"), jitter(15, "reorder"), lossy(2), lossy(5), fall()]);
    paths
}
