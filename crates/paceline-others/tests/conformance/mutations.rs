// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers changed by 2 %: the comparison notices.

use goog_cc::transport::StreamsConfig;
use paceline::{GoogCcConfig, Parameters};
use paceline_others::conformance::{Case, Oracle, Script, Subject, Tally, compare_pair, trials};

/// Numbers of the config that the scripts of the comparison reach. Those of features that are off by default are not among them.
const NUMBERS: [&str; 30] = [
    "group_ms",
    "smoothing",
    "gain",
    "gamma_0",
    "k_u",
    "k_d",
    "overuse_ms",
    "acked_ms",
    "eta",
    "beta",
    "headroom",
    "decrease_offset_bps",
    "headroom_offset_bps",
    "loss_rampup",
    "loss_rampup_in_hold",
    "loss_candidate_up",
    "loss_candidate_down",
    "loss_bias_ratio",
    "loss_inherent_offset",
    "loss_inherent_balance_bps",
    "loss_observation_ms",
    "loss_weight",
    "loss_upper_weight",
    "loss_upper_balance_bps",
    "loss_upper_offset",
    "loss_newton_step",
    "alr_usage",
    "probe_first",
    "probe_second",
    "probe_success",
];

/// Runs all scripts with a config.
fn run(config: &GoogCcConfig) -> Tally {
    let mut all = Tally::default();
    let case = Case::RulesOf2024;
    for script in Script::all() {
        let oracle = Oracle::new(trials(case.vintage(), case.has_window()), StreamsConfig::default());
        all += compare_pair(&script, oracle, Subject::new(config)).0;
    }
    all
}

/// Returns the config with a number decreased by 2 %.
fn changed(name: &str) -> GoogCcConfig {
    let mut config = Case::RulesOf2024.config();
    let fields = config.list();
    let field = fields.iter().find(|field| field.name == name).unwrap_or_else(|| panic!("no `{name}`"));
    config.set(name, field.default * 0.98);
    config
}

#[test]
#[ignore = "takes a minute in release"]
fn nine_of_ten_changed_numbers_are_noticed() {
    let unchanged = run(&Case::RulesOf2024.config());
    let missed: Vec<&str> = NUMBERS.into_iter().filter(|name| run(&changed(name)) == unchanged).collect();
    assert!(missed.len() <= NUMBERS.len() / 10, "not noticed: {missed:?}");
}
