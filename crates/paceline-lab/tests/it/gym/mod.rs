// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gym's observations are true, and overload does not raise the reward: tests against what learners have exploited in
//! other environments, with random paths, queues and actions.

use crate::failing_halves::FailingSender;
use crate::fixtures::registry;
use paceline::{Config, Controller, Entry, Parameters, Registry, Setup};
use paceline_lab::gym::{
    ActionSpace, Episode, FEATURES, Gym, GymError, Outputs, Policy, Range, Reward, STEP, TRUTHS, TaskDistribution,
    TaskSpec, evaluate,
};
use paceline_netsim::plan::Plan;
use paceline_netsim::records::{EventObserver, EventRecord, PacketClass};
use paceline_netsim::sim::Simulator;
use paceline_netsim::world::{World, WorldError};
use paceline_scenario::{Catalogue, Changes, Origin, load};
use paceline_units::{Rate, Time, TimeDelta};
use proptest::prelude::*;

/// One flow whose source follows its target, up to far more than the link carries.
const ONE: &str = r#"
id = "test/one"
title = "One flow"
duration = "20s"
[path]
rtt = "60ms"
[path.forward]
capacity = "1Mbps"
queue = { limit = "300ms" }
[[flow]]
id = "video"
controller = "gcc-2016"
encoder = { source = "ideal", max = "12Mbps" }
"#;

/// Everything that draws random numbers: jitter, loss in both directions, a second call, TCP.
const BUSY: &str = r#"
id = "test/busy"
title = "Two flows and TCP"
duration = "12s"
[path]
rtt = "50ms"
[path.forward]
capacity = [["0s", "2 Mbps"], ["5s", "900 kbps"]]
queue = { limit = "200 ms" }
jitter = { std = "3 ms" }
loss = "1 %"
[path.reverse]
capacity = "500 kbps"
loss = { model = "gilbert-elliott", to_bad = "1 %", to_good = "30 %" }
[[flow]]
id = "one"
controller = "gcc-tfb"
start_spread = "1 s"
audio = {}
[[flow]]
id = "two"
controller = "scream"
start = "2 s"
stop = "9 s"
[[flow]]
id = "bulk"
kind = "tcp"
start = "4 s"
"#;

fn origin(text: &str) -> Origin {
    Origin::from_text("gym.toml", text)
}

fn plan(text: &str, settings: &[String]) -> Plan {
    let settings = settings.iter().map(|s| s.parse().expect("KEY=VALUE")).collect();
    let changes = Changes { settings, ..Changes::default() };
    match load(&origin(text), &changes, registry()) {
        Ok(plan) => plan.plan,
        Err(problem) => panic!("{problem} {:?} {:?}", problem.offending(), problem.hint()),
    }
}

fn agent(plan: &Plan) -> Episode {
    Episode::new(plan, registry(), &Policy::Agent, 0, 1, STEP).unwrap()
}

#[derive(Clone, Debug)]
struct Path {
    capacity_kbps: u64,
    rtt_ms: u64,
    queue_ms: u64,
}

impl Path {
    fn plan(&self, more: &[&str]) -> Plan {
        let Self { capacity_kbps, rtt_ms, queue_ms } = self;
        let settings = [
            format!("path.forward.capacity={capacity_kbps}kbps"),
            format!("path.rtt={rtt_ms}ms"),
            format!("path.forward.queue.limit={queue_ms}ms"),
        ];
        let more = more.iter().map(ToString::to_string);
        plan(ONE, &settings.into_iter().chain(more).collect::<Vec<_>>())
    }

    fn capacity(&self) -> Rate {
        Rate::from_kbps(self.capacity_kbps)
    }
}

fn path() -> impl Strategy<Value = Path> {
    (300u64..3000, 10u64..200, 60u64..500).prop_map(|(capacity_kbps, rtt_ms, queue_ms)| Path {
        capacity_kbps,
        rtt_ms,
        queue_ms,
    })
}

/// Returns the mean reward of an episode that repeats these targets, one a step, without its first `skip` steps.
fn reward(plan: &Plan, skip: usize, targets: &[Rate]) -> f64 {
    let mut episode = agent(plan);
    let mut rewards = Vec::new();
    for target in targets.iter().cycle() {
        if episode.is_over() {
            break;
        }
        rewards.push(episode.step_at(*target, &Reward::default()).unwrap());
    }
    let counted = &rewards[skip..];
    counted.iter().sum::<f64>() / counted.len() as f64
}

fn whole_hash(plan: &Plan, seed: u64) -> u64 {
    Simulator.run(plan, registry(), seed, &mut ()).unwrap().trace_hash
}

/// Repeats the action to the end. Returns the trace hash and the number of steps.
fn run_to_end(mut episode: Episode, action: f32) -> (u64, u32) {
    let mut steps = 0;
    while !episode.is_over() {
        episode.step(action, &Reward::default()).unwrap();
        steps += 1;
    }
    (episode.finish().unwrap().trace_hash, steps)
}

#[test]
fn a_run_in_steps_equals_the_whole_run() {
    for (text, flow) in [(ONE, 0), (BUSY, 0), (BUSY, 1)] {
        let plan = plan(text, &[]);
        for step_ms in [100, 37, 1000] {
            let step = TimeDelta::from_millis(step_ms);
            let episode = Episode::new(&plan, registry(), &Policy::Scenario, flow, 3, step).unwrap();
            let (hash, steps) = run_to_end(episode, 1.0);
            assert_eq!(hash, whole_hash(&plan, 3), "{} in steps of {step_ms} ms", plan.id);
            assert!(steps >= 6, "{steps} steps");
        }
    }
    // With a controller by name it equals the run with `--controller`: a config in the scenario is for the flow's own only.
    let text = ONE.replace("controller = \"gcc-2016\"", "controller = \"gcc-2016\"\nconfig = { eta = 1.02 }");
    let mut hashes = Vec::new();
    for name in ["gcc-2016", "gcc-tfb", "nada"] {
        let policy = Policy::Controller(name.to_owned());
        let episode = Episode::new(&plan(&text, &[]), registry(), &policy, 0, 3, STEP).unwrap();
        let changes = Changes { controller: Some(name.to_owned()), ..Changes::default() };
        let whole = whole_hash(&load(&origin(&text), &changes, registry()).unwrap().plan, 3);
        assert_eq!(run_to_end(episode, 1.0).0, whole, "{name}");
        hashes.push(whole);
    }
    hashes.push(whole_hash(&plan(ONE, &[]), 3));
    assert!((1..hashes.len()).all(|n| !hashes[..n].contains(&hashes[n])), "four runs that differ: {hashes:?}");
    // The run of an agent differs.
    let plan = plan(ONE, &[]);
    assert_ne!(run_to_end(agent(&plan), 0.0).0, whole_hash(&plan, 1));
}

#[test]
fn an_action_takes_effect_in_its_step() {
    let mut episode = agent(&plan(ONE, &["path.forward.capacity=20Mbps".to_owned()]));
    let mut seen = [0.0; FEATURES.len()];
    let feature = |seen: &[f32], name| seen[FEATURES.iter().position(|f| f.name == name).unwrap()];
    for mbps in [0.5, 4.0, 1.0, 0.2] {
        for step in 0..10 {
            episode.step_at(Rate::from_bps_f64(mbps * 1e6), &Reward::default()).unwrap();
            episode.observe(&mut seen);
            assert!((f64::from(feature(&seen, "target")) - mbps).abs() < 1e-6, "{seen:?}");
            // There are 30 frames a second: three or four in a step, and what the pacer still holds of the rate before.
            if step >= 5 {
                let sent = f64::from(feature(&seen, "sent"));
                assert!((0.6 * mbps..1.4 * mbps).contains(&sent), "{sent} of {mbps} Mbit/s in step {step}");
            }
        }
        let (received, loss) = (f64::from(feature(&seen, "received")), feature(&seen, "loss"));
        assert!((0.5 * mbps..1.6 * mbps).contains(&received), "{received} of {mbps} Mbit/s");
        assert_eq!(loss, 0.0);
        let rtt = f64::from(feature(&seen, "rtt"));
        assert!((0.06..0.06 + 0.26).contains(&rtt), "60 ms and at most an interval of feedback, not {rtt}");
    }
}

#[test]
fn constant_rate_at_capacity_has_the_highest_reward() {
    let plan = plan(ONE, &[]);
    let at = |kbps| reward(&plan, 20, &[Rate::from_kbps(kbps)]);
    let held = at(950);
    assert!((0.85..1.0).contains(&held), "{held}");
    for (kbps, least, most) in [(300, 0.2, 0.35), (600, 0.5, 0.65), (1500, -0.9, 0.0), (6000, -2.0, -1.0)] {
        let got = at(kbps);
        assert!((least..most).contains(&got), "{got} at {kbps} kbit/s");
    }
}

#[test]
fn overload_costs_delay_while_the_queue_has_room() {
    let mut episode = agent(&plan(ONE, &["path.forward.queue.limit=2s".to_owned()]));
    let mut delays = Vec::new();
    for _ in 0..30 {
        episode.step_at(Rate::from_kbps(1500), &Reward::default()).unwrap();
        delays.push(episode.truth().delay_s);
        assert_eq!(episode.truth().lost, 0.0);
    }
    // Half a second of queue each second of sending; what arrives at t was sent at t / 1.5 and waited t / 3.
    let grown = delays[29] - delays[9];
    assert!((0.64..0.69).contains(&grown), "{grown} s in 2 s, {delays:?}");
}

#[test]
fn overload_costs_loss_when_the_queue_is_short() {
    let mut episode = agent(&plan(ONE, &["path.forward.queue.limit=20ms".to_owned()]));
    for _ in 0..100 {
        episode.step_at(Rate::from_kbps(2000), &Reward::default()).unwrap();
    }
    let truth = episode.truth();
    let lost = truth.lost / (truth.lost + truth.arrived);
    assert!((0.4..0.6).contains(&lost), "{lost}");
    assert!(truth.delay_s < 0.045, "{}", truth.delay_s);
}

#[test]
fn delay_grows_during_an_outage() {
    let capacity = r#"path.forward.capacity=[["0s","1Mbps"],["5s","0bps"],["10s","1Mbps"]]"#;
    let mut episode = agent(&plan(ONE, &[capacity.to_owned(), "path.forward.queue.limit=50 packets".to_owned()]));
    let mut last = 0.0;
    for step in 0..100 {
        let reward = episode.step_at(Rate::from_kbps(800), &Reward::default()).unwrap();
        let truth = episode.truth();
        if step >= 53 {
            // Nothing arrives, and the delay grows with time.
            assert_eq!((truth.goodput_bps, truth.share_bps), (0.0, 0.0));
            assert!((0.05..0.15).contains(&(truth.delay_s - last)) || step == 53, "{} after {last}", truth.delay_s);
            assert!(reward < -0.2, "{reward} in step {step}");
        }
        last = truth.delay_s;
    }
    assert!((4.5..5.1).contains(&last), "{last}");
}

#[test]
fn retransmissions_add_no_reward() {
    // A third of all packets is lost on the wire and sent again: what arrived for the first time is two thirds.
    let plan = plan(ONE, &["path.forward.loss=33 %".to_owned(), "path.forward.capacity=4Mbps".to_owned()]);
    let mut episode = agent(&plan);
    let (mut goodput, mut sent) = (0.0, 0.0);
    for _ in 0..150 {
        episode.step_at(Rate::from_kbps(1000), &Reward::default()).unwrap();
        goodput += episode.truth().goodput_bps / 150.0;
        sent += episode.truth().sent_bps / 150.0;
    }
    assert!((0.4e6..0.7e6).contains(&goodput), "{goodput}");
    assert!(sent > 1.2 * goodput, "{sent} sent, {goodput} arrived");
}

#[test]
fn goodput_above_the_fair_share_adds_no_reward() {
    let two = format!("{ONE}\n[[flow]]\nid = \"other\"\ncontroller = \"fixed\"\nconfig = {{ rate_bps = 500000 }}\n");
    let plan = plan(&two, &["path.forward.capacity=2Mbps".to_owned()]);
    let mut rewards = [0.0; 2];
    for (reward, kbps) in rewards.iter_mut().zip([980, 1300]) {
        let mut episode = agent(&plan);
        for _ in 0..100 {
            *reward += episode.step_at(Rate::from_kbps(kbps), &Reward::default()).unwrap() / 100.0;
            assert_eq!(episode.truth().share_bps, 1e6, "two flows share 2 Mbit/s");
        }
    }
    assert!(rewards[0] > 0.8, "{rewards:?}");
    assert!((-0.1..0.1).contains(&(rewards[1] - rewards[0])), "{rewards:?}");
}

/// Time of sending and delay of each packet that feedback can report, ns, including retransmissions.
#[derive(Default)]
struct Packets(Vec<(i64, i64)>);

impl EventObserver for Packets {
    fn on_event(&mut self, event: &EventRecord) {
        match event {
            EventRecord::Arrived { at, packet, delay, .. }
                if matches!(packet.class, PacketClass::Media | PacketClass::Retransmission) =>
            {
                self.0.push(((*at - *delay).as_nanos(), delay.as_nanos()));
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// In another environment a rate above capacity raised the goodput, and neither queue nor delay.
    #[test]
    fn rate_above_capacity_never_raises_the_reward(path in path(), over in 1.05f64..5.0) {
        let plan = path.plan(&[]);
        let held = reward(&plan, 30, &[path.capacity().scale(0.92)]);
        let raised = reward(&plan, 30, &[path.capacity().scale(over)]);
        prop_assert!(raised < held + 0.01, "{raised} at {over} of capacity, {held} below it");
    }

    /// Short times above capacity give no more reward than the same times at capacity. A pulse into an empty queue delivers more, so episodes
    /// are long enough for one to count little.
    #[test]
    fn pulses_above_capacity_never_raise_the_reward(path in path(), parts in prop::collection::vec(0.3f64..4.0, 12..25)) {
        let plan = path.plan(&[]);
        let wanted: Vec<Rate> = parts.iter().map(|part| path.capacity().scale(*part)).collect();
        let held: Vec<Rate> = wanted.iter().map(|rate| (*rate).min(path.capacity().scale(0.95))).collect();
        let (raised, held) = (reward(&plan, 0, &wanted), reward(&plan, 0, &held));
        prop_assert!(raised < held + 0.03, "{raised} with pulses, {held} without");
    }

    /// Packets and bytes add up and stay within bounds, with any actions on any path.
    #[test]
    fn packets_and_bytes_are_conserved(
        path in path(),
        loss in 0u32..10,
        actions in prop::collection::vec(-1.0f32..1.0, 1..40),
    ) {
        let plan = path.plan(&[&format!("path.forward.loss={loss} %"), "path.forward.jitter={ std = \"2 ms\" }"]);
        let mut episode = agent(&plan);
        let (mut seen, mut goodput, mut capacity) = ([0.0; FEATURES.len()], 0.0, 0.0);
        for action in actions.iter().cycle() {
            if episode.is_over() {
                break;
            }
            let reward = episode.step(*action, &Reward::default()).unwrap();
            episode.observe(&mut seen);
            let truth = *episode.truth();
            prop_assert_eq!(truth.sent, truth.arrived + truth.lost + truth.in_flight);
            prop_assert!(seen.iter().all(|x| x.is_finite() && *x >= 0.0), "{seen:?}");
            prop_assert!(truth.values().iter().all(|x| x.is_finite() && *x >= 0.0), "{truth:?}");
            prop_assert!(reward.is_finite() && reward <= 1.0, "{reward}");
            prop_assert!(truth.loss <= 1.0 && seen[6] <= 1.0);
            // Whole bytes in a step.
            let off = path.capacity().as_bps_f64() - truth.capacity_bps;
            prop_assert!((0.0..80.0).contains(&off), "{}", truth.capacity_bps);
            goodput += truth.goodput_bps / 10.0;
            capacity += truth.capacity_bps / 10.0;
            // In bits, and a packet that was in service when the first step began.
            prop_assert!(goodput <= capacity + 12_000.0, "{goodput} bits arrived, {capacity} could");
        }
    }

    /// The round-trip time that the agent observes is that of a packet, its queuing included.
    #[test]
    fn observed_round_trips_include_propagation_and_queue(
        path in path(),
        actions in prop::collection::vec(-1.0f32..1.0, 1..20),
    ) {
        let plan = path.plan(&[]);
        let (registry, packets) = (Registry::standard(), Packets::default());
        let mut episode = Episode::with_observer(&plan, &registry, &Policy::Agent, 0, 5, STEP, packets).unwrap();
        let mut seen = [0.0; FEATURES.len()];
        let (back, mut looked) = (path.rtt_ms as f64 / 2e3, 0);
        for action in actions.iter().cycle() {
            if episode.is_over() {
                break;
            }
            episode.step(*action, &Reward::default()).unwrap();
            episode.observe(&mut seen);
            let [_, _, _, queuing, rtt, rtt_min, _, silence] = seen.map(f64::from);
            if rtt == 0.0 {
                continue;
            }
            prop_assert!(rtt_min <= rtt + 1e-9 && rtt_min >= 2.0 * back, "{rtt_min} {rtt}");
            let sent = episode.truth().time_s - silence - rtt;
            let known = &episode.observer().0;
            let of = known.iter().find(|(at, _)| (*at as f64 / 1e9 - sent).abs() < 5e-6);
            prop_assert!(of.is_some(), "no packet of the flow was sent at {sent} s and arrived");
            let delay = of.map_or(0.0, |(_, delay)| *delay as f64 / 1e9);
            prop_assert!(rtt >= delay + back - 1e-5, "{rtt} of a packet that took {delay} there and {back} back");
            prop_assert!(delay >= back, "{delay}");
            looked += 1;
            let most = known.iter().map(|(_, delay)| *delay as f64 / 1e9 - back).fold(0.0, f64::max);
            prop_assert!(queuing <= most + 5e-4, "{queuing} s seen, {most} s is the most there was");
        }
        prop_assert!((190..=200).contains(&looked), "{looked} round trips found among the packets of 200 steps");
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct OutputBuffers {
    observations: Vec<f32>,
    rewards: Vec<f64>,
    truncated: Vec<bool>,
    truths: Vec<f64>,
}

impl OutputBuffers {
    fn new(gym: &Gym) -> Self {
        let n = gym.environments();
        Self {
            observations: vec![f32::NAN; n * gym.history() * FEATURES.len()],
            rewards: vec![f64::NAN; n],
            truncated: vec![true; n],
            truths: vec![f64::NAN; n * TRUTHS.len()],
        }
    }

    fn outputs(&mut self) -> Outputs<'_> {
        Outputs {
            observations: &mut self.observations,
            rewards: &mut self.rewards,
            truncated: &mut self.truncated,
            truths: &mut self.truths,
        }
    }

    fn of_one(&self, index: usize, history: usize) -> (Vec<f32>, f64, bool, Vec<f64>) {
        let width = history * FEATURES.len();
        (
            self.observations[index * width..][..width].to_vec(),
            self.rewards[index],
            self.truncated[index],
            self.truths[index * TRUTHS.len()..][..TRUTHS.len()].to_vec(),
        )
    }
}

fn ranges() -> Vec<Range> {
    let range = |key: &str, text: &str, low, high| Range { key: key.to_owned(), text: text.to_owned(), low, high };
    vec![
        range("path.forward.capacity", r#"[["0s", "{} kbps"], ["1s", "{} kbps"]]"#, 300.0, 3000.0),
        range("path.rtt", "{} ms", 20.0, 200.0),
    ]
}

fn tasks(ranges: Vec<Range>) -> TaskDistribution {
    let changes = Changes { settings: vec!["duration=2s".parse().unwrap()], ..Changes::default() };
    let spec = TaskSpec { scenarios: vec![(origin(ONE), changes)], ranges, ..TaskSpec::for_scenario(origin(ONE)) };
    TaskDistribution::new(spec, registry()).unwrap()
}

fn gym(environments: usize, threads: usize) -> Gym {
    Gym::new(tasks(ranges()), Registry::standard(), environments, 3, threads).unwrap()
}

/// Runs three episodes in each environment and returns the outputs of every reset and step.
fn run_episodes(gym: &mut Gym, seeds: &[u64]) -> Vec<OutputBuffers> {
    let seeds: Vec<_> = seeds.iter().map(|seed| Some(*seed)).collect();
    let mut all = vec![OutputBuffers::new(gym)];
    gym.reset(&seeds, all[0].outputs()).unwrap();
    for step in 0..63 {
        let mut written = OutputBuffers::new(gym);
        let actions = vec![((step * 7) % 20) as f32 / 10.0 - 1.0; gym.environments()];
        gym.step(&actions, written.outputs()).unwrap();
        all.push(written);
    }
    all
}

#[test]
fn an_episode_depends_neither_on_threads_nor_on_other_environments() {
    let alone = run_episodes(&mut gym(1, 1), &[7]);
    let four = run_episodes(&mut gym(4, 1), &[9, 7, 1, 2]);
    for threads in [2, 3] {
        assert_eq!(run_episodes(&mut gym(4, threads), &[9, 7, 1, 2]), four);
    }
    for (alone, four) in alone.iter().zip(&four) {
        assert_eq!(alone.of_one(0, 3), four.of_one(1, 3));
        assert_ne!(alone.of_one(0, 3), four.of_one(0, 3));
    }
}

#[test]
fn the_next_episode_begins_with_a_step_that_ignores_the_action() {
    let written = run_episodes(&mut gym(1, 1), &[7]);
    let ends: Vec<usize> = (0..written.len()).filter(|step| written[*step].truncated[0]).collect();
    assert_eq!(ends, [20, 41, 62], "2 s are 20 steps; the step after the last begins the next episode");
    for begin in [0, 21, 42] {
        let (seen, reward, _, truths) = written[begin].of_one(0, 3);
        assert_eq!(reward, 0.0);
        assert!(seen[..2 * FEATURES.len()].iter().all(|x| *x == 0.0), "of no episode before: {seen:?}");
        assert!(seen[2 * FEATURES.len()] > 0.0 && truths[0] < 0.001, "{seen:?} {truths:?}");
    }
    let seed = |step: usize| written[step].truths[TRUTHS.len() - 1];
    assert_eq!(seed(0), 7.0);
    assert!(seed(21) != seed(0) && seed(42) != seed(21));
    // The second episode can be repeated from its seed.
    let again = run_episodes(&mut gym(1, 1), &[seed(21) as u64]);
    assert_eq!(again[0].of_one(0, 3), written[21].of_one(0, 3));
}

#[test]
fn ranges_are_drawn_by_seed_within_their_ends() {
    let (tasks, registry) = (tasks(ranges()), Registry::standard());
    let mut capacities = Vec::new();
    for seed in 0..60 {
        let mut episode = tasks.episode(&registry, seed).unwrap();
        episode.step(0.0, &Reward::default()).unwrap();
        let truth = *episode.truth();
        assert!((300e3..=3000e3).contains(&truth.capacity_bps) && (0.02..=0.2).contains(&truth.propagation_s));
        let first = truth.capacity_bps;
        for _ in 0..15 {
            episode.step(0.0, &Reward::default()).unwrap();
        }
        assert_ne!(episode.truth().capacity_bps, first, "each {{}} is drawn anew");
        capacities.push(first);
    }
    let below = capacities.iter().filter(|capacity| **capacity < 949e3).count();
    assert!((18..=42).contains(&below), "half of all lie below the geometric mean: {below} of 60");
}

#[test]
fn an_invalid_action_changes_no_episode() {
    let mut gym = gym(2, 1);
    let mut written = OutputBuffers::new(&gym);
    gym.reset(&[Some(1), Some(2)], written.outputs()).unwrap();
    let mut ignored = OutputBuffers::new(&gym);
    let error = gym.step(&[0.5, f32::NAN], ignored.outputs()).unwrap_err();
    assert!(matches!(error, GymError::Action { index: 1, .. }), "{error}");
    assert!(matches!(gym.step(&[0.5], ignored.outputs()), Err(GymError::Length { got: 1, wanted: 2, .. })));
    gym.step(&[0.5, 0.5], written.outputs()).unwrap();
    assert!(written.truths[0] < 0.101, "the first step: {}", written.truths[0]);
}

/// A controller that fails 250 ms after the start.
#[derive(Clone, Debug)]
struct Failing;

impl Parameters for Failing {}

impl Config for Failing {
    fn halves(&self, setup: &Setup) -> Controller {
        let due = Some(Time::from_millis(250));
        Controller::from_sender(FailingSender { rate: setup.start, due, failure: None })
    }
}

#[test]
fn failure_of_a_controller_ends_the_episode_in_its_step() {
    let mut registry = Registry::standard();
    registry.add(Entry::new("failing", "fails", "a test", Failing));
    let other = "[[flow]]\nid = \"other\"\ncontroller = \"failing\"\n";
    let text = format!("{}{other}", ONE.replace("20s", "2s"));
    let spec = TaskSpec { flow: Some("video".to_owned()), ..TaskSpec::for_scenario(origin(&text)) };
    let tasks = TaskDistribution::new(spec, &registry).unwrap();
    let mut gym = Gym::new(tasks, registry, 1, 1, 1).unwrap();
    let mut written = OutputBuffers::new(&gym);
    gym.reset(&[Some(1)], written.outputs()).unwrap();
    let mut step = || gym.step(&[0.0], written.outputs());
    for _ in 0..2 {
        assert!(step().is_ok() && step().is_ok());
        let GymError::World(WorldError::ControllerFailed { failure, .. }) = step().unwrap_err() else {
            panic!("the controller failed")
        };
        assert_eq!((&*failure.flow, failure.at), ("other", Time::from_millis(250)));
        assert!(step().is_ok(), "the next episode");
    }
}

#[test]
fn invalid_tasks_are_rejected_on_creation() {
    let tasks = |spec: TaskSpec| TaskDistribution::new(spec, registry()).unwrap_err();
    let spec = || TaskSpec::for_scenario(origin(ONE));
    let error = tasks(TaskSpec { flow: Some("vidoe".to_owned()), ..spec() });
    assert!(matches!(&error, GymError::NoFlow { known, .. } if known == &["video"]), "{error}");
    assert_eq!(error.hint().unwrap(), "media flows: video");
    let error = tasks(TaskSpec { policy: Policy::Controller("gcc-2061".to_owned()), ..spec() });
    assert!(error.to_string().contains("gcc-2061"), "{error}");
    let error = tasks(TaskSpec { step: TimeDelta::from_secs(30), ..spec() });
    assert!(matches!(error, GymError::TooShort { .. }), "{error}");
    assert!(matches!(tasks(TaskSpec { scenarios: Vec::new(), ..spec() }), GymError::NoScenario));
    for (text, low, high) in [("kbps", 1.0, 2.0), ("{} kbps", 2.0, 1.0), ("{} kbps", f64::NAN, 1.0)] {
        let range = Range { key: "path.forward.capacity".to_owned(), text: text.to_owned(), low, high };
        assert!(matches!(tasks(TaskSpec { ranges: vec![range], ..spec() }), GymError::Range { .. }), "{text}");
    }
    let range = Range { key: "path.forward.capacitee".to_owned(), text: "{} kbps".to_owned(), low: 1.0, high: 2.0 };
    let error = tasks(TaskSpec { ranges: vec![range], ..spec() });
    assert!(error.hint().unwrap().contains("capacity"), "{error} {:?}", error.hint());
}

#[test]
fn every_registered_controller_is_a_baseline() {
    let mut rewards = Vec::new();
    for entry in registry().iter() {
        let policy = Policy::Controller(entry.name().to_owned());
        let spec = TaskSpec { policy, ..TaskSpec::for_scenario(Catalogue.find("gym/call").unwrap()) };
        let tasks = TaskDistribution::new(spec, registry()).unwrap();
        let scores = evaluate(&tasks, registry(), &[1, 2, 3], 2).unwrap();
        assert_eq!(scores, evaluate(&tasks, registry(), &[1, 2, 3], 1).unwrap());
        assert!(scores.iter().all(|s| s.steps == 300 && (0.0..=1.0).contains(&s.used)), "{scores:?}");
        rewards.push((entry.name(), scores.iter().map(|s| s.reward).sum::<f64>() / 3.0));
    }
    for (name, reward) in &rewards {
        match *name {
            // No control: the queue is full and most is lost.
            "fixed" => assert!(*reward < -0.5, "{rewards:?}"),
            _ => assert!((0.0..0.9).contains(reward), "{name}: {rewards:?}"),
        }
    }
}

#[test]
fn action_space_has_the_rates_of_the_flow() {
    let space = tasks(Vec::new()).space();
    let ActionSpace { min, max } = space;
    assert!(min >= Rate::from_kbps(10) && min <= Rate::from_kbps(200), "{min}");
    assert!(max >= Rate::from_kbps(12_000) && max <= Rate::from_kbps(13_000), "{max}: 12 Mbit/s and headers");
}
