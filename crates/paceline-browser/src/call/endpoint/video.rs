// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real video: camera pictures, encoded as VP8 by libvpx during the call.
//!
//! The encoder is GStreamer's `vp8enc`, because other crates cannot change libvpx's rate at run time without `unsafe` code
//! here. It runs between two pads without a pipeline, so it encodes in the caller's thread.
//!
//! The settings are those of libwebrtc (`libvpx_vp8_encoder.cc`). The encoder drops frames when it cannot hold the rate, and
//! it follows a new rate as slowly as in a browser. At low rates it encodes a quarter of the pixels, as a browser does:
//! otherwise it would drop all frames, and the controller would receive no feedback.

use super::{FrameCache, MakeSource};
use gstreamer as gst;
use gstreamer::glib;
use gstreamer::prelude::*;
use paceline_netsim::flow::rtp_timestamp;
use paceline_netsim::flow::source::{Frame, Source, VIDEO_CLOCK};
use paceline_netsim::world::WorldError;
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::sync::{Arc, Mutex, PoisonError};

/// Width, px.
const WIDTH: usize = 640;
/// Height, px.
const HEIGHT: usize = 360;
/// Pictures per second.
const PER_SECOND: i64 = 30;

/// A picture is captured up to this much later than the clock of the camera says, evenly distributed. Chromium's camera of a
/// file has this lateness: its intervals differ from 33.3 ms by 1.6 to 1.9 ms (standard deviation, six recordings), here by
/// 1.6 ms. Frames without it are so regular that over-use is detected later.
const CAPTURE_LATE_MAX: TimeDelta = TimeDelta::from_millis(4);

/// Below the first rate the picture is halved in both directions; from the second rate it has full size. libwebrtc starts
/// with 480 x 270 and 640 x 360 at these rates (`encoder_info_settings.cc`).
const SCALING_THRESHOLDS: (Rate, Rate) = (Rate::from_kbps(200), Rate::from_kbps(300));

/// Renders the picture with a number: I420, 640 x 360, rows without padding.
pub type Camera = Box<dyn FnMut(u64, &mut Vec<u8>) + Send>;

/// Creates a VP8 source that encodes the pictures of this camera.
pub struct Vp8(pub Camera);

impl MakeSource for Vp8 {
    fn make(
        self: Box<Self>,
        start: Time,
        range: (Rate, Rate),
        timestamp_of_zero: u32,
        cache: FrameCache,
    ) -> Result<Box<dyn Source>, WorldError> {
        let (Self(camera), encoder) = (*self, encoder(range.0)?);
        let picture = Vec::with_capacity(WIDTH * HEIGHT * 3 / 2);
        Ok(Box::new(CameraSource { camera, encoder, cache, range, start, timestamp_of_zero, next: 0, picture }))
    }
}

/// Checks that a VP8 encoder is installed.
///
/// # Errors
/// No encoder is installed; the error contains a hint.
pub fn probe() -> Result<(), WorldError> {
    encoder(Rate::from_kbps(300)).map(|_| ())
}

fn encoder(rate: Rate) -> Result<Encoder, WorldError> {
    Encoder::new(rate).map_err(|error| WorldError::Unavailable {
        cause: format!("no VP8 encoder is installed: {error}"),
        hint: "install it (Debian and Ubuntu: `apt-get install gstreamer1.0-plugins-good`)".to_owned(),
    })
}

/// A source of encoded camera pictures.
struct CameraSource {
    camera: Camera,
    encoder: Encoder,
    cache: FrameCache,
    range: (Rate, Rate),
    start: Time,
    timestamp_of_zero: u32,
    /// Number of the next picture.
    next: i64,
    picture: Vec<u8>,
}

impl CameraSource {
    fn capture_time(&self, number: i64) -> Time {
        self.start + TimeDelta::from_secs(1) * number / PER_SECOND + lateness(number)
    }
}

/// Returns how late a picture is captured, which depends only on its number.
fn lateness(number: i64) -> TimeDelta {
    // The finalizer of SplitMix64 spreads successive numbers evenly.
    let mut bits = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    CAPTURE_LATE_MAX * ((bits >> 44) as i64) / (1 << 20)
}

impl Source for CameraSource {
    fn set_target(&mut self, _: Time, target: Rate) {
        self.encoder.set_rate(target.clamp(self.range.0, self.range.1));
    }

    fn request_key_frame(&mut self, _: Time) {
        self.encoder.wants_key = true;
    }

    /// Encodes the newest picture; older ones are skipped. Returns `None` if the encoder drops the frame.
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        if now < self.capture_time(self.next) {
            return None;
        }
        while self.capture_time(self.next + 1) <= now {
            self.next += 1;
        }
        let (number, captured) = (self.next, self.capture_time(self.next));
        self.next += 1;
        (self.camera)(number as u64, &mut self.picture);
        let (frame, key) = self.encoder.encode(number, &self.picture)?;
        // The packet header contains the first byte.
        let size = DataSize::from_bytes(frame.len() as u64 - 1);
        let timestamp = rtp_timestamp(captured, VIDEO_CLOCK).wrapping_add(self.timestamp_of_zero);
        self.cache.put(timestamp, frame);
        Some(Frame { captured, size, key })
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.capture_time(self.next))
    }

    fn range(&self) -> (Rate, Rate) {
        self.range
    }
}

/// `vp8enc` between two pads.
struct Encoder {
    element: gst::Element,
    /// Input and output pad.
    pads: (gst::Pad, gst::Pad),
    output: Arc<Mutex<Option<gst::Buffer>>>,
    rate_bps: i32,
    wants_key: bool,
    /// Scaling divisor in both directions.
    step: usize,
    /// The scaled picture.
    small: Vec<u8>,
}

/// Rate control as libwebrtc sets it for calls: constant bit rate over one second, no lookahead, frame dropping below 30 %
/// of the buffer, key frames of at most nine average frames.
const SETTINGS: [(&str, &str); 19] = [
    ("end-usage", "cbr"),
    ("deadline", "1"),
    ("cpu-used", "-6"),
    ("error-resilient", "default"),
    ("lag-in-frames", "0"),
    ("keyframe-max-dist", "3000"),
    ("min-quantizer", "2"),
    ("max-quantizer", "56"),
    ("undershoot", "100"),
    ("overshoot", "15"),
    ("buffer-size", "1000"),
    ("buffer-initial-size", "500"),
    ("buffer-optimal-size", "600"),
    ("dropframe-threshold", "30"),
    ("max-intra-bitrate", "900"),
    ("static-threshold", "1"),
    ("noise-sensitivity", "4"),
    ("auto-alt-ref", "false"),
    ("threads", "1"),
];

impl Encoder {
    fn new(rate: Rate) -> Result<Self, glib::BoolError> {
        gst::init().map_err(|error| glib::bool_error!("{error}"))?;
        let element = gst::ElementFactory::make("vp8enc").build()?;
        for (name, value) in SETTINGS {
            element.set_property_from_str(name, value);
        }
        let rate_bps = rate.as_bps() as i32;
        element.set_property("target-bitrate", rate_bps);

        let output = Arc::new(Mutex::new(None));
        let out = output.clone();
        let into = gst::Pad::builder(gst::PadDirection::Src).build();
        // A pad without a template would accept only the first size.
        let (sink, any) = (gst::PadDirection::Sink, gst::Caps::new_any());
        let template = gst::PadTemplate::new("sink", sink, gst::PadPresence::Always, &any)?;
        let from = gst::Pad::builder_from_template(&template)
            .chain_function(move |_, _, buffer| {
                *out.lock().unwrap_or_else(PoisonError::into_inner) = Some(buffer);
                Ok(gst::FlowSuccess::Ok)
            })
            .event_function(|_, _, _| true)
            .build();
        let pad = |name| element.static_pad(name).ok_or_else(|| glib::bool_error!("vp8enc has no pad `{name}`"));
        let linked = |link: Result<_, gst::PadLinkError>| link.map_err(|error| glib::bool_error!("{error}"));
        linked(into.link(&pad("sink")?))?;
        linked(pad("src")?.link(&from))?;
        into.set_active(true)?;
        from.set_active(true)?;
        element.set_state(gst::State::Playing).map_err(|error| glib::bool_error!("{error}"))?;

        let step = if rate < SCALING_THRESHOLDS.1 { 2 } else { 1 };
        let segment = gst::FormattedSegment::<gst::ClockTime>::new();
        for event in [gst::event::StreamStart::new("call"), size(step), gst::event::Segment::new(&segment)] {
            into.push_event(event);
        }
        Ok(Self { element, pads: (into, from), output, rate_bps, wants_key: false, step, small: Vec::new() })
    }

    /// Sets the rate of the following frames, and the size that belongs to it. A change of size causes a key frame.
    fn set_rate(&mut self, rate: Rate) {
        let step = match self.step {
            1 if rate < SCALING_THRESHOLDS.0 => 2,
            2 if rate >= SCALING_THRESHOLDS.1 => 1,
            same => same,
        };
        if step != self.step {
            self.step = step;
            self.pads.0.push_event(size(step));
        }
        let rate_bps = rate.as_bps() as i32;
        if rate_bps / 1000 != self.rate_bps / 1000 {
            self.rate_bps = rate_bps;
            self.element.set_property("target-bitrate", rate_bps);
        }
    }

    /// Encodes a picture and returns the frame and whether it is a key frame. Returns `None` if the frame was dropped.
    fn encode(&mut self, number: i64, picture: &[u8]) -> Option<(Vec<u8>, bool)> {
        if std::mem::take(&mut self.wants_key) {
            let request = gst::Structure::builder("GstForceKeyUnit")
                .field("running-time", gst::ClockTime::NONE)
                .field("all-headers", false)
                .field("count", 0u32);
            self.pads.1.push_event(gst::event::CustomUpstream::new(request.build()));
        }
        let picture = match self.step {
            1 => picture,
            _ => {
                halve(picture, &mut self.small);
                &self.small
            }
        };
        let mut buffer = gst::Buffer::from_slice(picture.to_vec());
        let since = |number: i64| gst::ClockTime::from_nseconds((number * 1_000_000_000 / PER_SECOND) as u64);
        if let Some(buffer) = buffer.get_mut() {
            buffer.set_pts(since(number));
            buffer.set_duration(since(number + 1) - since(number));
        }
        self.pads.0.push(buffer).ok()?;
        let frame = self.output.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let bytes = frame.map_readable().ok()?.to_vec();
        // P of the frame header (RFC 7741, section 4.3).
        let key = bytes.first()? & 1 == 0;
        Some((bytes, key))
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        let _ = self.element.set_state(gst::State::Null);
    }
}

/// Returns the caps event for pictures scaled by this divisor.
fn size(step: usize) -> gst::Event {
    let caps = gst::Caps::builder("video/x-raw")
        .field("format", "I420")
        .field("width", (WIDTH / step) as i32)
        .field("height", (HEIGHT / step) as i32)
        .field("framerate", gst::Fraction::new(PER_SECOND as i32, 1))
        .build();
    gst::event::Caps::new(&caps)
}

/// Writes the picture at half the width and height into `small`: each pixel is the mean of four.
fn halve(picture: &[u8], small: &mut Vec<u8>) {
    small.clear();
    let (bright, colors) = picture.split_at(WIDTH * HEIGHT);
    let planes = [(bright, WIDTH)].into_iter().chain(colors.chunks_exact(WIDTH * HEIGHT / 4).map(|c| (c, WIDTH / 2)));
    for (plane, width) in planes {
        for lines in plane.chunks_exact(2 * width) {
            let (upper, lower) = lines.split_at(width);
            let pairs = upper.chunks_exact(2).zip(lower.chunks_exact(2));
            small.extend(
                pairs.map(|(a, b)| {
                    ((u16::from(a[0]) + u16::from(a[1]) + u16::from(b[0]) + u16::from(b[1]) + 2) / 4) as u8
                }),
            );
        }
    }
}

/// Renders a test picture: a moving gradient with noise.
pub fn gradient(number: u64, picture: &mut Vec<u8>) {
    picture.clear();
    let mut noise = number as u32 ^ 0x9E37_79B9;
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let moving = (x + y + 4 * number as usize) & 0xFF;
            picture.push((moving as u32 * 3 / 4 + (noise >> 27)) as u8);
        }
    }
    picture.resize(WIDTH * HEIGHT * 3 / 2, 128);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes the gradient for `seconds` at a rate that may change each second.
    fn encode(seconds: i64, kbps: impl Fn(i64) -> u64, key_at: Option<i64>) -> Vec<Vec<Frame>> {
        encode_camera(Box::new(gradient), seconds, kbps, key_at)
    }

    fn encode_camera(camera: Camera, seconds: i64, kbps: impl Fn(i64) -> u64, key_at: Option<i64>) -> Vec<Vec<Frame>> {
        let range = (Rate::from_kbps(30), Rate::from_kbps(2500));
        let vp8 = Box::new(Vp8(camera));
        let cache = FrameCache::default();
        let mut source = vp8.make(Time::from_secs(5), range, 7, cache.clone()).unwrap();
        (0..seconds)
            .map(|second| {
                let begin = Time::from_secs(5 + second);
                source.set_target(begin, Rate::from_kbps(kbps(second)));
                if key_at == Some(second) {
                    source.request_key_frame(begin);
                }
                let mut frames = Vec::new();
                while let Some(due) = source.poll_timeout().filter(|due| *due < begin + TimeDelta::from_secs(1)) {
                    assert_eq!(source.poll_frame(due - TimeDelta::from_nanos(1)), None, "early");
                    frames.extend(source.poll_frame(due));
                    assert!(source.poll_timeout() > Some(due));
                }
                frames
            })
            .collect()
    }

    fn kbps(frames: &[Frame]) -> f64 {
        frames.iter().map(|f| f.size.as_bytes()).sum::<u64>() as f64 * 8e-3
    }

    #[test]
    fn follows_rate_changes() {
        let seconds = encode(12, |s| if (4..8).contains(&s) { 1500 } else { 400 }, None);
        for (range, wanted) in [(2..4, 400.0), (6..8, 1500.0), (10..12, 400.0)] {
            let mean = seconds[range.clone()].iter().map(|s| kbps(s)).sum::<f64>() / range.len() as f64;
            assert!((0.8..1.15).contains(&(mean / wanted)), "{range:?}: {mean} of {wanted} kbit/s");
        }
        assert!(seconds.iter().all(|s| (15..=30).contains(&s.len())), "frames: {:?}", seconds.iter().map(Vec::len));
    }

    /// A controller at its minimum rate needs frames to receive feedback.
    #[test]
    fn sends_frames_at_30_kbit_per_s() {
        let camera = crate::call::camera::Camera::default();
        let pictures: Camera = Box::new(move |number, picture| camera.picture(number, picture));
        let seconds = encode_camera(pictures, 20, |s| if (4..14).contains(&s) { 30 } else { 1000 }, Some(9));
        for second in &seconds[5..14] {
            assert!((4..=30).contains(&second.len()), "{:?}", seconds.iter().map(Vec::len).collect::<Vec<_>>());
        }
        let mean = seconds[6..14].iter().map(|s| kbps(s)).sum::<f64>() / 8.0;
        assert!((20.0..45.0).contains(&mean), "{mean} kbit/s instead of 30");
        assert!(seconds[16..].iter().all(|s| (28..=30).contains(&s.len())));
        // Key frames: the first frame, both changes of size, and the requested one.
        let keys: usize = seconds.iter().flatten().filter(|frame| frame.key).count();
        assert_eq!(keys, 4);
    }

    /// A uniform distribution from 0 to 4 ms has a mean of 2 ms and a standard deviation of 4/sqrt(12) = 1.15 ms.
    #[test]
    fn pictures_are_late_by_up_to_four_milliseconds() {
        let late: Vec<f64> = (0..3000).map(|number| lateness(number).as_millis_f64()).collect();
        assert!(late.iter().all(|late| (0.0..4.0).contains(late)));
        let mean = late.iter().sum::<f64>() / 3000.0;
        let variance = late.iter().map(|late| (late - mean) * (late - mean)).sum::<f64>() / 3000.0;
        assert!((1.9..2.1).contains(&mean) && (1.1..1.2).contains(&variance.sqrt()), "{mean}, {variance}");
        let pairs = late.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / 3000.0;
        assert!(pairs.abs() < 0.1 * variance, "successive pictures are independent: {pairs}");
    }

    #[test]
    fn halving_averages_four_pixels() {
        let mut picture = vec![0; WIDTH * HEIGHT * 3 / 2];
        (picture[0], picture[1], picture[WIDTH], picture[WIDTH + 1]) = (10, 20, 30, 41);
        let last = picture.len() - 1;
        picture[last] = 8;
        let mut small = Vec::new();
        halve(&picture, &mut small);
        assert_eq!(small.len() * 4, picture.len());
        assert_eq!((small[0], small[1], small[small.len() - 1]), (25, 0, 2));
    }

    #[test]
    fn sends_key_frames_first_and_on_request() {
        let keys: Vec<usize> = encode(4, |_| 800, Some(2)).iter().map(|s| s.iter().filter(|f| f.key).count()).collect();
        assert_eq!(keys, [1, 0, 1, 0]);
    }

    #[test]
    fn caches_whole_frames() {
        use paceline_netsim::flow::FramePiece;
        use paceline_units::StreamId;
        let range = (Rate::from_kbps(30), Rate::from_kbps(2500));
        let cache = FrameCache::default();
        let mut source = Box::new(Vp8(Box::new(gradient))).make(Time::ZERO, range, 7, cache.clone()).unwrap();
        source.set_target(Time::ZERO, Rate::from_kbps(800));
        let frame = source.poll_frame(Time::ZERO).unwrap();
        let mut bytes = vec![0; frame.size.as_bytes() as usize];
        let first = cache.read(&FramePiece { stream: StreamId(0), timestamp: 7, offset: 0 }, &mut bytes);
        assert!(frame.key && first.is_some_and(|first| first & 1 == 0));
        // A key frame's start code (RFC 6386, section 9.1) follows the three bytes of the frame tag.
        assert_eq!(bytes[2..5], [0x9D, 0x01, 0x2A]);
        source.poll_frame(Time::from_secs(1));
        let next = source.poll_timeout().unwrap() - (Time::ZERO + TimeDelta::from_secs(1));
        assert!(next > TimeDelta::ZERO && next < TimeDelta::from_millis(38), "late pictures are skipped: {next}");
    }
}
