//! Numbers changed by 2 %: the comparison notices.

use goog_cc::transport::StreamsConfig;
use paceline::googcc::GoogCcConfig;
use paceline_conformance::{Case, Class, Oracle, Script, Subject, Tally, compare_pair, trials};

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

/// Runs some scripts of each class with a config.
fn run(config: &GoogCcConfig) -> Tally {
    let mut all = Tally::default();
    let case = Case::RulesOf2024;
    let seeds = |class| if class == Class::Loss { 5 } else { 2 };
    for script in Script::all().filter(|script| script.seed < seeds(script.class)) {
        let oracle = Oracle::new(trials(case.vintage(), case.has_window()), StreamsConfig::default());
        all += compare_pair(&script, oracle, Subject::new(config)).0;
    }
    all
}

/// Returns the config with a number increased by 2 %, or decreased if it is at the end of its range.
fn changed(name: &str) -> GoogCcConfig {
    let config = Case::RulesOf2024.config();
    let fields = config.numbers();
    let field = fields.iter().find(|field| field.name == name).unwrap_or_else(|| panic!("no `{name}`"));
    let value = field.default * 1.02;
    let value = if value > field.range.1 { field.default * 0.98 } else { value };
    config.with_number(name, value)
}

#[test]
#[ignore = "takes a minute in release"]
fn nine_of_ten_changed_numbers_are_noticed() {
    let unchanged = run(&Case::RulesOf2024.config());
    let missed: Vec<&str> = NUMBERS.into_iter().filter(|name| run(&changed(name)) == unchanged).collect();
    assert!(missed.len() <= NUMBERS.len() / 10, "not noticed: {missed:?}");
}
