// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers do not depend on the absolute time of the receiver's clock: a call has the same result with a clock that is
//! an hour or years off, or past a wrap of a timestamp in reports.

use crate::fixtures::{load_from, observe, registry};
use paceline_scenario::Catalogue;

#[test]
fn no_controller_depends_on_the_offset_of_the_clock() {
    for entry in registry().iter() {
        let throughput = |offset: &str| {
            let offset = format!("flow.video.clock.offset={offset}");
            let origin = Catalogue.find("mmsys16/table1").unwrap();
            let scenario = load_from(&origin, Some(entry.name()), &["duration=20s", &offset], registry());
            observe(&scenario, 1, |_| ()).whole.flows[0].throughput_bps
        };
        let plain = throughput("1h");
        assert!((100e3..1e6).contains(&plain), "{}: {plain}", entry.name());
        // Middle bits of NTP time wrap each 18.2 h, and have their top bit set from 9.1 h on; TWCC's ticks each 12.4 days.
        for offset in ["0s", "-2h", "10h", "-20h", "65526s", "1073731s", "100000h"] {
            let other = throughput(offset);
            assert!((0.97..1.03).contains(&(other / plain)), "{}: {plain} and, {offset}, {other}", entry.name());
        }
    }
}
