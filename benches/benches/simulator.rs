//! Whole runs of one GCC flow on the path of `mmsys16/table1`, with metrics and trace hash. Items are delivered packets.

use divan::Bencher;
use divan::counter::ItemsCount;
use paceline::Registry;
use paceline_benches::{Simulation, load};

fn main() {
    divan::main();
}

#[divan::bench]
fn one_gcc_flow(bencher: Bencher) {
    let flow = Simulation::one_gcc();
    let delivered = flow.run(1).delivered;
    bencher.counter(ItemsCount::new(delivered)).bench(|| flow.run(1));
}

#[divan::bench]
fn load_a_scenario(bencher: Bencher) {
    let registry = Registry::standard();
    bencher.bench(|| load(&registry));
}
