//! Runs of the faulty controllers: each shows its fault in a metric that is sound under GoogCC.

use crate::fixtures::{load_from, metric, within};
use paceline::Registry;
use paceline_lab::run::{RunResult, Runner};
use paceline_lab::yardsticks;
use paceline_scenario::{Catalogue, Origin};

/// A queue of 10 ms at 1 Mbit/s, which a frame of several packets overflows.
const SHORT_QUEUE: &str = r#"
    id = "short-queue"
    title = "short queue"
    duration = "60s"
    [path]
    rtt = "50ms"
    [path.forward]
    capacity = "1Mbps"
    queue = { discipline = "drop-tail", limit = "10ms" }
    [[flow]]
    id = "video"
    controller = "googcc"
    encoder = { max = "2Mbps" }
"#;

fn run(origin: &Origin, controller: &str) -> RunResult {
    let registry = yardsticks::add(Registry::standard());
    let scenario = load_from(origin, Some(controller), &[], &registry);
    Runner::simulator(&registry).run(&scenario, 1, None).unwrap()
}

/// Asserts the range of a metric under GoogCC, and another one under a faulty controller.
#[track_caller]
fn differs(origin: &Origin, id: &str, googcc: (f64, f64), (faulty, range): (&str, (f64, f64))) {
    let value = |controller| metric(&run(origin, controller).whole, id, None).unwrap();
    within(&format!("{id} of googcc"), value("googcc"), googcc.0, googcc.1);
    within(&format!("{id} of {faulty}"), value(faulty), range.0, range.1);
}

/// 1, 2.5, 0.5 and 1 Mbit/s, 50 s each, with a queue of 300 ms.
fn steps() -> Origin {
    Catalogue.find("mmsys16/table1").unwrap()
}

/// By hand: of 1 Mbit/s for 200 s, at most 0.5 Mbit/s arrive in 50 s: an eighth is lost, and a little more where the rate exceeds
/// the capacity with its overhead. The capacity is 1.25 Mbit/s on average, so 0.875 / 1.25 = 0.7 of it is used.
#[test]
fn constant_rate_loses_an_eighth_of_its_packets() {
    differs(&steps(), "utilization", (0.75, 0.95), ("faulty-constant", (0.68, 0.72)));
    differs(&steps(), "loss_ratio", (0.0, 0.02), ("faulty-constant", (0.12, 0.15)));
}

/// The limit of the queue is 300 ms.
#[test]
fn queue_is_full_without_the_over_use_detector() {
    differs(&steps(), "queue_p95_ms", (10.0, 120.0), ("faulty-ignores-delay", (270.0, 301.0)));
}

#[test]
fn losses_do_not_lower_the_rate_without_reports_on_them() {
    let origin = Origin::from_text("short-queue.toml", SHORT_QUEUE);
    differs(&origin, "loss_ratio", (0.05, 0.2), ("faulty-ignores-loss", (0.45, 0.7)));
}

/// The source of at most 2 Mbit/s exceeds all capacities but one.
#[test]
fn open_loop_reaches_the_maximum_of_the_source() {
    differs(&steps(), "loss_ratio", (0.0, 0.02), ("faulty-ignores-feedback", (0.35, 0.5)));
}

/// The start rate is 0.3 Mbit/s, of a mean capacity of 1.25 Mbit/s: 0.24.
#[test]
fn start_rate_is_never_exceeded_by_a_rate_that_cannot_increase() {
    differs(&steps(), "utilization", (0.75, 0.95), ("faulty-never-increases", (0.2, 0.26)));
    differs(&steps(), "loss_ratio", (0.0, 0.02), ("faulty-never-increases", (0.0, 0.005)));
}

/// By hand: a square wave of 0.5 and 1.25 has a mean of 0.875 and a coefficient of variation of 0.375 / 0.875 = 0.43. The link passes
/// at most its capacity in the high half, which leaves 0.25 / 0.75 = 0.33 if the estimate fills it.
#[test]
fn oscillation_leaves_capacity_unused() {
    differs(&steps(), "utilization", (0.78, 0.95), ("faulty-oscillates", (0.55, 0.75)));
    let origin = Origin::from_text("long-queue.toml", SHORT_QUEUE.replace("10ms", "300ms").replace("60s", "120s"));
    differs(&origin, "rate_cv", (0.02, 0.25), ("faulty-oscillates", (0.28, 0.5)));
}
