//! What `send` and `recv` share: from the terms of a session to the flows that both ends build.

use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_hosts::flow_number::Ssrcs;
use paceline_hosts::message::SessionId;
use paceline_hosts::seal::{SECRET_MIN, Secret};
use paceline_hosts::sender::Flows;
use paceline_hosts::terms::Terms;
use paceline_lab::registries;
use paceline_netsim::backend::EPOCH;
use paceline_netsim::media_flow::{self, PreparedFlow};
use paceline_scenario::{Changes, Origin, Scenario};
use paceline_units::{RandomStreams, Rate, Time};
use paceline_wire::ExtensionIds;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The UDP port, if no other is given. It is below the range from which systems choose ports of clients.
pub const PORT: u16 = 9777;

/// Sources that need no files, which the other host would not have.
pub const SOURCES: [&str; 3] = ["encoder", "ideal", "screen"];

/// The scenario of a session: the flows of one direction, over a path of which nothing is known.
pub fn scenario_text(terms: &Terms) -> String {
    let head = format!(
        "id = \"hosts\"\ntitle = \"Media between two hosts\"\nduration = \"{} ms\"\n[path.forward]\n[path.reverse]\n",
        terms.duration_ms
    );
    let flow = |number| match terms.flows {
        1 => flow_text("media", terms),
        _ => flow_text(&format!("media-{number}"), terms),
    };
    head + &(1..=terms.flows).map(flow).collect::<String>()
}

fn flow_text(id: &str, terms: &Terms) -> String {
    let rate = |bps| Rate::from_bps(bps).to_string();
    format!(
        r#"[[flow]]
id = "{id}"
controller = "{}"
start_rate = "{}"
min_rate = "{}"
encoder = {{ source = "{}", max = "{}" }}
"#,
        terms.controller,
        rate(terms.start_bps),
        rate(terms.min_bps),
        terms.source,
        rate(terms.max_bps)
    )
}

/// Loads the scenario of a session.
///
/// # Errors
/// The controller or the source does not accept the terms.
pub fn scenario(terms: &Terms, registry: &Registry) -> Result<Scenario> {
    let origin = Origin::from_text("hosts", scenario_text(terms));
    Ok(paceline_scenario::load(&origin, &Changes::default(), registries(registry))?)
}

/// Builds the flows of a session that starts at `start`. Both ends derive the same stream identifiers from that of the session.
///
/// # Errors
/// The controller or the source cannot be built.
pub fn flows(
    scenario: &Scenario,
    id: SessionId,
    terms: &Terms,
    start: Time,
    registry: &Registry,
    signals: bool,
) -> Result<Flows> {
    let count = scenario.plan.flows.len();
    let total = if terms.both { 2 * count } else { count };
    let ssrcs = Ssrcs::new(id, total);
    let build = |number: usize| {
        let (index, plan) = (number % count, &scenario.plan.flows[number % count]);
        let media = plan.media().expect("the scenario has media flows");
        let entry = media_flow::controller(plan, media, registry).into_diagnostic()?;
        // The other direction has other frames.
        let streams = RandomStreams::new(terms.seed.wrapping_add((number / count) as u64));
        let prepared = PreparedFlow::new(index, plan, media, entry, &streams, signals && number < count);
        let prepared = prepared.into_diagnostic()?;
        let mut infos = prepared.stream_infos().to_vec();
        let [info] = &mut *infos else { return Err(miette!("a flow between hosts has one stream")) };
        let [ssrc, rtx_ssrc, receiver_ssrc] = ssrcs.of(number);
        (info.ssrc, info.rtx_ssrc) = (ssrc, rtx_ssrc);
        let terms = media_flow::Terms {
            extensions: ExtensionIds::default(),
            streams: infos,
            source: None,
            wall_clock: EPOCH,
            receiver_ssrc,
        };
        prepared.begin(start, terms).into_diagnostic()
    };
    Ok(Flows {
        forward: (0..count).map(build).collect::<Result<_>>()?,
        back: (count..total).map(build).collect::<Result<_>>()?,
    })
}

/// The environment variable with the secret, if no file is given.
const SECRET: &str = "PACELINE_SECRET";

/// Returns the secret of the file, or of the environment variable; `None` if there is neither. Arguments would show in lists of
/// processes.
///
/// # Errors
/// The file cannot be read, or the secret is too short.
pub fn secret(file: Option<&Path>) -> Result<Option<Secret>> {
    let (text, place) = match file {
        Some(file) => {
            let text = std::fs::read(file).map_err(|error| miette!("cannot read {}: {error}", file.display()))?;
            (text, file.display().to_string())
        }
        None => match std::env::var_os(SECRET) {
            Some(text) => (text.into_encoded_bytes(), SECRET.to_owned()),
            None => return Ok(None),
        },
    };
    let help = "write a random one with: head -c 32 /dev/urandom | base64 > secret";
    let secret = Secret::new(&text);
    secret.map(Some).ok_or_else(|| miette!(help = help, "the secret in {place} is shorter than {SECRET_MIN} bytes"))
}

/// Returns a flag that SIGINT and SIGTERM set.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).into_diagnostic()?;
    }
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_and_controller_makes_a_flow() {
        let registry = Registry::standard();
        let terms = |controller: &str, source: &str| Terms {
            controller: controller.to_owned(),
            source: source.to_owned(),
            start_bps: 300_000,
            min_bps: 30_000,
            max_bps: 1_234_567,
            duration_ms: 1500,
            seed: 3,
            flows: 2,
            both: true,
            tcp: false,
        };
        let all = registry.iter().map(|entry| terms(entry.name(), SOURCES[0]));
        for terms in all.chain(SOURCES.map(|source| terms("fixed", source))) {
            let scenario = scenario(&terms, &registry).unwrap();
            let flows = flows(&scenario, SessionId([1; 8]), &terms, Time::ZERO, &registry, false).unwrap();
            assert_eq!((flows.forward.len(), flows.back.len()), (2, 2), "{terms:?}");
            assert_eq!(scenario.plan.duration, terms.duration());
            let media = scenario.plan.flows[0].media().unwrap();
            assert_eq!(media.streams[0].source.range().1, terms.max(), "text keeps the rate exactly");
        }
    }
}
