// SPDX-License-Identifier: MIT OR Apache-2.0
//! Estimates of quality, as mean opinion scores (MOS) from 1 to 5, by published models.
//!
//! * *Video*: coding quality by ITU-T P.1203.1, mode 0, from rate, resolution and frame rate; the impact of freezes by
//!   ITU-T P.1203.3, equation 29; the impact of delay by the term for pure delay of ITU-T G.107.
//! * *Audio*: the E-model of ITU-T G.107 from delay and lost frames, with G.711 and packet loss concealment.
//!
//! Limits. P.1203 is for adaptive streaming with H.264 up to 1080p, and G.107 for telephone-band speech: the codecs of calls are
//! more efficient, so true scores are higher. P.1203.3 combines the impact of freezes with a trained forest of decision trees,
//! which is left out, and so is the greater weight of late stalls. To subtract the delay term of G.107 from the score of a video is our choice. Scores of the same media
//! order controllers; do not read them as the answer of people in a test.

use super::MetricSpec;
use super::accumulators::Freezes;
use paceline_netsim::flow::MediaKind;
use paceline_netsim::plan::StreamPlan;
use paceline_netsim::records::MetricKind;

pub(super) const QUALITY: MetricSpec = MetricSpec::new(
    "quality_mos",
    MetricKind::Score,
    "estimated mean opinion score of video (ITU-T P.1203.1 mode 0, freezes by P.1203.3, delay by G.107) and audio (G.107), mean over \
     the streams; of the flow, if one is named",
    |r, flow, _| {
        let flows = flow.map_or(&r.flows[..], |f| core::slice::from_ref(&r.flows[f]));
        let scores: Vec<f64> = flows.iter().flat_map(|f| &f.streams).filter_map(|s| s.quality_mos).collect();
        (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
    },
)
.with_streams(|s| s.quality_mos)
.with_freezes();

/// What was measured of a stream in a window.
pub(super) struct Facts {
    /// How long it lived.
    pub seconds: f64,
    /// Of rendered frames.
    pub bytes: u64,
    pub frames: u64,
    pub late_or_lost: Option<f64>,
    pub mean_delay_ms: Option<f64>,
}

/// P.1203.3 counts the stalls of sessions of up to 5 minutes; of a longer stream it is their mean number in 5 minutes.
const SESSION_S: f64 = 300.0;

/// Returns the score of a stream; 1 if nothing was rendered, and `None` if it did not live, or if its source has no resolution.
pub(super) fn of_stream(plan: &StreamPlan, freezes: &Freezes, facts: &Facts) -> Option<f64> {
    let Facts { seconds, bytes, frames, late_or_lost, mean_delay_ms } = *facts;
    if seconds <= 0.0 {
        return None;
    }
    let (Some(delay_ms), Some(late_or_lost)) = (mean_delay_ms, late_or_lost) else {
        return (frames == 0).then_some(1.0);
    };
    match plan.kind {
        MediaKind::Audio => Some(audio(delay_ms, late_or_lost)),
        MediaKind::Video => Some(video(&Video {
            kbps: bytes as f64 * 8.0 / seconds / 1e3,
            fps: frames as f64 / seconds,
            lines: plan.source.lines?,
            freezes: freezes.count as f64 / (seconds / SESSION_S).max(1.0),
            frozen: freezes.total.as_secs_f64() / seconds,
            between_freezes: freezes.interval().as_secs_f64() / seconds,
            delay_ms,
        })),
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Video {
    /// Rate of rendered frames, kbit/s.
    pub kbps: f64,
    /// Rendered frames per second.
    pub fps: f64,
    /// Lines of a picture of 16:9. It is displayed as large as it is.
    pub lines: u32,
    /// Number of freezes, and the time in them and between them on average, over the duration.
    pub freezes: f64,
    pub frozen: f64,
    pub between_freezes: f64,
    /// Mean delay from capture to rendering, ms.
    pub delay_ms: f64,
}

/// Returns the score of a video that was rendered.
pub(super) fn video(video: &Video) -> f64 {
    let coding = coding_mos(video.kbps, video.lines, video.fps);
    let with_freezes = 1.0 + (coding - 1.0) * freeze_factor(video.freezes, video.frozen, video.between_freezes);
    mos_of_quality(quality_of_mos(with_freezes) - delay_impairment(video.delay_ms))
}

/// Returns the score of audio from its mean delay, ms, and the fraction of lost frames.
pub(super) fn audio(delay_ms: f64, lost: f64) -> f64 {
    mos_of_rating(audio_rating(delay_ms, lost))
}

/// The rating R of the E-model without impairments (ITU-T G.107, default values).
const RATING: f64 = 93.2;
/// Robustness of G.711 with concealment to losses (ITU-T G.113, Bpl).
const LOSS_ROBUSTNESS: f64 = 25.1;

/// Returns the rating R: `93.2 - Idd - 95 Ppl / (Ppl + Bpl)`, for random losses of `Ppl` per cent (ITU-T G.107, 7.1 to 7.5).
fn audio_rating(delay_ms: f64, lost: f64) -> f64 {
    let percent = lost * 100.0;
    RATING - delay_impairment(delay_ms) - 95.0 * percent / (percent + LOSS_ROBUSTNESS)
}

/// Returns Idd, the impairment by pure delay: 0 up to 100 ms, then `25 ((1 + X^6)^(1/6) - 3 (1 + (X/3)^6)^(1/6) + 2)` with
/// `X = log2(Ta / 100)` (ITU-T G.107, 7.4).
fn delay_impairment(delay_ms: f64) -> f64 {
    if delay_ms <= 100.0 {
        return 0.0;
    }
    let x = libm::log2(delay_ms / 100.0);
    let root = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

/// Returns the score of a rating (ITU-T G.107, annex B).
fn mos_of_rating(rating: f64) -> f64 {
    match rating {
        ..=0.0 => 1.0,
        100.0.. => 4.5,
        r => 1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6,
    }
}

/// Constants of ITU-T P.1203.1, mode 0: of the quantisation (a1 to a4) and of the score (q1 to q3).
const A: [f64; 4] = [11.998_351_9, -2.999_918_47, 41.247_507_400_1, 0.131_831_659_61];
const Q: [f64; 3] = [4.66, -0.07, 4.06];

/// Returns the score of coded video, by rate, resolution and frame rate (ITU-T P.1203.1, mode 0, O.22). The vectors and the
/// display have the same resolution, so nothing is lost by scaling.
fn coding_mos(kbps: f64, lines: u32, fps: f64) -> f64 {
    if kbps <= 0.0 || fps <= 0.0 {
        return 1.0;
    }
    let pixels = f64::from(lines) * f64::from(lines) * 16.0 / 9.0;
    let bits = libm::log(kbps * kbps / (pixels * fps) + A[3]);
    let quantisation = A[0] + A[1] * libm::log(A[2] + libm::log(kbps) + bits);
    let score = (Q[0] + Q[1] * libm::exp(Q[2] * quantisation)).clamp(1.0, 5.0);
    let coding = 100.0 - quality_of_mos(score);
    let slow = if fps < 24.0 { (100.0 - coding) * (30.98 - 1.29 * fps) / (64.65 + fps) } else { 0.0 };
    mos_of_quality(100.0 - (coding + slow).min(100.0))
}

/// Constants of ITU-T P.1203.3, equation 29: number, length and interval of stalls.
const S: [f64; 3] = [9.351_586_84, 0.918_908_15, 11.056_755_8];

/// Returns the factor of freezes: 1 without any (ITU-T P.1203.3, equation 29). `frozen` and `between` are over the duration.
fn freeze_factor(freezes: f64, frozen: f64, between: f64) -> f64 {
    libm::exp(-freezes / S[0]) * libm::exp(-frozen / S[1]) * libm::exp(-between / S[2])
}

/// Returns the score of a quality from 0 to 100 (ITU-T P.1203.1, annex).
fn mos_of_quality(quality: f64) -> f64 {
    match quality {
        ..=0.0 => 1.05,
        100.0.. => 4.9,
        q => 1.05 + 3.85 * q / 100.0 + q * (q - 60.0) * (100.0 - q) * 7e-6,
    }
}

/// Returns the quality of a score, the inverse of [`mos_of_quality`] where that increases.
fn quality_of_mos(score: f64) -> f64 {
    // Below 6.5 the cubic falls slightly; the search finds the value above it.
    let (mut low, mut high) = (6.5, 100.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if mos_of_quality(middle) < score { low = middle } else { high = middle }
    }
    if score <= mos_of_quality(6.5) { 0.0 } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() < 2e-4, "{got}, expected {expected}");
    }

    #[test]
    fn e_model_matches_vectors() {
        for (delay, percent, rating, mos) in [
            (50.0, 0.0, 93.2, 4.4093),
            (200.0, 0.0, 90.1556, 4.3428),
            (300.0, 0.0, 78.4393, 3.9637),
            (400.0, 0.0, 69.1299, 3.5559),
            (100.0, 2.0, 86.1889, 4.2348),
            (100.0, 5.0, 77.4193, 3.9228),
        ] {
            close(audio_rating(delay, percent / 100.0), rating);
            close(audio(delay, percent / 100.0), mos);
        }
        close(audio(2000.0, 1.0), 1.0);
    }

    #[test]
    fn coding_quality_matches_vectors() {
        for (kbps, lines, fps, mos) in
            [(1000.0, 720, 30.0, 4.1511), (1000.0, 720, 15.0, 3.6231), (4000.0, 1080, 30.0, 4.3725)]
        {
            close(coding_mos(kbps, lines, fps), mos);
        }
        assert_eq!(coding_mos(0.0, 720, 30.0), 1.0);
    }

    #[test]
    fn scores_of_quality_are_inverted() {
        for quality in [10.0, 35.5, 60.0, 99.0] {
            close(quality_of_mos(mos_of_quality(quality)), quality);
        }
        assert!(quality_of_mos(4.9) > 99.99 && quality_of_mos(1.0) == 0.0);
    }

    #[test]
    fn freezes_and_delay_lower_the_score() {
        let smooth = Video {
            kbps: 1000.0,
            fps: 30.0,
            lines: 720,
            freezes: 0.0,
            frozen: 0.0,
            between_freezes: 0.0,
            delay_ms: 100.0,
        };
        close(video(&smooth), 4.1511);
        // One freeze of 9.189 % of the duration: exp(-1/9.3516 - 0.1) = 0.8131, and 1 + 3.1511 * 0.8131.
        close(video(&Video { freezes: 1.0, frozen: 0.091_890_815, ..smooth }), 3.5621);
        // 400 ms cost 24.07 points of quality.
        let late = video(&Video { delay_ms: 400.0, ..smooth });
        close(quality_of_mos(late), quality_of_mos(4.1511) - 24.0701);
    }
}
