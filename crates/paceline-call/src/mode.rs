//! Who plays which half of a call. It follows from the flow's controller.

use paceline::{
    Arrival, Config, Controller, Entry, FeedbackKind, MediaKind, Message, PacketKind, ReceiveHalf, Registry, Setup,
    SignalSpec, Signals,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Time};

/// Which ends of a call are Chromium's and which are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Both are Chromium's, and its own controller is in charge.
    Browser,
    /// Chromium sends; our end receives and steers it by REMB.
    ReceiveSide,
    /// Our end sends; Chromium receives and reports each packet.
    SendSide,
}

/// A controller that Chromium brings along, by what it is started with.
#[derive(Clone, Copy, Debug)]
struct Own {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    trials: &'static str,
}

/// Reports of RFC 8888 in place of transport-wide feedback.
const RFC_8888: &str = "WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/";

/// Each of them. To add one: a line here.
const OWN: [Own; 3] = [
    Own {
        name: "chromium",
        summary: "Chromium at both ends: its GoogCC over transport-wide feedback",
        source: "Chromium as installed",
        trials: "",
    },
    Own {
        name: "chromium-rfc8888",
        summary: "Chromium at both ends: its GoogCC over reports of RFC 8888",
        source: "Chromium as installed, field trial WebRTC-RFC8888CongestionControlFeedback",
        trials: RFC_8888,
    },
    Own {
        name: "chromium-scream",
        summary: "Chromium at both ends: its SCReAM over reports of RFC 8888",
        source: "Chromium as installed, field trials WebRTC-RFC8888CongestionControlFeedback and WebRTC-Bwe-ScreamV2",
        trials: "WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/WebRTC-Bwe-ScreamV2/Enabled/",
    },
];

/// The controllers of this world: those of `registry`, with Chromium's statistics in place of what the half shows that
/// Chromium plays, and Chromium's own.
pub fn registry(registry: Registry) -> Registry {
    use crate::stats::{RECEIVES, SENDS};
    let mut registry = registry.map(|entry| {
        let (name, (send, receive)) = (entry.name(), entry.signals());
        match mode(&entry) {
            Some(Mode::ReceiveSide) => {
                entry.played(format!("{name} at the receiver, Chromium sends"), (SENDS, receive))
            }
            Some(Mode::SendSide) => entry.played(format!("{name} at the sender, Chromium receives"), (send, RECEIVES)),
            Some(Mode::Browser) | None => entry,
        }
    });
    for own in OWN {
        registry.add(Entry::new(own.name, own.summary, own.source, Chromium));
    }
    registry
}

/// The mode of a flow under this controller; none: neither of its halves has anything to say to a browser.
pub fn mode(entry: &Entry) -> Option<Mode> {
    if OWN.iter().any(|own| own.name == entry.name()) {
        return Some(Mode::Browser);
    }
    let Controller { send, receive, feedback, .. } = built(entry)?;
    match receive {
        Some(half) => answers_remb(half).then_some(Mode::ReceiveSide),
        None => (send.is_some() && feedback != FeedbackKind::None).then_some(Mode::SendSide),
    }
}

/// The field trials that a Chromium needs for a flow under this controller.
pub fn trials(entry: &Entry) -> &'static str {
    if let Some(own) = OWN.iter().find(|own| own.name == entry.name()) {
        return own.trials;
    }
    let feedback = built(entry).map(|controller| controller.feedback);
    if matches!(feedback, Some(FeedbackKind::Rfc8888 { .. })) { RFC_8888 } else { "" }
}

fn built(entry: &Entry) -> Option<Controller> {
    let rate = Rate::from_kbps;
    entry.build(&Setup { start: rate(300), min: rate(30), max: rate(2500) }, &[]).ok()
}

/// Whether a receive half says REMB to a sender: it is shown ten seconds of a path, on which a queue builds up at last.
fn answers_remb(mut half: Box<dyn ReceiveHalf>) -> bool {
    let mut signals = Signals::unheard();
    let mut sequence = 0;
    for ms in (0..10_000).step_by(10) {
        let waits = (ms - 5_000).max(0) / 5;
        let (now, sent) = (RemoteTime::from_millis(ms + 20 + waits), Time::from_millis(ms));
        let arrival = Arrival {
            sent: Some(sent),
            timestamp: (ms / 30 * 2700) as u32,
            sequence,
            stream: StreamId(0),
            media: MediaKind::Video,
            kind: PacketKind::Media,
            size: DataSize::from_bytes(400),
            ecn: Ecn::NotEct,
        };
        sequence = sequence.wrapping_add(1);
        half.handle_arrival(now, &arrival, &mut signals);
        if half.poll_timeout() <= now {
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

/// A controller of which nothing is ours.
#[derive(Clone, Copy, Debug)]
struct Chromium;

impl Config for Chromium {
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (crate::stats::SENDS, crate::stats::RECEIVES);
    const CONTROLS: bool = false;

    fn build(&self, _: &Setup) -> Controller {
        Controller { send: None, receive: None, feedback: FeedbackKind::None, ecn: Ecn::NotEct }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mode: Option<Mode>) -> Vec<&'static str> {
        let all = registry(Registry::standard());
        all.iter().filter(|entry| self::mode(entry) == mode).map(Entry::name).collect()
    }

    #[test]
    fn the_mode_follows_from_the_controller() {
        let browser = of(Some(Mode::Browser));
        assert_eq!(browser, ["chromium", "chromium-rfc8888", "chromium-scream"]);
        let receive_side = of(Some(Mode::ReceiveSide));
        let gcc = [
            "gcc-2016",
            "gcc-2016-static",
            "gcc-2016-guarded",
            "gcc-2013",
            "gcc-2015",
            "gcc-dynamic-alpha",
            "gcc-remb-2018",
        ];
        assert_eq!(receive_side, gcc);
        let send_side = of(Some(Mode::SendSide));
        assert_eq!(send_side, ["gcc-tfb", "nada-sender", "scream", "scream-cpp"]);
        let neither = of(None);
        assert_eq!(neither, ["gcc-med16", "nada-2015", "nada", "fixed"]);
    }

    #[test]
    fn the_half_that_chromium_plays_shows_its_statistics() {
        use crate::stats::{RECEIVES, SENDS};
        let (standard, all) = (Registry::standard(), registry(Registry::standard()));
        let signals = |name| all.get(name).unwrap().signals();
        assert_eq!(signals("gcc-2016"), (SENDS, standard.get("gcc-2016").unwrap().signals().1));
        assert_eq!(signals("gcc-tfb"), (standard.get("gcc-tfb").unwrap().signals().0, RECEIVES));
        assert_eq!(signals("chromium"), (SENDS, RECEIVES));
        assert!(all.get("gcc-2016").unwrap().summary().contains("Chromium sends"));
    }
}
