// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user as whom the command behind a link runs, or this process itself: a program gets no more rights than it needs.

use nix::errno::Errno;
use nix::unistd::{Gid, Uid, User, geteuid, getgrouplist, setgid, setgroups, setuid};
use std::ffi::{CString, OsString};
use std::{fs, io};

/// Returns whether this process is root of the host. Root of most containers is; root of a user namespace is not, because it has the
/// rights of the user who made the namespace.
pub fn is_host_root() -> bool {
    geteuid().is_root() && fs::read_to_string("/proc/self/uid_map").map_or(true, |map| is_identity(&map))
}

/// Returns whether a map of user ids has each id as itself.
fn is_identity(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// A user of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandUser {
    uid: Uid,
    gid: Gid,
    name: String,
    /// Variables of the user's environment.
    variables: Vec<(&'static str, OsString)>,
}

impl CommandUser {
    /// Returns the user of this name; `None` if there is none.
    pub fn named(name: &str) -> io::Result<Option<Self>> {
        Ok(User::from_name(name)?.map(Self::from))
    }

    /// Returns the user who called `sudo`; `None` without it, or if that user is root.
    ///
    /// # Errors
    /// `SUDO_UID` is no user, or the list of users cannot be read.
    pub fn of_sudo() -> io::Result<Option<Self>> {
        let Some(uid) = std::env::var_os("SUDO_UID").filter(|uid| geteuid().is_root() && uid != "0") else {
            return Ok(None);
        };
        Self::from_word(&uid)
    }

    /// Returns its user id, as text.
    pub(crate) fn word(&self) -> OsString {
        self.uid.to_string().into()
    }

    /// Returns the user of a word of [`word`](Self::word).
    pub(crate) fn from_word(word: &OsString) -> io::Result<Option<Self>> {
        let no_user = || io::Error::other(format!("no user has the id `{}`", word.display()));
        let uid = word.to_str().and_then(|text| text.parse().ok()).ok_or_else(no_user)?;
        User::from_uid(Uid::from_raw(uid))?.map(Self::from).ok_or_else(no_user).map(Some)
    }

    /// Gives up all rights of this process, in all of its threads, but those of the user: groups, then group, then user. Capabilities
    /// go with them.
    ///
    /// # Errors
    /// The process is not root, or the rights could be taken back.
    pub fn become_user(&self) -> io::Result<()> {
        // The kernel takes capabilities away only when a process stops being root.
        if !geteuid().is_root() {
            return Err(io::Error::from(Errno::EPERM));
        }
        let name = CString::new(self.name.as_str())?;
        setgroups(&getgrouplist(&name, self.gid)?)?;
        setgid(self.gid)?;
        setuid(self.uid)?;
        if !self.is_root() && setuid(Uid::from_raw(0)).is_ok() {
            return Err(io::Error::other("the system let it become root again"));
        }
        Ok(())
    }

    /// Returns whether this user is root.
    pub fn is_root(&self) -> bool {
        self.uid.is_root()
    }

    /// Returns the variables of the user's environment.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &OsString)> {
        self.variables.iter().map(|(name, value)| (*name, value))
    }
}

impl From<User> for CommandUser {
    fn from(user: User) -> Self {
        let variables = vec![
            ("HOME", user.dir.clone().into_os_string()),
            ("SHELL", user.shell.clone().into_os_string()),
            ("USER", user.name.clone().into()),
            ("LOGNAME", user.name.clone().into()),
        ];
        Self { uid: user.uid, gid: user.gid, name: user.name, variables }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_a_user_namespace_is_not_that_of_the_host() {
        assert!(is_identity("         0          0 4294967295\n"));
        for map in ["         0       1000          1\n", "0 100000 65536\n", "0 0 1\n1 1 4294967294\n", ""] {
            assert!(!is_identity(map), "{map:?}");
        }
    }
}
