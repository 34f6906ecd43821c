// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every registered controller can be copied with its state.

use crate::conformance::{Harness, built, setups, step};
use paceline::{Arrival, Controller, Event, Registry, SentPacket, Setup, Signals};
use paceline_units::{DataSize, Rate, RemoteTime, Time};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A copy that gets the same inputs gives the same outputs, whatever happens to another copy in between.
    #[test]
    fn snapshot_continues_like_the_original_and_does_not_affect_it(
        setup in setups(),
        before in proptest::collection::vec(step(), 1..60),
        after in proptest::collection::vec(step(), 1..60),
        other in proptest::collection::vec(step(), 1..60),
    ) {
        for entry in Registry::standard().iter() {
            let mut original = Harness::new(built(entry, &setup), setup);
            original.run(&before);
            let mut same = original.branch(original.controller.clone());
            let mut different = original.branch(original.controller.clone());
            prop_assert_eq!(format!("{:?}", original.controller), format!("{:?}", same.controller));
            original.outputs.clear();
            original.emitted.clear();
            different.run(&other);
            original.run(&after);
            same.run(&after);
            prop_assert!(original.outputs == same.outputs && original.emitted == same.emitted, "{}", entry.name());
            prop_assert_eq!(format!("{:?}", original.controller), format!("{:?}", same.controller));
        }
    }
}

/// A packet that is sent changes the state of each send half that controls its rate, and one that arrives that of each receive half.
#[test]
fn debug_shows_the_state() {
    let setup = Setup::new(Rate::from_kbps(900), Rate::from_kbps(50), Rate::from_kbps(2000));
    for entry in Registry::standard().iter() {
        let Controller { send, receive, .. } = built(entry, &setup);
        let (mut send, mut signals) = (send.unwrap(), Signals::disabled());
        let before = format!("{send:?}");
        let packet = SentPacket::new(0, DataSize::from_bytes(1200));
        send.handle_event(Time::from_secs(1), &Event::Sent(&packet), &mut signals);
        assert_eq!(format!("{send:?}") != before, entry.controls(), "{}", entry.name());
        if let Some(mut half) = receive {
            let before = format!("{half:?}");
            let packet = Arrival::new(0, 0, DataSize::from_bytes(1200)).with_sent(Some(Time::ZERO));
            half.handle_arrival(RemoteTime::from_millis(20), &packet, &mut signals);
            assert_ne!(format!("{half:?}"), before, "{}", entry.name());
        }
    }
}
