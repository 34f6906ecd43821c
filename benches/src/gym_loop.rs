// SPDX-License-Identifier: MIT OR Apache-2.0
//! A gym agent that keeps its link full, call after call.

use paceline::Registry;
use paceline_lab::gym::{FEATURES, Gym, Outputs, TRUTHS, TaskDistribution, TaskSpec};
use paceline_scenario::Origin;
use paceline_units::Rate;

/// One environment of the gym over a link of this rate in Mbit/s.
pub struct GymLoop {
    gym: Gym,
    action: f32,
    observation: [f32; FEATURES.len()],
    truth: [f64; TRUTHS.len()],
    reward: [f64; 1],
    truncated: [bool; 1],
    /// Packets of finished calls.
    packets: u64,
}

impl GymLoop {
    /// Returns an environment that repeats a call of 60 s at 95 % of the link.
    pub fn new(mbps: u64) -> Self {
        let text = format!(
            r#"
id = "bench/gym"
title = "An agent on a link"
duration = "60s"
[path]
rtt = "60ms"
[path.forward]
capacity = "{mbps}Mbps"
queue = {{ limit = "300ms" }}
[[flow]]
id = "video"
controller = "gcc-tfb"
encoder = {{ max = "20Mbps" }}
"#
        );
        let registry = Registry::standard();
        let tasks = TaskDistribution::new(TaskSpec::for_scenario(Origin::from_text("gym.toml", text)), &registry);
        let tasks = tasks.unwrap_or_else(|error| panic!("{error}"));
        let action = tasks.space().action(Rate::from_kbps(950 * mbps));
        let gym = Gym::new(tasks, registry, 1, 1, 1).expect("without threads nothing can fail");
        let mut made = Self {
            gym,
            action,
            observation: [0.0; FEATURES.len()],
            truth: [0.0; TRUTHS.len()],
            reward: [0.0],
            truncated: [false],
            packets: 0,
        };
        made.act(|gym, out| gym.reset(&[Some(1)], out).expect("one seed for one seat"));
        made
    }

    /// Makes this many steps, and starts calls between them.
    pub fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            if self.truncated[0] {
                self.packets += self.arrived();
            }
            let action = [self.action];
            self.act(|gym, out| gym.step(&action, out).expect("a number for one seat"));
        }
    }

    /// Returns the number of packets that have arrived.
    pub fn packets(&self) -> u64 {
        self.packets + self.arrived()
    }

    fn arrived(&self) -> u64 {
        let index = TRUTHS.iter().position(|truth| truth.name == "arrived").expect("TRUTHS contains it");
        self.truth[index] as u64
    }

    fn act(&mut self, act: impl FnOnce(&mut Gym, Outputs<'_>)) {
        let out = Outputs {
            observations: &mut self.observation,
            rewards: &mut self.reward,
            truncated: &mut self.truncated,
            truths: &mut self.truth,
        };
        act(&mut self.gym, out);
    }
}
