//! Integration tests of the lab, in one binary.

mod altered_simulator;
mod application_limits;
mod broken_scenarios;
mod cases;
mod clocks;
mod defaults;
mod dependencies;
mod determinism;
mod each;
mod ecn;
mod fixtures;
mod fuzz;
mod generations;
mod harsh_paths;
mod l4s;
mod mtu;
mod nada;
mod network_facts;
mod physics;
mod protection;
mod random_paths;
mod streams;
mod sweep;
mod tcp;
mod validation;
mod yardsticks;
