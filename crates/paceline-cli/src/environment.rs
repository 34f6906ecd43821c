// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine and the operating system that results are made on.

use paceline_netsim::records::Environment;
use std::fs;
use std::sync::OnceLock;

/// The commit of the source, or `unknown`.
const COMMIT: &str = env!("PACELINE_COMMIT");

/// Returns the environment of this process.
pub fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| Environment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: Some(COMMIT.to_owned()),
        machine: machine(),
        system: Some(system()),
    })
}

/// Returns the model and the number of processors; the number alone on systems that have no `/proc`.
fn machine() -> Option<String> {
    let number = std::thread::available_parallelism().ok()?;
    let number = format!("{number} processor{}", if number.get() == 1 { "" } else { "s" });
    let model = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| model(&text));
    Some(model.map_or(number.clone(), |model| format!("{model}, {number}")))
}

/// Returns the model of the first processor in the text of `/proc/cpuinfo`.
fn model(cpuinfo: &str) -> Option<String> {
    let value = |line: &str| {
        line.split_once(':').filter(|(key, _)| key.trim() == "model name").map(|(_, value)| value.trim().to_owned())
    };
    cpuinfo.lines().find_map(value).filter(|model| !model.is_empty())
}

fn system() -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").map(|text| format!(" {}", text.trim()));
    format!("{}{}, {}", std::env::consts::OS, kernel.unwrap_or_default(), std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_model_of_the_first_processor() {
        let text = "processor\t: 0\nmodel name\t: A Processor @ 2 GHz\n\nprocessor\t: 1\nmodel name\t: B\n";
        assert_eq!(model(text).as_deref(), Some("A Processor @ 2 GHz"));
        assert_eq!(model("processor : 0\nBogoMIPS : 100\n"), None);
        assert_eq!(environment().commit.as_deref(), Some(COMMIT));
        assert!(environment().system.as_ref().is_some_and(|system| system.contains(", ")));
    }
}
