// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading text files that a user or a scenario names. A file of a stranger must not stop the program: it must be a regular file
//! of limited size.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The most bytes of one file, and of all files of one folder together. A day of a trace with 1,000 packets a second has 600 MB
/// in the largest format; such a trace is cut before it is used.
pub(crate) const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Returns the text of a file.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    read_at_most(path, MAX_BYTES)
}

/// Returns the text from standard input.
pub(crate) fn read_stdin() -> Result<String, String> {
    text_of(std::io::stdin().lock(), MAX_BYTES).map_err(|error| format!("cannot read standard input: {error}"))
}

/// Returns the text of a file of at most `limit` bytes.
pub(crate) fn read_at_most(path: &Path, limit: u64) -> Result<String, String> {
    let error = |error: String| format!("cannot read {}: {error}", path.display());
    // Opening a pipe waits for a writer, so its kind is checked before.
    let is_file = path.metadata().map_err(|e| error(e.to_string()))?.is_file();
    if !is_file {
        return Err(error("it is no regular file".to_owned()));
    }
    let file = File::open(path).map_err(|e| error(e.to_string()))?;
    text_of(file, limit).map_err(error)
}

/// Reads up to `limit` bytes and one more, whatever size the file claims to have.
fn text_of(source: impl Read, limit: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    source.take(limit + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > limit {
        return Err(format!("it is larger than {} MiB", limit / 1024 / 1024));
    }
    String::from_utf8(bytes).map_err(|error| match error.as_bytes() {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "it is UTF-16 text; save it as UTF-8".to_owned(),
        _ => format!("it is no UTF-8 text: byte {} is not", error.utf8_error().valid_up_to()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_of_limited_size_is_read() {
        let text = |bytes: &[u8]| text_of(bytes, 10);
        assert_eq!(text("0123456789".as_bytes()).unwrap(), "0123456789");
        assert_eq!(text("0123456789a".as_bytes()).unwrap_err(), "it is larger than 0 MiB");
        assert!(text(&[0xFF, 0xFE, b'a', 0]).unwrap_err().contains("UTF-16"));
        assert_eq!(text(&[b'a', b'b', 0x80]).unwrap_err(), "it is no UTF-8 text: byte 2 is not");
        // A source without an end.
        assert!(text_of(std::io::repeat(b'a'), 1 << 20).unwrap_err().contains("larger than 1 MiB"));
    }

    #[test]
    fn folders_and_devices_are_refused() {
        let folder = read(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap_err();
        assert!(folder.contains("no regular file"), "{folder}");
        #[cfg(unix)]
        assert!(read(Path::new("/dev/zero")).unwrap_err().ends_with("cannot read /dev/zero: it is no regular file"));
        assert!(read(Path::new("there is none")).unwrap_err().starts_with("cannot read there is none: "));
    }
}
