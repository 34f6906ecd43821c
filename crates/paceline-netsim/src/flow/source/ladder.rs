// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bitrate ladders of recorded frame sizes, one recording of the same content per bitrate (RFC 8593, section 6.1), and
//! the text format of the public recordings.
//!
//! The format is that of the recordings published with the RFC's reference implementation. Lines that begin with `%`
//! are comments; each other line is `index type X timestamp size`. The timestamp is in seconds, the size in bytes, and
//! the second and third fields are unused. Files are named `<content>_<resolution>_<kbps>.txt`. The caller reads the
//! files.

use super::SourceError;
use super::error::check;
use paceline_units::Rate;

/// Recordings of one content at one resolution, one per nominal bitrate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// Nominal rates, ascending, and frame sizes; all recordings have the same length.
    rungs: Vec<(Rate, Vec<u32>)>,
}

/// A recording cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct FrameTraceError {
    /// The line, counted from 1.
    pub line: usize,
    /// The reason.
    pub cause: String,
}

/// Number of frames at the beginning of a recording that are skipped when it is repeated (RFC 8593, section 6.2.1): the
/// first key frame and the smaller frames that compensate for it.
pub(super) const SKIP_FRAMES: usize = 20;

impl Ladder {
    /// Creates a ladder from (nominal rate, frame sizes in bytes), in any order.
    ///
    /// There must be at least one rung. Rates must be distinct and not zero. All recordings must have the same length,
    /// at least 22 frames, and no frame may have zero bytes.
    pub fn new(mut rungs: Vec<(Rate, Vec<u32>)>) -> Result<Self, SourceError> {
        check(!rungs.is_empty(), "ladder", "empty", "at least one rung")?;
        rungs.sort_by_key(|(rate, _)| *rate);
        check(!rungs[0].0.is_zero(), "ladder rate", rungs[0].0, "more than zero")?;
        for pair in rungs.windows(2) {
            check(pair[0].0 < pair[1].0, "ladder rate", pair[0].0, "only one recording of each rate")?;
        }
        let length = rungs[0].1.len();
        check(length >= SKIP_FRAMES + 2, "ladder length", length, "at least 22 frames")?;
        for (rate, sizes) in &rungs {
            let found = sizes.len();
            let value = || format!("{found} frames at {rate}, {length} at {}", rungs[0].0);
            check(found == length, "ladder length", value(), "the same number of frames on every rung")?;
            if let Some(n) = sizes.iter().position(|size| *size == 0) {
                check(false, "ladder size", format!("0 bytes in frame {n} at {rate}"), "at least one byte")?;
            }
        }
        Ok(Self { rungs })
    }

    /// Returns each rung's nominal rate and recorded frame sizes in bytes, lowest rate first.
    pub fn rungs(&self) -> impl ExactSizeIterator<Item = (Rate, &[u32])> {
        self.rungs.iter().map(|(rate, sizes)| (*rate, sizes.as_slice()))
    }

    /// Returns the lowest and the highest nominal rate.
    pub fn range(&self) -> (Rate, Rate) {
        (self.rungs[0].0, self.rungs[self.rungs.len() - 1].0)
    }

    /// Returns the number of frames of each recording.
    pub fn frames(&self) -> usize {
        self.rungs[0].1.len()
    }

    /// Returns the nominal rate and the frame sizes of rung `n`, counted from the lowest.
    pub(super) fn rung(&self, n: usize) -> (Rate, &[u32]) {
        (self.rungs[n].0, &self.rungs[n].1)
    }

    /// Returns the highest rung with a rate of at most `rate`, or the lowest rung if there is none.
    pub(super) fn at_or_below(&self, rate: Rate) -> usize {
        self.rungs.partition_point(|(r, _)| *r <= rate).saturating_sub(1)
    }
}

/// Parses a recording in the format described above and returns its frame sizes in bytes. Frames must be numbered from
/// 0 without gaps, so that joined files and missing lines are detected.
pub fn parse_frame_sizes(text: &str) -> Result<Vec<u32>, FrameTraceError> {
    let mut sizes = Vec::new();
    let mut last = 1;
    for (n, line) in text.lines().enumerate() {
        last = n + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('%') {
            continue;
        }
        let size = parse_frame(line, sizes.len() as u32).map_err(|cause| FrameTraceError { line: last, cause })?;
        sizes.push(size);
    }
    if sizes.is_empty() {
        return Err(FrameTraceError { line: last, cause: "no frames in the text".to_owned() });
    }
    Ok(sizes)
}

fn parse_frame(line: &str, expected: u32) -> Result<u32, String> {
    let mut fields = line.split_ascii_whitespace();
    let (Some(index), Some(_), Some(_), Some(timestamp), Some(size), None) =
        (fields.next(), fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
    else {
        let found = line.split_ascii_whitespace().count();
        return Err(format!("{found} fields, expected 5: index, type, X, timestamp (s), size (bytes)"));
    };
    let bad = |field, text, expected| format!("`{text}` is not a valid {field}, expected {expected}");
    let found: u32 = index.parse().map_err(|_| bad("index", index, "a whole number"))?;
    if found != expected {
        return Err(format!("frame {found}, expected frame {expected}"));
    }
    if !timestamp.parse().is_ok_and(|t: f64| t.is_finite() && t >= 0.0) {
        return Err(bad("timestamp", timestamp, "seconds, not negative"));
    }
    size.parse().ok().filter(|size| *size > 0).ok_or_else(|| bad("size", size, "bytes, 1 to 4294967295"))
}

/// Parses the file name of a recording, such as `chat_720p_1000.txt`, and returns its resolution (`720p`) and its
/// nominal rate. Returns `None` for other names, and for paths.
pub fn ladder_rung(file_name: &str) -> Option<(&str, Rate)> {
    let (rest, kbps) = file_name.strip_suffix(".txt")?.rsplit_once('_')?;
    let (content, resolution) = rest.rsplit_once('_')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let lines = resolution.strip_suffix('p')?;
    if content.is_empty() || !digits(lines) || !digits(kbps) {
        return None;
    }
    let kbps: u32 = kbps.parse().ok().filter(|kbps| *kbps > 0)?;
    Some((resolution, Rate::from_kbps(u64::from(kbps))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
% Nframe | type | X | timestamp | size (Bytes)
% a comment
0 U 0. 0.000000 6074
1 U 0. 0.000200 263

2\tU  0. 0.033000 216
";

    #[test]
    fn parses_frame_sizes() {
        assert_eq!(parse_frame_sizes(TEXT), Ok(vec![6074, 263, 216]));
        assert_eq!(parse_frame_sizes(&TEXT.replace('\n', "\r\n")), Ok(vec![6074, 263, 216]));
    }

    #[test]
    fn errors_name_the_line_and_the_reason() {
        for (text, expected) in [
            ("", "line 1: no frames in the text"),
            ("% only\n% comments\n", "line 2: no frames in the text"),
            ("% x\n0 U 0. 0.0", "line 2: 4 fields, expected 5: index, type, X, timestamp (s), size (bytes)"),
            ("0 U 0. 0.0 1 2", "line 1: 6 fields, expected 5: index, type, X, timestamp (s), size (bytes)"),
            ("0 U 0. 0.0 10\n2 U 0. 0.1 10", "line 2: frame 2, expected frame 1"),
            ("zero U 0. 0.0 10", "line 1: `zero` is not a valid index, expected a whole number"),
            ("0 U 0. nan 10", "line 1: `nan` is not a valid timestamp, expected seconds, not negative"),
            ("0 U 0. 0.0 0", "line 1: `0` is not a valid size, expected bytes, 1 to 4294967295"),
            ("0 U 0. 0.0 -5", "line 1: `-5` is not a valid size, expected bytes, 1 to 4294967295"),
        ] {
            assert_eq!(parse_frame_sizes(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn parses_file_names() {
        let kbps = Rate::from_kbps;
        assert_eq!(ladder_rung("chat_720p_1000.txt"), Some(("720p", kbps(1000))));
        assert_eq!(ladder_rung("two_people_360p_100.txt"), Some(("360p", kbps(100))));
        for bad in [
            "",
            "chat_720p_1000",
            "chat_720p_1000.csv",
            "720p_1000.txt",
            "_720p_1000.txt",
            "chat_720_1000.txt",
            "chat_p_1000.txt",
            "chat_720p_.txt",
            "chat_720p_0.txt",
            "chat_720p_+10.txt",
            "chat_720p_99999999999.txt",
        ] {
            assert_eq!(ladder_rung(bad), None, "{bad}");
        }
    }

    #[test]
    fn ladders_are_sorted_and_validated() {
        let kbps = Rate::from_kbps;
        let rung = |k, frames| (kbps(k), vec![k as u32; frames]);
        let ladder = Ladder::new(vec![rung(400, 22), rung(100, 22), rung(200, 22)]).unwrap();
        assert_eq!(ladder.rungs().map(|(rate, _)| rate).collect::<Vec<_>>(), [kbps(100), kbps(200), kbps(400)]);
        assert_eq!((ladder.range(), ladder.frames()), ((kbps(100), kbps(400)), 22));
        for (k, n) in [(1, 0), (100, 0), (199, 0), (200, 1), (399, 1), (400, 2), (9999, 2)] {
            assert_eq!(ladder.at_or_below(kbps(k)), n, "{k} kbps");
        }

        let mut zero = rung(300, 30);
        zero.1[7] = 0;
        for (rungs, expected) in [
            (vec![], "`ladder` is empty, expected at least one rung"),
            (vec![rung(0, 22)], "`ladder rate` is 0 bps, expected more than zero"),
            (vec![rung(9, 22), rung(9, 22)], "`ladder rate` is 9 kbps, expected only one recording of each rate"),
            (vec![rung(9, 21)], "`ladder length` is 21, expected at least 22 frames"),
            (
                vec![rung(9, 22), rung(8, 23)],
                "`ladder length` is 22 frames at 9 kbps, 23 at 8 kbps, expected the same number of frames on every rung",
            ),
            (vec![zero], "`ladder size` is 0 bytes in frame 7 at 300 kbps, expected at least one byte"),
        ] {
            assert_eq!(Ladder::new(rungs).unwrap_err().to_string(), expected);
        }
    }
}
