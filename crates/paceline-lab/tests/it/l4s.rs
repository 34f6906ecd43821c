// SPDX-License-Identifier: MIT OR Apache-2.0
//! ECN from end to end: L4S flows on queues that mark early, paths that clear the field, and TCP with ECN.

use crate::fixtures::{self, metric, registry, simulator, within};
use paceline_netsim::records::{EventRecord, PacketClass};
use paceline_scenario::{Catalogue, Changes, load_cases};
use paceline_units::{Ecn, Time};

/// A path of 50 ms with this link, and one flow.
fn scenario(link: &str, flow: &str) -> String {
    format!(
        "id = \"test/l4s\"\ntitle = \"A flow on a link that marks\"\nduration = \"60s\"\n[path]\nrtt = \"50ms\"\n\
         [path.forward]\n{link}\n[[flow]]\nid = \"flow\"\n{flow}\n"
    )
}

fn values<const N: usize>(link: &str, flow: &str, ids: [&str; N]) -> [f64; N] {
    let whole = fixtures::run(&scenario(link, flow), &[]).whole;
    ids.map(|id| metric(&whole, id, None).unwrap_or_else(|| panic!("no {id}")))
}

const MEDIA: &str = "controller = \"scream-v2\"\nencoder = { source = \"ideal\", max = \"20 Mbps\" }";

/// Returns the time in seconds of the last mark of the first hop, and the ECN fields of media as it arrived.
fn marks(mark: &str, path: &str) -> (f64, Vec<Ecn>) {
    let text = format!(
        "id = \"test/l4s\"\ntitle = \"A path with two hops\"\nduration = \"60s\"\n[path]\nrtt = \"50ms\"\n[path.forward]\n\
         hops = [\n{{ id = \"first\", capacity = \"5 Mbps\", queue = {{ limit = \"300 ms\", mark = \"{mark}\" }} }},\n{path}\n]\n\
         [[flow]]\nid = \"flow\"\n{MEDIA}\n"
    );
    let (mut last, mut fields) = (Time::ZERO, Vec::new());
    fixtures::observe(&fixtures::scenario(&text, &[]), 1, |event| match event {
        EventRecord::Crossed { hop: 0, marked: true, at, .. } => last = *at,
        EventRecord::Arrived { packet, ecn, .. }
            if !packet.class.is_from_receiver()
                && packet.class != PacketClass::SenderControl
                && !fields.contains(ecn) =>
        {
            fields.push(*ecn);
        }
        _ => {}
    });
    ((last - Time::ZERO).as_secs_f64(), fields)
}

/// Packets leave with ECT(1), marks reach the receiver, and the queue stays at the threshold.
#[test]
fn scream_v2_keeps_its_queue_at_the_marking_threshold() {
    let ids = ["utilization", "queue_p95_ms", "ce_ratio", "loss_ratio"];
    for controller in ["scream-v2", "scream-v2-cpp"] {
        let media = MEDIA.replace("scream-v2", controller);
        let link = |mark: &str| format!("capacity = \"5 Mbps\"\nqueue = {{ limit = \"300 ms\"{mark} }}");
        let [bare, marking] = ["", ", mark = \"5 ms\""].map(|mark| values(&link(mark), &media, ids));
        println!("{controller}: {bare:.4?} bare, {marking:.4?} marking");
        within("utilisation, bare", bare[0], 0.9, 1.0);
        within("utilisation, marking", marking[0], 0.7, 0.95);
        within("95 % of the queue, ms, bare", bare[1], 15.0, 60.0);
        within("95 % of the queue, ms, marking", marking[1], 2.0, 10.0);
        within("marked", marking[2], 0.002, 0.2);
        assert_eq!((bare[2], bare[3], marking[3]), (0.0, 0.0, 0.0));
    }
}

/// A hop that clears the field: the first report shows it, and packets are no longer ECN-capable, so the hop before does not
/// mark them any more. On a path that keeps the field marks go on.
#[test]
fn path_that_clears_the_field_ends_l4s() {
    let (last, fields) = marks("8 ms", "{ id = \"second\" }");
    within("last mark, s", last, 59.0, 60.0);
    assert!(fields.contains(&Ecn::Ect1) && fields.contains(&Ecn::Ce) && fields.len() == 2, "{fields:?}");
    let (last, fields) = marks("1 ms", "{ id = \"second\", clears_ecn = true }");
    within("last mark, s", last, 0.001, 1.0);
    assert_eq!(fields, [Ecn::NotEct]);
}

/// A mark in place of a loss: the queue stays near the threshold and nothing is lost.
#[test]
fn tcp_with_classic_ecn_reacts_to_marks_as_to_losses() {
    let link = "capacity = \"10 Mbps\"\nqueue = { limit = \"200 ms\", mark = \"60 ms\" }";
    let ids = ["utilization", "queue_p95_ms", "loss_ratio"];
    for (congestion, profile) in [("new-reno", "rfc"), ("cubic", "rfc"), ("new-reno", "linux"), ("cubic", "linux")] {
        let flow =
            |ecn| format!("kind = \"tcp\"\ncongestion = \"{congestion}\"\nprofile = \"{profile}\"\necn = \"{ecn}\"");
        let [off, classic, abe] = ["off", "classic", "abe"].map(|ecn| values(link, &flow(ecn), ids));
        println!("{congestion} {profile}: {off:.4?} off, {classic:.4?} classic, {abe:.4?} abe");
        within("utilisation, off", off[0], 0.98, 1.0);
        within("utilisation, classic", classic[0], 0.92, 1.0);
        within("utilisation, abe", abe[0], 0.96, 1.0);
        within("95 % of the queue, ms, off", off[1], 140.0, 205.0);
        within("95 % of the queue, ms, classic", classic[1], 40.0, 75.0);
        assert!(off[2] > 0.0 && classic[2] == 0.0 && abe[2] == 0.0);
    }
}

/// A step at 8 ms, 13 packets: scalable controls oscillate closely around it.
#[test]
fn scalable_tcp_keeps_its_queue_at_a_shallow_threshold() {
    let link = "capacity = \"20 Mbps\"\nqueue = { limit = \"100 ms\", mark = \"8 ms\" }";
    let ids = ["utilization", "queue_p95_ms", "ce_ratio", "loss_ratio"];
    let of = |congestion: &str| values(link, &format!("kind = \"tcp\"\ncongestion = \"{congestion}\""), ids);
    for congestion in ["dctcp", "prague"] {
        let [used, queue, marked, lost] = of(congestion);
        println!("{congestion}: {used:.4} used, {queue:.2} ms, {marked:.4} marked");
        within("utilisation", used, 0.9, 1.0);
        within("95 % of the queue, ms", queue, 4.0, 14.0);
        within("marked", marked, 0.0005, 0.2);
        assert_eq!(lost, 0.0);
    }
}

/// The files state what each flow gets and how long it waits behind DualPI2, FQ-CoDel and a step, for the numbers of the draft and for
/// others. Each of their bounds has two sides. The cases of 25 ms are run here, on seed 1.
#[test]
fn flows_behind_marking_queues_keep_the_bounds_of_the_shipped_files() {
    for (id, cases, bounds) in
        [("l4s/dualpi2", 8, 24), ("l4s/dualpi2-pair", 2, 6), ("l4s/fq-codel", 6, 24), ("l4s/step", 2, 6)]
    {
        let all = load_cases(&Catalogue.find(id).unwrap(), &Changes::default(), registry()).unwrap();
        let (mut ran, mut judged) = (0, 0);
        let other_rtt = |label: &str| label.contains("rtt=") && !label.contains("rtt=25ms");
        for scenario in all.iter().filter(|scenario| !other_rtt(&scenario.plan.case.to_string())) {
            let runs = simulator().run_all(scenario, &[1]).unwrap();
            for bound in &runs.assertions {
                assert!(bound.holds, "{id} {}: {} is {:?}", scenario.plan.case, bound.id, bound.measured);
                assert!(bound.bounds.0.is_finite() && bound.bounds.1.is_finite(), "{id}: {}", bound.id);
            }
            ran += 1;
            judged += runs.assertions.len();
        }
        assert_eq!((ran, judged), (cases, bounds), "{id}");
    }
}
