//! No controller may ask what the receiver's clock reads: a call comes out the same on a clock of an hour ago, of years from
//! now, or past a wrap of what reports carry of it.

use paceline::Registry;
use paceline_lab::run::Runner;
use paceline_lab::scenario::{Catalogue, Changes, load};
use paceline_lab::sim::Simulator;

#[test]
fn every_controller_is_the_same_on_every_clock() {
    let registry = Registry::standard();
    let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    for entry in registry.iter() {
        let throughput = |offset: &str| {
            let settings = ["duration=20s".to_owned(), format!("flow.video.clock.offset={offset}")];
            let changes = Changes {
                settings: settings.map(|s| s.parse().expect("KEY=VALUE")).into(),
                controller: Some(entry.name().to_owned()),
                ..Changes::default()
            };
            let plan = load(&Catalogue.find("mmsys16/table1").unwrap(), &changes, &registry).unwrap();
            runner.run(&plan, 1, None).unwrap().whole.flows[0].throughput_bps
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
