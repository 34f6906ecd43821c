// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description of a plan, from which plots are made.

use paceline::Registry;
use paceline_scenario::{Catalogue, Changes, load};

#[test]
fn describes_the_path_and_the_flows_of_a_plan() {
    let registry = Registry::standard();
    let changes = Changes { controller: Some("gcc-2016".to_owned()), ..Changes::default() };
    let plan = load(&Catalogue.find("mmsys16/table1").unwrap(), &changes, &registry).unwrap().plan;
    let run = plan.describe(&registry);
    assert_eq!((run.duration_s, run.hops.len(), run.flows.len()), (200.0, 2, 1));
    let hop = &run.hops[0];
    let steps = [(0.0, 1e6), (50.0, 2.5e6), (100.0, 0.5e6), (150.0, 1e6)];
    assert_eq!(hop.capacity.as_deref(), Some(&steps[..]));
    assert_eq!((hop.forward, &hop.limit), (true, &(300.0, "ms".to_owned())));
    assert_eq!((run.hops[1].forward, &run.hops[1].capacity), (false, &None));
    let flow = &run.flows[0];
    assert_eq!((flow.kind.as_str(), flow.propagation.as_slice()), ("media", &[(0.0, 50.0)][..]));
    assert_eq!((flow.route.as_slice(), flow.lives_s), (&["forward".to_owned()][..], (0.0, 200.0)));
    let states =
        |half: usize, name: &str| flow.signals[half].iter().find(|s| s.name == name).map(|s| s.states.len()).unwrap();
    assert_eq!((states(1, "usage"), states(1, "gamma"), states(0, "A_s")), (3, 0, 0));
}
