// SPDX-License-Identifier: MIT OR Apache-2.0
//! ECN on the testbed, with real packets and the kernel's TCP: ECT(1) out, marks back, and a path that clears the field.

use paceline::Registry;
use paceline_live::testbed::Testbed;
use paceline_netsim::records::{EventObserver, EventRecord, PacketClass};
use paceline_netsim::world::World;
use paceline_scenario::{self, Changes, Origin};
use paceline_units::{Ecn, Time};

/// What a run showed: the last mark of the first hop, the ECN fields of data as it arrived, and the packets dropped.
#[derive(Default)]
struct Seen {
    marked: Option<Time>,
    fields: Vec<Ecn>,
    dropped: u32,
}

impl EventObserver for Seen {
    fn on_event(&mut self, event: &EventRecord) {
        match event {
            EventRecord::Crossed { hop: 0, marked: true, at, .. } => self.marked = Some(*at),
            EventRecord::Dropped { .. } => self.dropped += 1,
            EventRecord::Arrived { packet, ecn, .. } => {
                let is_data = !packet.class.is_from_receiver() && packet.class != PacketClass::SenderControl;
                if is_data && packet.size.as_bytes() > 200 && !self.fields.contains(ecn) {
                    self.fields.push(*ecn);
                }
            }
            _ => {}
        }
    }
}

/// Runs a flow for six seconds on two hops of which the first one marks.
fn run(mark: &str, second: &str, flow: &str) -> Option<Seen> {
    if !crate::common::is_testbed_available() {
        return None;
    }
    let text = format!(
        "id = \"test/marks\"\ntitle = \"ECN\"\nduration = \"6s\"\n[path]\nrtt = \"20ms\"\n[path.forward]\nhops = [\n\
         {{ id = \"first\", capacity = \"5 Mbps\", queue = {{ limit = \"300 ms\", mark = \"{mark}\" }} }},\n\
         {{ id = \"second\"{second} }}\n]\n[[flow]]\nid = \"flow\"\n{flow}\n"
    );
    let registry = Registry::standard();
    let plan = paceline_scenario::load(&Origin::from_text("marks", text), &Changes::default(), &registry).unwrap().plan;
    let mut seen = Seen::default();
    Testbed::default().run(&plan, &registry, 7, &mut seen).unwrap();
    Some(seen)
}

const MEDIA: &str =
    "controller = \"scream-v2\"\nstart_rate = \"1 Mbps\"\nencoder = { source = \"ideal\", max = \"20 Mbps\" }";

#[test]
fn media_leaves_with_ect_1_and_arrives_marked() {
    let Some(seen) = run("8 ms", "", MEDIA) else { return };
    assert!(
        seen.fields.contains(&Ecn::Ect1) && seen.fields.contains(&Ecn::Ce) && seen.fields.len() == 2,
        "{:?}",
        seen.fields
    );
    assert!(seen.marked.is_some_and(|at| at > Time::from_secs(4)), "{:?}", seen.marked);
    assert_eq!(seen.dropped, 0);
}

#[test]
fn path_that_clears_the_field_ends_ecn() {
    let Some(seen) = run("1 ms", ", clears_ecn = true", MEDIA) else { return };
    assert_eq!(seen.fields, [Ecn::NotEct]);
    assert!(seen.marked.is_some_and(|at| at < Time::from_secs(2)), "{:?}", seen.marked);
}

#[test]
fn tcp_of_the_kernel_reacts_to_marks() {
    let flow = "kind = \"tcp\"\ncongestion = \"cubic\"\necn = ";
    let Some(on) = run("40 ms", "", &format!("{flow}\"classic\"")) else { return };
    assert!(on.fields.contains(&Ecn::Ect0) && on.fields.contains(&Ecn::Ce), "{:?}", on.fields);
    assert!(on.marked.is_some_and(|at| at > Time::from_secs(3)), "{:?}", on.marked);
    let off = run("40 ms", "", &format!("{flow}\"off\"")).unwrap();
    assert_eq!((off.fields, off.marked), (vec![Ecn::NotEct], None));
    assert!(on.dropped == 0 && off.dropped > 0, "{} {}", on.dropped, off.dropped);
}
