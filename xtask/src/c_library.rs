// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask c`: the header of the library for C, made from its sources, and the checks of that library: programs in C under
//! sanitizers and under valgrind.

use crate::steps::{Problem, command, has_flag, need, output, program, root, run, target, write};
use cbindgen::{Builder, Config, DocumentationStyle, Language, Style};
use std::fs;
use std::path::{Path, PathBuf};

const HEADER: &str = "crates/paceline-c/include/paceline.h";
/// In the order of the header. Their modules are read, too.
const SOURCES: [&str; 2] = ["crates/paceline-abi/src/lib.rs", "crates/paceline-c/src/lib.rs"];
const START: &str = "/* SPDX-License-Identifier: MIT OR Apache-2.0 */\n/* Controllers of congestion for real-time media. docs/how-to/c.md is the guide.\n\n   Every function checks its pointers, lengths and ranges, and returns a status or a value. None unwinds, does I/O or reads a\n   clock. Times are ns, rates bit/s, sizes bytes with IP and UDP headers. One thread at a time may use an object.\n\n   A struct with `size` may grow at its end in a later version. The side that allocates it sets `size` to its sizeof; the other side\n   takes any size. What is behind `size` has its default when it is read, 0 unless another is stated, and is not written. What only the\n   caller's header has is ignored, and stays as it is. Structs without `size` do not change. One that only\n   functions of the table of a controller use may change with the version of that table.\n\n   Made by `cargo xtask c`; do not edit. */";
const TABLE: &str = "/* The table of a controller in a shared library. The library defines and exports this function. */\n#ifdef __cplusplus\nextern \"C\"\n#endif\nconst struct PacelineControllerV1 *paceline_controller_v1(void);";

/// Writes the header; with `--check` only compares it.
pub fn c(arguments: &[String]) -> Result<(), Problem> {
    match has_flag(arguments, "--check")? {
        true => check_header(),
        false => Ok(write(&root().join(HEADER), header()?)?),
    }
}

/// Compares the header with the sources.
fn check_header() -> Result<(), Problem> {
    let stored = fs::read_to_string(root().join(HEADER)).unwrap_or_default();
    match header()? == stored {
        true => Ok(()),
        false => Err(Problem::Failed(format!("{HEADER} is not that of the sources; `cargo xtask c` writes it"))),
    }
}

fn header() -> Result<String, String> {
    let mut config = Config {
        language: Language::C,
        style: Style::Both,
        cpp_compat: true,
        include_guard: Some("PACELINE_H".to_owned()),
        no_includes: true,
        sys_includes: ["stddef.h", "stdint.h"].map(str::to_owned).to_vec(),
        header: Some(START.to_owned()),
        trailer: Some(TABLE.to_owned()),
        documentation_style: DocumentationStyle::C99,
        usize_is_size_t: true,
        ..Config::default()
    };
    config.export.include = ["PacelineControllerV1".to_owned()].to_vec();
    let builder = SOURCES
        .iter()
        .fold(Builder::new().with_config(config), |builder, source| builder.with_src(root().join(source)));
    let bindings = builder.generate().map_err(|error| format!("cbindgen: {error}"))?;
    let mut bytes = Vec::new();
    bindings.write(&mut bytes);
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    // What Rust calls safety is the contract of every function in C.
    let text = text.replace("// # Safety\n", "// Pointers:\n").replace("[`", "`").replace("`]", "`");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    Ok(lines.join("\n") + "\n")
}

const WARNINGS: &str = "-std=c11 -Wall -Wextra -Werror -Icrates/paceline-c/include";
const SANITIZERS: &str = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all";
/// Programs in C and their arguments in the checks.
const PROGRAMS: [(&str, &str); 3] = [
    ("examples/c/udp_loop.c", "2"),
    ("crates/paceline-c/tests/c/other_sizes.c", ""),
    ("crates/paceline-c/tests/c/random_calls.c", "1 8000"),
];

/// Checks the header, and runs the programs in C: under the sanitizers of the compiler, which see the memory of the programs, and
/// under valgrind, which also sees that of the library.
pub fn check(_features: &str) -> Result<(), Problem> {
    need("cc --version", "Install a C compiler, such as `apt-get install gcc`")?;
    need("valgrind --version", "`apt-get install valgrind`")?;
    check_header()?;
    run(command("cargo build --quiet --locked --profile c --package paceline-c"))?;
    let folder = target().join("c");
    for (source, arguments) in PROGRAMS {
        let name = source.rsplit('/').next().unwrap_or(source).trim_end_matches(".c");
        let sanitized = compile(source, &folder.join(format!("{name}-sanitized")), SANITIZERS)?;
        run(program(sanitized, arguments))?;
        let plain = compile(source, &folder.join(name), "-O1 -g")?;
        run(command("valgrind --quiet --error-exitcode=9 --leak-check=full")
            .arg(format!("--suppressions={}", root().join("crates/paceline-c/tests/c/valgrind.supp").display()))
            .arg(plain)
            .args(arguments.split_whitespace()))?;
    }
    check_installed(&folder)?;
    // The cost of a call depends on the machine: it is printed, not judged.
    let cost = compile("crates/paceline-c/tests/c/call_cost.c", &folder.join("call_cost"), "-O2")?;
    ["target", "timeout", "sent"].iter().try_for_each(|what| run(program(cost.clone(), what)))?;
    Ok(())
}

/// Installs the library into a folder, and compiles and runs a program with what pkg-config and CMake find there.
fn check_installed(folder: &Path) -> Result<(), Problem> {
    let prefix = folder.join("prefix");
    // Cargo takes a relative folder from the root of the workspace.
    let up = "../".repeat(root().components().count() - 1);
    let relative = format!("{up}{}", target().display().to_string().trim_start_matches('/'));
    run(command("make --silent -C crates/paceline-c install")
        .arg(format!("PREFIX={}", prefix.display()))
        .env("CARGO_TARGET_DIR", relative))?;
    let (flags, _) =
        output(command("pkg-config --cflags --libs paceline").env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")))?;
    let program_path = folder.join("udp_loop-installed");
    run(command("cc -std=c11 -O1 examples/c/udp_loop.c -o").arg(&program_path).args(flags.split_whitespace()))?;
    // The program finds the library by its soname.
    run(program(program_path, "2").env("LD_LIBRARY_PATH", prefix.join("lib")))?;
    if need("cmake --version", "").is_err() {
        eprintln!("skipped: no cmake");
        return Ok(());
    }
    let build = folder.join("cmake");
    run(command("cmake -S examples/c -B").arg(&build).arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())))?;
    run(command("cmake --build").arg(&build))?;
    Ok(run(program(build.join("udp_loop"), "2"))?)
}

/// Compiles a program in C with the static library.
fn compile(source: &str, to: &Path, options: &str) -> Result<PathBuf, Problem> {
    run(command(&format!("cc {WARNINGS} {options} {source} -o"))
        .arg(to)
        .arg(target().join("c/libpaceline_c.a"))
        .args(["-lm", "-lpthread", "-ldl"]))?;
    Ok(to.to_owned())
}
