//! The sources by name. To add one: a file in this folder that declares a [`SourceEntry`], and a line in [`SOURCES`].

use super::{AUDIO_CLOCK, Source, SourceError, VIDEO_CLOCK, audio, encoder, frame_trace, ideal, screen};
use crate::flow::parameter::{Parameter, ParameterKind, Value, Values};
use crate::flow::stream_info::MediaKind;
use paceline_units::{RandomStream, Rate, Time, TimeDelta};
use std::fmt;
use std::sync::Arc;

/// Every source; the first is the default of video.
pub static SOURCES: &[SourceEntry] = &[encoder::ENTRY, ideal::ENTRY, frame_trace::ENTRY, screen::ENTRY, audio::ENTRY];

/// A source: its name, its parameters, and how to configure it.
pub struct SourceEntry {
    /// The name in scenarios.
    pub name: &'static str,
    /// A description, in one line.
    pub summary: &'static str,
    /// The kind of media.
    pub kind: MediaKind,
    /// The parameters.
    pub parameters: &'static [Parameter],
    /// The parameter by which a scenario may choose the source without its name.
    pub implied_by: Option<&'static str>,
    /// Parameters with another name than the field of the configuration: the field, and the parameter.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Creates the configuration.
    pub configure: fn(&mut SourceSetup<'_>) -> Result<Arc<dyn SourceConfig>, SetupError>,
}

impl SourceEntry {
    /// Returns the RTP clock rate, Hz.
    pub fn clock_rate(&self) -> u32 {
        match self.kind {
            MediaKind::Video => VIDEO_CLOCK,
            MediaKind::Audio => AUDIO_CLOCK,
        }
    }
}

/// The name alone, because an address of a function differs in each process.
impl fmt::Debug for SourceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The files of a folder: names and texts.
pub type FolderFiles = Vec<(String, String)>;

/// What a configuration is created from.
pub struct SourceSetup<'a> {
    /// The parameters.
    pub values: &'a Values,
    /// Reads the files of a folder that a parameter names.
    pub read_folder: &'a dyn Fn(&str) -> Result<FolderFiles, String>,
    /// Remarks for the user.
    pub notes: &'a mut Vec<String>,
}

/// A configuration cannot be created, because of a file that a parameter names.
#[derive(Debug)]
pub struct SetupError {
    /// The parameter.
    pub parameter: &'static str,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub hint: SetupHint,
}

/// How to mend an error of a configuration.
#[derive(Debug)]
pub enum SetupHint {
    /// A sentence.
    Text(&'static str),
    /// The file is not there.
    MissingFile,
    /// The values that are allowed.
    Known(Vec<String>),
}

/// The configuration of a source, from which each run builds its own.
pub trait SourceConfig: fmt::Debug + Send + Sync {
    /// Builds a source whose first frame is due at `start`. A source that draws keeps `random`.
    ///
    /// # Errors
    /// A field of the configuration is invalid.
    fn build(&self, start: Time, random: RandomStream) -> Result<Box<dyn Source>, SourceError>;
    /// Returns the lowest and the highest rate, without headers.
    fn range(&self) -> (Rate, Rate);
    /// Returns the lines of a picture, with 16:9 as many columns; `None` if the source is no video.
    fn picture_lines(&self) -> Option<u32> {
        None
    }
    /// Returns the interval between two frames if it is constant. Frames that never arrive are counted by it.
    fn frame_interval(&self) -> Option<TimeDelta> {
        None
    }
}

/// The parameters that video sources share.
pub(super) const FPS: Parameter =
    Parameter::new("fps", ParameterKind::Number(0.1, 1000.0), (Value::Number(30.0), "30"), "frames per second");
pub(super) const MIN: Parameter = Parameter::new(
    "min",
    ParameterKind::Rate,
    (Value::Rate(Rate::from_kbps(50)), "50 kbps"),
    "lowest rate of encoded media",
);
pub(super) const MAX: Parameter = Parameter::new(
    "max",
    ParameterKind::Rate,
    (Value::Rate(Rate::from_kbps(2000)), "2 Mbps"),
    "highest rate of encoded media",
);

/// The resolution. Only estimates of quality depend on it: what a source sends is given by its rates.
pub(super) const RESOLUTION: Parameter = Parameter::optional(
    "resolution",
    ParameterKind::Text,
    "720p",
    "lines of a picture of 16:9, such as 360p; estimates of quality use it",
);
/// The lines of a picture if no resolution is given.
pub(super) const LINES: u32 = 720;
/// The lines of the largest pictures, of 8K.
const MAX_LINES: u32 = 4320;

/// The target of a source before the first decision of its controller, if its range allows.
const START_TARGET: Rate = Rate::from_kbps(300);

impl SourceSetup<'_> {
    /// Returns the values of `min` and `max`, and the first target.
    pub(super) fn rates(&self) -> (Rate, Rate, Rate) {
        let (min, max) = (self.values.rate("min"), self.values.rate("max"));
        (min, max, START_TARGET.min(max).max(min))
    }

    /// Returns the lines of a picture.
    pub(super) fn picture_lines(&self) -> Result<u32, SetupError> {
        let Some(text) = self.values.text("resolution") else { return Ok(LINES) };
        let lines = text.strip_suffix('p').and_then(|lines| lines.parse().ok());
        lines.filter(|lines| (1..=MAX_LINES).contains(lines)).ok_or_else(|| SetupError {
            parameter: "resolution",
            message: format!("`{text}` is no resolution"),
            hint: SetupHint::Text("write the lines of a picture with a `p`, from `1p` to `4320p`, such as `720p`"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    fn configure(entry: &SourceEntry) -> Arc<dyn SourceConfig> {
        let frames: String = (0..60).map(|n| format!("{n} P X {}.0 {}\n", n, 4000 + n)).collect();
        let read_folder = move |_: &str| Ok(vec![("talk_720p_1000.txt".to_owned(), frames.clone())]);
        let texts = entry.implied_by.map(|key| (key, "folder".to_owned())).into_iter().collect();
        let values = Values::new(entry.parameters, &[]).with_texts(texts);
        let mut setup = SourceSetup { values: &values, read_folder: &read_folder, notes: &mut Vec::new() };
        (entry.configure)(&mut setup).unwrap()
    }

    #[test]
    fn names_are_unique_and_defaults_are_allowed() {
        for (index, entry) in SOURCES.iter().enumerate() {
            assert!(SOURCES[..index].iter().all(|other| other.name != entry.name), "{}", entry.name);
            for parameter in entry.parameters {
                assert_ne!(parameter.name, "source");
                assert!(parameter.default.is_none_or(|value| parameter.allows(value)), "{}", parameter.name);
            }
            let known = |key: &str| entry.parameters.iter().any(|parameter| parameter.name == key);
            assert!(entry.implied_by.is_none_or(known));
            assert!(entry.renamed.iter().all(|(_, parameter)| known(parameter)), "{}", entry.name);
        }
        assert_eq!((SOURCES[0].name, SOURCES[0].kind), ("encoder", MediaKind::Video));
    }

    /// Each source with its defaults: 20 s at the highest target.
    #[test]
    fn sources_stay_within_their_range_and_repeat_with_equal_seeds() {
        for entry in SOURCES {
            let config = configure(entry);
            let run = || {
                let start = Time::from_millis(40);
                let mut source = config.build(start, RandomStreams::new(4).stream("source")).unwrap();
                assert_eq!((source.range(), source.clock_rate()), (config.range(), entry.clock_rate()));
                assert_eq!(source.poll_timeout(), Some(start), "{}", entry.name);
                let (mut frames, end) = (Vec::new(), start + TimeDelta::from_secs(20));
                while let Some(now) = source.poll_timeout().filter(|due| *due < end) {
                    frames.push(source.poll_frame(now).expect("a frame at its due time"));
                    source.set_target(now, config.range().1);
                }
                frames
            };
            let frames = run();
            let rate = frames.iter().map(|frame| frame.size.as_bits()).sum::<u64>() as f64 / 20.0;
            let (min, max) = config.range();
            assert!(rate >= 0.9 * min.as_bps_f64() && rate <= 1.15 * max.as_bps_f64(), "{}: {rate} bit/s", entry.name);
            assert!(frames.windows(2).all(|pair| pair[0].captured < pair[1].captured), "{}", entry.name);
            assert_eq!(frames, run(), "{}", entry.name);
        }
    }
}
