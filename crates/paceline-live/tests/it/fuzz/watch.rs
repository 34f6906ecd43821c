// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests and commands of the watch page: a request without the token gets nothing, and a command stays within its range.

use paceline_live::watch::{AccessControl, parse_command};

/// The token of the samples.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let access = AccessControl { port: 8411, token: TOKEN.to_owned() };
    match access.authorize(bytes) {
        Ok(_) => {
            let contains = |part: &str| bytes.windows(part.len()).any(|window| window == part.as_bytes());
            assert!(contains(TOKEN) && contains(":8411"));
        }
        Err(error) => assert!((400..=405).contains(&error.status)),
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Err(reason) = parse_command(text)
    {
        assert!(!reason.is_empty());
    }
}
