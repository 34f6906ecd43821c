// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sender and a receiver over a link of 2 Mbit/s with 1 % loss, in virtual time: `cargo run -p embed -- googcc`.

mod call;

use call::{Link, call};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let all = ["googcc", "scream-v2", "drc", "nada", "gcc-2016"].map(str::to_owned);
    for name in if names.is_empty() { &all[..] } else { &names[..] } {
        let mut link = Link::new(1);
        call(name, &mut link, 120)?;
        let (rate, queue) = link.means();
        println!("{name:10} {:5} kbit/s, mean queue {:5.1} ms", rate.as_bps() / 1000, queue.as_millis_f64());
    }
    Ok(())
}
