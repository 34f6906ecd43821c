// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a source declares: its parameters and how to configure it; and the parameters that video sources share.

use super::error::check;
use super::{AUDIO_CLOCK, SOURCES, Source, SourceError, VIDEO_CLOCK};
use crate::flow::parameter::{Parameter, ParameterKind, Values, registry_entry};
use crate::flow::stream_info::MediaKind;
use paceline_units::{RandomStream, Rate, Time, TimeDelta};
use std::fmt;
use std::sync::Arc;

/// A source: its name, its parameters, and how to configure it.
pub struct SourceEntry {
    /// The name in scenarios.
    pub name: &'static str,
    /// A description, in one line.
    pub summary: &'static str,
    pub kind: MediaKind,
    pub parameters: &'static [Parameter],
    /// The parameter by which a scenario may choose the source without its name.
    pub implied_by: Option<&'static str>,
    /// Creates the configuration.
    pub configure: fn(&mut SourceSetup<'_>) -> Result<Configured, SetupError>,
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

registry_entry!(
    SourceEntry,
    SOURCES,
    "source",
    "source",
    fn implied_by(&self) -> Option<&'static str> {
        self.implied_by
    },
    fn checks_ranges(&self) -> bool {
        false
    }
);

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
    /// Returns the interval between two frames if it is constant. Frames that never arrive are counted by it.
    fn frame_interval(&self) -> Option<TimeDelta> {
        None
    }
}

/// A source as a plan keeps it.
#[derive(Clone, Debug)]
pub struct Configured {
    /// Its configuration.
    pub config: Arc<dyn SourceConfig>,
    /// The lines of a picture, with 16:9 as many columns; `None` if the source is no video. They have no effect on the frames.
    pub lines: Option<u32>,
}

/// What the configurations of video sources share.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoConfig {
    /// Mean frames per second, 0.1 to 1000 (RFC 8593, figure 2: 30 Hz).
    pub fps: f64,
    /// The lowest rate (RFC 8593, section 5.4, R_min).
    pub min: Rate,
    /// The highest rate (R_max).
    pub max: Rate,
    /// The target before the first reaction to [`Source::set_target`].
    pub start: Rate,
}

/// A higher rate is a mistake, such as a wrong unit.
const RATE_MAX: Rate = Rate::from_kbps(1_000_000_000);

impl VideoConfig {
    /// Checks that `min <= start <= max`, that no rate is above [`RATE_MAX`], and that frames at `min` have at least
    /// `smallest_frame` bytes.
    pub(super) fn check(&self, smallest_frame: f64) -> Result<(), SourceError> {
        let Self { fps, min, max, start } = *self;
        check((0.1..=1000.0).contains(&fps), "fps", fps, "0.1 to 1000 frames per second")?;
        let is_enough = min.as_bps_f64() >= smallest_frame * 8.0 * fps;
        check(is_enough, "min", min, "at least one byte per frame (10 for an encoder)")?;
        check(min <= max && max <= RATE_MAX, "max", max, "at least `min` and at most 1000 Gbps")?;
        check((min..=max).contains(&start), "start", start, "a rate from `min` to `max`")
    }

    /// Returns the lowest and the highest rate.
    pub(super) fn range(&self) -> (Rate, Rate) {
        (self.min, self.max)
    }
}

/// The parameters that video sources share.
pub(super) const FPS: Parameter =
    Parameter::new("fps", ParameterKind::Number(0.1, 1000.0), "30").about("frames per second");
pub(super) const MIN: Parameter =
    Parameter::new("min", ParameterKind::Rate, "50 kbps").about("lowest rate of encoded media");
pub(super) const MAX: Parameter =
    Parameter::new("max", ParameterKind::Rate, "2 Mbps").about("highest rate of encoded media");

/// The resolution. Only estimates of quality depend on it: what a source sends is given by its rates.
pub(super) const RESOLUTION: Parameter = Parameter::optional("resolution", ParameterKind::Text, "720p")
    .about("lines of a picture of 16:9, such as 360p; estimates of quality use it");
/// The lines of a picture if no resolution is given.
const LINES: u32 = 720;
/// The lines of the largest pictures, of 8K.
const MAX_LINES: u32 = 4320;

/// The target of a source before the first decision of its controller, if its range allows.
const START_TARGET: Rate = Rate::from_kbps(300);

impl SourceSetup<'_> {
    /// Returns the values of the parameters that video sources share.
    pub(super) fn video(&self) -> VideoConfig {
        let (min, max) = (self.values.rate("min"), self.values.rate("max"));
        VideoConfig { fps: self.values.number("fps"), min, max, start: START_TARGET.min(max).max(min) }
    }

    /// Returns a video source with this configuration, and the lines of a picture that the scenario gives.
    pub(super) fn with_lines(&self, config: impl SourceConfig + 'static) -> Result<Configured, SetupError> {
        Ok(Configured { config: Arc::new(config), lines: Some(self.picture_lines()?) })
    }

    fn picture_lines(&self) -> Result<u32, SetupError> {
        let Some(text) = self.values.text("resolution") else { return Ok(LINES) };
        let lines = text.strip_suffix('p').and_then(|lines| lines.parse().ok());
        lines.filter(|lines| (1..=MAX_LINES).contains(lines)).ok_or_else(|| SetupError {
            parameter: "resolution",
            message: format!("`{text}` is no resolution"),
            hint: SetupHint::Text("write the lines of a picture with a `p`, from `1p` to `4320p`, such as `720p`"),
        })
    }
}
