// SPDX-License-Identifier: MIT OR Apache-2.0
//! A temporary folder that is removed together with its processes on drop and when this process is killed.
//!
//! A shell in another process group creates the folder and reads a pipe from this process. When the pipe closes, for whatever
//! reason, the shell kills the registered process groups and removes the folder.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `$1` is the parent folder. Killed processes may still write for a moment, so the removal is repeated.
const CLEANUP_SCRIPT: &str = r#"
trap '' HUP INT TERM
folder=$(mktemp -d "$1/paceline-XXXXXXXX") || exit 1
echo "$folder"
exec >/dev/null 2>&1
while read -r group; do groups="$groups $group"; done
for group in $groups; do kill -KILL "-$group"; done
for attempt in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$folder" && exit; sleep 0.2; done
"#;

/// A temporary folder that is removed even if this process is killed.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
    cleaner: Child,
}

impl Scratch {
    /// Creates a temporary folder.
    ///
    /// # Errors
    /// The shell cannot be started, or the folder cannot be created.
    pub fn new() -> io::Result<Self> {
        let mut cleaner = Command::new("sh")
            .args(["-c", CLEANUP_SCRIPT, "cleaner"])
            .arg(std::env::temp_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let mut line = String::new();
        BufReader::new(cleaner.stdout.take().expect("stdio is piped")).read_line(&mut line)?;
        let folder = PathBuf::from(line.trim_end_matches('\n'));
        if !folder.is_dir() {
            cleaner.wait()?;
            return Err(io::Error::other(format!("cannot create a folder in {}", std::env::temp_dir().display())));
        }
        Ok(Self { folder, cleaner })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Registers a process group, which is killed before the folder is removed. Its leader must be a child of this process.
    pub fn kill_on_drop(&mut self, group: u32) -> io::Result<()> {
        let stdin = self.cleaner.stdin.as_mut().expect("open until drop");
        writeln!(stdin, "{group}")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.cleaner.stdin = None;
        let _ = self.cleaner.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chromium::{Browser, Error, required};

    #[test]
    fn start_fails_if_the_cleanup_shell_was_killed() {
        if required().is_none() {
            return;
        }
        let mut scratch = Scratch::new().unwrap();
        let folder = scratch.path().to_path_buf();
        scratch.cleaner.kill().unwrap();
        // `wait` would close the pipe, which ends the shell normally.
        while scratch.cleaner.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(folder.is_dir(), "the folder is not removed");
        let refused = Browser::start(scratch, 0, &[]).err();
        assert!(matches!(refused, Some(Error::Start(_))), "{refused:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
