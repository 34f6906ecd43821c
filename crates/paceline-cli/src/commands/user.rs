// SPDX-License-Identifier: MIT OR Apache-2.0
//! Users that options name.

use miette::{IntoDiagnostic, Result, miette};
use paceline_live::testbed::command_user::CommandUser;

/// Returns the user of this name.
pub fn named(name: &str) -> Result<CommandUser> {
    let user = CommandUser::named(name).into_diagnostic()?;
    user.ok_or_else(|| miette!(help = "name a user of this machine", "no user `{name}`"))
}

/// Gives up all rights of this process but those of the user, if there is a name.
///
/// # Errors
/// There is no such user, it is root, or this process is not root.
pub fn become_named(name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let user = named(name)?;
    if user.is_root() {
        return Err(miette!(help = "name a user with fewer rights, such as nobody", "the user `{name}` is root"));
    }
    user.become_user().map_err(|error| {
        miette!(help = "run the command as root, or leave out --user", "cannot become the user `{name}`: {error}")
    })
}
