// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomic files: temporary folders, flushing to the disk, renaming.
//!
//! ```text
//! NAME.tmp-PROCESS-N/lock      locked while its process writes
//! NAME.tmp-PROCESS-N/data      the file or folder that becomes NAME
//! ```
//!
//! While a folder is replaced, the old one is in `NAME.old-PROCESS-N`, which has the same contents.
//!
//! The lock shows whether the writer still runs, also in another container: an unlocked folder was left by a killed process and is
//! removed. The complete parts of an unfinished run are in a folder named `NAME.parts-PROCESS-N`.

use crate::results::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

const NEW: &str = ".tmp-";
const OLD: &str = ".old-";
const PARTS: &str = ".parts-";
const LOCK: &str = "lock";
const DATA: &str = "data";

/// Makes the temporary names of this process distinct. A name that another container uses is skipped.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns a function for `map_err` that makes the error of `action` on `path`.
pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_path_buf();
    move |source| StoreError::Io { action, path, source }
}

/// A file or folder that does not have its final name yet. It is removed on drop unless it gets that name.
#[derive(Debug)]
pub struct Temporary {
    holder: PathBuf,
    data: PathBuf,
    _lock: File,
    keep: bool,
}

impl Temporary {
    pub fn directory(parent: &Path, name: &str) -> Result<Self, StoreError> {
        let this = Self::new(parent, name)?;
        fs::create_dir(&this.data).map_err(io("create the folder", &this.data))?;
        Ok(this)
    }

    pub fn create(parent: &Path, name: &str) -> Result<(Self, File), StoreError> {
        let this = Self::new(parent, name)?;
        let file = File::create(&this.data).map_err(io("create", &this.data))?;
        Ok((this, file))
    }

    /// Opens a file for the final path `place` and removes temporary files of it that killed processes left.
    pub fn open(place: &Path) -> Result<(Self, File), StoreError> {
        let parent = folder(place);
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let named = |error: StoreError| match error {
            StoreError::Io { source, .. } => io("create the file", place)(source),
            other => other,
        };
        let created = Self::create(parent, &name).map_err(named)?;
        clean(parent, |base| base == name)?;
        Ok(created)
    }

    /// Writes a file for the final name `name` in `parent`.
    pub fn file(parent: &Path, name: &str, bytes: &[u8]) -> Result<Self, StoreError> {
        let this = Self::new(parent, name)?;
        write_synced(&this.data, bytes)?;
        Ok(this)
    }

    fn new(parent: &Path, name: &str) -> Result<Self, StoreError> {
        loop {
            let holder = parent.join(temporary(name, NEW));
            match fs::create_dir(&holder) {
                Err(error) if is_taken(&error) => continue,
                created => created.map_err(io("create the folder", &holder))?,
            }
            let place = holder.join(LOCK);
            let lock = match File::create_new(&place) {
                // Another process took the empty folder for one that was left.
                Err(error) if error.kind() == io::ErrorKind::NotFound && parent.is_dir() => continue,
                lock => lock.map_err(io("create", &place))?,
            };
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                // A file system without locks: nothing there is taken for left.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            // Another process may have removed the folder before it was locked.
            if place.is_file() {
                return Ok(Self { data: holder.join(DATA), holder, _lock: lock, keep: false });
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.data
    }

    /// Renames it to one of complete parts of `name`, which [`clean`] does not remove.
    pub(crate) fn into_parts(self, name: &str) -> Result<Self, StoreError> {
        self.marked(name, PARTS)
    }

    /// Moves the folder at `place` aside, to be replaced by another. Without [`restore`](Self::restore) it is removed on drop.
    pub(crate) fn aside(place: &Path) -> Result<Self, StoreError> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let this = Self::new(folder(place), &name)?.marked(&name, OLD)?;
        fs::rename(place, &this.data).map_err(io("move aside", place))?;
        Ok(this)
    }

    /// Moves a folder that was moved aside back.
    pub(crate) fn restore(&self, place: &Path) -> Result<(), StoreError> {
        restore(&self.data, place)
    }

    fn marked(mut self, name: &str, mark: &str) -> Result<Self, StoreError> {
        loop {
            let holder = self.holder.with_file_name(temporary(name, mark));
            match fs::rename(&self.holder, &holder) {
                // A process of another container has the same number.
                Err(error) if is_taken(&error) => continue,
                renamed => renamed.map_err(io("rename", &self.holder))?,
            }
            self.data = holder.join(DATA);
            self.holder = holder;
            sync_directory(folder(&self.holder))?;
            return Ok(self);
        }
    }

    /// Keeps it under its current name.
    pub(crate) fn leave(mut self) {
        self.keep = true;
    }

    /// Renames it to its final name. An existing file is replaced atomically.
    pub fn replace(self, place: &Path) -> Result<(), StoreError> {
        self.rename(place)
    }

    /// Renames its data, and keeps the empty temporary folder until it is dropped.
    pub(crate) fn rename(&self, place: &Path) -> Result<(), StoreError> {
        fs::rename(&self.data, place).map_err(io("move the finished files to", place))?;
        sync_directory(folder(place))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.keep {
            // If this fails, the next `clean` removes it.
            let _ = remove_holder(&self.holder);
        }
    }
}

pub fn create_folder(path: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(path).map_err(io("create the folder", path))
}

/// Writes a file atomically, and its folder if it does not exist.
pub fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    create_folder(folder)?;
    Temporary::file(folder, name, bytes)?.replace(&folder.join(name))
}

/// Reads a JSON document.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    let text = fs::read(path).map_err(io("read", path))?;
    serde_json::from_slice(&text).map_err(|error| damaged(path, &error))
}

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

/// Returns whether `name` is a name of this module, and not a final name.
#[cfg(test)]
pub(crate) fn is_transient(name: &str) -> bool {
    [NEW, OLD, PARTS].iter().any(|mark| parse(name, mark).is_some())
}

/// Returns the complete parts of unfinished runs in `dir`, with their final names.
pub(crate) fn parts_in(dir: &Path) -> Result<Vec<(PathBuf, String)>, StoreError> {
    marked_in(dir, PARTS)
}

/// Returns the folders in `dir` that were moved aside, with their final names.
pub(crate) fn aside_in(dir: &Path) -> Result<Vec<(PathBuf, String)>, StoreError> {
    marked_in(dir, OLD)
}

fn marked_in(dir: &Path, mark: &str) -> Result<Vec<(PathBuf, String)>, StoreError> {
    let of = |name: &String| Some((dir.join(name), parse(name, mark)?.to_owned()));
    Ok(names(dir)?.iter().filter_map(of).collect())
}

/// Moves `data` to `place`, whose folder is removed.
pub(crate) fn restore(data: &Path, place: &Path) -> Result<(), StoreError> {
    if place.is_dir() {
        fs::remove_dir_all(place).map_err(io("remove", place))?;
    }
    fs::rename(data, place).map_err(io("put back", place))
}

/// Removes the temporary files that killed processes left in `dir`, for the final names that `ours` accepts.
pub(crate) fn clean(dir: &Path, ours: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    for name in names(dir)? {
        let path = dir.join(&name);
        if parse(&name, NEW).is_some_and(&ours)
            && let Some(_left) = Left::take(&path)
        {
            remove_holder(&path).map_err(io("remove what an interrupted run left in", &path))?;
        }
    }
    Ok(())
}

/// Removes a temporary folder, its lock last, so that a kill meanwhile leaves one that is recognised.
pub(crate) fn remove_holder(holder: &Path) -> io::Result<()> {
    let is_gone = |removed: io::Result<()>| match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    let data = holder.join(DATA);
    is_gone(if data.is_dir() { fs::remove_dir_all(&data) } else { fs::remove_file(&data) })?;
    is_gone(fs::remove_file(holder.join(LOCK)))?;
    is_gone(fs::remove_dir(holder))
}

/// A temporary folder whose writer has ended, locked by this process.
pub(crate) struct Left {
    _lock: File,
}

impl Left {
    /// Locks a temporary folder; `None` if its writer still runs.
    pub(crate) fn take(holder: &Path) -> Option<Self> {
        match File::open(holder.join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok().then_some(Self { _lock: lock }),
            Err(_) => {
                // A process was killed before it wrote the lock, or one is about to. It then makes another folder.
                let _ = fs::remove_dir(holder);
                None
            }
        }
    }

    pub(crate) fn data(holder: &Path) -> PathBuf {
        holder.join(DATA)
    }
}

/// Removes a folder. If the process is killed meanwhile, the folder is complete or has a temporary name.
pub(crate) fn discard(path: &Path) -> Result<(), StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = Temporary::new(folder(path), &name)?;
    fs::rename(path, &temporary.data).map_err(io("remove", path))
}

fn temporary(name: &str, mark: &str) -> String {
    format!("{name}{mark}{}-{}", process::id(), NEXT.fetch_add(1, Ordering::SeqCst))
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty)
}

/// Returns the final name of a temporary name.
fn parse<'a>(name: &'a str, mark: &str) -> Option<&'a str> {
    let (base, tag) = name.rsplit_once(mark)?;
    let (process, n) = tag.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(process) && is_number(n)).then_some(base)
}

/// Returns the folder of a path; a bare name is in the current folder.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Returns the first 16 bytes of the BLAKE3 hash of a file, as hexadecimal digits.
pub(crate) fn checksum(path: &Path) -> Result<String, StoreError> {
    checksum_of(&mut File::open(path).map_err(io("open", path))?, path)
}

/// Returns the checksum of an open file, and leaves it at its beginning.
pub(crate) fn checksum_of(file: &mut File, path: &Path) -> Result<String, StoreError> {
    const BYTES: usize = 16;
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(io("read", path))? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        };
    }
    file.rewind().map_err(io("read", path))?;
    Ok(hasher.finalize().to_hex()[..2 * BYTES].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_temporary_names() {
        assert_eq!(parse("a.tmp-1-2", NEW), Some("a"));
        assert!(is_transient("a-seed1.parts-17-0") && is_transient("a.b.tmp-4294967295-18446744073709551615"));
        for other in ["a", "a.tmp-", "a.tmp-1", "a.tmp-1-x", "a.tmp-1-2-seed3", "a.new-1-2"] {
            assert!(!is_transient(other), "{other}");
        }
    }

    #[test]
    fn files_of_a_running_writer_stay() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let (writing, _) = Temporary::create(dir, "a").unwrap();
        clean(dir, |_| true).unwrap();
        assert!(writing.path().is_file());
        writing.replace(&dir.join("a")).unwrap();
        assert_eq!(names(dir).unwrap(), ["a"]);
        // As a killed process leaves them: the system has released the lock.
        for left in ["b.tmp-1-1", "b.tmp-1-2", "c.tmp-1-1"] {
            fs::create_dir(dir.join(left)).unwrap();
        }
        fs::write(dir.join("b.tmp-1-1/lock"), "").unwrap();
        fs::write(dir.join("b.tmp-1-1/data"), "half").unwrap();
        clean(dir, |base| base == "b").unwrap();
        assert_eq!(names(dir).unwrap(), ["a", "c.tmp-1-1"]);
    }
}
