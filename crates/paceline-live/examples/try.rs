use paceline::Registry;
use paceline_lab::{
    run::Runner,
    scenario::{self, Catalogue, Changes},
    sim::Simulator,
};
use paceline_live::Testbed;
fn main() {
    let registry = Registry::standard();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let origin = Catalogue.find(&args[0]).unwrap();
    let settings = args[1..].iter().map(|s| s.parse().unwrap()).collect();
    let changes = Changes { settings, ..Changes::default() };
    let plan = scenario::load(&origin, &changes, &registry).unwrap();
    for real in [false, true] {
        let world: &dyn paceline_lab::world::World =
            if real { &Testbed { timing: paceline_live::wait::Timing::Sleep } } else { &Simulator };
        let runner = Runner { world, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let r = runner.run(&plan, 1, None).unwrap();
        let l = &r.whole.link;
        println!("{} util {:?} loss {:?} queue {:?}", r.world, l.utilization, l.loss_ratio, l.queue_ms);
        for f in &r.whole.flows {
            println!(
                "   {} {:.0} loss {:?} rtt {:?} {:?}",
                f.id,
                f.throughput_bps,
                f.loss_ratio,
                f.rtt_ms.as_ref().map(|p| p.p50),
                f.target_bps
            );
        }
    }
}
