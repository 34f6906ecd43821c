// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text with JSON to its values: one on each line, on several lines, without separation, or as elements of one long array. Of values
//! that are cut, the parts that are whole are used.

use serde_json::Value;
use std::io::{self, BufRead};

/// The longest value: a report of hundreds of streams is below 1 MB.
const VALUE_MAX: usize = 32 << 20;
/// A longer array is divided between its elements.
const DIVIDED: usize = 1 << 20;

/// Finds the values of a text.
pub struct Values<R> {
    input: R,
    line: u64,
    /// Whether each value has a line of its own, as the first one has.
    by_line: Option<bool>,
    /// An array was divided, and goes on.
    divided: bool,
}

/// A value.
pub struct Found {
    /// The line on which it begins.
    pub line: u64,
    /// The value, or what is left of it.
    pub value: Option<Value>,
    /// What is wrong with it.
    pub problem: Option<String>,
}

/// Where the text of a value is.
#[derive(Default)]
struct Scan {
    text: Vec<u8>,
    /// The first byte after the opening bracket that is no space.
    first: Option<u8>,
    /// The closing brackets that are due.
    due: Vec<u8>,
    in_string: bool,
    escaped: bool,
    /// After the last part that is whole: length of the text and brackets that are due.
    whole: (usize, usize),
}

impl Scan {
    /// Adds a byte of a value. Returns whether a part is whole.
    fn add(&mut self, byte: u8) -> bool {
        if !self.text.is_empty() && !byte.is_ascii_whitespace() {
            self.first.get_or_insert(byte);
        }
        if !self.in_string && matches!(byte, b']' | b'}') {
            // A comma after the last element.
            let end = self.text.trim_ascii_end().len();
            self.text.truncate(if self.text[..end].ends_with(b",") { end - 1 } else { self.text.len() });
        }
        self.text.push(byte);
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'[' => self.due.push(b']'),
            b'{' => self.due.push(b'}'),
            b']' | b'}' => {
                self.due.pop();
                self.whole = (self.text.len(), self.due.len());
                return true;
            }
            _ => {}
        }
        false
    }

    /// Returns whether it is an array of arrays or objects, between two of them.
    fn is_divisible(&self) -> bool {
        self.due == [b']'] && matches!(self.first, Some(b'[' | b'{'))
    }

    /// Returns the value, or of a cut one the parts that are whole.
    fn value(mut self) -> (Option<Value>, Option<String>) {
        let error = match serde_json::from_slice(&self.text) {
            Ok(value) => return (Some(value), None),
            Err(error) => error.to_string(),
        };
        let (length, due) = self.whole;
        self.text.truncate(length);
        self.text.extend(self.due.iter().take(due).rev());
        (serde_json::from_slice(&self.text).ok(), Some(error))
    }
}

impl<R: BufRead> Values<R> {
    pub fn new(input: R) -> Self {
        Self { input, line: 1, by_line: None, divided: false }
    }

    /// Returns the next value. Text that is not part of one is skipped.
    ///
    /// # Errors
    /// The input cannot be read, or a value is too long.
    pub fn next(&mut self) -> io::Result<Option<Found>> {
        let mut scan = Scan::default();
        if self.divided {
            scan.add(b'[');
        }
        let mut line = self.line;
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                self.divided = false;
                return Ok((scan.text.len() > 1).then(|| found(line, scan)));
            }
            let (mut used, mut is_done) = (0, false);
            for byte in bytes {
                used += 1;
                self.line += u64::from(*byte == b'\n');
                if scan.due.is_empty() {
                    if !matches!(byte, b'[' | b'{') {
                        continue;
                    }
                    line = self.line;
                }
                if self.divided && (*byte == b',' || byte.is_ascii_whitespace()) {
                    continue;
                }
                if *byte == b'\n' && self.by_line == Some(true) {
                    is_done = true;
                    break;
                }
                let is_whole = scan.add(*byte);
                self.divided = is_whole && scan.text.len() >= DIVIDED && scan.is_divisible();
                if self.divided {
                    scan.add(b']');
                }
                if scan.due.is_empty() {
                    is_done = true;
                    break;
                }
            }
            self.input.consume(used);
            if is_done {
                self.by_line.get_or_insert(!scan.text.contains(&b'\n'));
                return Ok(Some(found(line, scan)));
            }
            if scan.text.len() > VALUE_MAX {
                return Err(io::Error::other(format!(
                    "line {line} has a value that is longer than {} MB",
                    VALUE_MAX >> 20
                )));
            }
        }
    }
}

fn found(line: u64, scan: Scan) -> Found {
    let (value, problem) = scan.value();
    Found { line, value, problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn all(text: &str) -> (Vec<Value>, usize) {
        let (mut values, mut input, mut problems) = (Vec::new(), Values::new(text.as_bytes()), 0);
        while let Some(found) = input.next().unwrap() {
            values.extend(found.value);
            problems += usize::from(found.problem.is_some());
        }
        (values, problems)
    }

    #[test]
    fn values_are_found_in_any_layout() {
        let expected = vec![json!({"a": "]}\""}), json!([1, [2]]), json!({})];
        for text in [
            "{\"a\":\"]}\\\"\"}\n[1,[2]]\n\n{}",
            "{\"a\":\"]}\\\"\"}[1,[2]]{}",
            "{\n\"a\":\"]}\\\"\"\n}\n[\n1,\n[2]]\n{\n}",
            "{\n\"a\":\"]}\\\"\",}\n[1,[2,\n],\n]{}",
            "RTCStatsDump\r\n{\"a\":\"]}\\\"\"}\r\nRTCStatsDump\r\ninfo: [1,[2]]\r\n{}\r\n",
        ] {
            assert_eq!(all(text), (expected.clone(), 0), "{text}");
        }
    }

    #[test]
    fn whole_parts_of_cut_values_are_used() {
        let text = "[1]\n[{\"a\":1},{\"b\":[2],\"c\":\n[3]\n[[4],[5";
        assert_eq!(all(text), (vec![json!([1]), json!([{"a": 1}, {"b": [2]}]), json!([3]), json!([[4]])], 2));
        assert_eq!(all("[[1],\n[2],\n[3"), (vec![json!([[1], [2]])], 1));
        assert_eq!(all("{\"a\":\n"), (vec![], 1));
        assert_eq!(all("[1]\n]}x\n[2]"), (vec![json!([1]), json!([2])], 0));
    }

    /// Where each part looks through the spaces again, this takes an hour.
    #[test]
    fn spaces_before_many_parts_are_seen_once() {
        let space = " ".repeat(DIVIDED);
        let [whole, divided] = ["0,", ""].map(|first| {
            let (values, problems) = all(&format!("[{space}{first}{}]", vec!["[]"; 100_000].join(",")));
            (values.iter().map(|value| value.as_array().unwrap().len()).collect::<Vec<_>>(), problems)
        });
        assert_eq!(whole, (vec![100_001], 0));
        assert_eq!(divided, (vec![1, 99_999], 0));
    }

    #[test]
    fn long_arrays_are_divided() {
        let element = format!("[\"{}\"]", "x".repeat(DIVIDED / 3));
        let (values, problems) = all(&format!("[{}]", vec![element; 10].join(" , ")));
        assert_eq!((values.len(), problems), (4, 0));
        assert_eq!(values.iter().map(|value| value.as_array().unwrap().len()).sum::<usize>(), 10);
    }
}
