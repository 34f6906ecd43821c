//! `cargo xtask bench` and `cargo xtask callgrind`: how fast, in time and in instructions.

use crate::steps::{Problem, command, need, output, program, run, target};
use std::fs;

/// The table of the `speed` program under the name of the machine, and instructions per packet where they can be
/// counted; `--all`: the divan benches, too.
pub fn bench(arguments: &[String]) -> Result<(), Problem> {
    let all = match arguments {
        [] => false,
        [flag] if flag == "--all" => true,
        _ => return Err(Problem::Usage("takes `--all` or nothing".into())),
    };
    run(command("cargo build --quiet --release --package paceline-benches"))?;
    println!("{}\n", machine());
    run(program(target().join("release/speed"), "table"))?;
    println!();
    match callgrind(&[]) {
        Err(Problem::Missing(advice)) => println!("instructions per packet: not counted. {advice}"),
        counted => counted?,
    }
    if all {
        run(command("cargo bench --quiet --package paceline-benches"))?;
    }
    Ok(())
}

/// How fast and exact a link of real packets is here.
pub fn track(arguments: &[String]) -> Result<(), Problem> {
    let seconds = match arguments {
        [] => "10",
        [seconds] => seconds,
        _ => return Err(Problem::Usage("takes a number of seconds, or nothing".into())),
    };
    run(command("cargo build --quiet --release --package paceline-live --example track"))?;
    println!("{}\n", machine());
    run(program(target().join("release/examples/track"), seconds))?;
    Ok(())
}

/// CPU model and number of cores.
fn machine() -> String {
    let told = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = told.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cores} cores, {} {}", model.unwrap_or("unknown CPU"), std::env::consts::OS, std::env::consts::ARCH)
}

/// Instructions: what a longer run of the `speed` program executes more than a shorter one, over what it handles more.
pub fn callgrind(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    need("valgrind --version", "Get it with the system's packages: `apt-get install valgrind`.")?;
    run(command("cargo build --quiet --release --package paceline-benches --bins --example senders"))?;
    const PACKETS: [u64; 2] = [100_000, 600_000];
    const RUNS: [u64; 2] = [1, 6];
    let halves = |what| instructions("examples/senders", &[what], PACKETS).map(|more| more.per_packet());
    let script = halves("script")?;
    println!("| what                                   | instructions per packet |");
    println!("|:---------------------------------------|------------------------:|");
    let row = |what: &str, instructions: f64| println!("| {what:<38} | {instructions:>23.0} |");
    row("one GCC flow, per delivered packet", instructions("speed", &["simulate"], RUNS)?.per_packet());
    row("receive half of gcc-2016", instructions("speed", &["receive"], PACKETS)?.per_packet());
    for name in ["gcc-tfb", "nada-sender", "scream", "scream-cpp"] {
        row(&format!("send half of {name}"), halves(name)? - script);
    }
    row("both halves of nada", halves("nada")? - script);
    row("rtc-interceptor's GCC, same script", halves("theirs")? - script);
    println!("\n| one flow over 2 Mbit/s | instructions per delivered packet | per simulated second |");
    println!("|:-----------------------|----------------------------------:|---------------------:|");
    for name in ["gcc-2016", "nada", "nada-sender", "scream", "scream-cpp"] {
        let more = instructions("speed", &["simulate", name], RUNS)?;
        println!("| {name:<22} | {:>33.0} | {:>20.0} |", more.per_packet(), more.per_second());
    }
    eprintln!("\nby function: callgrind_annotate target/callgrind/simulate.out, simulate-scream.out ...");
    Ok(())
}

/// What a longer run has more than a shorter one.
struct More {
    instructions: f64,
    packets: f64,
    /// Of simulated time, where time is simulated.
    seconds: Option<f64>,
}

impl More {
    fn per_packet(&self) -> f64 {
        self.instructions / self.packets
    }
    fn per_second(&self) -> f64 {
        self.seconds.map_or(f64::NAN, |seconds| self.instructions / seconds)
    }
}

/// `what` is the first argument of the program, its size the second, and what else there is comes behind.
fn instructions(program: &str, what: &[&str], [less, more]: [u64; 2]) -> Result<More, String> {
    let (fewer, many) = (counted(program, what, less)?, counted(program, what, more)?);
    Ok(More {
        instructions: many.instructions - fewer.instructions,
        packets: many.packets - fewer.packets,
        seconds: many.seconds.zip(fewer.seconds).map(|(many, few)| many - few),
    })
}

/// What one run executes, and what it says of itself: packets, and seconds of simulated time.
fn counted(program: &str, what: &[&str], size: u64) -> Result<More, String> {
    let folder = target().join("callgrind");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut valgrind = command("valgrind --tool=callgrind");
    valgrind.arg(format!("--callgrind-out-file={}", folder.join(what.join("-")).with_extension("out").display()));
    valgrind.arg(target().join("release").join(program)).arg(what[0]).arg(size.to_string()).args(&what[1..]);
    let (told, talk) = output(valgrind)?;
    let collected = talk.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    let mut told = told.split_whitespace().map_while(|word| word.parse().ok());
    let (packets, seconds) = (told.next(), told.next());
    collected
        .zip(packets)
        .map(|(instructions, packets)| More { instructions, packets, seconds })
        .ok_or_else(|| format!("valgrind says no count:\n{talk}"))
}
