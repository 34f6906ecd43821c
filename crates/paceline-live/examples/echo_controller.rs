// SPDX-License-Identifier: MIT OR Apache-2.0
//! A controller that decides nothing: it answers each line at once. It shows how many lines per second the pipe carries.

use std::io::{BufRead, Write};

fn main() {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    output.write_all(b"{\"protocol\":1}\n").unwrap();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        output.write_all(b"{\"target_bps\":1000000}\n").unwrap();
        output.flush().unwrap();
        line.clear();
    }
}
