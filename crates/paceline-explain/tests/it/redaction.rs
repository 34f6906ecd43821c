// SPDX-License-Identifier: MIT OR Apache-2.0
//! Redacted copies have none of the secrets that are planted into an input, and the same findings.

use crate::samples;
use paceline_explain::document::{FindingDocument, explain};
use paceline_explain::readers::read_bytes;
use paceline_explain::redact::redact;
use serde_json::{Value, json};

/// A word as statistics may have it, and an address as a number: 203.0.113.77.
const WORD: &str = "kanarie-vogel";
const NUMBER: &str = "3405803853";

/// The word in other encodings.
fn encodings() -> [String; 8] {
    let each = |format: &dyn Fn(u8) -> String| WORD.bytes().map(format).collect::<String>();
    [
        each(&|byte| format!("%{byte:02X}")),
        "a2FuYXJpZS12b2dlbA==".to_owned(),
        each(&|byte| format!("{byte:02x}")),
        NUMBER.to_owned(),
        each(&|byte| format!("{}\0", char::from(byte))),
        "xn--kanarie-vgel-9ib.example".to_owned(),
        format!("\\\"{WORD}\\\""),
        WORD.replace("e-", "e-\r\n "),
    ]
}

/// What must not be in a copy: the word, its halves, and its encodings.
fn is_left(copy: &[u8]) -> Option<String> {
    let encodings = encodings();
    let texts = encodings.iter().map(String::as_str).chain([WORD, "kanarie", "vogel"]);
    let mut found = texts.filter(|text| copy.windows(text.len()).any(|window| window == text.as_bytes()));
    found.next().map(str::to_owned)
}

fn copy_of(input: &[u8]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["in", "out"].map(|name| folder.path().join(name));
    std::fs::write(&from, input).unwrap();
    redact(&from, &to).ok().map(|_| std::fs::read(&to).unwrap())
}

/// The findings of each flow.
fn findings(input: &[u8]) -> Vec<Vec<FindingDocument>> {
    let explanation = explain(&read_bytes(input).unwrap_or_else(|error| panic!("{error}")));
    explanation.flows.into_iter().map(|flow| flow.findings).collect()
}

/// Replaces the value, or the name of a member, at a place, if there is one. Of long lists, two elements have a place.
fn plant(value: &mut Value, place: &mut i64, secret: &str) {
    *place -= 1;
    if *place == -1 {
        *value = secret.into();
        return;
    }
    match value {
        Value::String(text) if text.starts_with(['[', '{']) => {
            if let Ok(mut inner) = serde_json::from_str(text) {
                plant(&mut inner, place, secret);
                *text = inner.to_string();
            }
        }
        Value::Array(items) => {
            let is_long = items.len() > 5;
            let chosen = items.iter_mut().enumerate().filter(|(index, _)| !is_long || [0, 20].contains(index));
            chosen.for_each(|(_, item)| plant(item, place, secret));
        }
        Value::Object(members) => {
            let names: Vec<String> = members.keys().cloned().collect();
            for name in names {
                *place -= 1;
                if *place == -1 {
                    let value = members.remove(&name).unwrap();
                    members.insert(secret.to_owned(), value);
                } else if let Some(value) = members.get_mut(&name) {
                    plant(value, place, secret);
                }
            }
        }
        _ => {}
    }
}

/// Plants secrets at every place of a list of documents, and checks the copies. Returns how many there were.
fn check(documents: &[Value], write: &dyn Fn(&[Value]) -> String) -> u32 {
    let mut copies = 0;
    for secret in [WORD, NUMBER, &encodings().join(" ")] {
        for place in 0.. {
            let (mut left, mut planted) = (place, documents.to_vec());
            let is_long = planted.len() > 5;
            let chosen = planted.iter_mut().enumerate().filter(|(index, _)| !is_long || [1, 20].contains(index));
            chosen.for_each(|(_, document)| plant(document, &mut left, secret));
            if left >= 0 {
                break;
            }
            let text = write(&planted);
            if let Some(copy) = copy_of(text.as_bytes()) {
                copies += 1;
                let left = is_left(&copy);
                assert!(left.is_none(), "{left:?} of place {place} is in {}", String::from_utf8_lossy(&copy));
            }
        }
    }
    copies
}

fn lines(documents: &[Value]) -> String {
    documents.iter().map(|document| format!("{document}\n")).collect()
}

fn parsed(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn statistics_keep_no_text_at_any_place() {
    assert!(check(&parsed(&samples::lines()), &lines) > 60);
    assert!(check(&parsed(&samples::rtcstats()), &lines) > 40);
    let dump = [serde_json::from_str(&samples::internals()).unwrap()];
    assert!(check(&dump, &|documents| documents[0].to_string()) > 200);
}

/// Secrets in ids, in states and in members that are not read.
#[test]
fn statistics_with_secrets_have_the_same_findings() {
    let secret = encodings().join(" ");
    let ids = |text: String| text.replace("O1", &format!("O {WORD}")).replace("R1", NUMBER).replace("9-1", WORD);
    let more = |mut document: Value| {
        for object in document.as_object_mut().into_iter().flatten().filter_map(|(_, object)| object.as_object_mut()) {
            for name in ["state", "qualityLimitationReason", "kind", "trackIdentifier", "url", &secret] {
                object.insert(name.to_owned(), secret.clone().into());
            }
            object.insert("type2".to_owned(), json!({"iceServers": [{"username": secret, "credential": NUMBER}]}));
        }
        document
    };
    let samples = [
        lines(&parsed(&ids(samples::lines())).into_iter().map(more).collect::<Vec<_>>()),
        ids(samples::rtcstats()),
        samples::internals().replace("OT01V1", WORD).replace("CPa_b", NUMBER).replace("secret", WORD),
    ];
    for text in samples {
        let copy = copy_of(text.as_bytes()).unwrap();
        assert!(is_left(text.as_bytes()).is_some() && is_left(&copy).is_none(), "{}", String::from_utf8_lossy(&copy));
        let found = findings(text.as_bytes());
        assert!(!found[0].is_empty());
        assert_eq!(findings(&copy), found);
    }
}

#[test]
fn event_logs_keep_only_the_events_that_are_read() {
    let log = samples::event_log();
    let secret = encodings().join(" ").into_bytes();
    // A record that is not read, members that are not read, and an APP packet in RTCP.
    let mut app = [&[0x80, 204, 0, 5, 0, 0, 0, 7][..], WORD.as_bytes()].concat();
    app.resize(24, 0);
    let rtcp = [samples::number(1, 12_000), samples::field(2, &app), samples::field(99, &secret)].concat();
    let planted = [
        log.clone(),
        samples::field(17, &samples::field(3, &secret)),
        samples::field(5, &rtcp),
        samples::field(23, &[samples::number(1, 26_000), samples::number(2, 5), samples::field(9, &secret)].concat()),
    ]
    .concat();
    let copy = copy_of(&planted).unwrap();
    assert!(is_left(&planted).is_some() && is_left(&copy).is_none());
    let (before, after) = (read_bytes(&log).unwrap(), read_bytes(&copy_of(&log).unwrap()).unwrap());
    assert_eq!(before, after);
    assert!(!findings(&planted)[0].is_empty());
    assert_eq!(findings(&copy), findings(&planted));
}

#[test]
fn captures_of_calls_have_the_same_findings() {
    let capture = samples::capture();
    let copy = copy_of(&capture).unwrap();
    assert!(copy.len() < capture.len() && !findings(&capture).is_empty());
    assert_eq!(findings(&copy), findings(&capture));
}
