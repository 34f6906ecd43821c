// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers of this library in the WebRTC stack `rtc`, on a link in virtual time: `cargo run --release -p embed-rtc`.
//!
//! Both ends are peer connections with ICE, DTLS and SRTP. `rtc` numbers and paces the packets and reads the feedback; the
//! controller decides the rate. `controller.rs` and `departures.rs` are what a program needs.

mod call;
mod controller;
mod departures;
mod peer;

use call::call;
use paceline_units::{Rate, Time};
use std::error::Error;

/// The link: 2.5 Mbit/s, and 1 Mbit/s from 40 to 60 s.
const CAPACITY: [(Time, Rate); 3] = [
    (Time::ZERO, Rate::from_kbps(2500)),
    (Time::from_secs(40), Rate::from_kbps(1000)),
    (Time::from_secs(60), Rate::from_kbps(2500)),
];

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let names = if names.is_empty() { vec!["googcc".to_owned(), "nada-sender".to_owned()] } else { names };
    for name in names {
        println!("{name}: capacity 2.5 Mbit/s, 1 Mbit/s from 40 to 60 s, 2.5 Mbit/s");
        println!("   time  target kbit/s  received kbit/s  longest queue ms  dropped");
        for (second, it) in call(&name, &CAPACITY, 100)?.iter().enumerate().filter(|(second, _)| second % 5 == 4) {
            let (target, queue) = (it.target.as_bps() / 1000, it.queue_max.as_millis_f64());
            let (end, received) = (second + 1, it.received.as_bits() / 1000);
            println!("  {end:3} s  {target:13}  {received:15}  {queue:16.1}  {:7}", it.dropped);
        }
    }
    Ok(())
}
