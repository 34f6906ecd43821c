// SPDX-License-Identifier: MIT OR Apache-2.0
//! A copy of an input that can be shared.
//!
//! Of statistics it has the samples that are read, as lines of rtcstats with other ids: no text of the input. Captures are rewritten
//! with other addresses and without payload, event logs with the events that are read.

mod capture;
mod lines;
mod packet;

use crate::error::ReadError;
use crate::readers::event_log::{self, copy::copy as copy_log};
use crate::readers::{self, Format, begin};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Writes a copy. Returns what it is. If it fails, no copy is left, and a file that was there stays as it was.
///
/// # Errors
/// The input cannot be read, its format is unknown, or the copy cannot be written.
pub fn redact(from: &Path, to: &Path) -> Result<String, ReadError> {
    if from.is_dir() {
        return Err(ReadError::NothingToRedact);
    }
    let (format, input) = open(from)?;
    // The copy would replace the input before it is read.
    if let (Ok(from), Ok(to)) = (from.canonicalize(), to.canonicalize())
        && from == to
    {
        return Err(ReadError::SameFile);
    }
    let to = &to.canonicalize().unwrap_or_else(|_| to.to_path_buf());
    if to.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        // A device or a pipe.
        return write(format, input, File::create(to).map_err(write_error(to))?, from, to);
    }
    let (part, file) = beside(to).map_err(write_error(to))?;
    let result = write(format, input, file, from, to)
        .and_then(|what| std::fs::rename(&part, to).map(|()| what).map_err(write_error(to)));
    if result.is_err() {
        // The error before says more than one of this would.
        std::fs::remove_file(&part).ok();
    }
    result
}

/// Creates a file in the same folder, with the permissions of the file that it will replace.
fn beside(to: &Path) -> std::io::Result<(PathBuf, File)> {
    let name = to.file_name().ok_or_else(|| std::io::Error::other("the path has no name of a file"))?;
    let name = format!(".{}.{}.part", name.to_string_lossy(), std::process::id());
    let part = to.with_file_name(name);
    let file = File::options().write(true).create_new(true).open(&part)?;
    if let Ok(metadata) = to.metadata() {
        file.set_permissions(metadata.permissions())?;
    }
    Ok((part, file))
}

fn write_error(path: &Path) -> impl Fn(std::io::Error) -> ReadError + use<> {
    let path = path.to_path_buf();
    move |source| ReadError::Write { path: path.clone(), source }
}

fn open(from: &Path) -> Result<(Format, BufReader<Box<dyn Read>>), ReadError> {
    begin(Box::new(File::open(from)?))
}

fn write(
    format: Format,
    mut input: BufReader<Box<dyn Read>>,
    file: impl Write,
    from: &Path,
    to: &Path,
) -> Result<String, ReadError> {
    let mut output = BufWriter::new(file);
    let what = match format {
        Format::Internals | Format::Lines => {
            let mut copy = lines::Copy::new(&mut output);
            match format {
                Format::Internals => readers::internals::read(input, &mut |name, sample| copy.add(name, sample))?,
                _ => readers::lines::read(input, &mut |name, sample| copy.add(name, sample))?,
            };
            copy.finish().map_err(write_error(to))?;
            "the statistics as lines of rtcstats, without any other text".to_owned()
        }
        Format::Capture => match capture::copy(&mut || Ok(Box::new(open(from)?.1)), &mut output, to)? {
            (_, 0) => "a capture with other addresses and headers only".to_owned(),
            (kept, left_out) => format!(
                "a capture with other addresses and the headers of {kept} packets of RTP and RTCP; {left_out} other packets \
                 are left out"
            ),
        },
        Format::EventLog => {
            let (mut result, mut is_empty) = (Ok(()), true);
            copy_log(&mut input, &packet::rtp_header, &packet::rtcp, &mut |record| {
                is_empty = false;
                if result.is_ok() {
                    result = output.write_all(record);
                }
            })?;
            result.map_err(write_error(to))?;
            if is_empty {
                let problem = "no events that are read, so nothing of it can be kept".to_owned();
                return Err(ReadError::Empty { format: event_log::FORMAT, problem });
            }
            "an event log with the events that are read, without any other content".to_owned()
        }
    };
    output.flush().map_err(write_error(to))?;
    Ok(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statistics of 20 s.
    fn text() -> String {
        let line = |second: u64| {
            let at = 1_700_000_000_000 + 1000 * second;
            format!(
                "{{\"O\":{{\"id\":\"O\",\"ip\":\"10.1.2.3\",\"type\":\"outbound-rtp\",\"timestamp\":{at},\"bytesSent\":{second}}}}}\n"
            )
        };
        (0..20).map(line).collect()
    }

    fn is_copy(path: &Path) -> bool {
        let copy = std::fs::read_to_string(path).unwrap();
        copy.lines().count() == 20 && copy.contains("outbound-rtp") && !copy.contains("10.1.2.3")
    }

    #[test]
    fn only_a_whole_copy_is_written_and_the_input_stays() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (from, to, link) = (folder.join("in"), folder.join("out"), folder.join("link"));
        // The header of a classic pcap without a packet.
        let header = [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];
        std::fs::write(&from, header).unwrap();
        assert!(redact(&from, &to).is_err() && !to.exists());
        // Nested too deeply.
        std::fs::write(&to, "before").unwrap();
        std::fs::write(&from, "{\"a\":".repeat(600)).unwrap();
        assert!(redact(&from, &to).is_err());
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "before");
        std::fs::write(&from, text()).unwrap();
        assert!(matches!(redact(&from, &from), Err(ReadError::SameFile)));
        assert!(redact(&from, &to).unwrap().contains("statistics") && is_copy(&to));
        // A hard link of the input.
        std::fs::hard_link(&from, &link).unwrap();
        redact(&from, &link).unwrap();
        assert_eq!(std::fs::read_to_string(&from).unwrap(), text());
        assert!(is_copy(&link));
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 3);
    }

    #[test]
    fn an_event_log_of_which_nothing_stays_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["in", "out"].map(|name| folder.path().join(name));
        // An estimate of 5 bit/s; a record of a type that is not read.
        for (log, is_copied) in [([0x0A, 6, 8, 1, 0x32, 2, 8, 5], true), ([0x8A, 1, 5, 8, 1, 0x32, 2, 8], false)] {
            std::fs::write(&from, log).unwrap();
            assert_eq!((redact(&from, &to).is_ok(), to.exists()), (is_copied, is_copied), "{log:?}");
            let _ = std::fs::remove_file(&to);
        }
    }

    #[test]
    fn an_error_of_writing_names_the_output() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("no space"))
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (from, to) = (Path::new("in"), Path::new("out"));
        // An estimate of 5 bit/s in an event log.
        let log = vec![0x0A, 6, 8, 1, 0x32, 2, 8, 5];
        for (format, input) in [(Format::Lines, text().into_bytes()), (Format::EventLog, log)] {
            let input: Box<dyn Read> = Box::new(std::io::Cursor::new(input));
            let error = write(format, BufReader::new(input), Full, from, to).unwrap_err();
            assert!(matches!(&error, ReadError::Write { path, .. } if path == to), "{error}");
        }
    }
}
