// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks against worked examples: `vectors/algorithms.json` contains inputs and the results of the printed
//! equations, computed independently of this code.

use paceline::Setup;
use paceline::internals::blocks::{
    AckedRate, AckedRateConfig, AdaptiveThreshold, Aimd, AimdConfig, DelayDetector, DelayDetectorConfig, GroupDelta,
    KalmanConfig, LinkCapacity, LossConfig, LossController, OveruseDetector, ScalarKalman, SendSideConfig,
    SendSideEstimate, ThresholdConfig, TwoStateConfig, TwoStateKalman, Usage, tfrc,
};
use paceline::internals::gcc::{AlphaBranch, RateConfig, RateController, Region, dynamic_alpha, eta};
use paceline::internals::nada::{
    GradualConfig, LossIntervals, PenaltyConfig, RampUpConfig, Shaping, ShapingConfig, average_loss_interval,
    exponential_warping, gradual, linear_signal, quadratic_signal, quartic_warping, ramp_gain, ramp_up, smoothed_ratio,
};
use paceline::internals::scream::v2::{
    Backoff, Growth, ReferenceWindowConfig, close_to_inflection, l4s_backoff, post_congestion_scale, rate_of_window,
    virtual_alpha, window_increment,
};
use paceline::internals::scream::{
    AckSummary, Congestion, CongestionWindow, MediaRate, MediaRateConfig, MediaRateInput, RateStep, WindowConfig,
    WindowGrowth, prediction, qdelay_trend, scale,
};
use paceline_units::{DataSize, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use serde_json::Value;

const PAPER: ThresholdConfig = ThresholdConfig::MMSYS16;
const GCC_02: ThresholdConfig = ThresholdConfig::GCC_02;
const LIBWEBRTC: ThresholdConfig = ThresholdConfig::LIBWEBRTC;

fn starting_at(start: Rate, min: Rate) -> Setup {
    Setup::new(start, min, start)
}

/// V1.1: the two-state filter of libwebrtc in 2015 and in 2013.
#[test]
fn two_state_kalman_matches_vectors() {
    for (id, config) in [("V1.1/2015", TwoStateConfig::Y2015), ("V1.1/W2013", TwoStateConfig::Y2013)] {
        let v = vector(id);
        let mut filter = TwoStateKalman::new(config);
        for (i, sample) in list(&v["input"]["samples_t_ts_dL"]).iter().enumerate() {
            let [t, ts, dl] = numbers(sample)[..] else { panic!("{id}: three numbers a sample") };
            let offset = filter.update(t, ts, dl, true, 0);
            near(offset, &v["expected"]["offset"][i], || format!("{id} offset {i}"));
            near(filter.slope(), &v["expected"]["slope"][i], || format!("{id} slope {i}"));
            near(filter.variance(), &v["expected"]["var_noise"][i], || format!("{id} variance {i}"));
        }
    }
}

/// V1.2: the detector with a static threshold.
#[test]
fn static_detector_matches_vectors() {
    let v = vector("V1.2");
    let mut detector = detector_after_59_deltas(100.0);
    let states: Vec<String> = numbers(&v["input"]["offsets"])
        .into_iter()
        .map(|m| {
            let t = detector.scale(m);
            format!("{:?}", detector.update(m, t, 25.0, number(&v["input"]["ts_delta"])))
        })
        .collect();
    assert_eq!(states, strings(&v["expected"]["state"]));
}

/// V1.3: the growth factor of 2013.
#[test]
fn growth_by_response_matches_vectors() {
    for n in 1..=6 {
        let v = vector(&format!("V1.3/{n}"));
        let input = &v["input"];
        let ms = |name: &str| input[name].as_i64().map(TimeDelta::from_millis);
        let got = eta(ms("response_ms").unwrap(), number(&input["var_noise"]), ms("dt_ms"), region(&input["region"]));
        near(got, &v["expected"]["eta"], || format!("V1.3/{n}"));
    }
}

/// V1.5: the loss laws of 2013, as printed and as in the code, which counts loss in 256ths.
#[test]
fn loss_laws_match_vectors() {
    let v = vector("V1.5/paper");
    for (case, expected) in list(&v["input"]["cases"]).iter().zip(list(&v["expected"]["rate"])) {
        let [rate, loss, rtt] = numbers(case)[..] else { panic!("three numbers a case") };
        let mut c = LossController::new(LossConfig::Y2013, &starting_at(Rate::from_bps_f64(rate * 1e3), Rate::ZERO));
        c.set_rtt(TimeDelta::from_secs_f64(rtt));
        c.handle_report(Fraction::new(loss).unwrap());
        near(c.rate().as_bps_f64() / 1e3, expected, || format!("{case}"));
    }
    let v = vector("V1.5/code");
    for (q8, name) in [(0, "inc_0"), (51, "dec_51")] {
        let mut e = SendSideEstimate::new(
            SendSideConfig::LIBWEBRTC,
            Rate::from_bps_f64(number(&v["input"]["rate"])),
            Rate::ZERO,
        );
        e.handle_report(Time::from_secs(1), Fraction::from_q8(q8));
        let expected = number(&v["expected"][name]);
        assert!((e.rate().as_bps_f64() - expected).abs() <= 0.5, "{name}: {}", e.rate());
    }
    // 51 in the code stands for 51 of 255.
    let x = tfrc(DataSize::from_bytes(1000), TimeDelta::from_millis(100), Fraction::new(0.2).unwrap());
    assert!((x.as_bps_f64() - number(&v["expected"]["tfrc"])).abs() <= 1.0, "{x}");
}

/// V7.1: the TCP throughput (RFC 5348, section 3.1).
#[test]
fn tcp_throughput_matches_vectors() {
    let v = vector("V7.1");
    for (case, expected) in list(&v["input"]["cases"]).iter().zip(numbers(&v["expected"]["bps"])) {
        let [s, r, p] = numbers(case)[..] else { panic!("three numbers a case") };
        let x = tfrc(DataSize::from_bytes(s as u64), TimeDelta::from_secs_f64(r), Fraction::new(p).unwrap());
        assert!((x.as_bps_f64() - expected).abs() <= 0.5, "{case}: {x}");
    }
    let lossless = tfrc(DataSize::from_bytes(1000), TimeDelta::from_millis(100), Fraction::new(0.0).unwrap());
    assert_eq!(lossless, Rate::MAX);
}

/// 3.2 and 3.3: the decrease factor of the thesis, by equation and in its table 2.
#[test]
fn dynamic_decrease_factor_matches_vectors() {
    for id in
        ["30/25/AboveMax", "50/25/AboveMax", "200/25/AboveMax", "15/12.5/NearMax", "25/12.5/NearMax", "60/12.5/NearMax"]
    {
        let v = vector(&format!("3.3/{id}"));
        let input = &v["input"];
        let branch =
            if region(&input["region"]) == Region::NearMax { AlphaBranch::NearMax } else { AlphaBranch::Elsewhere };
        near(dynamic_alpha(number(&input["T"]), number(&input["gamma"]), branch), &v["expected"]["alpha"], || {
            id.into()
        });
    }
    for (gamma, ts) in [(25.0, [26, 45, 100, 1000, 5000]), (12.5, [13, 20, 45, 100, 5000])] {
        for t in ts {
            let id = format!("3.2/{gamma}/{t}");
            let by = |branch| dynamic_alpha(f64::from(t), gamma, branch);
            let (elsewhere, near_max) = (by(AlphaBranch::Elsewhere), by(AlphaBranch::NearMax));
            let v = vector(&id);
            match v["expected"].get("alpha") {
                Some(alpha) => near(elsewhere, alpha, || id.clone()),
                None => {
                    near(near_max, &v["expected"]["near_max_1_14"], || id.clone());
                    near(elsewhere, &v["expected"]["printed_099_1_3"], || id.clone());
                }
            }
        }
    }
}

/// V2.1: the scalar filter, as printed with two first variances, and with the draft's floor and cap.
#[test]
fn scalar_kalman_matches_vectors() {
    for id in ["V2.1/sig1", "V2.1/sig50", "V2.1/gcc-02"] {
        let v = vector(id);
        let input = &v["input"];
        let mut filter = ScalarKalman::new(KalmanConfig {
            q: 1e-3,
            beta: number(&input["beta"]),
            p_0: 0.1,
            variance_0: number(&input["sig2_0"]),
            variance_min: input["floor"].as_f64().unwrap_or(0.0),
            outlier_cap: if input["cap_3sigma"].as_bool().unwrap() { 3.0 } else { 0.0 },
        });
        for (i, d) in numbers(&input["d"]).into_iter().enumerate() {
            near(filter.update(d), &v["expected"]["m"][i], || format!("{id} m {i}"));
            near(filter.variance(), &v["expected"]["sig2"][i], || format!("{id} sig2 {i}"));
        }
    }
}

/// V2.2: one step of the adaptive threshold, in three tunings.
#[test]
fn adaptive_threshold_matches_vectors() {
    for id in ["V2.2/12.5/20", "V2.2/12.5/5", "V2.2/12.5/30", "V2.2/30/0", "V2.2/12.5/12.5"] {
        let v = vector(id);
        for (column, config) in [("paper", PAPER), ("gcc02", GCC_02), ("libwebrtc", LIBWEBRTC)] {
            let input = &v["input"];
            let mut threshold = AdaptiveThreshold::new(ThresholdConfig { gamma_0: number(&input["gamma"]), ..config });
            threshold.update(RemoteTime::ZERO, number(&input["T"]));
            threshold.update(RemoteTime::from_millis(33), number(&input["T"]));
            near(threshold.gamma_ms(), &v["expected"][column], || format!("{id} {column}"));
            assert_eq!(number(&input["dt_ms"]), 33.0);
        }
    }
}

/// V2.3: detector and adaptive threshold together, frames 33 ms apart.
#[test]
fn detector_with_adaptive_threshold_matches_vectors() {
    for (id, config, hold_ms) in [("V2.3/libwebrtc", LIBWEBRTC, 10.0), ("V2.3/paper", PAPER, 100.0)] {
        let v = vector(id);
        let (mut detector, mut threshold) = (detector_after_59_deltas(hold_ms), AdaptiveThreshold::new(config));
        let mut states = Vec::new();
        for (i, m) in numbers(&v["input"]["offsets"]).into_iter().enumerate() {
            let t = detector.scale(m);
            states.push(format!("{:?}", detector.update(m, t, threshold.gamma_ms(), 33.0)));
            threshold.update(RemoteTime::from_millis(33 * i as i64), t);
            near(threshold.gamma_ms(), &v["expected"]["gamma"][i], || format!("{id} gamma {i}"));
        }
        assert_eq!(states, strings(&v["expected"]["state"]), "{id}");
    }
}

/// V2.4: the rate laws over one second. A unit test of `RembTimer` has its decreases that are sent immediately.
#[test]
fn rate_laws_match_vectors() {
    let v = vector("V2.4");
    let kbps = |name: &str| Rate::from_bps_f64(number(&v["input"][name]) * 1e3);
    let after = |usage, incoming| {
        let config = RateConfig { bound_hold: TimeDelta::ZERO, ..RateConfig::MMSYS16 };
        let mut c = RateController::new(config, &starting_at(kbps("Ar"), Rate::from_kbps(30)));
        c.update(RemoteTime::ZERO, TimeDelta::ZERO, Usage::Normal, Some(Rate::from_kbps(9000)));
        c.update(RemoteTime::from_millis(1000), TimeDelta::ZERO, usage, Some(incoming)).as_bps_f64() / 1e3
    };
    near(after(Usage::Normal, Rate::from_kbps(9000)), &v["expected"]["increase"], || "increase".into());
    near(after(Usage::Normal, kbps("R_cap")), &v["expected"]["cap"], || "cap".into());
    near(after(Usage::Over, kbps("R_over")), &v["expected"]["decrease"], || "decrease".into());
}

/// V4.1: trendline, threshold and detector together, on a saturated link (+1) and with a draining queue (-1): groups
/// sent each 10 ms arrive 11 or 9 ms apart. Over-use begins in the 24th group, under-use in the 21st.
#[test]
fn delay_detector_matches_vectors() {
    for (received, begins, state) in [(11, 24, Usage::Over), (9, 21, Usage::Under)] {
        let mut detector = DelayDetector::new(DelayDetectorConfig::LIBWEBRTC);
        let (arrival, departure) = (TimeDelta::from_millis(received), TimeDelta::from_millis(10));
        let (mut seen, down) = (0, (received == 9).then(|| vector("V4.1/-1")));
        for i in 1..=40 {
            let before = detector.detector.gamma_ms();
            let at = RemoteTime::from_millis(received * i);
            detector.handle_group(at, &GroupDelta { arrival, departure, size: 0 });
            let (slope, t, usage) = (detector.trend, detector.detector.scaled, detector.usage());
            assert_eq!(usage, if i < begins { Usage::Normal } else { state }, "{i}");
            let usage = format!("{usage:?}");
            match &down {
                Some(v) if i == 20 || i == 21 => {
                    near(t, &v["expected"][format!("T{i}")], || format!("T {i}"));
                    assert_eq!(Some(usage.as_str()), v["expected"][format!("state{i}")].as_str());
                    if i == 20 {
                        near(slope, &v["expected"]["slope20"], || "slope".into());
                    }
                }
                Some(_) => {}
                None => {
                    let Some(v) = find(&format!("V4.1/+1/{i}")) else { continue };
                    seen += 1;
                    let values = [
                        ("slope", slope),
                        ("T", t),
                        ("thr_before", before),
                        ("thr_after", detector.detector.gamma_ms()),
                    ];
                    values
                        .iter()
                        .for_each(|(name, value)| near(*value, &v["expected"][name], || format!("{name} {i}")));
                    assert_eq!(Some(usage.as_str()), v["expected"]["state"].as_str(), "{i}");
                }
            }
        }
        assert_eq!(seen, if received == 11 { 8 } else { 0 });
    }
}

/// V4.2: the link capacity estimate, to the bit per second.
#[test]
fn link_capacity_matches_vectors() {
    let v = vector("V4.2");
    let mut capacity = LinkCapacity::default();
    for (i, sample) in numbers(&v["input"]["samples"]).into_iter().enumerate() {
        capacity.update(Rate::from_bps_f64(sample * 1e3));
        let (lower, upper) = capacity.bounds().unwrap();
        for (name, rate) in [("est", capacity.average().unwrap()), ("lower", lower), ("upper", upper)] {
            let expected = number(&v["expected"][name][i]) * 1e3;
            assert!((rate.as_bps_f64() - expected).abs() <= 0.51, "{name} {i}: {rate}, expected {expected}");
        }
    }
}

/// V4.3: increment, decrease, limit and growth near convergence of libwebrtc's rate control, to the bit per second.
#[test]
fn aimd_matches_vectors() {
    let v = vector("V4.3");
    let config = |rtt_s| AimdConfig { rtt: TimeDelta::from_secs_f64(rtt_s), ..AimdConfig::Y2018 };
    let at = RemoteTime::from_millis;
    let start = |kbps, rtt_s| Aimd::starting_at(config(rtt_s), &starting_at(Rate::from_kbps(kbps), Rate::from_kbps(5)));
    let close = |got: Rate, expected: &Value, what: &str| {
        assert!((got.as_bps_f64() - number(expected)).abs() <= 1.0, "{what}: {got}, expected {expected}");
    };
    let grow = |aimd: &mut Aimd<RemoteTime>, ms, r: Rate| {
        let before = aimd.update(at(0), Usage::Normal, Some(r)).unwrap();
        aimd.update(at(ms), Usage::Normal, Some(r)).unwrap().saturating_sub(before)
    };
    // The step into Increase adds the least growth, 1 kbit/s.
    let grown = grow(&mut start(999, 0.2), 200, Rate::from_kbps(2000));
    close(grown, &v["expected"]["mult"], "increase");
    let fallen = start(2000, 0.2).update(at(0), Usage::Over, Some(Rate::from_kbps(1000))).unwrap();
    close(fallen, &v["expected"]["dec_2020"], "decrease");
    let mut limited = start(609, 0.2);
    grow(&mut limited, 1000, Rate::from_kbps(400));
    close(limited.estimate().unwrap(), &v["expected"]["limit"], "limit");
    for (case, expected) in list(&v["input"]["near_max_cases"]).iter().zip(list(&v["expected"]["near_max"])) {
        let [rate, rtt_s] = numbers(case)[..] else { panic!("rate and round-trip time") };
        // Over-use at the rate over alpha leads to the rate, near the last over-use.
        let (mut aimd, r) = (start(10_000, rtt_s), Rate::from_bps_f64(rate / 0.85));
        close(aimd.update(at(0), Usage::Over, Some(r)).unwrap(), &case[0], "rate");
        close(grow(&mut aimd, 1000, r), expected, &format!("near growth at {case}"));
    }
}

/// V4.4: the acknowledged rate, with the same uncertainty for increases and decreases.
#[test]
fn acked_rate_matches_vectors() {
    let v = vector("V4.4");
    for (i, sample) in numbers(&v["input"]["samples"]).into_iter().enumerate() {
        let mut acked = AckedRate::new(AckedRateConfig { symmetry_cap: Rate::MAX, ..AckedRateConfig::Y2018 });
        acked.update(Rate::from_kbps(1000));
        acked.update(Rate::from_bps_f64(sample * 1e3));
        let (got, expected) = (acked.rate().unwrap().as_bps_f64(), number(&v["expected"]["est"][i]) * 1e3);
        assert!((got - expected).abs() <= 0.51, "{i}: {got}, expected {expected}");
    }
}

/// V6.1, V6.2: the window of RFC 8298 after an acknowledgement, a loss, a mark, and its pace.
#[test]
fn scream_window_matches_vectors() {
    let v = vector("V6.1");
    let config = WindowConfig::RFC_8298;
    let bytes = |x: f64| DataSize::from_bytes(x as u64);
    for (i, case) in list(&v["input"]["cases"]).iter().enumerate() {
        let x: Vec<f64> = list(case).iter().filter_map(Value::as_f64).collect();
        let [cwnd, qdelay, target, acked, in_flight, max_in_flight, trend] = x[..] else { panic!("seven numbers") };
        let growth = |fast: &Value| if fast.as_bool().unwrap() { WindowGrowth::Fast } else { WindowGrowth::Delay };
        let mut window = CongestionWindow::starting_at(config, bytes(cwnd), growth(&case[7]));
        window.handle_acknowledged(&AckSummary {
            newly: bytes(acked),
            counted_max: bytes(acked),
            in_flight: bytes(in_flight),
            max_in_flight: bytes(max_in_flight),
            qdelay: TimeDelta::from_secs_f64(qdelay),
            target: TimeDelta::from_secs_f64(target),
            trend,
        });
        near(window.get().as_bytes() as f64, &v["expected"]["cwnd"][i], || format!("{case}"));
        assert_eq!(window.growth, growth(&v["expected"]["fast_after"][i]), "{case}");
    }
    for (congestion, name) in [(Congestion::Loss, "loss"), (Congestion::Mark, "ecn")] {
        let mut window = CongestionWindow::starting_at(config, bytes(1e4), WindowGrowth::Fast);
        window.handle_congestion(Time::ZERO, congestion);
        near(window.get().as_bytes() as f64, &v["expected"][name], || name.into());
        assert_eq!(window.growth, WindowGrowth::Delay);
    }
    let window = CongestionWindow::starting_at(config, bytes(1e4), WindowGrowth::Delay);
    let t_pace = bytes(1000.0) / window.pacing(TimeDelta::from_millis(100));
    near(t_pace.as_secs_f64(), &vector("V6.2")["expected"]["t_pace"], || "t_pace".into());
}

/// V6.3, V6.4: the media rate of RFC 8298, as printed and with the term that the RFC omits.
#[test]
fn scream_media_rate_matches_vectors() {
    let v = vector("V6.3");
    for (ratio, expected) in numbers(&v["input"]["ratio"]).into_iter().zip(list(&v["expected"]["scale"])) {
        near(scale(ratio * 1e6, 1e6), expected, || format!("scale at {ratio}"));
    }
    let v = vector("V6.4");
    let after = |growth, step, queued_bits: u64| {
        // A loss at 2 Mbit/s, with a factor of one half, sets the inflection there and the target to 1 Mbit/s.
        let config = MediaRateConfig { step, beta_loss: 0.5, ..MediaRateConfig::RFC_8298 };
        let mut rate = MediaRate::starting_at(config, Rate::from_kbps(2000), Rate::ZERO, Rate::from_kbps(3000));
        rate.handle_congestion(Congestion::Loss);
        rate.update(&MediaRateInput {
            growth,
            throughput: Rate::from_kbps(900),
            media: Rate::ZERO,
            media_median: Rate::ZERO,
            queued: DataSize::from_bytes(queued_bits / 8),
            trend: 0.2,
            trend_memory: 0.0,
        });
        rate.get().as_bps_f64()
    };
    for (name, growth, step, queued_bits) in [
        ("fast", WindowGrowth::Fast, RateStep::ToThroughput, 0),
        ("slow_literal", WindowGrowth::Delay, RateStep::AsPrinted, 0),
        ("slow_increment", WindowGrowth::Delay, RateStep::ToThroughput, 0),
        ("queue_literal", WindowGrowth::Delay, RateStep::AsPrinted, 50_000),
        ("queue_increment", WindowGrowth::Delay, RateStep::ToThroughput, 50_000),
    ] {
        near(after(growth, step, queued_bits), &v["expected"][name], || name.into());
    }
}

/// V6.5: the trend of a growing queuing delay.
#[test]
fn scream_trend_matches_vectors() {
    let v = vector("V6.5");
    let a = prediction(&numbers(&v["input"]["history"]));
    near(a, &v["expected"]["a"], || "a".into());
    near(qdelay_trend(a, number(&v["input"]["fraction_avg"])), &v["expected"]["trend"], || "trend".into());
}

/// V6.6: the growth of the reference window of SCReAM version 2.
#[test]
fn scream_v2_increase_matches_vectors() {
    let v = vector("V6.6");
    let config = ReferenceWindowConfig::DRAFT;
    for (i, case) in list(&v["input"]["cases"]).iter().enumerate() {
        let [window, inflection, acked, s_rtt, since] = numbers(case)[..] else { panic!("five numbers") };
        let close = close_to_inflection(window, inflection);
        let post_congestion = post_congestion_scale(since, s_rtt, &config);
        let growth = Growth { acked, s_rtt, close, delay_scale: 1.0, post_congestion };
        near(window_increment(window, &growth, &config), &v["expected"]["inc"][i], || format!("V6.6 {window}"));
    }
}

/// V6.7: virtual marks and the target of SCReAM version 2. At 50 ms there are two reactions per round-trip time: alpha 0.5 takes
/// an eighth of the window.
#[test]
fn scream_v2_virtual_marks_and_target_match_vectors() {
    let v = vector("V6.7");
    for (i, average) in numbers(&v["input"]["q_avg"]).into_iter().enumerate() {
        let alpha = virtual_alpha(average, 0.06);
        near(alpha, &v["expected"]["alpha_v"][i], || format!("alpha_v {average}"));
        let state = Backoff { s_rtt: 0.05, delay: average / 0.06, close: 1.0, delay_scale: 1.0, undershoots: false };
        let factor = 1.0 - l4s_backoff(alpha, &state, &ReferenceWindowConfig::DRAFT);
        near(factor, &v["expected"]["factor"][i], || format!("factor {average}"));
    }
    near(rate_of_window(20_000.0, 1000.0, 0.05, 1.2, 20.0), &v["expected"]["target"], || "target".into());
}

/// V5.1 and V5.2: warping of RFC 8698, and of 2015 with two knees.
#[test]
fn nada_warping_matches_vectors() {
    let v = vector("V5.1");
    for (i, d) in numbers(&v["input"]["d"]).into_iter().enumerate() {
        near(exponential_warping(d, 50.0, 0.5), &v["expected"]["d_tilde"][i], || format!("V5.1 {d} ms"));
    }
    let v = vector("V5.2");
    for (i, d) in numbers(&v["input"]["d"]).into_iter().enumerate() {
        near(quartic_warping(d, 50.0, 400.0), &v["expected"]["knee50"][i], || format!("V5.2 {d} ms"));
        near(quartic_warping(d, 100.0, 400.0), &v["expected"]["knee100"][i], || format!("V5.2 {d} ms"));
    }
}

/// V5.3 and V5.8: the congestion signal, and the smoothing of its ratios.
#[test]
fn nada_signal_matches_vectors() {
    let v = vector("V5.3");
    let c = PenaltyConfig { d_loss: 10.0, plr_ref: 0.01, d_mark: 2.0, pmr_ref: 0.01 };
    for (i, case) in list(&v["input"]["cases"]).iter().enumerate() {
        let [d, p_loss, p_mark] = numbers(case)[..] else { panic!("V5.3: three numbers a case") };
        near(quadratic_signal(d, p_loss, p_mark, &c), &v["expected"]["x_curr"][i], || format!("V5.3 {i}"));
    }
    let [d, p] = numbers(&v["input"]["nada2015"])[..] else { panic!("V5.3: delay and loss") };
    near(linear_signal(d, p, 1000.0), &v["expected"]["x_2015"], || "V5.3 of 2015".to_owned());
    let v = vector("V5.8");
    let (instant, before) = (number(&v["input"]["p_inst"]), number(&v["input"]["p_prev"]));
    near(smoothed_ratio(instant, before, 0.1), &v["expected"]["p"], || "V5.8".to_owned());
}

/// V5.4: accelerated ramp-up. The rate of the RFC is for a round-trip time of 50 ms and a received rate of 900 kbit/s.
#[test]
fn nada_ramp_up_matches_vectors() {
    let v = vector("V5.4");
    let (rfc, y2015) = (RampUpConfig { gamma_max: 0.5, q_bound: 50.0 }, RampUpConfig { gamma_max: 0.2, q_bound: 50.0 });
    let rtts: Vec<i64> = list(&v["input"]["rtt"]).iter().map(|rtt| rtt.as_i64().unwrap()).collect();
    for (i, rtt) in rtts.into_iter().enumerate() {
        let gamma = ramp_gain(TimeDelta::from_millis(rtt + 100 + 120), &rfc);
        near(gamma, &v["expected"]["gamma"][i], || format!("V5.4 {rtt} ms"));
    }
    let rate = ramp_up(Rate::from_kbps(900), TimeDelta::from_millis(50 + 100 + 120), &rfc);
    assert_eq!(rate.as_bps_f64(), number(&v["expected"]["r_ref"]).round());
    let of_2015 = |rtt: i64| TimeDelta::from_millis(rtt + 100);
    near(ramp_gain(of_2015(100), &y2015), &v["expected"]["gamma15_100"], || "V5.4 of 2015, 100 ms".to_owned());
    near(ramp_gain(of_2015(400), &y2015), &v["expected"]["gamma15_400"], || "V5.4 of 2015, 400 ms".to_owned());
    let rate = ramp_up(Rate::from_kbps(1000), of_2015(100), &y2015);
    assert_eq!(rate.as_bps_f64() / 1e3, number(&v["expected"]["r15"]));
}

/// V5.5: the gradual update, rates in kbit/s.
#[test]
fn nada_gradual_matches_vectors() {
    let rfc = GradualConfig::RFC_8698;
    assert_eq!((rfc.x_ref, rfc.kappa, rfc.eta, rfc.tau), (10.0, 0.5, 2.0, 500.0));
    for (id, max, c) in [("V5.5/rfc", 1500, rfc), ("V5.5/2015", 2500, GradualConfig { x_ref: 20.0, ..rfc })] {
        let v = vector(id);
        for (i, case) in list(&v["input"]["r_x_xprev"]).iter().enumerate() {
            let [r, x, before] = numbers(case)[..] else { panic!("{id}: three numbers a case") };
            let rate = Rate::from_bps_f64(r * 1e3);
            let after = gradual(rate, x, before, TimeDelta::from_millis(100), Rate::from_kbps(max), &c);
            near(after.as_bps_f64() / 1e3, &v["expected"]["r_ref"][i], || format!("{id} {i}"));
        }
    }
}

/// V5.6: the effect of the shaping buffer on encoder and pacer.
#[test]
fn nada_shaping_matches_vectors() {
    let v = vector("V5.6");
    let mut shaping =
        Shaping::new(ShapingConfig { beta_v: 0.1, beta_s: 0.1, fps: number(&v["input"]["fps"]), most: 0.05 });
    shaping.handle_queued(StreamId(0), DataSize::from_bytes(v["input"]["buffer_len"].as_u64().unwrap()));
    let rate = number(&v["input"]["r_ref"]);
    let (encoder, pacer) = shaping.rates(Rate::from_bps_f64(rate));
    near(encoder.as_bps_f64(), &v["expected"]["r_vin"], || "V5.6 r_vin".to_owned());
    near(pacer.as_bps_f64(), &v["expected"]["r_send"], || "V5.6 r_send".to_owned());
    near(pacer.as_bps_f64() - rate, &v["expected"]["diff"], || "V5.6 difference".to_owned());
}

/// V5.7: the average loss interval, with the open interval first; and the same from packets, at the last loss.
#[test]
fn nada_loss_interval_matches_vectors() {
    for id in ["V5.7/1", "V5.7/2"] {
        let v = vector(id);
        let intervals = numbers(&v["input"]["intervals"]);
        let average = average_loss_interval(&intervals).unwrap();
        near(average, &v["expected"]["I_mean"], || id.to_owned());
        near(1.0 / average, &v["expected"]["p"], || format!("{id} rate"));
        let mut seen = LossIntervals::default();
        for (i, interval) in intervals.iter().enumerate().rev() {
            // A loss starts each interval except the first.
            let first = u32::from(i + 1 < intervals.len());
            seen.handle_packet(first);
            (1 + first..*interval as u32).for_each(|_| seen.handle_packet(0));
        }
        let closed = [&[0.0], &intervals[1..]].concat();
        assert_eq!(seen.average, average_loss_interval(&closed), "{id} from packets");
    }
    assert_eq!(average_loss_interval(&[30.0]), None, "no loss, no interval");
}

/// Returns a detector that has counted 59 deltas, so that the next comparison uses 60 m.
fn detector_after_59_deltas(hold_ms: f64) -> OveruseDetector {
    let mut detector = OveruseDetector::new(hold_ms);
    for _ in 0..59 {
        detector.scale(0.0);
    }
    detector
}

fn region(name: &Value) -> Region {
    match name.as_str().unwrap() {
        "NearMax" => Region::NearMax,
        "AboveMax" => Region::AboveMax,
        "MaxUnknown" => Region::MaxUnknown,
        other => panic!("no region {other}"),
    }
}

fn vector(id: &str) -> Value {
    find(id).unwrap_or_else(|| panic!("no vector {id}"))
}
fn find(id: &str) -> Option<Value> {
    let all: Value = serde_json::from_str(include_str!("../vectors/algorithms.json")).unwrap();
    list(&all["vectors"]).iter().find(|v| v["id"] == id).cloned()
}

/// Compares with a vector, which is printed with twelve digits.
fn near(got: f64, expected: &Value, what: impl Fn() -> String) {
    let expected = number(expected);
    assert!((got - expected).abs() <= 1e-9 * expected.abs(), "{}: {got}, expected {expected}", what());
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}
fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}
fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(number).collect()
}
fn strings(value: &Value) -> Vec<String> {
    list(value).iter().map(|v| v.as_str().unwrap().to_owned()).collect()
}
