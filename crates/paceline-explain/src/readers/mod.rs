// SPDX-License-Identifier: MIT OR Apache-2.0
//! One file for each format, and the recognition of the format.

pub mod capture;
pub mod datagram;
pub mod event_log;
pub mod internals;
mod layers;
pub mod lines;
pub mod run;
mod tcp;
#[cfg(test)]
pub(crate) mod test_capture;

use crate::error::ReadError;
use crate::model::Call;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

/// How many bytes decide the format.
const HEAD: usize = 8192;

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A capture of packets.
    Capture,
    /// A dump of chrome://webrtc-internals.
    Internals,
    /// Samples of getStats, or a dump of rtcstats.
    Lines,
    /// An RTC event log.
    EventLog,
}

/// Reads a file or a folder. `run` selects one of several runs of a folder.
///
/// # Errors
/// The format is unknown, or the input is damaged or empty.
pub fn read(path: &Path, run: Option<&str>) -> Result<Call, ReadError> {
    if path.is_dir() {
        return run::read(path, run);
    }
    read_from(&mut || Ok(Box::new(File::open(path)?)))
}

/// Reads bytes.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(bytes: &[u8]) -> Result<Call, ReadError> {
    read_from(&mut || Ok(Box::new(Cursor::new(bytes.to_vec()))))
}

fn read_from(open: &mut dyn FnMut() -> io::Result<Box<dyn Read>>) -> Result<Call, ReadError> {
    let (format, mut input) = begin(open()?)?;
    match format {
        Format::Capture => {
            drop(input);
            capture::read(&mut || Ok(Box::new(begin(open()?).map_err(io::Error::other)?.1)))
        }
        Format::Internals => internals::read(input, &mut |_, _| ()),
        Format::Lines => lines::read(input, &mut |_, _| ()),
        Format::EventLog => event_log::read(&mut input),
    }
}

/// Unpacks gzip and recognises the format.
pub(crate) fn begin(input: Box<dyn Read>) -> Result<(Format, BufReader<Box<dyn Read>>), ReadError> {
    let mut input = BufReader::new(input);
    let packed = input.fill_buf()?.starts_with(&[0x1F, 0x8B]);
    let mut input: Box<dyn Read> = if packed { Box::new(MultiGzDecoder::new(input)) } else { Box::new(input) };
    let mut head = Vec::new();
    input.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    // A byte order mark may precede text.
    if head.starts_with(b"\xEF\xBB\xBF") {
        head.drain(..3);
    }
    let format = recognise(&head).ok_or_else(|| ReadError::UnknownFormat { begins: shown(&head) })?;
    Ok((format, BufReader::new(Box::new(Cursor::new(head).chain(input)))))
}

/// Recognises a format by the first bytes of a file.
pub fn recognise(head: &[u8]) -> Option<Format> {
    const CAPTURES: [[u8; 4]; 5] = [
        [0x0A, 0x0D, 0x0D, 0x0A],
        [0xA1, 0xB2, 0xC3, 0xD4],
        [0xD4, 0xC3, 0xB2, 0xA1],
        [0xA1, 0xB2, 0x3C, 0x4D],
        [0x4D, 0x3C, 0xB2, 0xA1],
    ];
    if CAPTURES.iter().any(|magic| head.starts_with(magic)) {
        return Some(Format::Capture);
    }
    let text = head.trim_ascii_start();
    let has = |name: &str| head.windows(name.len()).any(|window| window == name.as_bytes());
    match text.first()? {
        _ if text.starts_with(lines::RTCSTATS.as_bytes()) => Some(Format::Lines),
        b'{' => {
            let is_dump = ["\"PeerConnections\"", "\"getUserMedia\"", "\"UserAgentData\""].into_iter().any(has);
            Some(if is_dump { Format::Internals } else { Format::Lines })
        }
        b'[' => Some(Format::Lines),
        _ if event_log::begins(head) => Some(Format::EventLog),
        // Lines of a log, each with a time before the report.
        _ => ["outbound-rtp", "inbound-rtp"].into_iter().any(has).then_some(Format::Lines),
    }
}

/// The beginnings of files that are read after a conversion.
const CONVERTIBLE: [(&[u8], &str); 11] = [
    (b"PK\x03\x04", "a zip archive: unpack it"),
    (b"BZh", "bzip2: unpack it"),
    (b"\xFD7zXZ", "xz: unpack it"),
    (b"\x28\xB5\x2F\xFD", "zstd: unpack it"),
    (b"7z\xBC\xAF", "a 7z archive: unpack it"),
    (b"\xFF\xFE", "UTF-16: save it as UTF-8"),
    (b"\xFE\xFF", "UTF-16: save it as UTF-8"),
    (b"\xA1\xB2\xCD\x34", "a modified pcap: `editcap FILE NEW.pcapng` converts it"),
    (b"\x34\xCD\xB2\xA1", "a modified pcap: `editcap FILE NEW.pcapng` converts it"),
    (b"snoop\0", "a snoop capture: `editcap FILE NEW.pcapng` converts it"),
    (b"GMBU", "a capture of Network Monitor: `editcap FILE NEW.pcapng` converts it"),
];

/// Shows the first bytes for an error.
fn shown(head: &[u8]) -> String {
    let start = &head[..head.len().min(16)];
    // A line alone.
    let start = start.iter().position(|byte| matches!(byte, b'\r' | b'\n')).map_or(start, |end| &start[..end.max(1)]);
    if let Some((_, what)) = CONVERTIBLE.iter().find(|(begin, _)| head.starts_with(begin)) {
        return format!("it is {what}");
    }
    match std::str::from_utf8(start) {
        _ if start.is_empty() => "the file is empty".to_owned(),
        Ok(text) if text.chars().all(|c| !c.is_control()) => format!("it begins with `{text}`"),
        _ => format!(
            "it begins with the bytes {}",
            start.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
        ),
    }
}
