//! Atomic files: temporary names, flushing to the disk, renaming.
//!
//! A temporary name is the final name followed by `.tmp-<process>-<n>`. While a folder is replaced, the old one is named
//! `.old-<process>-<n>`. The complete parts of an unfinished run are in a folder named `.parts-<process>-<n>`.

use crate::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

const NEW: &str = ".tmp-";
const OLD: &str = ".old-";
const PARTS: &str = ".parts-";

/// Makes the temporary names of this process distinct.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns a function for `map_err` that makes the error of `action` on `path`.
pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_path_buf();
    move |source| StoreError::Io { action, path, source }
}

/// A file or folder with a temporary name. It is removed on drop unless it got its final name.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    done: bool,
}

impl Temporary {
    /// Creates a folder for the final name `name` in `parent`.
    pub fn directory(parent: &Path, name: &str) -> Result<Self, StoreError> {
        let path = parent.join(temporary(name, NEW));
        fs::create_dir(&path).map_err(io("create the folder", &path))?;
        Ok(Self { path, done: false })
    }

    /// Opens a file for the final name `name` in `parent`.
    pub fn create(parent: &Path, name: &str) -> Result<(Self, File), StoreError> {
        let path = parent.join(temporary(name, NEW));
        let file = File::create(&path).map_err(io("create", &path))?;
        Ok((Self { path, done: false }, file))
    }

    /// Opens a file for the final path `place` and removes temporary files of it that ended processes left.
    pub fn open(place: &Path) -> Result<(Self, File), StoreError> {
        let parent = folder(place);
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let path = parent.join(temporary(&name, NEW));
        let file = File::create(&path).map_err(io("create the file", place))?;
        let this = Self { path, done: false };
        clean(parent, |base| base == name)?;
        Ok((this, file))
    }

    /// Writes a file for the final name `name` in `parent`.
    pub fn file(parent: &Path, name: &str, bytes: &[u8]) -> Result<Self, StoreError> {
        let this = Self { path: parent.join(temporary(name, NEW)), done: false };
        write_synced(&this.path, bytes)?;
        Ok(this)
    }

    /// Returns its current path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the folder to that of the complete parts of `name`, which [`clean`] does not remove.
    pub fn into_parts(mut self, name: &str) -> Result<Self, StoreError> {
        let path = self.path.with_file_name(temporary(name, PARTS));
        fs::rename(&self.path, &path).map_err(io("rename", &self.path))?;
        self.path = path;
        sync_directory(folder(&self.path))?;
        Ok(self)
    }

    /// Keeps it under its current name.
    pub fn leave(mut self) {
        self.done = true;
    }

    /// Renames it to its final name. An existing file is replaced atomically, an existing folder in two renames.
    pub fn replace(mut self, place: &Path) -> Result<(), StoreError> {
        let old = if place.is_dir() {
            let name = place.file_name().unwrap_or_default().to_string_lossy();
            let old = place.with_file_name(temporary(&name, OLD));
            fs::rename(place, &old).map_err(io("move aside", place))?;
            Some(old)
        } else {
            None
        };
        if let Err(error) = fs::rename(&self.path, place) {
            if let Some(old) = &old {
                // If this fails, too, the next `Store::create` does it.
                let _ = fs::rename(old, place);
            }
            return Err(io("move the finished files to", place)(error));
        }
        self.done = true;
        sync_directory(folder(place))?;
        if let Some(old) = old {
            // If this fails, the next `Store::create` does it.
            let _ = fs::remove_dir_all(old);
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.done {
            // If this fails, the next `Store::create` removes it.
            let _ = discard(&self.path);
        }
    }
}

/// A written file and its final path.
#[must_use]
pub struct Prepared {
    pub(crate) file: Temporary,
    pub(crate) place: PathBuf,
}

impl Prepared {
    /// Replaces the file.
    pub fn commit(self) -> Result<(), StoreError> {
        self.file.replace(&self.place)
    }
}

/// Creates a folder and its parents.
pub fn create_folder(path: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(path).map_err(io("create the folder", path))
}

/// Writes a file atomically, and its folder if it does not exist.
///
/// # Errors
/// An operation of the file system fails.
pub fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    create_folder(folder)?;
    Temporary::file(folder, name, bytes)?.replace(&folder.join(name))
}

/// Reads a JSON document.
///
/// # Errors
/// The file cannot be read or has another shape.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    let text = fs::read(path).map_err(io("read", path))?;
    serde_json::from_slice(&text).map_err(|error| damaged(path, &error))
}

/// Reads a JSON document with `format` and `format_version`.
///
/// # Errors
/// Those of [`read_json`], and another format or a later version.
pub fn read_versioned<T: DeserializeOwned>(path: &Path, format: &str, known: u32) -> Result<T, StoreError> {
    // The format first: the remaining fields may have changed with it.
    let value: serde_json::Value = read_json(path)?;
    if value["format"] != format {
        return Err(StoreError::NotAResult { path: folder(path).to_path_buf() });
    }
    match value["format_version"].as_u64().and_then(|found| u32::try_from(found).ok()) {
        Some(found) if (1..=known).contains(&found) => {
            serde_json::from_value(value).map_err(|error| damaged(path, &error))
        }
        Some(found) if found > known => Err(StoreError::TooNew { path: path.to_path_buf(), found, known }),
        _ => Err(damaged(path, &"`format_version` is not a number from 1")),
    }
}

/// Returns the error of a damaged file.
pub fn damaged(path: &Path, cause: &dyn std::fmt::Display) -> StoreError {
    StoreError::Damaged { path: path.to_path_buf(), cause: cause.to_string() }
}

/// Writes a new file and flushes it to the disk.
pub fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(io("write", path))
}

/// Flushes the names in a folder to the disk, where the operating system supports it.
pub fn sync_directory(path: &Path) -> Result<(), StoreError> {
    if cfg!(unix) { File::open(path).and_then(|dir| dir.sync_all()).map_err(io("flush", path)) } else { Ok(()) }
}

/// Returns indented JSON.
pub fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("strings, numbers and lists become JSON");
    text.push(b'\n');
    text
}

/// Returns the names in a folder, sorted. Characters that are not Unicode are replaced.
pub fn names(dir: &Path) -> Result<Vec<String>, StoreError> {
    let read = || fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
    let mut names: Vec<String> =
        read().map_err(io("list", dir))?.iter().map(|name| OsStr::to_string_lossy(name).into_owned()).collect();
    names.sort();
    Ok(names)
}

/// Returns whether `name` is a temporary name of `base`.
pub fn is_temporary_of(name: &str, base: &str) -> bool {
    parse(name, NEW).is_some_and(|(of, _, _)| of == base)
}

/// Returns whether `name` is a name of this module, and not a final name.
pub fn is_transient(name: &str) -> bool {
    [NEW, OLD, PARTS].iter().any(|mark| parse(name, mark).is_some())
}

/// Returns the folders of parts in `dir`, with their final names.
pub fn parts_in(dir: &Path) -> Result<Vec<(PathBuf, String)>, StoreError> {
    let parts = |name: &String| Some((dir.join(name), parse(name, PARTS)?.0.to_owned()));
    Ok(names(dir)?.iter().filter_map(parts).collect())
}

/// Returns the temporary files that ended processes left in `dir`, with their final names.
pub fn abandoned_in(dir: &Path) -> Result<Vec<(PathBuf, String)>, StoreError> {
    let left = |name: &String| {
        let (base, process, n) = parse(name, NEW)?;
        (!is_live(process, n)).then(|| (dir.join(name), base.to_owned()))
    };
    Ok(names(dir)?.iter().filter_map(left).collect())
}

/// Removes the temporary files that ended processes left in `dir`, for the final names that `ours` accepts.
pub fn clean(dir: &Path, ours: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    let left = |base: &str, process, n| ours(base) && !is_live(process, n);
    for name in names(dir)? {
        let path = dir.join(&name);
        if let Some((base, process, n)) = parse(&name, OLD)
            && left(base, process, n)
            && !dir.join(base).exists()
        {
            let place = dir.join(base);
            fs::rename(&path, &place).map_err(io("put back", &place))?;
        } else if let Some((base, process, n)) = parse(&name, NEW).or(parse(&name, OLD))
            && left(base, process, n)
        {
            remove(&path).map_err(io("remove what an interrupted run left in", &path))?;
        }
    }
    Ok(())
}

/// Returns the folder of a path; a bare name is in the current folder.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn temporary(name: &str, mark: &str) -> String {
    format!("{name}{mark}{}-{}", process::id(), NEXT.fetch_add(1, Ordering::SeqCst))
}

/// Returns final name, process and number of a temporary name.
fn parse<'a>(name: &'a str, mark: &str) -> Option<(&'a str, u32, u64)> {
    let (base, tag) = name.rsplit_once(mark)?;
    let (process, n) = tag.split_once('-')?;
    Some((base, process.parse().ok()?, n.parse().ok()?))
}

/// Returns whether the creator of a temporary name may still use it. Process numbers are reused (in a container at every
/// start), so for this process the counter decides. Other processes are only visible on Linux; elsewhere they count as ended.
fn is_live(process: u32, n: u64) -> bool {
    if process == process::id() {
        n < NEXT.load(Ordering::SeqCst)
    } else {
        Path::new("/proc").join(process.to_string()).exists()
    }
}

/// Removes a file or a folder. If the process is killed meanwhile, it is complete or has a temporary name.
pub fn discard(path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let going = path.with_file_name(temporary(&name, NEW));
    fs::rename(path, &going)?;
    remove(&going)
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Returns the first 16 bytes of the BLAKE3 hash of a file, as hexadecimal digits.
pub(crate) fn checksum(path: &Path) -> Result<String, StoreError> {
    const BYTES: usize = 16;
    let mut file = File::open(path).map_err(io("open", path))?;
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(io("read", path))? {
            0 => return Ok(hasher.finalize().to_hex()[..2 * BYTES].to_owned()),
            read => hasher.update(&buffer[..read]),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_temporary_names() {
        let mine = temporary("a-seed1", NEW);
        assert!(is_transient(&mine) && is_temporary_of(&mine, "a-seed1") && !is_temporary_of(&mine, "a-seed"));
        assert_eq!(parse("a.tmp-1-2", NEW), Some(("a", 1, 2)));
        assert!(is_transient(&temporary("a-seed1", PARTS)) && is_transient(&temporary("a-seed1", OLD)));
        for other in ["a", "a.tmp-", "a.tmp-1", "a.tmp-1-x", "a.tmp-1-2-seed3", "a.old-1"] {
            assert!(!is_transient(other), "{other}");
        }
    }

    #[test]
    fn an_ended_process_is_not_live() {
        let n = NEXT.fetch_add(1, Ordering::SeqCst);
        assert!(is_live(process::id(), n));
        assert!(!is_live(process::id(), u64::MAX), "an earlier process with our number");
        assert!(!is_live(u32::MAX, n));
    }
}
