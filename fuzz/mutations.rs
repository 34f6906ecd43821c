// SPDX-License-Identifier: MIT OR Apache-2.0
// Inputs for the fuzz targets without a fuzzer: every sample, and copies of samples with random changes. The seed is fixed, so a
// failure repeats. The tests of several crates include this file.

/// Checks every sample of a fuzz target, then changed copies, `inputs` in all, and more until `PACELINE_FUZZ_SECONDS` have passed if that is
/// set. The failing input is printed. If `PACELINE_FUZZ_SAMPLES` names a folder, samples are written into its folder `target`, for a fuzzer.
pub fn check_mutations(target: &str, samples: &[Vec<u8>], inputs: usize, mut check: impl FnMut(&[u8])) {
    assert!(!samples.is_empty());
    if let Some(folder) = std::env::var_os("PACELINE_FUZZ_SAMPLES") {
        let folder = std::path::Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder).expect("the folder can be created");
        for (index, sample) in samples.iter().enumerate() {
            std::fs::write(folder.join(format!("sample-{index}")), sample).expect("the folder can be written");
        }
    }
    let mut random = Random(0x5EED);
    let mut input_bytes = PrintOnPanic(Vec::new());
    let seconds = std::env::var("PACELINE_FUZZ_SECONDS").map_or(0, |text| text.parse().expect("whole seconds"));
    #[allow(clippy::disallowed_methods, reason = "how long to fuzz is the tester's choice")]
    let started = std::time::Instant::now();
    let goes_on = |input| input < inputs.max(samples.len()) || started.elapsed().as_secs() < seconds;
    for input in (0..).take_while(|&input| goes_on(input)) {
        input_bytes.0.clone_from(&samples[input % samples.len()]);
        if input >= samples.len() {
            (0..=random.below(4)).for_each(|_| change(&mut input_bytes.0, samples, &mut random));
        }
        check(&input_bytes.0);
    }
}

/// An input that is printed if the check panics.
struct PrintOnPanic(Vec<u8>);

impl Drop for PrintOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            match std::str::from_utf8(&self.0) {
                Ok(text) => eprintln!("input: {text:?}"),
                Err(_) => eprintln!("input: {:02x?}", self.0),
            }
        }
    }
}

/// Changes one thing about an input.
fn change(bytes: &mut Vec<u8>, samples: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = at + random.below(bytes.len() - at + 1).min(40);
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => bytes.extend(&samples[random.below(samples.len())]),
        // The length of an RTCP packet that is alone.
        2 if bytes.len() >= 4 => {
            let words = (bytes.len() / 4 - 1) as u16;
            bytes[2..4].copy_from_slice(&words.to_be_bytes());
        }
        3 => bytes.insert(at, [0, 1, 0x7F, 0x80, 0xFF][random.below(5)]),
        4 => drop(bytes.drain(at..end)),
        5 => {
            let copied = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copied);
        }
        6 => {
            let texts = [
                "-1",
                "0",
                "1e308",
                "nan",
                "inf",
                "18446744073709551616",
                "\"",
                "[[",
                "= {",
                "\r\n",
                "\u{0}",
                "\u{202e}",
            ];
            bytes.splice(at..end.min(at + 3), texts[random.below(texts.len())].bytes());
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
    }
}

/// Marsaglia's xorshift64: no quality is needed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
