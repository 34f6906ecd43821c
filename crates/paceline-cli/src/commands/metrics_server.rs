// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of a session in the text format of Prometheus (exposition format 0.0.4), over HTTP on the loopback.

use miette::{IntoDiagnostic, Result, miette};
use paceline_live::http::Document;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A metric: name without prefix, whether it is a counter, what it is, value.
pub struct Metric {
    name: &'static str,
    is_counter: bool,
    help: &'static str,
    value: f64,
}

/// Returns a counter.
pub fn counter(name: &'static str, help: &'static str, value: u64) -> Metric {
    Metric { name, is_counter: true, help, value: value as f64 }
}

/// Returns a gauge.
pub fn gauge(name: &'static str, help: &'static str, value: f64) -> Metric {
    Metric { name, is_counter: false, help, value }
}

/// Serves the latest metrics at `/metrics` until the process ends.
pub struct MetricsServer(Arc<Mutex<String>>);

impl MetricsServer {
    /// Starts a server at this address.
    ///
    /// # Errors
    /// The address is not on the loopback, or is in use.
    pub fn start(address: SocketAddr) -> Result<Self> {
        if !address.ip().is_loopback() {
            let help = "use an address such as 127.0.0.1:9778, and a proxy for other machines";
            return Err(miette!(help = help, "--metrics listens on the loopback only, not at {address}"));
        }
        let listener = TcpListener::bind(address).map_err(|error| miette!("cannot listen at {address}: {error}"))?;
        eprintln!("metrics are at http://{}/metrics", listener.local_addr().into_diagnostic()?);
        let text = Arc::new(Mutex::new(String::new()));
        let shared = text.clone();
        let body = move || shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let document = Document { path: "/metrics", kind: "text/plain; version=0.0.4", body };
        let serve = move || document.serve(listener);
        thread::Builder::new().name("metrics".to_owned()).spawn(serve).into_diagnostic()?;
        Ok(Self(text))
    }

    /// Replaces the metrics.
    pub fn set(&self, metrics: &[Metric]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text(metrics);
    }
}

fn text(metrics: &[Metric]) -> String {
    let mut text = String::new();
    for Metric { name, is_counter, help, value } in metrics {
        let (suffix, kind) = if *is_counter { ("_total", "counter") } else { ("", "gauge") };
        let name = format!("paceline_{name}{suffix}");
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_type_help_and_value() {
        let text = text(&[counter("packets", "Packets.", 3), gauge("rate_bps", "Rate.", 1.5)]);
        let expected = "# HELP paceline_packets_total Packets.\n# TYPE paceline_packets_total counter\npaceline_packets_total 3\n\
                        # HELP paceline_rate_bps Rate.\n# TYPE paceline_rate_bps gauge\npaceline_rate_bps 1.5\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn other_addresses_than_the_loopback_are_refused() {
        let error = MetricsServer::start("0.0.0.0:0".parse().unwrap()).err().unwrap();
        assert!(error.to_string().contains("loopback only"), "{error}");
    }
}
