//! A temporary folder and the processes that work in it: both go when the value does, and when our process is killed.
//!
//! A shell outside our process group has made the folder and reads a pipe that only we can write to. It reads the pipe's end
//! whenever and however we go, ends the processes that it was told of, and removes the folder.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `$1`: where folders are made. What is ended may still write for a moment, so the folder is removed until it is gone.
const JANITOR: &str = r#"
trap '' HUP INT TERM
folder=$(mktemp -d "$1/paceline-XXXXXXXX") || exit 1
echo "$folder"
exec >/dev/null 2>&1
while read -r group; do groups="$groups $group"; done
for group in $groups; do kill -KILL "-$group"; done
for attempt in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$folder" && exit; sleep 0.2; done
"#;

/// A temporary folder that is removed however this process ends.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
    janitor: Child,
}

impl Scratch {
    /// A new one.
    ///
    /// # Errors
    /// There is no shell, or no room.
    pub fn new() -> io::Result<Self> {
        let mut janitor = Command::new("sh")
            .args(["-c", JANITOR, "janitor"])
            .arg(std::env::temp_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let mut line = String::new();
        BufReader::new(janitor.stdout.take().expect("it is a pipe")).read_line(&mut line)?;
        let folder = PathBuf::from(line.trim_end_matches('\n'));
        if !folder.is_dir() {
            janitor.wait()?;
            return Err(io::Error::other(format!("no folder can be made in {}", std::env::temp_dir().display())));
        }
        Ok(Self { folder, janitor })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// This process group, whose leader is a child of ours, works in the folder: it is killed before the folder goes.
    ///
    /// # Errors
    /// The janitor was killed.
    pub fn employ(&mut self, group: u32) -> io::Result<()> {
        let stdin = self.janitor.stdin.as_mut().expect("it is a pipe until the end");
        writeln!(stdin, "{group}")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.janitor.stdin = None;
        let _ = self.janitor.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Browser, Error, required};

    #[test]
    fn a_browser_whose_janitor_was_killed_ends_all_the_same() {
        if required().is_none() {
            return;
        }
        let mut scratch = Scratch::new().unwrap();
        let folder = scratch.path().to_path_buf();
        scratch.janitor.kill().unwrap();
        // `wait` would close the pipe, and then it would be no killed one.
        while scratch.janitor.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(folder.is_dir(), "nobody removes it");
        let refused = Browser::start(scratch, 0, &[]).err();
        assert!(matches!(refused, Some(Error::Start(_))), "{refused:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
