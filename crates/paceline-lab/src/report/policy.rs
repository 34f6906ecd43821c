// SPDX-License-Identifier: MIT OR Apache-2.0
//! Content security policies: a page runs and applies only what this program wrote into it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Returns the policy of a page that loads nothing and contains these scripts and styles, each the whole text of its element
/// (Content Security Policy Level 3, section 2.3.1: hash sources).
pub(crate) fn policy(scripts: &[&str], styles: &[&str]) -> String {
    let sources = |directive: &str, texts: &[&str]| {
        let hashes: String =
            texts.iter().map(|text| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(text)))).collect();
        if hashes.is_empty() { String::new() } else { format!("; {directive}{hashes}") }
    };
    format!("default-src 'none'{}{}; img-src data:", sources("script-src", scripts), sources("style-src", styles))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of the empty text is that of FIPS 180-4's examples.
    #[test]
    fn texts_are_named_by_their_hashes() {
        let empty = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
        assert_eq!(policy(&[""], &[]), format!("default-src 'none'; script-src {empty}; img-src data:"));
        assert_eq!(policy(&[], &["", "a"]).matches("'sha256-").count(), 2);
    }
}
