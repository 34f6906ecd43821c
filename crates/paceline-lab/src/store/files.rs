//! Files that are whole or not there: temporary names, flushing to the disk, renaming.
//!
//! A temporary name is the final name with `.tmp-<process>-<n>` after it. A run that is being replaced stands under
//! `.old-<process>-<n>` between two renames, and what is whole of a run that goes on under `.parts-<process>-<n>`.

use super::StoreError;
use serde::Serialize;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

const NEW: &str = ".tmp-";
const OLD: &str = ".old-";
const PARTS: &str = ".parts-";

/// Makes the temporary names of this process distinct.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// For `map_err`: the error of `action` on `path`.
pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_path_buf();
    move |source| StoreError::Io { action, path, source }
}

/// A file or folder under its temporary name, removed on drop unless it was given its final name.
#[derive(Debug)]
pub(crate) struct Temporary {
    path: PathBuf,
    done: bool,
}

impl Temporary {
    /// Makes a folder that is to be called `name` in `parent`.
    pub(crate) fn directory(parent: &Path, name: &str) -> Result<Self, StoreError> {
        let path = parent.join(temporary(name, NEW));
        fs::create_dir(&path).map_err(io("create the folder", &path))?;
        Ok(Self { path, done: false })
    }

    /// Opens a file that is to be called `name` in `parent`.
    pub(crate) fn create(parent: &Path, name: &str) -> Result<(Self, File), StoreError> {
        let path = parent.join(temporary(name, NEW));
        let file = File::create(&path).map_err(io("create", &path))?;
        Ok((Self { path, done: false }, file))
    }

    /// Opens a file that is to stand at `place`; what a process that is no more left there goes first.
    pub(crate) fn open(place: &Path) -> Result<(Self, File), StoreError> {
        let parent = folder(place);
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let path = parent.join(temporary(&name, NEW));
        let file = File::create(&path).map_err(io("create the file", place))?;
        let this = Self { path, done: false };
        clean(parent, |base| base == name)?;
        Ok((this, file))
    }

    /// Writes a file that is to be called `name` in `parent`.
    pub(crate) fn file(parent: &Path, name: &str, bytes: &[u8]) -> Result<Self, StoreError> {
        let this = Self { path: parent.join(temporary(name, NEW)), done: false };
        write_synced(&this.path, bytes)?;
        Ok(this)
    }

    /// Where it is now.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives a folder the name of one that holds what is whole of `name` before all of it is. [`clean`] leaves it alone.
    pub(crate) fn into_parts(mut self, name: &str) -> Result<Self, StoreError> {
        let path = self.path.with_file_name(temporary(name, PARTS));
        fs::rename(&self.path, &path).map_err(io("rename", &self.path))?;
        self.path = path;
        sync_directory(folder(&self.path))?;
        Ok(self)
    }

    /// Leaves it where it is.
    pub(crate) fn leave(mut self) {
        self.done = true;
    }

    /// Gives it its final name: replaces a file at once, and a folder by way of its old name.
    pub(crate) fn replace(mut self, place: &Path) -> Result<(), StoreError> {
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
                // If this fails too, the next `Store::create` does it.
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
            // Nobody to tell; the next `Store::create` tries again.
            let _ = discard(&self.path);
        }
    }
}

/// A prepared file, and its final place.
#[must_use]
pub(crate) struct Prepared {
    pub(crate) file: Temporary,
    pub(crate) place: PathBuf,
}

impl Prepared {
    /// Replaces the file.
    pub(crate) fn commit(self) -> Result<(), StoreError> {
        self.file.replace(&self.place)
    }
}

/// Writes a new file and waits until it is on the disk.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(io("write", path))
}

/// Waits until the names in a folder are on the disk, where the operating system offers that.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    if cfg!(unix) { File::open(path).and_then(|dir| dir.sync_all()).map_err(io("flush", path)) } else { Ok(()) }
}

/// JSON for people and programs.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("strings, numbers and lists become JSON");
    text.push(b'\n');
    text
}

/// The names in a folder, sorted; those that are not Unicode are made so with loss.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>, StoreError> {
    let read = || fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
    let mut names: Vec<String> =
        read().map_err(io("list", dir))?.iter().map(|name| OsStr::to_string_lossy(name).into_owned()).collect();
    names.sort();
    Ok(names)
}

/// Whether `name` is a temporary name of `base`.
pub(crate) fn is_temporary_of(name: &str, base: &str) -> bool {
    parse(name, NEW).is_some_and(|(of, _, _)| of == base)
}

/// Whether `name` is one that this module makes and that no finished file has.
pub(crate) fn is_transient(name: &str) -> bool {
    [NEW, OLD, PARTS].iter().any(|mark| parse(name, mark).is_some())
}

/// The folders of parts in `dir`, and what each was to be called.
pub(crate) fn parts_in(dir: &Path) -> Result<Vec<(PathBuf, String)>, StoreError> {
    let parts = |name: &String| Some((dir.join(name), parse(name, PARTS)?.0.to_owned()));
    Ok(names(dir)?.iter().filter_map(parts).collect())
}

/// The temporary files that processes which are no more left in `dir`, and what each was to be called.
pub(crate) fn left_in(dir: &Path) -> Result<Vec<(PathBuf, String)>, StoreError> {
    let left = |name: &String| {
        let (base, process, n) = parse(name, NEW)?;
        (!is_live(process, n)).then(|| (dir.join(name), base.to_owned()))
    };
    Ok(names(dir)?.iter().filter_map(left).collect())
}

/// Removes what a process that is no more left in `dir`, of those final names that `ours` accepts.
pub(crate) fn clean(dir: &Path, ours: impl Fn(&str) -> bool) -> Result<(), StoreError> {
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

/// The folder that a path is in; a bare name is in the current one.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A name for `name` that nothing else has.
fn temporary(name: &str, mark: &str) -> String {
    format!("{name}{mark}{}-{}", process::id(), NEXT.fetch_add(1, Ordering::SeqCst))
}

/// Final name, process and number of a temporary name.
fn parse<'a>(name: &'a str, mark: &str) -> Option<(&'a str, u32, u64)> {
    let (base, tag) = name.rsplit_once(mark)?;
    let (process, n) = tag.split_once('-')?;
    Some((base, process.parse().ok()?, n.parse().ok()?))
}

/// Whether whoever made a temporary name may still be at it. Process numbers come back (in a container every time), so
/// for this process the number decides. Of other processes only Linux tells; elsewhere they count as gone.
fn is_live(process: u32, n: u64) -> bool {
    if process == process::id() {
        n < NEXT.load(Ordering::SeqCst)
    } else {
        Path::new("/proc").join(process.to_string()).exists()
    }
}

/// Removes a file or a folder. A kill on the way leaves all of it, or what [`clean`] removes: nothing that lacks a part.
pub(crate) fn discard(path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let going = path.with_file_name(temporary(&name, NEW));
    fs::rename(path, &going)?;
    remove(&going)
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_recognised() {
        let mine = temporary("a-seed1", NEW);
        assert!(is_transient(&mine) && is_temporary_of(&mine, "a-seed1") && !is_temporary_of(&mine, "a-seed"));
        assert_eq!(parse("a.tmp-1-2", NEW), Some(("a", 1, 2)));
        assert!(is_transient(&temporary("a-seed1", PARTS)) && is_transient(&temporary("a-seed1", OLD)));
        for other in ["a", "a.tmp-", "a.tmp-1", "a.tmp-1-x", "a.tmp-1-2-seed3", "a.old-1"] {
            assert!(!is_transient(other), "{other}");
        }
    }

    #[test]
    fn a_process_that_is_gone_is_not_live() {
        let n = NEXT.fetch_add(1, Ordering::SeqCst);
        assert!(is_live(process::id(), n));
        assert!(!is_live(process::id(), u64::MAX), "an earlier process with our number");
        assert!(!is_live(u32::MAX, n));
    }
}
