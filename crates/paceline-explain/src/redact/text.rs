//! JSON text as a stream: every string is redacted by its key and its place, and the rest stays.

use super::words::{self, REPLACED};
use std::io::{Error, Read, Result, Write};

/// The longest string that is held.
const TEXT_MAX: usize = 32 << 20;
/// White space after a string that is kept; more of it is left out.
const SPACE_MAX: usize = 1 << 16;
/// Longer text between strings is written at the next white space.
const BARE_MAX: usize = 1 << 20;
/// The deepest nesting. Readers of JSON have smaller limits.
const NESTING_MAX: usize = 512;
/// Keys of a series that are not private, also where the series is: without them a dump cannot be read.
const OF_SERIES: [&str; 3] = ["startTime", "endTime", "statsType"];

/// An object or a list that is open.
struct Open {
    is_list: bool,
    /// Whether the key that leads to it, or one around it, is private.
    is_private: bool,
    /// How many members precede.
    index: usize,
    /// A list such as `["video", id, label, stream]` of rtcstats.
    is_track: bool,
}

struct Copier<'a> {
    output: &'a mut dyn Write,
    depth: usize,
    open: Vec<Open>,
    /// Whether the key of the next value is private.
    is_private: bool,
    /// A string that has begun, and whether the next byte of it is escaped.
    current: Option<(Vec<u8>, bool)>,
    /// A string of which it is not known yet whether it is a key, and the white space after it.
    held: Option<(String, Vec<u8>)>,
    /// What is between strings, not written yet.
    bare: Vec<u8>,
    /// Whether the last byte belongs to a private number.
    in_number: bool,
    at_line_start: bool,
}

/// Copies JSON text. `depth`: how many strings it is in.
pub(super) fn copy(input: &mut dyn Read, output: &mut dyn Write, depth: usize) -> Result<()> {
    let mut copier = Copier::new(output, depth);
    let mut buffer = [0; 1 << 16];
    loop {
        match input.read(&mut buffer)? {
            0 => return copier.flush(),
            count => copier.add(&buffer[..count])?,
        }
    }
}

/// As [`copy`], for text in memory.
pub(super) fn copy_text(text: &str, output: &mut dyn Write, depth: usize) -> Result<()> {
    let mut copier = Copier::new(output, depth);
    copier.add(text.as_bytes())?;
    copier.flush()
}

impl<'a> Copier<'a> {
    fn new(output: &'a mut dyn Write, depth: usize) -> Self {
        Self {
            output,
            depth,
            open: Vec::new(),
            is_private: false,
            current: None,
            held: None,
            bare: Vec::new(),
            in_number: false,
            at_line_start: true,
        }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        for byte in bytes {
            match (&mut self.current, *byte) {
                (Some((bytes, false)), b'"') => {
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    self.held = Some((text, Vec::new()));
                    self.current = None;
                }
                // No string of JSON has a line break: the line was cut. What there is of the string is left out.
                (Some(_), b'\n') => {
                    self.current = None;
                    self.between(b'\n')?;
                }
                (Some((bytes, escaped)), byte) => {
                    *escaped = byte == b'\\' && !*escaped;
                    bytes.push(byte);
                    if bytes.len() > TEXT_MAX {
                        return Err(Error::other("a string is too long"));
                    }
                }
                (None, b'"') => {
                    self.flush()?;
                    self.in_number = false;
                    self.current = Some((Vec::new(), false));
                }
                (None, byte) => self.between(byte)?,
            }
            self.at_line_start = *byte == b'\n';
        }
        Ok(())
    }

    /// Handles a byte outside strings.
    fn between(&mut self, byte: u8) -> Result<()> {
        if let Some((_, space)) = &mut self.held {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    if space.len() < SPACE_MAX {
                        space.push(byte);
                    }
                    return Ok(());
                }
                b':' => self.write_key()?,
                _ => self.flush()?,
            }
        }
        self.structure(byte)?;
        if self.is_of_number(byte) {
            if !self.in_number {
                self.bare.push(b'0');
            }
            self.in_number = true;
            return Ok(());
        }
        self.in_number = false;
        self.bare.push(byte);
        // No address contains these.
        let is_end = matches!(byte, b',' | b'\n') || self.bare.len() > BARE_MAX && byte.is_ascii_whitespace();
        match self.bare.len() > TEXT_MAX {
            true => Err(Error::other("a text between strings is too long")),
            false if is_end => self.write_bare(),
            false => Ok(()),
        }
    }

    /// Returns whether a byte belongs to a number that is replaced.
    fn is_of_number(&self, byte: u8) -> bool {
        let is_start = byte.is_ascii_digit() || byte == b'-';
        self.is_private && (is_start || self.in_number && matches!(byte, b'+' | b'.' | b'e' | b'E'))
    }

    /// Follows lists and objects.
    fn structure(&mut self, byte: u8) -> Result<()> {
        match byte {
            b'[' | b'{' => {
                // A new line of JSON lines: the one before may have been cut.
                if self.at_line_start {
                    self.open.clear();
                    self.is_private = false;
                }
                if self.open.len() >= NESTING_MAX {
                    return Err(Error::other("lists or objects are nested too deeply"));
                }
                self.open.push(Open { is_list: byte == b'[', is_private: self.is_private, index: 0, is_track: false });
            }
            b']' | b'}' => self.is_private = self.open.pop().is_some_and(|open| open.is_private),
            b',' => {
                if let Some(open) = self.open.last_mut() {
                    open.index += 1;
                    self.is_private = open.is_private;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn write_key(&mut self) -> Result<()> {
        let Some((text, space)) = self.held.take() else { return Ok(()) };
        write!(self.output, "\"{}\"", words::escaped(&text, self.depth))?;
        self.output.write_all(&space)?;
        let is_inside = self.open.last().is_some_and(|open| open.is_private) && !OF_SERIES.contains(&text.as_str());
        self.is_private = is_inside || words::is_private(&text);
        Ok(())
    }

    /// Writes what is held.
    fn flush(&mut self) -> Result<()> {
        let Some((text, space)) = self.held.take() else { return self.write_bare() };
        let mut is_label = false;
        if let Some(open) = self.open.last_mut().filter(|open| open.is_list) {
            open.is_track |= open.index == 0 && matches!(text.as_str(), "audio" | "video");
            is_label = open.is_track && open.index >= 2;
        }
        let out = match (text.is_empty(), is_label || self.is_private) {
            (false, true) => REPLACED.to_owned(),
            _ => words::escaped(&text, self.depth),
        };
        write!(self.output, "\"{out}\"")?;
        self.output.write_all(&space)
    }

    fn write_bare(&mut self) -> Result<()> {
        let bare = std::mem::take(&mut self.bare);
        match std::str::from_utf8(&bare) {
            Ok(text) => self.output.write_all(words::lines(text).as_bytes()),
            Err(_) => self.output.write_all(words::lines(&String::from_utf8_lossy(&bare)).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(text_in: &str) -> String {
        let mut out = Vec::new();
        copy(&mut text_in.as_bytes(), &mut out, 0).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn check(text: &str, secrets: &[&str], kept: &[&str]) {
        let out = copied(text);
        for secret in secrets {
            assert!(!out.contains(secret), "{secret} is in {out}");
        }
        for kept in kept {
            assert!(out.contains(kept), "{kept} is not in {out}");
        }
        for line in out.lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn replaces_addresses_and_identities_and_nothing_else() {
        let dump = r#"{"UserAgent": "Mozilla/5.0 (X)", "n": 1.5, "log": [{"type": "setRemoteDescription", "value": "v=0\r\no=- 46117 2 IN IP4 127.0.0.1\r\nb=AS:300\r\na=ice-ufrag:abcd\r\na=candidate:1 1 udp 2122 192.168.1.7 50000 typ host\r\n"}], "address": "10.0.0.5", "ip6": "fe80::1", "name": "0f3c.local", "bytesSent": "[1,2,3]"}"#;
        let secrets = ["Mozilla", "46117", "127.0.0.1", "abcd", "192.168.1.7", "10.0.0.5", "fe80::1", "0f3c.local"];
        let kept =
            ["\"n\": 1.5", "b=AS:300", "\\r\\n", "typ host", "\"bytesSent\": \"[1,2,3]\"", "setRemoteDescription"];
        check(dump, &secrets, &kept);
    }

    #[test]
    fn numbers_and_ids_stay() {
        let text = r#"["getStats" , "9-1",{"IT01V123":{"type":"inbound-rtp","time":"10:20:30","v":"1.2.3\/4"}}, 17]"#;
        assert_eq!(copied(text), text);
    }

    #[test]
    fn a_key_holds_for_its_value_alone() {
        let lines = "[\"create\",null,{\"label\":\"cam\"},\"PC_0\"]\n[\"getstats\",\"PC_0\",{\"urls\":[[\"a\"],\"b\"],\"id\":\"c\"},1]\n";
        let expected = "[\"create\",null,{\"label\":\"x\"},\"PC_0\"]\n[\"getstats\",\"PC_0\",{\"urls\":[[\"x\"],\"x\"],\"id\":\"c\"},1]\n";
        assert_eq!(copied(lines), expected);
        // Of a cut line nothing holds for the next one.
        assert_eq!(copied("{\"label\":\"ca\n[\"getstats\",\"PC_0\"]\n"), "{\"label\":\n[\"getstats\",\"PC_0\"]\n");
    }

    #[test]
    fn a_private_key_holds_for_objects_and_numbers() {
        let constraints = r#"["getUserMedia",null,{"video":{"deviceId":{"exact":"5b45d15c"},"width":640}},1]"#;
        let expected = r#"["getUserMedia",null,{"video":{"deviceId":{"exact":"x"},"width":640}},1]"#;
        assert_eq!(copied(constraints), expected);
        let numbers =
            r#"{"meeting_id":81234567890,"userId":[-47.11e+3, 5],"user":{"n": 12},"isRtcp":true,"ip":null,"n":1.5}"#;
        let expected = r#"{"meeting_id":0,"userId":[0, 0],"user":{"n": 0},"isRtcp":true,"ip":null,"n":1.5}"#;
        assert_eq!(copied(numbers), expected);
    }

    #[test]
    fn long_text_between_strings_is_written_before_the_end() {
        let mut output = Vec::new();
        let mut copier = Copier::new(&mut output, 0);
        copier.add("{\"a\"".as_bytes()).unwrap();
        copier.add(&vec![b' '; 3 * SPACE_MAX]).unwrap();
        assert_eq!(copier.held.as_ref().unwrap().1.len(), SPACE_MAX);
        copier.add(b":").unwrap();
        copier.add("1 10.1.2.3 ".repeat(BARE_MAX / 10).as_bytes()).unwrap();
        assert!(copier.bare.len() <= BARE_MAX + 16);
        copier.flush().unwrap();
        let out = String::from_utf8(output).unwrap();
        assert!(out.starts_with("{\"a\" ") && !out.contains("10.1") && out.ends_with("1 0.0.0.0 "));
        // A text without an end.
        let mut output = Vec::new();
        let mut copier = Copier::new(&mut output, 0);
        copier.bare = vec![b'7'; TEXT_MAX];
        assert!(copier.add(b"7").is_err());
    }

    #[test]
    fn json_within_strings_is_redacted_like_json() {
        let once = r#"{"value": "{\"tracks\":[{\"label\":\"HD Camera (1234:abcd)\",\"kind\":\"video\"}],\"n\":1}"}"#;
        check(once, &["HD Camera"], &[r#"\"label\":\"x\""#, r#"\"kind\":\"video\""#]);
        let twice = serde_json::json!({"value": serde_json::json!({"inner": once}).to_string()}).to_string();
        check(&twice, &["HD Camera"], &["kind", "video"]);
        // Cut, and so no JSON.
        check(r#"{"value": "{\"label\":\"HD Camera\",\"ip6\": fe80::1, "}"#, &["HD Camera", "fe80"], &["ip6"]);
        // Too deep to be read.
        let deep = (0..9).fold("\"HD Camera\"".to_owned(), |inner, _| serde_json::json!([inner]).to_string());
        check(&deep, &["HD Camera"], &["x"]);
    }

    #[test]
    fn places_of_rtcstats_count() {
        let line = r#"["gumOnSuccess","92-0",[["audio","id1","Default","id2"],["video","id3","HD Camera","id4"]],"http://localhost:3001/",3]"#;
        check(line, &["Default", "HD Camera", "localhost", "3001"], &["\"id1\"", "\"id3\"", "http://x", "92-0"]);
        let line = r#"["connectionInfo",null,{"path":"//room","tokenAuthUrl":"a.b/c","urls":["turn:192.168.1.118:3478"],"confName":"me","kept":"value"},3]"#;
        check(line, &["room", "a.b", "192.168", "\"me\""], &["connectionInfo", "\"kept\":\"value\""]);
    }

    #[test]
    fn the_copy_of_rtcstats_can_be_read() {
        let mut text = "RTCStatsDump\n{\"url\":\"https://a.example/room\"}\n".to_owned();
        for second in 0..20u32 {
            text += &format!(
                "[\"getstats\",\"PC_0\",{{\"O\":{{\"type\":\"outbound-rtp\",\"label\":\"cam\",\"bytesSent\":{}}}}},{}]\n",
                100_000 * second,
                1_700_000_000_000u64 + 1000 * u64::from(second)
            );
        }
        let read = |text: &str| crate::readers::read_bytes(text.as_bytes()).unwrap();
        let out = copied(&text);
        assert!(!out.contains("cam") && !out.contains("room"), "{out}");
        assert_eq!(read(&out), read(&text));
    }
    #[test]
    fn the_copy_of_a_dump_can_be_read() {
        let series = |values: String| {
            let (start, end) = ("2026-02-03T10:20:00.000Z", "2026-02-03T10:20:19.000Z");
            serde_json::json!({"startTime": start, "endTime": end, "statsType": "outbound-rtp", "values": values})
        };
        let numbers = |each: u32| series(format!("{:?}", (0..20).map(|second| each * second).collect::<Vec<u32>>()));
        let names = |name: &str| series(serde_json::to_string(&vec![name; 20]).unwrap());
        let stats = serde_json::json!({
            "OT1-bytesSent": numbers(100_000), "OT1-packetsSent": numbers(100), "I1-usernameFragment": names("abcd"),
            "CF1-base64Certificate": names("MIIB"), "IT1-trackIdentifier": names("5b45"),
        });
        let connection = serde_json::json!({"url": "https://a.example", "stats": stats, "updateLog": []});
        let dump = serde_json::json!({"PeerConnections": {"1-2": connection}, "UserAgent": "Mozilla/5.0"}).to_string();
        let out = copied(&dump);
        for secret in ["abcd", "MIIB", "5b45", "a.example", "Mozilla"] {
            assert!(dump.contains(secret) && !out.contains(secret), "{secret}");
        }
        assert_eq!(out.matches("2026-02-03T10:20:00.000Z").count(), 5);
        assert_eq!(out.matches("outbound-rtp").count(), 5);
        let read = |text: &str| crate::readers::read_bytes(text.as_bytes()).unwrap();
        assert_eq!(read(&out), read(&dump));
    }
}
