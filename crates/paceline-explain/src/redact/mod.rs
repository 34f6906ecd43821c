//! A copy of an input that can be shared.
//!
//! Text formats: in every string addresses, names of hosts, URLs, user agents, labels of devices, and the identities of session
//! descriptions are replaced, also where a string is JSON itself; everything else stays as it is, byte for byte. Captures are
//! rewritten with other addresses and without payload. Event logs contain no addresses: libwebrtc leaves out SDES and APP.

mod capture;
mod text;
mod words;

use crate::error::ReadError;
use crate::readers::{Format, recognise};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, BufWriter, Cursor, ErrorKind, Read, Write};
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

/// Knows whether an error is one of writing.
struct Output<W> {
    inner: W,
    failed: bool,
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.inner.write(bytes).inspect_err(|error| self.failed |= error.kind() != ErrorKind::Interrupted)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush().inspect_err(|_| self.failed = true)
    }
}

fn read_error(path: &Path) -> impl Fn(std::io::Error) -> ReadError + use<> {
    let path = path.to_path_buf();
    move |source| ReadError::Io { path: path.clone(), source }
}

fn write_error(path: &Path) -> impl Fn(std::io::Error) -> ReadError + use<> {
    let path = path.to_path_buf();
    move |source| ReadError::Write { path: path.clone(), source }
}

/// Unpacks gzip and recognises the format.
fn open(from: &Path) -> Result<(Format, Box<dyn Read>), ReadError> {
    let mut input: Box<dyn Read> = Box::new(BufReader::new(File::open(from).map_err(read_error(from))?));
    let mut head = Vec::new();
    input.by_ref().take(8192).read_to_end(&mut head).map_err(read_error(from))?;
    let mut input: Box<dyn Read> = Box::new(Cursor::new(head.clone()).chain(input));
    if head.starts_with(&[0x1F, 0x8B]) {
        input = Box::new(BufReader::new(MultiGzDecoder::new(input)));
        head.clear();
        input.by_ref().take(8192).read_to_end(&mut head).map_err(read_error(from))?;
        input = Box::new(Cursor::new(head.clone()).chain(input));
    }
    let format = recognise(&head).ok_or_else(|| ReadError::UnknownFormat { begins: "other bytes".to_owned() })?;
    Ok((format, input))
}

fn write(
    format: Format,
    mut input: Box<dyn Read>,
    file: impl Write,
    from: &Path,
    to: &Path,
) -> Result<String, ReadError> {
    let mut output = Output { inner: BufWriter::new(file), failed: false };
    let what = match format {
        Format::Internals | Format::Lines => {
            let result = text::copy(&mut input, &mut output, 0);
            result.map_err(|source| if output.failed { write_error(to)(source) } else { read_error(from)(source) })?;
            "a text copy without addresses, user agents, URLs, labels and identities".to_owned()
        }
        Format::Capture => match capture::copy(&mut || Ok(open(from)?.1), &mut output, to)? {
            (_, 0) => "a capture with other addresses and headers only".to_owned(),
            (kept, left_out) => format!(
                "a capture with other addresses and the headers of {kept} packets of RTP and RTCP; {left_out} other packets \
                 are left out"
            ),
        },
        Format::EventLog => {
            let result = std::io::copy(&mut input, &mut output);
            result.map_err(|source| if output.failed { write_error(to)(source) } else { read_error(from)(source) })?;
            "an unchanged copy: event logs contain no addresses".to_owned()
        }
    };
    output.flush().map_err(write_error(to))?;
    Ok(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_copy_is_left_on_an_error_and_the_input_stays() {
        let folder = std::env::temp_dir().join(format!("paceline-redact-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (from, to) = (folder.join("in"), folder.join("out"));
        // The header of a classic pcap without a packet.
        let header = [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];
        std::fs::write(&from, header).unwrap();
        assert!(redact(&from, &to).is_err() && !to.exists());
        std::fs::write(&from, "{\"a\":{\"ip\":\"10.1.2.3\"}}\n").unwrap();
        assert!(redact(&from, &from).is_err());
        assert!(redact(&from, &to).unwrap().contains("text copy"));
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "{\"a\":{\"ip\":\"x\"}}\n");
        assert!(std::fs::read_to_string(&from).unwrap().contains("10.1.2.3"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_existing_file_is_replaced_only_by_a_whole_copy() {
        let folder = std::env::temp_dir().join(format!("paceline-redact-replace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (from, to, link) = (folder.join("in"), folder.join("out"), folder.join("link"));
        std::fs::write(&to, "before").unwrap();
        // Nested too deeply.
        std::fs::write(&from, "{\"a\":".repeat(600)).unwrap();
        let error = redact(&from, &to).unwrap_err();
        assert!(matches!(&error, ReadError::Io { path, .. } if *path == from), "{error}");
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "before");
        // A hard link of the input.
        let text = "{\"a\":{\"ip\":\"10.1.2.3\"}}\n";
        std::fs::write(&from, text).unwrap();
        std::fs::hard_link(&from, &link).unwrap();
        redact(&from, &link).unwrap();
        assert_eq!(std::fs::read_to_string(&from).unwrap(), text);
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "{\"a\":{\"ip\":\"x\"}}\n");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
        std::fs::remove_dir_all(&folder).unwrap();
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
        for format in [Format::Lines, Format::EventLog] {
            let input = Box::new(std::io::repeat(b',').take(1 << 20));
            let error = write(format, input, Full, from, to).unwrap_err();
            assert!(matches!(&error, ReadError::Write { path, .. } if path == to), "{error}");
        }
    }
}
