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

/// Instructions per packet: what a longer run of the `speed` program executes more than a shorter one, over what it
/// handles more.
pub fn callgrind(arguments: &[String]) -> Result<(), Problem> {
    if !arguments.is_empty() {
        return Err(Problem::Usage("takes no arguments".into()));
    }
    need("valgrind --version", "Get it with the system's packages: `apt-get install valgrind`.")?;
    run(command("cargo build --quiet --release --package paceline-benches --bins --example senders"))?;
    const PACKETS: [u64; 2] = [100_000, 600_000];
    let senders = |what| per_packet("examples/senders", what, PACKETS);
    let script = senders("script")?;
    let rows = [
        ("one GCC flow, per delivered packet", per_packet("speed", "simulate", [1, 6])?),
        ("receive half of gcc-2016", per_packet("speed", "receive", PACKETS)?),
        ("send half of gcc-tfb", senders("gcc-tfb")? - script),
        ("send half of scream", senders("scream")? - script),
        ("rtc-interceptor's GCC, same script", senders("theirs")? - script),
    ];
    println!("| what                                   | instructions per packet |");
    println!("|:---------------------------------------|------------------------:|");
    for (what, instructions) in rows {
        println!("| {what:<38} | {instructions:>23.0} |");
    }
    eprintln!("\nby function: callgrind_annotate target/callgrind/simulate.out");
    Ok(())
}

fn per_packet(program: &str, what: &str, sizes: [u64; 2]) -> Result<f64, String> {
    let [(few, fewer_instructions), (many, more_instructions)] =
        [counted(program, what, sizes[0])?, counted(program, what, sizes[1])?];
    Ok((more_instructions - fewer_instructions) / (many - few))
}

/// Packets handled, and instructions executed.
fn counted(program: &str, what: &str, size: u64) -> Result<(f64, f64), String> {
    let folder = target().join("callgrind");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut valgrind = command("valgrind --tool=callgrind");
    valgrind.arg(format!("--callgrind-out-file={}", folder.join(what).with_extension("out").display()));
    valgrind.arg(target().join("release").join(program)).args([what, &size.to_string()]);
    let (packets, talk) = output(valgrind)?;
    let collected = talk.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    packets.trim().parse().ok().zip(collected).ok_or_else(|| format!("valgrind says no count:\n{talk}"))
}
