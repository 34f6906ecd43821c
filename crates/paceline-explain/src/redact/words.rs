//! Strings without what identifies people or machines.

use super::text;
use serde::de::IgnoredAny;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Strings under these keys, compared in lower case, are replaced whole.
const KEYS: &[&str] = &[
    "address",
    "base64certificate",
    "brand",
    "conferencename",
    "confname",
    "credential",
    "email",
    "endpoints",
    "fingerprint",
    "focus",
    "fullversionlist",
    "googderbase64",
    "googfingerprint",
    "groupid",
    "host",
    "hostname",
    "icepwd",
    "iceufrag",
    "ip",
    "jwt",
    "label",
    "locations",
    "meeting_id",
    "meetinguniqueid",
    "muc",
    "origin",
    "password",
    "path",
    "peer",
    "pwd",
    "relatedaddress",
    "remoteaddresses",
    "rid_label",
    "room",
    "roomname",
    "server",
    "shard",
    "stats_id",
    "text",
    "token",
    "trackidentifier",
    "ufrag",
    "user",
    "useragent",
    "userid",
    "username",
];
/// The same for keys that end so.
const KEY_ENDS: &[&str] = &[
    "apikey",
    "appkey",
    "clientid",
    "confid",
    "deviceid",
    "displayname",
    "domain",
    "msid",
    "sdkkey",
    "statsid",
    "uri",
    "url",
    "urls",
    "usernamefragment",
];
/// Lines of a session description whose value is replaced.
const LINES: &[&str] = &[
    "o=",
    "s=",
    "i=",
    "u=",
    "e=",
    "p=",
    "k=",
    "a=crypto:",
    "a=identity:",
    "a=key-mgmt:",
    "a=ice-ufrag:",
    "a=ice-pwd:",
    "a=fingerprint:",
    "a=cname:",
    "a=msid:",
    "a=msid-semantic:",
];
/// Names in text whose value is replaced.
const NAMES: &[&str] = &["label:", "address:"];
/// What replaces names and addresses.
pub(super) const REPLACED: &str = "x";
const ADDRESS: &str = "0.0.0.0";
/// Strings of JSON within strings of JSON are read to this depth; deeper ones are replaced whole.
const DEPTH_MAX: usize = 6;
/// How a user agent begins.
const AGENT: &str = "Mozilla/";

/// Returns whether the values of a key are replaced whole. Series of webrtc-internals have an id before their key: `IT1-label`.
pub(super) fn is_private(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let last = key.rsplit('-').next().unwrap_or_default();
    [key.as_str(), last].iter().any(|key| KEYS.binary_search(key).is_ok())
        || KEY_ENDS.iter().any(|end| key.ends_with(end))
}

/// Returns a JSON string, still escaped. A string without anything to replace stays as it is, byte for byte.
pub(super) fn escaped(raw: &str, depth: usize) -> String {
    let Some(plain) = unescape(raw) else { return lines(raw) };
    let out = content(&plain, depth);
    if out == plain { raw.to_owned() } else { escape(&out) }
}

/// Returns a text, which may be JSON itself.
fn content(text: &str, depth: usize) -> String {
    let start = text.trim_start();
    if !start.starts_with(['{', '[']) || !text.contains('"') {
        return lines(text);
    }
    if depth >= DEPTH_MAX {
        return REPLACED.to_owned();
    }
    if start.trim_start_matches(['{', '[']).starts_with("\\\"")
        && let Some(inner) = unescape(text)
    {
        return escape(&content(&inner, depth + 1));
    }
    let mut copied = Vec::new();
    if text::copy_text(text, &mut copied, depth + 1).is_err() {
        return REPLACED.to_owned();
    }
    let copied = String::from_utf8_lossy(&copied).into_owned();
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => copied,
        // Constraints of webrtc-internals: the keys have no quotes.
        Err(_) if ["deviceId", "groupId", "sourceId"].iter().any(|key| text.contains(key)) => lines(&unquoted(&copied)),
        Err(_) => lines(&copied),
    }
}

/// Replaces all that is in quotes.
fn unquoted(text: &str) -> String {
    let parts = text.split('"').enumerate();
    let parts: Vec<&str> = parts.map(|(index, part)| if index % 2 == 1 { REPLACED } else { part }).collect();
    parts.join("\"")
}

fn unescape(raw: &str) -> Option<String> {
    if !raw.contains('\\') {
        return Some(raw.to_owned());
    }
    serde_json::from_str(&format!("\"{raw}\"")).ok()
}

fn escape(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Replaces line by line. Session descriptions of some dumps have escaped line breaks.
pub(super) fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (end, length) = line_end(rest).unwrap_or((rest.len(), 0));
        out += &line(&rest[..end]);
        out += &rest[end..end + length];
        rest = &rest[end + length..];
    }
    out
}

/// Returns the place and the length of the first line break.
fn line_end(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    (0..bytes.len()).find_map(|at| match bytes[at] {
        b'\r' | b'\n' => Some((at, 1)),
        b'\\' if matches!(bytes.get(at + 1), Some(b'r' | b'n')) => Some((at, 2)),
        _ => None,
    })
}

fn line(line: &str) -> String {
    let trimmed = line.trim_start_matches('\\');
    let kept = &line[..line.len() - trimmed.len()];
    let tail = if line.ends_with('\\') { "\\" } else { "" };
    if let Some(start) = LINES.iter().find(|start| trimmed.starts_with(**start)) {
        return format!("{kept}{start}{REPLACED}{tail}");
    }
    // Attributes of a source: cname, msid, label.
    if trimmed.starts_with("a=ssrc:")
        && let Some((source, attribute)) = trimmed.split_once(' ')
        && let Some((name, _)) = attribute.split_once(':')
    {
        return format!("{kept}{source} {name}:{REPLACED}{tail}");
    }
    match line.find(AGENT) {
        Some(at) => format!("{}{REPLACED}{tail}", named(&line[..at])),
        None => named(line),
    }
}

/// Replaces what follows a name, up to the next one: `label: my camera, ordered: true` of older dumps.
fn named(text: &str) -> String {
    let Some((at, name)) = NAMES.iter().filter_map(|name| Some((text.find(name)?, *name))).min() else {
        return urls(text);
    };
    let (before, value) = text.split_at(at + name.len());
    let (value, after) = value.split_at(next_name(value));
    let start = value.len() - value.trim_start().len();
    let replaced = if start < value.len() { REPLACED } else { "" };
    format!("{}{}{replaced}{}", urls(before), &value[..start], named(after))
}

/// Returns the place of the first `, name:`.
fn next_name(text: &str) -> usize {
    let is_name = |at: &usize| {
        let rest = text[at + 1..].trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        end > 0 && rest[end..].starts_with(':')
    };
    text.match_indices(',').map(|(at, _)| at).find(is_name).unwrap_or(text.len())
}

/// Replaces URLs, and in the text between them words.
fn urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = scheme_end(rest) {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        let scheme = rest[..at].trim_end_matches(is_scheme).len();
        out += &words(&rest[..scheme]);
        out += &rest[scheme..at];
        out += "://";
        out += REPLACED;
        rest = &rest[at + 1..];
        rest = &rest[url_end(rest)..];
    }
    out + &words(rest)
}

/// Returns the place of the colon before the slashes of a URL.
fn scheme_end(text: &str) -> Option<usize> {
    let is_url = |at: &usize| text[at + 1..].starts_with("//") || text[at + 1..].starts_with("\\/\\/");
    text.match_indices(':').map(|(at, _)| at).find(is_url)
}

fn url_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_end = |at: usize| match bytes[at] {
        b'"' | b'\'' | b'<' | b'>' | b' ' | b'\t' => true,
        b'\\' => bytes.get(at + 1) != Some(&b'/'),
        _ => false,
    };
    (0..bytes.len()).find(|at| is_end(*at)).unwrap_or(bytes.len())
}

fn words(text: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || ".:-_%[]/@+?&".contains(c);
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut before) = (text, "");
    while let Some(start) = rest.find(is_part) {
        out += &rest[..start];
        rest = &rest[start..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        // The user name of ICE in a candidate.
        match before {
            "ufrag" | "pwd" => out += REPLACED,
            _ => out += &replaced(word).unwrap_or_else(|| word.to_owned()),
        }
        before = word;
        rest = &rest[end..];
    }
    out + rest
}

/// Returns what replaces a word: addresses, with a port or without, names of hosts with a port, mDNS names, addresses of servers
/// and of users.
fn replaced(word: &str) -> Option<String> {
    for scheme in ["turn:", "turns:", "stun:", "stuns:"] {
        let at = word.find(scheme).filter(|at| *at == 0 || !word.as_bytes()[at - 1].is_ascii_alphanumeric());
        if let Some(at) = at.filter(|at| at + scheme.len() < word.len()) {
            return Some(format!("{}{REPLACED}", &word[..at + scheme.len()]));
        }
    }
    // A URL without its scheme.
    if word.len() > 2 && word.starts_with("//") {
        return Some(format!("//{REPLACED}"));
    }
    if word.trim_matches('@').contains('@') {
        return Some(REPLACED.to_owned());
    }
    let is_host = |part: &str| is_v4(part) || part.trim_end_matches('.').ends_with(".local") || part == "localhost";
    let is_address = word.split(|c| ":/-_%[]?&+@".contains(c)).any(|part| is_host(part.trim_end_matches('.')))
        || word.split(|c| "/-_%[]?&+@".contains(c)).any(|piece| is_v6(piece) || is_mac(piece) || has_port(piece))
        || word.trim_end_matches('.').ends_with(".local");
    is_address.then(|| ADDRESS.to_owned())
}

/// Returns whether a part of a word is an IPv4 address. Chromium writes `x` for its end: `203.0.113.x`.
fn is_v4(part: &str) -> bool {
    let known = part.strip_suffix(".x").map(|start| format!("{start}.0"));
    known.as_deref().unwrap_or(part).parse::<Ipv4Addr>().is_ok()
}

/// Returns whether a part of a word that follows a colon, or all of it, is an IPv6 address. Its end may be hidden: `2001:db8:0:x:x:x:x:x`.
fn is_v6(piece: &str) -> bool {
    let piece = piece.trim_end_matches('.');
    if piece.matches(':').count() < 2 || piece.len() > 100 {
        return false;
    }
    let piece = &piece.replace(":x", ":0");
    let starts = std::iter::once(0).chain(piece.match_indices(':').flat_map(|(at, _)| [at, at + 1]));
    starts.into_iter().any(|at| {
        let suffix = &piece[at..];
        suffix.len() > 2
            && (suffix.parse::<Ipv6Addr>().is_ok() || suffix.trim_end_matches(':').parse::<Ipv6Addr>().is_ok())
    })
}

fn is_mac(piece: &str) -> bool {
    let groups: Vec<&str> = piece.split(':').collect();
    groups.len() == 6 && groups.iter().all(|g| g.len() == 2 && g.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns whether a piece is the name of a host with a port.
fn has_port(piece: &str) -> bool {
    let Some((host, port)) = piece.rsplit_once(':') else { return false };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let is_host = host.contains('.') && host.chars().all(is_name) && host.chars().any(|c| c.is_ascii_alphabetic());
    is_host && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted() {
        assert!(KEYS.is_sorted());
        assert!(is_private("tokenAuthUrl") && is_private("confName") && !is_private("currentRoundTripTime"));
    }

    #[test]
    fn addresses_and_hosts_are_replaced_wherever_they_stand_in_a_word() {
        for word in [
            "10.1.2.3",
            "10.1.2.3:50000",
            "udp:10.1.2.3",
            "[2001:db8::1]:3478",
            "fe80::1%eth0",
            "ip:2001:db8::7",
            "3f7a.local",
            "3f7a.local:9",
            "localhost:3001",
            "turn.example.org:3478",
            "02:00:5e:10:20:30",
            "203.0.113.x",
            "203.0.113.x:50122",
            "[2001:db8:0:x:x:x:x:x]:50122",
        ] {
            assert_eq!(words(word), ADDRESS, "{word}");
        }
        assert_eq!(words("turn:192.168.1.118:3478?transport=udp"), "turn:x=udp");
        assert_eq!(words("room@muc.example.org/nick"), "x");
        assert_eq!(words("//meet.example.org/room"), "//x");
        assert_eq!(words("typ host ufrag AbCd network-cost 999"), "typ host ufrag x network-cost 999");
        for word in ["10:20:30", "1.2.3", "IT01V123", "UDP/TLS/RTP/SAVPF", "a:b", "urn:ietf:params:rtp-hdrext:sdes:mid"]
        {
            assert_eq!(words(word), word);
        }
    }

    #[test]
    fn values_of_names_in_text_are_replaced_up_to_the_next_name() {
        assert_eq!(lines("id:17 label:FaceTime HD Camera"), "id:17 label:x");
        assert_eq!(lines("label: my, room, ordered: true, id: 3"), "label: x, ordered: true, id: 3");
        let error = "url: a\naddress: 203.0.113.x\nhost_candidate: [2001:db8:0:x:x:x:x:x]:50122\nerror_code: 701";
        assert_eq!(lines(error), "url: a\naddress: x\nhost_candidate: 0.0.0.0\nerror_code: 701");
        for kept in ["label:", "1.2.x", "a:b:x", "labels: 3"] {
            assert_eq!(lines(kept), kept);
        }
    }

    #[test]
    fn keys_of_a_session_are_replaced() {
        let sdp = "k=base64:c2VjcmV0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:c2VjcmV0\r\na=identity:c2VjcmV0\r\na=key-mgmt:mikey c2VjcmV0\r\na=mid:0\r\n";
        assert_eq!(lines(sdp), "k=x\r\na=crypto:x\r\na=identity:x\r\na=key-mgmt:x\r\na=mid:0\r\n");
        for key in [
            "ufrag",
            "pwd",
            "iceUfrag",
            "icePwd",
            "CF1-base64Certificate",
            "IT1-trackIdentifier",
            "I1-usernameFragment",
        ] {
            assert!(is_private(key), "{key}");
        }
        for key in crate::statistics::METRICS.iter().copied().chain(["startTime", "endTime", "statsType", "values"]) {
            assert!(!is_private(key) && !is_private(&format!("OT01-{key}")), "{key}");
        }
    }

    #[test]
    fn urls_are_replaced_to_their_end() {
        assert_eq!(urls("see https://a.example/r?room=(one);b={x} now"), "see https://x now");
        assert_eq!(urls("ws:\\/\\/a.example\\/b, c"), "ws://x c");
        assert_eq!(urls("no url: here"), "no url: here");
    }

    #[test]
    fn constraints_lose_their_devices() {
        let text = r#"{deviceId: {ideal: [\"5b45d15c\"]}, width: 640}"#;
        assert_eq!(escaped(text, 0), r#"{deviceId: {ideal: [\"x\"]}, width: 640}"#);
        let text = r#"{width: {ideal: [\"640\"]}}"#;
        assert_eq!(escaped(text, 0), text);
    }

    #[test]
    fn sources_of_a_session_keep_their_names_and_lose_their_values() {
        let sdp = "a=ssrc:7 cname:me@home\r\na=ssrc:7 msid:stream track\r\nb=AS:300\r\n";
        assert_eq!(lines(sdp), "a=ssrc:7 cname:x\r\na=ssrc:7 msid:x\r\nb=AS:300\r\n");
    }
}
