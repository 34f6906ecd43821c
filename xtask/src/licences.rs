// SPDX-License-Identifier: MIT OR Apache-2.0
//! The licence in the first line of Rust files, and the parts of `deny.toml` that need no network and no cargo-deny: licences, banned
//! crates and sources of all dependencies. It takes a second, where installing cargo-deny takes minutes. Known vulnerabilities: `cargo xtask deny`.

use crate::docs::pages::files;
use crate::steps::{Problem, packages, read, root};
use serde::Deserialize;
use serde_json::Value as Json;
use spdx::{Expression, LicenseReq, ParseMode};

/// The end of the first line of a source file.
const IDENTIFIER: &str = "SPDX-License-Identifier: MIT OR Apache-2.0";

/// The folders of Rust files.
const FOLDERS: [&str; 5] = ["benches", "crates", "examples", "fuzz/fuzz_targets", "xtask"];

/// Returns the Rust files without a licence in their first line.
fn unlicensed() -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        for path in files(&root().join(folder), "rs", true)? {
            if !read(&path)?.lines().next().is_some_and(|line| line.ends_with(IDENTIFIER)) {
                found.push(path.display().to_string());
            }
        }
    }
    Ok(found)
}

/// Checks Rust files, and every package of the lock file that some feature or system uses.
pub fn check(_features: &str) -> Result<(), Problem> {
    let unlicensed = unlicensed()?;
    if !unlicensed.is_empty() {
        let files = unlicensed.join("\n");
        return Err(Problem::Failed(format!("the first line must be `// {IDENTIFIER}`:\n{files}")));
    }
    let path = root().join("deny.toml");
    let rules: Rules = toml::from_str(&read(&path)?).map_err(|error| format!("deny.toml: {error}"))?;
    let packages = packages("--locked --all-features")?;
    let wrong: Vec<String> = packages.iter().filter_map(|package| rules.violation(package)).collect();
    if wrong.is_empty() {
        eprintln!("licences and sources of {} packages are allowed", packages.len());
        return Ok(());
    }
    Err(Problem::Failed(format!("not allowed by deny.toml:\n{}", wrong.join("\n"))))
}

#[derive(Deserialize)]
struct Rules {
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
    exceptions: Vec<Rule>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Rule>,
}

/// A crate, and the licences that an exception allows it.
#[derive(Deserialize)]
struct Rule {
    #[serde(rename = "crate")]
    name: String,
    #[serde(default)]
    allow: Vec<String>,
}

impl Rules {
    /// Why a package is not allowed.
    fn violation(&self, package: &Json) -> Option<String> {
        let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
        let source = package["source"].as_str()?; // crates of the workspace have none
        let licence = package["license"].as_str().unwrap_or_default();
        let why = if self.bans.deny.iter().any(|banned| banned.name == name) {
            "is banned".to_owned()
        } else if source != "registry+https://github.com/rust-lang/crates.io-index" {
            format!("comes from {source}")
        } else if !self.allows(name, licence) {
            format!("has the licence `{licence}`")
        } else {
            return None;
        };
        Some(format!("{name} {version} {why}"))
    }

    /// Whether a licence expression (SPDX; `/` in old manifests means `OR`) can be met.
    fn allows(&self, name: &str, expression: &str) -> bool {
        let exceptions = self.licenses.exceptions.iter().filter(|exception| exception.name == name);
        let mut exceptions = exceptions.flat_map(|exception| &exception.allow);
        // A manifest with a licence file in place of an expression: cargo-deny reads the file, and an exception names it.
        if expression.is_empty() {
            return exceptions.next().is_some();
        }
        let allowed: Vec<&String> = self.licenses.allow.iter().chain(exceptions).collect();
        let is_allowed = |licence: &LicenseReq| allowed.iter().any(|allowed| **allowed == licence.to_string());
        Expression::parse_mode(expression, ParseMode::LAX).is_ok_and(|expression| expression.evaluate(is_allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DENY: &str = r#"
        [licenses]
        allow = ["MIT", "Zlib"]
        exceptions = [{ crate = "special", allow = ["CC0-1.0", "Apache-2.0 WITH LLVM-exception"] }]
        [bans]
        deny = [{ crate = "openssl-sys" }]
    "#;

    #[test]
    fn licences_are_those_of_the_list_and_of_exceptions() {
        let rules = toml::from_str::<Rules>(DENY).unwrap();
        for good in ["MIT", "Apache-2.0/MIT", "(GPL-3.0-only OR MIT) AND Zlib"] {
            assert!(rules.allows("any", good), "{good}");
        }
        for bad in ["", "GPL-3.0-only", "MIT AND GPL-3.0-only", "MIT WITH LLVM-exception", "MIT MIT"] {
            assert!(!rules.allows("any", bad), "{bad}");
        }
        for special in ["CC0-1.0", "Apache-2.0 WITH LLVM-exception", "MIT AND CC0-1.0"] {
            assert!(rules.allows("special", special) && !rules.allows("any", special), "{special}");
        }
    }

    #[test]
    fn bans_and_sources_are_enforced() {
        let rules = toml::from_str::<Rules>(DENY).unwrap();
        let crates_io = "registry+https://github.com/rust-lang/crates.io-index";
        let package =
            |name: &str, source: Json| json!({"name": name, "version": "1.0.0", "license": "MIT", "source": source});
        assert_eq!(rules.violation(&package("any", json!(crates_io))), None);
        assert_eq!(rules.violation(&package("paceline", Json::Null)), None);
        let violation = |name, source: &str| rules.violation(&package(name, json!(source)));
        assert_eq!(violation("openssl-sys", crates_io).as_deref(), Some("openssl-sys 1.0.0 is banned"));
        assert!(violation("any", "git+https://example.org/any").is_some_and(|why| why.contains("comes from git+")));
    }
}
