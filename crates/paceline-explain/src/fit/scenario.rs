// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fitted path as a scenario file, with what is known and how well in its comments.

use super::PathFit;
use super::capacity::Evidence;
use super::loss::LossFit;
use super::observation::{Clocks, Observation};

/// Returns media flows with these controllers (name of the flow, name of the controller), which start and end with the targets that
/// were seen. A flow without targets, such as TCP, is left out, with a comment.
pub fn media_flows(flows: &[(String, String)], seen: &Observation) -> String {
    let flow = |(id, controller): &(String, String)| {
        let place = seen.flows.iter().position(|name| name == id);
        let Some((first, highest)) = place.and_then(|place| seen.targets[place]) else {
            return format!("\n# The flow `{id}` is left out: it has no target rate, as TCP.\n");
        };
        format!(
            "\n[[flow]]\nid = \"{id}\"\ncontroller = \"{controller}\"\nstart_rate = \"{first:.0} bps\"\nencoder = {{ max = \"{highest:.0} bps\" }}\n"
        )
    };
    flows.iter().map(flow).collect()
}

/// Returns the scenario file. `origin` describes the input in a few words, and `flows` is the text of its flows.
pub fn write(fit: &PathFit, seen: &Observation, origin: &str, duration_s: f64, flows: &str) -> String {
    let PathFit { capacity, loss, .. } = fit;
    let mut text = format!(
        "# A path as its ends saw it: {origin}.\n# {} packets of {}, {duration_s:.1} s.\n",
        seen.forward.len(),
        seen.flows.join(", ")
    );
    text += "id = \"fitted\"\ntitle = \"A fitted path\"\n";
    text += &format!("duration = \"{:.0} ms\"\n\n[path.forward]\n", duration_s * 1e3);
    match &capacity.evidence {
        Evidence::LowerBound => {
            text +=
                "# A lower bound: too few packets waited behind another one. The path carried at least this rate.\n";
        }
        Evidence::Waited { packets, range, is_clear } => {
            text += &format!(
                "# From {packets} packets that waited behind another one. 80 % of samples of 20 such packets are from\n\
                 # {:.1} to {:.1} % of this rate.\n",
                range.0 * 100.0,
                range.1 * 100.0
            );
            if !is_clear {
                text += "# They differ much: the capacity changes often, other traffic shares the path, or packets do not keep\n\
                         # their distance. Steps cannot be distinguished, so this is the median.\n";
            }
        }
    }
    if capacity.steps.len() > 1 {
        text +=
            "# A step lies between the samples beside it. While no packet waited, the capacity may have been higher.\n";
    }
    if fit.passes_at_once {
        text += match fit.has_capacity() {
            true => {
                "# Large packets take no more time than small ones: a token bucket may let bursts pass. This line does not.\n"
            }
            false => "# Large packets take no more time than small ones, so the capacity is far higher.\n",
        };
    }
    text += &match &*capacity.steps {
        [(_, bps)] => format!("capacity = \"{bps:.0} bps\"\n"),
        steps => {
            let steps: Vec<String> =
                steps.iter().map(|(at, bps)| format!("[\"{at:.2} s\", \"{bps:.0} bps\"]")).collect();
            format!("capacity = [{}]\n", steps.join(", "))
        }
    };
    text += match (seen.clocks, fit.reverse_s) {
        (Clocks::Same, _) => "# The smallest delay, less the time of the packet on the link.\n",
        (Clocks::Apart, Some(_)) => {
            "# Half of the smallest round-trip time, less the time of reports on the link: the clocks are not synchronised,\n\
             # so the delay of each way is not known.\n"
        }
        (Clocks::Apart, None) => "# Not known: no receiver report gave a round-trip time.\n",
    };
    text += &format!("delay = \"{:.3} ms\"\n", fit.forward_s * 1e3);
    text += &match fit.was_full {
        true => format!("# The longest wait. The queue was full: {} packets were lost there.\n", loss.overflows),
        false => "# The longest wait. The queue was not seen full, so it may be longer.\n".to_owned(),
    };
    text += &format!("queue = {{ limit = \"{:.1} ms\" }}\n", (fit.longest_wait_s * 1e3).max(1.0));
    text += &loss_text(loss);
    if fit.marked > 0 {
        text += &format!("# {} packets arrived marked (CE); this scenario marks none.\n", fit.marked);
    }
    text += "\n[path.reverse]\n";
    text += match fit.reverse_loss {
        Some(_) => "# Its capacity is not fitted.\n",
        None => "# Its capacity and its losses are not known.\n",
    };
    text += &format!("delay = \"{:.3} ms\"\n", fit.reverse_s.unwrap_or(0.0) * 1e3);
    if let Some(loss) = &fit.reverse_loss {
        text += &loss_text(loss);
    }
    if !flows.starts_with('\n') {
        text.push('\n');
    }
    text + flows
}

fn loss_text(loss: &LossFit) -> String {
    let percent = |share: f64| format!("{:.4} %", share * 100.0);
    let mut text = format!(
        "# {} of {} packets lost at random: from {:.3} to {:.3} % (95 %).\n",
        loss.lost,
        loss.packets,
        loss.interval.0 * 100.0,
        loss.interval.1 * 100.0
    );
    match loss.bursts {
        Some((to_bad, to_good)) => {
            text += "# Losses come in bursts.\n";
            text += &format!(
                "loss = {{ model = \"gilbert-elliott\", to_bad = \"{}\", to_good = \"{}\" }}\n",
                percent(to_bad),
                percent(to_good)
            );
        }
        None if loss.lost == 0 => {}
        None => text += &format!("loss = \"{}\"\n", percent(loss.ratio)),
    }
    text
}
