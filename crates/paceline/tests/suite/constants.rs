// SPDX-License-Identifier: MIT OR Apache-2.0
//! The default values of the controllers against the numbers printed in papers, RFCs and code. The vectors test
//! equations; only this file tests the values that they use by default.

use paceline::Registry;

/// libwebrtc of 2018: the numbers that its receiver and its sender share.
const Y2018: &str = "group_ms 5, burst_ms 5, gamma_0 12.5, k_u 0.0087, k_d 0.039, guard_ms 15, overuse_ms 10, eta 1.08, \
    alpha 0.85, headroom 1.5, loss_low 0.02, loss_high 0.1, loss_increase 1.08, pacing_factor 2.5";

/// What libwebrtc of 2024-12 and of 2026-08 share: the source files of each number are in its description.
const GOOGCC: &str = "feedback_ms 50, feedback_longest_ms 250, group_ms 5, burst_ms 5, burst_max_ms 100, clock_ms 1, window 20, \
    smoothing 0.9, gain 4, gamma_0 12.5, k_u 0.0087, k_d 0.039, guard_ms 15, overuse_ms 10, acked_packets 20, \
    acked_packets_max 500, acked_ms 1000, acked_max_ms 5000, acked_required 10, eta 1.08, beta 0.85, \
    decrease_offset_bps 5000, headroom 1.5, headroom_offset_bps 10000, rtt_ms 200, hold_in_alr 0, loss_model 1, loss_low 0.02, \
    loss_high 0.1, loss_floor_bps 0, loss_growth 1.08, backoff_ms 3000, backoff_share 0.8, backoff_interval_ms 1000, \
    backoff_floor_bps 5000, loss_rampup_hold 1.3, loss_acceleration 0, loss_acceleration_ms 60000, loss_candidate_up 1.02, \
    loss_candidate_same 1, loss_candidate_down 0.95, loss_bias 0.0002, loss_bias_log 0.02, loss_inherent_min 0.001, \
    loss_inherent 0.01, loss_inherent_offset 0.05, loss_bias_smoothing 0.002, loss_newton 1, loss_newton_step 0.75, \
    loss_acked 1, loss_delay 1, loss_upper_in_alr 0, loss_acked_factor 1, loss_no_acked_in_alr 1, loss_observation_ms 250, \
    loss_observations_min 3, loss_sending_smoothing 0, loss_weight 0.9, loss_upper_weight 0.9, loss_upper_offset 0.05, \
    loss_increase 1.3, loss_increase_ms 300, loss_blocks_increase 1, loss_median 2, alr_usage 0.8, alr_begin 0.4, \
    alr_end -0.6, window_ms 350, window_min_bps 30000, window_drop_frames 1, window_queue 0, probes 1, probe_first 3, \
    probe_second 6, probe_further 2, probe_success 0.7, probe_abort 0, probe_repeat 0, probe_repeat_ms 5000, \
    probe_repeat_length_ms 100, probe_periodic 0, probe_periodic_ms 5000, probe_periodic_scale 2, probe_allocation 1, \
    probe_allocation_first 1, probe_allocation_second 2, probe_allocation_limit 2, probe_packets 5, probe_ms 15, \
    probe_loss_limited 1.5, probe_skip 0, probe_skip_allocation 1, probe_rapid 0, probe_max_bps 5000000, probe_floor 0.85, \
    pacing_factor_start 2.5, pacing_burst_ms 40, padding_max_bps 0, min_from_streams 1";

/// Atwah, 2015: chapters 3 and 4.
const GCC_2015: &str = "threshold_ms 25, alpha_near 0.95, alpha_far 0.9, headroom 1.5, loss_low 0.02, loss_high 0.1, \
        loss_increase 1.05, loss_step 1000, loss_decrease 0.5";

/// RFC 8698, table 2, and the bound of eq. 11 and 12.
const NADA: &str = "prio 1, xref_ms 10, kappa 0.5, eta 2, tau_ms 500, rmax_bps 20000000, delta_ms 100, logwin_ms 500, qeps_ms 10, \
        dfilt_ms 120, gamma_max 0.5, qbound_ms 50, multiloss 7, qth_ms 50, lambda 0.5, plrref 0.01, \
        pmrref 0.01, dloss_ms 10, dmark_ms 2, fps 30, beta_s 0.1, beta_v 0.1, alpha 0.1, beta_most 0.05";

/// RFC 8298, section 4.1.1.1.
const SCREAM: &str = "qdelay_weight 0.1, qdelay_target_lo_ms 100, gain 1, head_room 1.1, beta_loss 0.8, beta_ecn 0.9, \
        trend_th 0.2, trend_lo 0.2, resume_ms 5000, ramp_up_bps 200e3, guard 0.1, queue_delay_ms 20, \
        beta_rate 0.9";

/// Controllers and the printed values of their parameters: names and values, separated by commas.
const PRINTED: &[(&str, &str)] = &[
    // Carlucci et al., MMSys 2016: sections 3.2 to 3.5, 4.1.2 and 4.2.
    (
        "gcc-2016",
        "q 1e-3, beta 0.95, p_0 0.1, k_u 0.01, k_d 0.00018, overuse_ms 100, eta 1.05, alpha 0.85, \
        headroom 1.5, window_ms 500, remb_ms 1000, loss_low 0.02, loss_high 0.1, loss_increase 1.05, \
        loss_decrease 0.5, pacing_factor 1.5",
    ),
    ("gcc-2015", GCC_2015),
    ("gcc-dynamic-alpha", GCC_2015),
    // draft-alvestrand-rmcat-congestion-03, sections 4.2 to 5 and table 1.
    (
        "gcc-draft-2015",
        "group_ms 5, burst_ms 5, q_slope 1e-13, q_offset 1e-3, variance_min 1, outlier_cap 3, gamma_0 12.5, k_u 0.01, \
        k_d 0.00018, gamma_min 6, gamma_max 600, guard_ms 15, overuse_ms 10, eta 1.08, alpha 0.85, headroom 1.5, \
        remb_ms 1000, loss_low 0.02, loss_high 0.1, loss_increase 1.05, loss_decrease 0.5, tfrc 1",
    ),
    ("nada", NADA),
    ("nada-sender", NADA),
    // draft-ietf-ccwg-rfc8298bis-screamv2-01, recommended values of section 5; the authors' C++ (c8f84c3).
    (
        "scream-v2",
        "qdelay_target_lo_ms 60, qdelay_target_hi_ms 400, min_ref_wnd 3000, head_room 1.5, beta_loss 0.7, beta_ecn 0.8, \
        mss 1000, post_rtts 100, growth 0.02, virtual_rtt_ms 25, alpha_up 0.125, alpha_down 0.0078125, qdelay_gain 0.25, \
        reduce_jitter 0, extremes_gain 0.0625, deviation_gain 0.03125, deviation_max_ms 10, overhead_min 1.5, \
        overhead_max 3, pacing_factor 1.5, relaxed_max 4, relaxed_low 0.8, pace_min_bps 50000, packet_overhead 20, \
        adjust_gain 0.0625, frame_dev_gain 0.015625, divisor 1.2",
    ),
    (
        "scream-v2-cpp",
        "qdelay_target_lo_ms 100, qdelay_target_hi_ms 300, head_room 2, beta_loss 0.7, beta_ecn 0.9, post_rtts 200, \
        growth 0.05, alpha_start 0.1, reduce_jitter 1, reaction_ms 30.014, reorder_ms 30, divisor 1.1, rtt_extra_ms 1, \
        rtt_max_ms 200, adjust_gain 0.025, adjust_free 0.5, queue_max_ms 100, loss_threshold 0.01",
    ),
    // libwebrtc f3ae3eb62e, scream_v2_parameters.cc, scream_network_controller.cc, congestion_control_feedback_generator.cc.
    (
        "scream-libwebrtc",
        "mode 0, feedback_ms 25, feedback_longest_ms 250, clock_ms 1, history_ms 60e3, min_ref_wnd 1000, mss 1280, head_room 1.1, \
        beta_loss 0.7, alpha_up 0.125, alpha_down 0.0078125, virtual_rtt_ms 25, lossy_rtts 3, lossless_rtts 2, rtt_gain 0.125, \
        rtt_gain_in_alr 0.0078125, hold_gain 0.125, post_rtts 100, growth 0.02, inflection_factor 2, overhead_min 1.5, \
        overhead_max 3, qdelay_target_ms 60, qdelay_gain 0.25, qdelay_min_ms 10, difference_ms 10, min_gain 0.03125, \
        base_history 10, base_span_ms 60e3, drain_threshold_ms 5, drain_period_ms 20e3, drain_rtts 5, alr 1, alr_threshold 0.9, \
        received_ms 100, pacing_factor 1.1, pacing_received 0.8, pacing_burst_ms 40, pacing_burst_after_ms 10, calm_ms 15e3, \
        pushback_min_ms 100, pushback_max_ms 500, padding 1, padding_pause_ms 3e3, padding_ms 3e3, padding_calm_ms 1e3, \
        probes_before_media 0, initial_probing_ms 6e3",
    ),
    ("gcc-remb-2018", Y2018),
    ("gcc-remb-2018", "q_slope 1e-13, q_offset 1e-3, variance_min 1, window_ms 1000, remb_ms 200"),
    ("gcc-tfb", Y2018),
    ("gcc-tfb", "window 20, smoothing 0.9, gain 4, acked_ms 150"),
    ("googcc", GOOGCC),
    (
        "googcc",
        "loss_after_report 0, stable_target 0, loss_rampup 1.5, loss_rampup_in_hold 1.2, loss_inherent_balance_bps 100000, \
        loss_bias_ratio 0.2, loss_observations 15, loss_upper_balance_bps 100000, loss_in_start 1, loss_lower 1, loss_hold 2, \
        loss_bytes 1, loss_padding_ms 2000, loss_bounds_best 1, loss_prefers_larger 1, alr_truncates 0, \
        alr_after_feedback 1, alr_publishes 1, probe_allocation_anywhere 1, probe_allocation_decrease 0, pacing_factor 1.1",
    ),
    ("googcc-2024", GOOGCC),
    (
        "googcc-2024",
        "loss_after_report 1, stable_target 1, loss_rampup 1e6, loss_rampup_in_hold 1e6, loss_inherent_balance_bps 75000, \
        loss_bias_ratio 0.15, loss_observations 20, loss_upper_balance_bps 75000, loss_in_start 0, loss_lower 0, loss_hold 0, \
        loss_bytes 0, loss_padding_ms 0, loss_bounds_best 0, loss_prefers_larger 0, alr_truncates 1, \
        alr_after_feedback 0, alr_publishes 0, probe_allocation_anywhere 0, probe_allocation_decrease 1, pacing_factor 2.5",
    ),
    // De Cicco et al., FhMN 2013, section 2.2; libwebrtc of March 2013.
    (
        "gcc-2013",
        "q_slope 1e-10, q_offset 1e-2, threshold_ms 25, overuse_ms 100, alpha_near 0.95, alpha_far 0.9, \
        headroom 1.5, window_ms 500, remb_ms 1000, loss_low 0.02, loss_high 0.1, loss_increase 1.05, \
        loss_step 1000, loss_decrease 0.5",
    ),
    // Carlucci et al., MED 2016, section II-B, and the draft that it cites.
    (
        "gcc-med16",
        "gamma_0 12.5, k_u 0.01, k_d 0.00018, guard_ms 15, alpha 0.85, headroom 1.5, window_ms 500, \
        loss_low 0.02, loss_high 0.1, loss_increase 1.05, loss_decrease 0.5",
    ),
    // Carlucci et al., MED 2016, section II-A; draft-ietf-rmcat-nada-00.
    (
        "nada-2015",
        "delta_ms 100, window_ms 500, alpha 0.9, knee_ms 50, d_max_ms 400, d_loss_ms 1000, ramp_up_ms 10, \
        gamma_max 0.2, q_bound_ms 50, x_ref_ms 20, kappa 0.5, eta 2, tau_ms 500, beta 0.1",
    ),
    ("scream", SCREAM),
    ("scream-cpp", SCREAM),
    (
        "scream",
        "qdelay_target_hi_ms 400, min_cwnd 3000, mss 1000, pace_min_bps 50e3, queue_factor 1, \
        queue_scale 0.95, trend_memory 0.99",
    ),
    // The authors' C++ of 2018, as published with rmcat-ns3.
    (
        "scream-cpp",
        "base_history 50, base_span_ms 10e3, trend_memory 0.98, reorder_ms 20, gain_down 2, fall_max 0.25, \
        used 1.2, window_ms 10, pacing_factor 1.5, acked_max 1.25, queue_factor 0.2, queue_scale 1, \
        beta_rate_ecn 0.95, growth_limit 1.5",
    ),
];

#[test]
fn defaults_match_the_sources() {
    let registry = Registry::standard();
    for (controller, printed) in PRINTED {
        let fields = registry.get(controller).expect("registered").fields();
        for (name, value) in printed.split(", ").map(|item| item.split_once(' ').expect("name and value")) {
            let field = fields.iter().find(|field| field.name == name);
            let default = field.unwrap_or_else(|| panic!("{controller}: {name}")).default;
            assert_eq!(default, value.parse::<f64>().expect("a number"), "{controller}: {name}");
        }
    }
}
