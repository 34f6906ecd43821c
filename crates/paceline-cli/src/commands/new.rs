// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline new`: a commented scenario from options or questions.

use super::check_controllers;
use crate::{external, output};
use clap::builder::PossibleValuesParser;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use paceline::{MediaKind, Registry};
use paceline_lab::report::shell_quoted;
use paceline_scenario::{Changes, Origin, Template, Traffic, load, path_presets, template_sources};
use paceline_units::TimeDelta;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `new`. Without options and in a terminal, the command asks for them.
#[derive(clap::Args)]
pub struct Arguments {
    /// File to write, which must not exist; `-` prints the scenario.
    #[arg(default_value = "call.toml")]
    file: PathBuf,
    /// Path preset, see `paceline list paths` [default: lte-drive-up].
    #[arg(long, value_parser = PossibleValuesParser::new(paths()), hide_possible_values = true)]
    path: Option<String>,
    /// Video of the call, see `paceline list sources` [default: 720p30].
    #[arg(long, value_parser = PossibleValuesParser::new(template_sources(MediaKind::Video)), hide_possible_values = true)]
    source: Option<String>,
    /// Audio of the call, or `none` [default: audio-32k].
    #[arg(long, value_parser = PossibleValuesParser::new(audio()), hide_possible_values = true)]
    audio: Option<String>,
    /// Controller, see `paceline list controllers`, or one of your own, `exec:COMMAND` or `lib:FILE` [default: gcc-tfb].
    #[arg(long)]
    controller: Option<String>,
    /// TCP flow beside the call: none, download or upload [default: none].
    #[arg(long, value_parser = PossibleValuesParser::new(traffic()), hide_possible_values = true)]
    traffic: Option<String>,
    /// Length of a run [default: 60 s].
    #[arg(long)]
    duration: Option<String>,
}

fn paths() -> Vec<String> {
    path_presets().into_iter().map(|preset| preset.name).collect()
}

const NO_AUDIO: &str = "none";

fn audio() -> Vec<String> {
    template_sources(MediaKind::Audio).into_iter().chain([NO_AUDIO.to_owned()]).collect()
}

fn controllers() -> Vec<String> {
    Registry::standard().iter().map(|entry| entry.name().to_owned()).collect()
}

fn traffic() -> Vec<String> {
    Traffic::NAMES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Writes the scenario.
pub fn new(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { file, path, source, audio, controller, traffic, duration } = arguments;
    let to_stdout = file.as_os_str() == "-";
    if !to_stdout && file.exists() {
        let message = format!("{} exists", file.display());
        return Err(miette!(help = "name another file: `paceline new FILE.toml`", "{message}"));
    }
    let options = [path, source, audio, controller, traffic, duration];
    let asks = options.iter().all(|option| option.is_none()) && io::stdin().is_terminal() && io::stderr().is_terminal();
    let choices: [(&str, Vec<String>, &str); 6] = [
        ("path", paths(), "lte-drive-up"),
        ("video", template_sources(MediaKind::Video), "720p30"),
        ("audio", self::audio(), "audio-32k"),
        ("controller", controllers(), "gcc-tfb"),
        ("TCP flow beside the call", self::traffic(), "none"),
        ("length of a run", Vec::new(), "60 s"),
    ];
    if asks {
        eprintln!("A few questions. Enter takes the value in brackets.");
    }
    let mut answers = Vec::new();
    for (option, (what, known, default)) in options.into_iter().zip(&choices) {
        answers.push(match option {
            Some(given) => given.clone(),
            None if asks && known.is_empty() => ask_duration(&mut io::stdin().lock(), what, default)?,
            None if asks => ask(&mut io::stdin().lock(), what, known, default)?,
            None => (*default).to_owned(),
        });
    }
    let [path, source, audio, controller, traffic, duration] =
        <[String; 6]>::try_from(answers).expect("one per option");
    let named = [controller.clone()];
    let registry = external::add(Registry::standard(), &named, &[], "")?;
    check_controllers(&named, &registry)?;
    let traffic = Traffic::NAMES.iter().find(|(name, _)| *name == traffic).map_or(Traffic::None, |(_, value)| *value);
    let audio = Some(audio).filter(|audio| audio != NO_AUDIO);
    let text = Template { path, source, audio, controller, traffic, duration }.text();
    load(&Origin::from_text(file.display().to_string(), &text), &Changes::default(), &registry)?;
    if to_stdout {
        output::print(text.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let write = || File::create_new(file)?.write_all(text.as_bytes());
    write().into_diagnostic().wrap_err_with(|| format!("cannot write {}", file.display()))?;
    // A file that names code runs it with this option only.
    let option = if external::is_external(&named[0]) { " --allow-exec" } else { "" };
    let name = shell_quoted(&file.display().to_string());
    output::print(&format!(
        "{} is a scenario. To run it, and to compare controllers on it:\n  paceline run {name}{option}\n  paceline compare {name} \
         --controllers gcc-tfb,scream,nada --repeats 5",
        file.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Asks until the answer is known. An empty answer, or the end of the input, is the default.
fn ask(input: &mut impl BufRead, what: &str, known: &[String], default: &str) -> Result<String> {
    if !known.is_empty() {
        eprintln!("\n{}", output::wrap_to(&known.join("  "), output::width()).join("\n"));
    }
    loop {
        eprint!("{what} [{default}]: ");
        let mut answer = String::new();
        let is_end = input.read_line(&mut answer).into_diagnostic()? == 0;
        match answer.trim() {
            _ if is_end => return Ok(default.to_owned()),
            "" => return Ok(default.to_owned()),
            answer if known.is_empty() || known.iter().any(|name| name == answer) => return Ok(answer.to_owned()),
            _ => eprintln!("that is none of the above"),
        }
    }
}

/// Asks for a time until the answer is one.
fn ask_duration(input: &mut impl BufRead, what: &str, default: &str) -> Result<String> {
    loop {
        let answer = ask(input, what, &[], default)?;
        match answer.parse::<TimeDelta>() {
            Ok(time) if time > TimeDelta::ZERO => return Ok(answer),
            _ => eprintln!("that is not a time such as 60 s or 2 min"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_repeated_until_the_answer_is_known() {
        let known = ["a", "b"].map(str::to_owned);
        let asked = |text: &str| ask(&mut text.as_bytes(), "letter", &known, "a").unwrap();
        let time = |text: &str| ask_duration(&mut text.as_bytes(), "length", "60 s").unwrap();
        assert_eq!([time("90\n1 minute\n90 s\n"), time("0 s\n\n"), time("")], ["90 s", "60 s", "60 s"]);
        assert_eq!([asked("b\n"), asked("\n"), asked(""), asked("c\n b \n"), asked("c\n")], ["b", "a", "a", "b", "a"]);
        assert_eq!(ask(&mut "90 s\n".as_bytes(), "length", &[], "60 s").unwrap(), "90 s");
    }
}
