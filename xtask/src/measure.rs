//! `cargo xtask bench` and `cargo xtask callgrind`: CPU time and instructions.

use crate::steps::{Problem, command, need, output, program, run, target};
use std::fs;

/// Prints the machine, the table of the `speed` program, and instructions per packet if valgrind is installed. With `--all`,
/// also runs the divan benches.
pub fn bench(arguments: &[String]) -> Result<(), Problem> {
    let all = match arguments {
        [] => false,
        [flag] if flag == "--all" => true,
        _ => return Err(Problem::Usage("takes `--all` or nothing".into())),
    };
    run(command("cargo build --quiet --profile dist --package paceline-benches"))?;
    println!("{}\n", machine());
    run(program(target().join("dist/speed"), "table"))?;
    println!();
    match callgrind(&[]) {
        Err(Problem::Missing(advice)) => println!("instructions per packet: not measured. {advice}"),
        counted => counted?,
    }
    if all {
        run(command("cargo bench --quiet --profile dist --package paceline-benches"))?;
    }
    Ok(())
}

/// Measures speed and accuracy of a link of real packets.
pub fn track(arguments: &[String]) -> Result<(), Problem> {
    let seconds = match arguments {
        [] => "10",
        [seconds] => seconds,
        _ => return Err(Problem::Usage("takes a number of seconds, or nothing".into())),
    };
    run(command("cargo build --quiet --profile dist --package paceline-live --example track"))?;
    println!("{}\n", machine());
    run(program(target().join("dist/examples/track"), seconds))?;
    Ok(())
}

/// Returns CPU model and number of cores.
fn machine() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cores} cores, {} {}", model.unwrap_or("unknown CPU"), std::env::consts::OS, std::env::consts::ARCH)
}

/// Prints instructions per packet: the difference between a long and a short run, divided by the difference of the packets.
pub fn callgrind(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    need("valgrind --version", "Get it with the system's packages: `apt-get install valgrind`.")?;
    run(command("cargo build --quiet --profile dist --package paceline-benches --bins --example senders"))?;
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

/// The difference between a long and a short run.
struct Difference {
    instructions: f64,
    packets: f64,
    /// Simulated time, if time is simulated.
    seconds: Option<f64>,
}

impl Difference {
    fn per_packet(&self) -> f64 {
        self.instructions / self.packets
    }
    fn per_second(&self) -> f64 {
        self.seconds.map_or(f64::NAN, |seconds| self.instructions / seconds)
    }
}

/// Runs the program twice. The first argument is `what[0]`, the second the size, then follows the rest of `what`.
fn instructions(program: &str, what: &[&str], [less, more]: [u64; 2]) -> Result<Difference, String> {
    let (fewer, many) = (counted(program, what, less)?, counted(program, what, more)?);
    Ok(Difference {
        instructions: many.instructions - fewer.instructions,
        packets: many.packets - fewer.packets,
        seconds: many.seconds.zip(fewer.seconds).map(|(many, few)| many - few),
    })
}

/// Returns the instructions of one run, and the packets and simulated seconds that it prints.
fn counted(program: &str, what: &[&str], size: u64) -> Result<Difference, String> {
    let folder = target().join("callgrind");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut valgrind = command("valgrind --tool=callgrind");
    valgrind.arg(format!("--callgrind-out-file={}", folder.join(what.join("-")).with_extension("out").display()));
    valgrind.arg(target().join("dist").join(program)).arg(what[0]).arg(size.to_string()).args(&what[1..]);
    let (stdout, stderr) = output(valgrind)?;
    let collected = stderr.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    let mut printed = stdout.split_whitespace().map_while(|word| word.parse().ok());
    let (packets, seconds) = (printed.next(), printed.next());
    collected
        .zip(packets)
        .map(|(instructions, packets)| Difference { instructions, packets, seconds })
        .ok_or_else(|| format!("valgrind prints no count:\n{stderr}"))
}
