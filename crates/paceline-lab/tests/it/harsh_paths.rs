// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers on paths that the papers do not have: fast links, an outage, and TCP in a long queue.

use crate::fixtures::{self, within};
use paceline_lab::metrics::WindowResult;

fn run(duration: &str, forward: &str, call: &str, others: &str) -> WindowResult {
    let text = format!(
        "id = \"test/harsh\"\ntitle = \"A call\"\nduration = \"{duration}\"\n[path]\nrtt = \"50ms\"\n[path.forward]\n{forward}\n\
         [[flow]]\nid = \"call\"\n{call}\n{others}"
    );
    fixtures::run(&text, &[]).whole
}

/// On a full link packets arrive back to back. Without a limit they form one burst until the queue overflows.
#[test]
fn bursts_of_gcc_tfb_end_on_a_fast_link() {
    let p95 = |limit: &str| {
        let call = format!(
            "controller = \"gcc-tfb\"\nmax_rate = \"100 Mbps\"\nencoder = {{ source = \"ideal\", max = \"100 Mbps\" }}\n\
             config = {{ burst_max_ms = {limit} }}"
        );
        let path = "capacity = \"10 Mbps\"\nqueue = { limit = \"1 s\" }";
        run("200 s", path, &call, "").link.queue_ms.expect("packets waited").p95
    };
    within("queue, with the limit", p95("100"), 5.0, 250.0);
    within("queue, without", p95("0"), 900.0, 1010.0);
}

/// A source of any rate fills links of 8 to 50 Mbit/s with a queue of 1 s. The queue stays short, and the link is used.
#[test]
fn queue_of_googcc_is_short_on_a_full_link() {
    for (capacity, least) in [(8.0, 0.75), (10.0, 0.7), (20.0, 0.75), (50.0, 0.6)] {
        let call =
            "controller = \"googcc\"\nmax_rate = \"100 Mbps\"\nencoder = { source = \"ideal\", max = \"100 Mbps\" }";
        let path = format!("capacity = \"{capacity} Mbps\"\nqueue = {{ limit = \"1 s\" }}");
        let run = run("120 s", &path, call, "");
        within(&format!("p95 of the queue at {capacity}"), run.link.queue_ms.expect("packets waited").p95, 5.0, 150.0);
        within(
            &format!("used at {capacity}"),
            run.flows[0].sent_bytes as f64 * 8.0 / 120.0 / 1e6 / capacity,
            least,
            1.0,
        );
    }
}

/// Nine seconds without any feedback: the rate is halved after 3 s and then each second.
#[test]
fn every_controller_sends_little_into_a_dead_link() {
    for controller in ["gcc-tfb", "googcc", "gcc-2016", "nada", "nada-sender", "scream"] {
        let call = format!("controller = \"{controller}\"\nmin_rate = \"30 kbps\"\nencoder = {{ max = \"2.5 Mbps\" }}");
        let path = "capacity = [[\"0 s\", \"3 Mbps\"], [\"20 s\", \"0 bps\"]]";
        let sent = |until: &str| run(until, path, &call, "").flows[0].sent_bytes as f64 * 8.0 / 1e3;
        within(controller, sent("20 s") - sent("19 s"), 600.0, 3000.0);
        within(controller, sent("30 s") - sent("29 s"), 0.0, 120.0);
    }
}

/// The first three seconds without feedback, before the guard acts: a limit on the bytes in flight stops most of what
/// would wait in a dead link.
#[test]
fn flight_limit_stops_what_a_dead_link_would_collect() {
    for controller in ["gcc-tfb", "nada-sender"] {
        let sent = |limit_ms: &str, until: &str| {
            let call = format!(
                "controller = \"{controller}\"\nmin_rate = \"30 kbps\"\nencoder = {{ max = \"2.5 Mbps\" }}\n\
                 config = {{ window_ms = {limit_ms} }}"
            );
            let path = "capacity = [[\"0 s\", \"3 Mbps\"], [\"20 s\", \"0 bps\"]]\nqueue = { limit = \"2 s\" }";
            run(until, path, &call, "").flows[0].sent_bytes as f64 / 1e3
        };
        let kilobytes = |limit_ms| sent(limit_ms, "23 s") - sent(limit_ms, "20 s");
        let (free, limited) = (kilobytes("0"), kilobytes("350"));
        within(&format!("{controller}, kB"), free, 400.0, 1000.0);
        within(&format!("{controller}, limited, share"), limited / free, 0.1, 0.45);
    }
}

/// SCReAM's window lets few packets through beside TCP in a queue of 1 s: frames that would wait too long are dropped.
#[test]
fn frames_of_scream_beside_tcp_do_not_wait_for_long() {
    let call = "controller = \"scream\"\nencoder = { max = \"2.5 Mbps\" }";
    let tcp = "[[flow]]\nid = \"download\"\nkind = \"tcp\"\n";
    let path = "capacity = \"2.5 Mbps\"\nqueue = { limit = \"1 s\" }";
    let run = run("120 s", path, call, tcp);
    let frames = run.flows[0].streams[0].frame_delay_ms.expect("frames arrived");
    within("median frame delay", frames.p50, 500.0, 3500.0);
    within("p95 of the rendered frames", frames.p95, 1000.0, 4500.0);
}
