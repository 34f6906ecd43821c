// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which endpoints of a call are Chromium and which are local, derived from the flow's controller.

use paceline::{
    Arrival, Config, Controller, Entry, FeedbackRequirement, Message, Parameters, ReceiveHalf, Registry, Setup,
    SignalTables, Signals,
};
use paceline_netsim::flow::{FeedbackFormat, FeedbackFormats};
use paceline_units::{DataSize, Rate, RemoteTime, Time};

/// Assigns Chromium or a local endpoint to the two sides of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRoles {
    /// Chromium sends and receives with its own controller.
    BothChromium,
    /// Chromium sends. The local endpoint receives and limits the sender by REMB.
    LocalReceiver,
    /// The local endpoint sends. Chromium receives and reports each packet.
    LocalSender,
}

/// A controller built into Chromium, selected by field trials.
#[derive(Clone, Copy, Debug)]
struct BuiltIn {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    field_trials: &'static str,
}

/// Field trial that replaces transport-wide feedback by RFC 8888 reports.
const RFC_8888: &str = "WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/";

/// Chromium's controllers. A new one needs one entry here.
const BUILT_IN: [BuiltIn; 3] = [
    BuiltIn {
        name: "chromium",
        summary: "Chromium at both ends: its GoogCC over transport-wide feedback",
        source: "Chromium as installed",
        field_trials: "",
    },
    BuiltIn {
        name: "chromium-rfc8888",
        summary: "Chromium at both ends: its GoogCC over reports of RFC 8888",
        source: "Chromium as installed, field trial WebRTC-RFC8888CongestionControlFeedback",
        field_trials: RFC_8888,
    },
    BuiltIn {
        name: "chromium-scream",
        summary: "Chromium at both ends: its SCReAM over reports of RFC 8888",
        source: "Chromium as installed, field trials WebRTC-RFC8888CongestionControlFeedback and WebRTC-Bwe-ScreamV2",
        field_trials: "WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/WebRTC-Bwe-ScreamV2/Enabled/",
    },
];

/// Returns the controllers that this world supports: those of `registry` and Chromium's own. Where Chromium replaces a
/// half of a controller, the signals of that half are Chromium's statistics.
pub fn registry(registry: Registry) -> Registry {
    use crate::call::stats::{RECEIVER_SIGNALS, SENDER_SIGNALS};
    let mut registry = registry.map(|entry| {
        let (name, (send, receive)) = (entry.name(), entry.signals());
        match roles_for(&entry) {
            Some(CallRoles::LocalReceiver) => {
                entry.with_remote_half(format!("{name} at the receiver, Chromium sends"), (SENDER_SIGNALS, receive))
            }
            Some(CallRoles::LocalSender) => {
                entry.with_remote_half(format!("{name} at the sender, Chromium receives"), (send, RECEIVER_SIGNALS))
            }
            Some(CallRoles::BothChromium) | None => entry,
        }
    });
    for own in BUILT_IN {
        registry.add(Entry::new(own.name, own.summary, own.source, Chromium));
    }
    registry
}

/// Returns the roles for a flow with this controller, or `None` if no half of the controller can work with a browser.
pub fn roles_for(entry: &Entry) -> Option<CallRoles> {
    if BUILT_IN.iter().any(|own| own.name == entry.name()) {
        return Some(CallRoles::BothChromium);
    }
    let Controller { send, receive, feedback, .. } = built(entry)?;
    match receive {
        Some(half) => sends_remb(half).then_some(CallRoles::LocalReceiver),
        None => (send.is_some() && feedback.is_some()).then_some(CallRoles::LocalSender),
    }
}

/// Returns the field trials that Chromium needs for a flow with this controller.
pub fn field_trials(entry: &Entry) -> &'static str {
    if let Some(own) = BUILT_IN.iter().find(|own| own.name == entry.name()) {
        return own.field_trials;
    }
    let format = built(entry).and_then(|controller| feedback_format(controller.feedback));
    if format == Some(FeedbackFormat::Rfc8888) { RFC_8888 } else { "" }
}

/// Returns the format of per-packet feedback that a call offers for this requirement. Chromium supports every format.
pub(crate) fn feedback_format(wanted: Option<FeedbackRequirement>) -> Option<FeedbackFormat> {
    wanted.and_then(|wanted| FeedbackFormats::default().choose(&wanted))
}

fn built(entry: &Entry) -> Option<Controller> {
    let rate = Rate::from_kbps;
    entry.build(&Setup::new(rate(300), rate(30), rate(2500)), &[]).ok()
}

/// Returns whether a receive half sends REMB. It processes ten seconds of arrivals; a queue grows in the second half.
fn sends_remb(mut half: Box<dyn ReceiveHalf>) -> bool {
    let mut signals = Signals::disabled();
    let mut sequence = 0;
    for ms in (0..10_000).step_by(10) {
        let waits = (ms - 5_000).max(0) / 5;
        let (now, sent) = (RemoteTime::from_millis(ms + 20 + waits), Time::from_millis(ms));
        let arrival = Arrival::new((ms / 30 * 2700) as u32, sequence, DataSize::from_bytes(400)).with_sent(Some(sent));
        sequence = sequence.wrapping_add(1);
        half.handle_arrival(now, &arrival, &mut signals);
        if half.poll_timeout().is_some_and(|due| due <= now) {
            half.handle_timeout(now, &mut signals);
        }
        while let Some(message) = half.poll_message(now) {
            if matches!(message, Message::Remb(_)) {
                return true;
            }
        }
    }
    false
}

/// The configuration of a controller that runs entirely inside Chromium.
#[derive(Clone, Copy, Debug)]
struct Chromium;

impl Parameters for Chromium {}

impl Config for Chromium {
    const SIGNALS: SignalTables = (crate::call::stats::SENDER_SIGNALS, crate::call::stats::RECEIVER_SIGNALS);
    const CONTROLS: bool = false;

    fn halves(&self, _: &Setup) -> Controller {
        Controller::new(None, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(roles: Option<CallRoles>) -> Vec<&'static str> {
        let all = registry(Registry::standard());
        all.iter().filter(|entry| roles_for(entry) == roles).map(Entry::name).collect()
    }

    #[test]
    fn assigns_roles_by_controller() {
        let browser = of(Some(CallRoles::BothChromium));
        assert_eq!(browser, ["chromium", "chromium-rfc8888", "chromium-scream"]);
        let receive_side = of(Some(CallRoles::LocalReceiver)).join(" ");
        let gcc = "gcc-2016 gcc-2016-static gcc-2016-guarded gcc-2013 gcc-2015 gcc-dynamic-alpha gcc-draft-2015 gcc-remb-2018";
        assert_eq!(receive_side, gcc);
        let send_side = of(Some(CallRoles::LocalSender)).join(" ");
        let others =
            "gcc-tfb googcc googcc-2024 nada-sender scream scream-cpp scream-v2 scream-v2-cpp scream-libwebrtc drc";
        assert_eq!(send_side, others);
        let neither = of(None);
        assert_eq!(neither, ["gcc-med16", "nada-2015", "nada", "fixed"]);
    }

    #[test]
    fn replaces_signals_of_chromiums_half_by_its_statistics() {
        use crate::call::stats::{RECEIVER_SIGNALS, SENDER_SIGNALS};
        let (standard, all) = (Registry::standard(), registry(Registry::standard()));
        let signals = |name| all.get(name).unwrap().signals();
        assert_eq!(signals("gcc-2016"), (SENDER_SIGNALS, standard.get("gcc-2016").unwrap().signals().1));
        assert_eq!(signals("gcc-tfb"), (standard.get("gcc-tfb").unwrap().signals().0, RECEIVER_SIGNALS));
        assert_eq!(signals("chromium"), (SENDER_SIGNALS, RECEIVER_SIGNALS));
        assert!(all.get("gcc-2016").unwrap().summary().contains("Chromium sends"));
    }
}
