// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources by name. To add one: a file in this folder that declares a [`SourceEntry`], and a line in [`SOURCES`].

use super::entry::SourceEntry;
use super::{audio, encoder, frame_trace, ideal, screen};

/// Every source; the first is the default of video.
pub static SOURCES: &[SourceEntry] = &[encoder::ENTRY, ideal::ENTRY, frame_trace::ENTRY, screen::ENTRY, audio::ENTRY];

#[cfg(test)]
mod tests {
    use super::super::entry::{SourceConfig, SourceSetup};
    use super::*;
    use crate::flow::parameter::{Values, check_registry};
    use crate::flow::stream_info::MediaKind;
    use paceline_units::{RandomStreams, Time, TimeDelta};
    use std::sync::Arc;

    fn configure(entry: &SourceEntry) -> Arc<dyn SourceConfig> {
        let frames: String = (0..60).map(|n| format!("{n} P X {}.0 {}\n", n, 4000 + n)).collect();
        let read_folder = move |_: &str| Ok(vec![("talk_720p_1000.txt".to_owned(), frames.clone())]);
        let texts = entry.implied_by.map(|key| (key, "folder".to_owned())).into_iter().collect();
        let values = Values::new(entry.parameters, &[]).with_texts(texts);
        let mut setup = SourceSetup { values: &values, read_folder: &read_folder, notes: &mut Vec::new() };
        (entry.configure)(&mut setup).unwrap().config
    }

    #[test]
    fn names_are_unique_and_defaults_are_allowed() {
        check_registry::<SourceEntry>();
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
                assert_eq!(source.range(), config.range());
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
