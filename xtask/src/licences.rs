//! The parts of `deny.toml` that need no network and no cargo-deny: licences, banned crates and sources of all dependencies.
//! It takes a second, where installing cargo-deny takes minutes. Known vulnerabilities: `cargo xtask deny`.

use crate::steps::{Problem, command, output, root};
use serde_json::{Value as Json, from_str};
use spdx::{Expression, LicenseReq, ParseMode};
use std::fs;
use toml::{Table, Value};

/// Checks every package of the lock file that some feature or system uses.
pub fn check(_features: &str) -> Result<(), Problem> {
    let path = root().join("deny.toml");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let rules = Rules::parse(&text)?;
    let (json, _) = output(command("cargo metadata --format-version 1 --locked --all-features"))?;
    let metadata: Json = from_str(&json).map_err(|error| format!("`cargo metadata`: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or_else(|| "`cargo metadata` lists no packages".to_owned())?;
    let wrong: Vec<String> = packages.iter().filter_map(|package| rules.violation(package)).collect();
    if wrong.is_empty() {
        eprintln!("licences and sources of {} packages are allowed", packages.len());
        return Ok(());
    }
    Err(Problem::Failed(format!("not allowed by deny.toml:\n{}", wrong.join("\n"))))
}

struct Rules {
    licences: Vec<String>,
    /// A crate and the licences that it may have besides.
    exceptions: Vec<(String, Vec<String>)>,
    banned: Vec<String>,
}

impl Rules {
    fn parse(text: &str) -> Result<Self, String> {
        let file: Table = text.parse().map_err(|error| format!("deny.toml: {error}"))?;
        let tables = |value: &Value| {
            value.as_array().into_iter().flatten().filter_map(Value::as_table).cloned().collect::<Vec<_>>()
        };
        let name = |table: &Table| table.get("crate").map(word).unwrap_or_default();
        let exceptions = tables(&file["licenses"]["exceptions"]);
        Ok(Self {
            licences: words(&file["licenses"]["allow"]),
            exceptions: exceptions.iter().map(|table| (name(table), words(&table["allow"]))).collect(),
            banned: tables(&file["bans"]["deny"]).iter().map(name).collect(),
        })
    }

    /// Why a package is not allowed.
    fn violation(&self, package: &Json) -> Option<String> {
        let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
        let source = package["source"].as_str()?; // crates of the workspace have none
        let licence = package["license"].as_str().unwrap_or_default();
        let why = if self.banned.iter().any(|banned| banned == name) {
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
        // A manifest with a licence file in place of an expression: cargo-deny reads the file, and an exception names it.
        if expression.is_empty() {
            return self.exceptions.iter().any(|(of, licences)| of == name && !licences.is_empty());
        }
        let is_allowed = |licence: &LicenseReq| {
            let exceptions = self.exceptions.iter().filter(|(of, _)| of == name).flat_map(|(_, licences)| licences);
            self.licences.iter().chain(exceptions).any(|allowed| *allowed == licence.to_string())
        };
        Expression::parse_mode(expression, ParseMode::LAX).is_ok_and(|expression| expression.evaluate(is_allowed))
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(word).collect()
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
        let rules = Rules::parse(DENY).unwrap();
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
        let rules = Rules::parse(DENY).unwrap();
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
