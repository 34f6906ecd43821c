// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask make-traces`: synthetic capacity traces and frame sizes. They are small, free to use, and resemble real traces
//! whose licences do not permit copies. Every byte follows from the seed below.
//!
//! * `lte-like.mahimahi`: a cellular downlink. Slow fading is a random walk of the log of the rate, reflected at the
//!   bounds; fast fading scales each 10 ms; a dip models a handover.
//! * `frames/talk_360p_<kbps>.txt`: a talking head at nine rates, in the format of the syncodecs video traces. One scene is
//!   encoded at all rates, so that frame n is large in every file or in none. A model that interpolates between files
//!   (RFC 8593, section 6) requires that.
//! * `paths/`: the capacity of the path presets whose rate varies, see `access_link.rs`.
//! * `traces/`: one small file of each other trace format, as an example and for tests.

use crate::access_link::{ACCESS_LINKS, AccessLink};
use crate::steps::{Problem, has_flag, root, write};
use paceline_units::{RandomStream, RandomStreams};
use std::fmt::Write as _;
use std::fs;

/// Writes the files, or compares them with `--check`.
pub fn run(arguments: &[String]) -> Result<(), Problem> {
    let check = has_flag(arguments, "--check")?;
    let folder = root().join("scenarios");
    let mut different = Vec::new();
    for (name, text) in files() {
        let path = folder.join(&name);
        if fs::read_to_string(&path).ok().as_deref() == Some(&*text) {
            continue;
        }
        if check {
            different.push(name);
        } else {
            write(&path, &text)?;
            eprintln!("wrote {name}, {} bytes", text.len());
        }
    }
    if different.is_empty() {
        Ok(())
    } else {
        Err(Problem::Failed(format!("these files differ: {}; run `cargo xtask make-traces`", different.join(", "))))
    }
}

/// Returns every file: its path below `scenarios` and its text.
fn files() -> Vec<(String, String)> {
    let real = real().into_iter().map(|(name, text)| (format!("real/{name}"), text));
    let path = |access: &AccessLink| (format!("paths/{}.csv", access.name), access.csv());
    real.chain(ACCESS_LINKS.iter().map(path)).collect()
}

/// Returns the files below `scenarios/real`.
fn real() -> Vec<(String, String)> {
    let streams = RandomStreams::new(SEED);
    let mut files = vec![
        ("lte-like.mahimahi".to_owned(), lte_like(&mut streams.stream("lte-like"))),
        ("traces/hsdpa.log".to_owned(), drive_log(&mut streams.stream("hsdpa"), &HSDPA)),
        ("traces/ghent4g.log".to_owned(), drive_log(&mut streams.stream("ghent4g"), &GHENT)),
        ("traces/alphartc.json".to_owned(), alphartc(&mut streams.stream("alphartc"))),
        ("traces/steps.csv".to_owned(), steps_csv()),
        ("traces/README.md".to_owned(), README.to_owned()),
    ];
    let scene = scene(&mut streams.stream("talk"));
    files.extend(FRAME_RATES_KBPS.map(|kbps| (format!("frames/talk_360p_{kbps}.txt"), talk(&scene, kbps))));
    files
}

const SEED: u64 = 1;

// Cellular downlink ---------------------------------------------------------------------------------------------------

const LTE_MS: usize = 40_000;
const LTE_LOW_BPS: f64 = 800e3;
const LTE_MEDIAN_BPS: f64 = 2.2e6;
const LTE_HIGH_BPS: f64 = 12e6;
/// The bits of one delivery opportunity of mahimahi.
const OPPORTUNITY_BITS: f64 = 1504.0 * 8.0;
/// Start (ms), length (ms) and rate (bit/s) of each dip.
const LTE_DIPS: [(usize, usize, f64); 1] = [(21_900, 500, 0.0)];

/// Returns a line for each delivery opportunity of 1504 bytes, with its millisecond.
fn lte_like(random: &mut RandomStream) -> String {
    let (low, median, high) = (libm::log(LTE_LOW_BPS), libm::log(LTE_MEDIAN_BPS), libm::log(LTE_HIGH_BPS));
    let (mut slow, mut fast, mut bits) = (median, 1.0, 0.0);
    let mut text = String::new();
    for ms in 1..=LTE_MS {
        if ms % 100 == 1 {
            // A walk that leans back to the median within some seconds.
            slow += 0.03 * (median - slow) + 0.16 * random.normal();
            slow = if slow > high { 2.0 * high - slow } else { slow };
            slow = if slow < low { 2.0 * low - slow } else { slow };
        }
        if ms % 10 == 1 {
            fast = libm::exp(0.35 * random.normal() - 0.35 * 0.35 / 2.0);
        }
        let dip = LTE_DIPS.iter().find(|(start, length, _)| (*start..start + length).contains(&ms));
        let bps = dip.map_or((libm::exp(slow) * fast).clamp(LTE_LOW_BPS, LTE_HIGH_BPS), |(_, _, bps)| *bps);
        bits += bps / 1000.0;
        while bits >= OPPORTUNITY_BITS {
            bits -= OPPORTUNITY_BITS;
            line(&mut text, format_args!("{ms}"));
        }
    }
    // The last line is the period of the loop.
    if !text.ends_with(&format!("{LTE_MS}\n")) {
        line(&mut text, format_args!("{LTE_MS}"));
    }
    text
}

// Frame sizes ---------------------------------------------------------------------------------------------------------

const FRAME_RATES_KBPS: [u32; 9] = [100, 200, 400, 600, 800, 1000, 1200, 1500, 2000];
const FRAMES: usize = 300;
const FRAMES_PER_SECOND: f64 = 30.0;
/// The number of frames that are smaller to compensate for the key frame. Models that repeat a frame trace skip as many.
const COMPENSATION_FRAMES: usize = 20;

/// Returns the relative size of each frame: log-normal, correlated, with mean 1 before and after `COMPENSATION_FRAMES`.
fn scene(random: &mut RandomStream) -> Vec<f64> {
    const CORRELATION: f64 = 0.8;
    const SPREAD: f64 = 0.28;
    let mut log = 0.0;
    let mut sizes: Vec<f64> = (0..FRAMES)
        .map(|_| {
            log = CORRELATION * log + (1.0 - CORRELATION * CORRELATION).sqrt() * random.normal();
            libm::exp(SPREAD * log)
        })
        .collect();
    let (early, late) = sizes.split_at_mut(COMPENSATION_FRAMES + 1);
    for part in [&mut early[1..], late] {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        part.iter_mut().for_each(|size| *size /= mean);
    }
    sizes
}

/// Returns the frame sizes of the scene at a rate: a key frame of 10 (100 kbps) to 6 (2 Mbps) times the mean, then smaller
/// frames to compensate for it, then the mean times the scene.
fn talk(scene: &[f64], kbps: u32) -> String {
    let mean = f64::from(kbps) * 1000.0 / 8.0 / FRAMES_PER_SECOND;
    let key = 10.0 - 4.0 * libm::log(f64::from(kbps) / 100.0) / libm::log(20.0);
    let payback = 1.0 - (key - 1.0) / COMPENSATION_FRAMES as f64;
    let mut text = "% Nframe | type | X | timestamp | size (Bytes)\n\
                    % Fields labeled as X are left for backwards compatibility\n\
                    % Synthetic: made by `cargo xtask make-traces`, no video was encoded\n"
        .to_owned();
    for (n, scale) in scene.iter().enumerate() {
        let size = match n {
            0 => key,
            1..=COMPENSATION_FRAMES => payback * scale,
            _ => *scale,
        };
        let (seconds, bytes) = (n as f64 / FRAMES_PER_SECOND, rounded(mean * size));
        line(&mut text, format_args!("{n} U 0. {seconds:.6} {bytes}"));
    }
    text
}

// One of each format --------------------------------------------------------------------------------------------------

const ROWS: usize = 40;

struct DriveLog {
    /// The wall clock of the first line, in units of `tick_ms`. A round number, because the log is synthetic.
    wall_clock: u64,
    /// The unit of the wall clock in milliseconds.
    tick_ms: u64,
    /// The second clock before the first line (ms).
    clock_ms: u64,
    /// The digits of the last column.
    digits: usize,
    /// The maximum deviation of the span of a line from one second (ms).
    max_span_deviation_ms: f64,
    median_bps: f64,
}
const HSDPA: DriveLog = DriveLog {
    wall_clock: 1_000_000_000,
    tick_ms: 1000,
    clock_ms: 500_000,
    digits: 1,
    max_span_deviation_ms: 100.0,
    median_bps: 1.2e6,
};
const GHENT: DriveLog = DriveLog {
    wall_clock: 1_000_000_000_000,
    tick_ms: 1,
    clock_ms: 0,
    digits: 4,
    max_span_deviation_ms: 2.0,
    median_bps: 2e7,
};

/// Returns lines of `wall clock, clock, latitude, longitude, bytes, ms`, with an outage of two lines and no position.
fn drive_log(random: &mut RandomStream, log: &DriveLog) -> String {
    let mut text = String::new();
    let (mut elapsed, mut fading) = (0, 0.0);
    for row in 0..ROWS {
        let ms = rounded(random.uniform(1000.0 - log.max_span_deviation_ms, 1000.0 + log.max_span_deviation_ms));
        fading = 0.9 * fading + 0.3 * random.normal();
        let outage = (ROWS / 2..ROWS / 2 + 2).contains(&row);
        let bytes = if outage { 0 } else { rounded(log.median_bps * libm::exp(fading) * ms as f64 / 8000.0) };
        elapsed += ms;
        let (wall, clock) = (log.wall_clock + elapsed / log.tick_ms, log.clock_ms + elapsed);
        line(&mut text, format_args!("{wall} {clock} 0.000000 0.000000 {bytes} {ms:0width$}", width = log.digits));
    }
    text
}

/// Returns a downlink with all fields and an uplink with the two required ones. Each has an outage.
fn alphartc(random: &mut RandomStream) -> String {
    let mut capacity = |row: usize, median: f64| {
        let kbps = median * libm::exp(0.4 * random.normal());
        if row == 12 { 0.0 } else { kbps }
    };
    let downlink: Vec<String> = (0..20)
        .map(|row| {
            let kbps = capacity(row, 1500.0);
            format!(r#"{{"duration": 1000, "capacity": {kbps:.0}, "loss": 0, "rtt": 80, "jitter": 0}}"#)
        })
        .collect();
    let uplink: Vec<String> =
        (0..20).map(|row| format!(r#"{{"duration": 500.5, "capacity": {:.2}}}"#, capacity(row, 600.0))).collect();
    let pattern = |entries: &[String]| format!("{{\"trace_pattern\": [\n    {}\n  ]}}", entries.join(",\n    "));
    format!(
        "{{\n  \"type\": \"video\",\n  \"note\": \"synthetic, made by cargo xtask make-traces\",\n  \
         \"downlink\": {},\n  \"uplink\": {}\n}}\n",
        pattern(&downlink),
        pattern(&uplink)
    )
}

/// Returns thirty steps: upwards, an outage, downwards.
fn steps_csv() -> String {
    let mut text = "# Synthetic: made by `cargo xtask make-traces`\ntime_s,rate_mbps\n".to_owned();
    for step in 0..30_i32 {
        let quarters = if step == 15 { 0 } else { 15 - (step - 15).abs() + 1 };
        line(&mut text, format_args!("{},{}", step * 2, f64::from(quarters) / 4.0));
    }
    text
}

const README: &str = "\
# Small traces, one of each format

All of them are synthetic, made by `cargo xtask make-traces`, and free to use. So are `../lte-like.mahimahi` (a
cellular downlink in mahimahi's format: 40 s, about 3 Mbps, one outage) and `../frames/talk_360p_*.txt` (frame sizes of a
talking head at nine rates). They show what each format looks like; replace them with recordings of your own.

| file | format |
|---|---|
| `hsdpa.log` | Norwegian 3G drive log: unix s, clock ms, latitude, longitude, bytes, ms |
| `ghent4g.log` | Ghent 4G drive log: unix ms, ms since start, latitude, longitude, bytes, ms |
| `alphartc.json` | AlphaRTC and OpenNetLab gym: patterns of duration (ms) and capacity (kbps) |
| `steps.csv` | time and rate, with the units in the header |
";

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "{content}").expect("a String takes every write");
}

fn rounded(x: f64) -> u64 {
    paceline_units::round_to_u64(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_current() {
        run(&["--check".to_owned()]).unwrap();
    }

    #[test]
    fn files_are_small() {
        for (name, text) in files() {
            assert!(text.len() < 60_000, "{name}: {} bytes", text.len());
        }
    }

    #[test]
    fn lte_trace_has_the_statistics_of_lte() {
        let text = lte_like(&mut RandomStreams::new(SEED).stream("lte-like"));
        let times: Vec<usize> = text.lines().map(|t| t.parse().unwrap()).collect();
        assert!(times.is_sorted());
        assert_eq!(times.last(), Some(&LTE_MS));
        let bps = |from: usize, to: usize| {
            let count = times.iter().filter(|t| (from..to).contains(*t)).count();
            count as f64 * OPPORTUNITY_BITS * 1000.0 / (to - from) as f64
        };
        let mean = bps(0, LTE_MS + 1);
        assert!((2.7e6..3.3e6).contains(&mean), "{mean}");
        for (start, length, _) in LTE_DIPS {
            assert!((500..=2000).contains(&length) && bps(start, start + length) < 500e3);
        }
        let seconds: Vec<f64> = (0..40).map(|s| bps(s * 1000, (s + 1) * 1000)).collect();
        let (low, high) = seconds.iter().fold((f64::MAX, 0.0_f64), |(l, h), s| (l.min(*s), h.max(*s)));
        assert!((400e3..2e6).contains(&low) && high > 5e6 && high < LTE_HIGH_BPS, "{low} {high}");
    }

    #[test]
    fn mean_frame_size_gives_the_rate_with_and_without_the_start() {
        for (name, text) in files().into_iter().filter(|(name, _)| name.starts_with("real/frames/")) {
            let kbps: f64 = name.rsplit(['_', '.']).nth(1).unwrap().parse().unwrap();
            let sizes: Vec<f64> = text
                .lines()
                .filter(|l| !l.starts_with('%'))
                .map(|l| l.rsplit(' ').next().unwrap().parse().unwrap())
                .collect();
            assert_eq!(sizes.len(), FRAMES);
            let mean = kbps * 125.0 / FRAMES_PER_SECOND;
            for part in [&sizes[..], &sizes[COMPENSATION_FRAMES + 1..]] {
                let part_mean = part.iter().sum::<f64>() / part.len() as f64;
                assert!((part_mean / mean - 1.0).abs() < 0.002, "{name}: {part_mean} of {mean}");
            }
            let key = sizes[0] / mean;
            assert!((5.99..10.01).contains(&key), "{name}: {key}");
            assert!(sizes[1..].iter().all(|s| *s > mean / 5.0 && *s < sizes[0] / 1.5), "{name}");
        }
    }
}
