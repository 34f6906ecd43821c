// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss and round-trip time of a trace are those of the path, unless the scenario has its own.

use paceline::Registry;
use paceline_netsim::plan::HopPlan;
use paceline_scenario::{Catalogue, Changes, load};

const TRACE: &str = r#"{"uplink": {"trace_pattern": [
    {"duration": 20000, "capacity": 1000, "loss": 0, "rtt": 40},
    {"duration": 10000, "capacity": 1000, "loss": 0.1, "rtt": 200}]}}"#;

/// Returns delay and loss of the hops of a scenario with this path.
fn hops(name: &str, path: &str) -> Vec<String> {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let file = format!("{folder}/{name}.toml");
    std::fs::write(format!("{folder}/conditions.json"), TRACE).unwrap();
    let flow = "[[flow]]\nid = \"video\"\ncontroller = \"gcc-2016\"\n";
    let text = format!("id = \"conditions/{name}\"\ntitle = \"t\"\nduration = \"60s\"\n{path}\n{flow}");
    std::fs::write(&file, text).unwrap();
    let registry = Registry::standard();
    let plan = load(&Catalogue.find(&file).unwrap(), &Changes::default(), &registry).unwrap().plan;
    plan.hops.iter().map(|HopPlan { delay, loss, .. }| format!("{delay:?} {loss:?}")).collect()
}

#[test]
fn a_trace_gives_the_path_that_is_written_by_hand() {
    let capacity = "capacity = { trace = \"conditions.json\" }";
    let (delay, loss) = (
        "delay = [[\"0s\", \"20 ms\"], [\"20s\", \"100 ms\"], [\"30s\", \"20 ms\"], [\"50s\", \"100 ms\"]]",
        "loss = [[\"0s\", \"0 %\"], [\"20s\", \"10 %\"], [\"30s\", \"0 %\"], [\"50s\", \"10 %\"]]",
    );
    let by_hand =
        hops("by-hand", &format!("[path.forward]\ncapacity = \"1 Mbps\"\n{delay}\n{loss}\n[path.reverse]\n{delay}"));
    assert_eq!(hops("traced", &format!("[path.forward]\n{capacity}")), by_hand);
    assert_eq!(hops("back", &format!("[path.forward]\n{capacity}\n[path.reverse]\n{delay}")), by_hand);
    // A trace of the way back alone is that of the path, too.
    let way_back = hops("way-back", &format!("[path.forward]\ncapacity = \"1 Mbps\"\n[path.reverse]\n{capacity}"));
    let delays =
        |hops: &[String]| hops.iter().map(|hop| hop.split(" Schedule").next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(delays(&way_back), delays(&by_hand));
    // What the scenario says counts, on each hop.
    let second = "[path]\nrtt = \"50 ms\"\n[[path.forward.hops]]\nid = \"a\"\n[[path.forward.hops]]\nid = \"b\"\n";
    let of_hops = hops("hops", &format!("{second}capacity = \"1 Mbps\"\n{loss}"));
    assert_eq!(hops("hops-traced", &format!("{second}{capacity}")), of_hops);
    let own = hops("own", "[path]\nrtt = \"50 ms\"\n[path.forward]\ncapacity = \"1 Mbps\"\nloss = \"1 %\"");
    assert_eq!(
        hops("own-traced", &format!("[path]\nrtt = \"50 ms\"\n[path.forward]\n{capacity}\nloss = \"1 %\"")),
        own
    );
    // A way with its own delay keeps it; the other has half of the trace's round trip.
    let way = "[path.forward]\ncapacity = \"1 Mbps\"\ndelay = \"5 ms\"\nloss = \"1 %\"";
    let way = hops("way", &format!("{way}\n[path.reverse]\n{delay}"));
    assert_eq!(hops("way-traced", &format!("[path.forward]\n{capacity}\ndelay = \"5 ms\"\nloss = \"1 %\"")), way);
}
