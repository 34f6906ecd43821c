// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the command line, in the form of all other errors, with hints for usual mistakes.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use miette::{Report, miette};

/// Converts an error of the command line. Requests for help or the version are printed, and end the process.
pub fn usage_error(error: &clap::Error, words: &[String], command: &Command) -> Report {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        error.exit();
    }
    let text = error.render().to_string();
    let (message, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let message: Vec<&str> = message.trim_start_matches("error: ").split_whitespace().collect();
    let hint = hint(error, words, command);
    // A tip by the letters of a word is none beside a hint by its meaning.
    let is_tip = |part: &&str| part.starts_with("tip: to pass") || hint.is_some() && part.starts_with("tip: ");
    let rest = rest.split("\n\n").map(str::trim).filter(|part| !part.is_empty() && !is_tip(part));
    let rest: Vec<String> = rest.map(|part| part.trim_start_matches("tip: ").to_owned()).collect();
    let help: Vec<String> = hint.into_iter().chain(rest).collect();
    let message = NUMBERS.iter().fold(message.join(" "), |text, (parser, plain)| text.replace(parser, plain));
    miette!(help = help.join("\n"), "{message}")
}

/// What the standard library says of texts that are no numbers, and the same in plain words.
const NUMBERS: [(&str, &str); 3] = [
    ("invalid digit found in string", "not a whole number from 0"),
    ("invalid float literal", "not a number"),
    ("number too large to fit in target type", "too large"),
];

/// Returns a hint for a usual mistake.
fn hint(error: &clap::Error, words: &[String], command: &Command) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let of_word = |word: &str| COMMANDS.iter().find(|(known, _)| *known == word).map(|(_, hint)| (*hint).to_owned());
    match error.kind() {
        ErrorKind::InvalidSubcommand => return of_word(text(ContextKind::InvalidSubcommand)?),
        ErrorKind::ValueValidation if text(ContextKind::InvalidArg)?.starts_with("--controllers") => {
            return list_hint(words, None);
        }
        ErrorKind::UnknownArgument => {}
        _ => return None,
    }
    let argument = text(ContextKind::InvalidArg)?;
    // The value may follow in the same word or in the next.
    let place = words.iter().position(|word| word == argument || word.starts_with(&format!("{argument}=")))?;
    if !argument.starts_with('-') {
        return list_hint(words, Some(argument));
    }
    let verb = words.iter().skip(1).find(|word| !word.starts_with('-')).map_or("", String::as_str);
    let has = |option: &&str| {
        let arguments = command.find_subcommand(verb).into_iter().flat_map(Command::get_arguments);
        arguments.filter_map(|known| known.get_long()).any(|long| option.strip_prefix("--") == Some(long))
    };
    let other = SYNONYMS.iter().find(|(word, _)| *word == argument).map(|(_, option)| *option).filter(has);
    if let Some(option) = other {
        return Some(format!("write `{option}`"));
    }
    if argument == "--trace" && has(&"--set") {
        return Some("write `--set 'path.forward.capacity={ trace = \"FILE\" }'`: a value of the scenario".to_owned());
    }
    let Some((_, key)) = SCENARIO_KEYS.iter().find(|(option, _)| *option == argument) else {
        return of_word(argument);
    };
    match verb {
        "new" => {
            return Some(format!("leave the option out, and change `{key}` in the file that `paceline new` writes"));
        }
        _ if !has(&"--set") => return of_word(argument),
        _ => {}
    }
    let own = words[place].split_once('=').map(|(_, value)| value);
    let value = own.or_else(|| words.get(place + 1).map(String::as_str)).filter(|value| !value.starts_with('-'));
    Some(format!("write `--set {key}={}`: a value of the scenario", value.unwrap_or("VALUE")))
}

/// Words that people write as commands, and what serves them.
const COMMANDS: [(&str, &str); 4] = [
    ("leaderboard", "`paceline suite all --controllers all --out DIR` writes the leaderboard, DIR/leaderboard.md"),
    ("version", "`paceline --version` prints the version"),
    ("-v", "`paceline -V` prints the version; `--json` prints every value of a result"),
    ("bench", "`paceline suite` judges controllers; `paceline list suites` names the suites"),
];

/// Options of other programs, and those of this one that mean the same.
const SYNONYMS: [(&str, &str); 13] = [
    ("--seeds", "--repeats"),
    ("--runs", "--repeats"),
    ("--count", "--repeats"),
    ("--parallel", "--jobs"),
    ("--at-once", "--jobs"),
    ("--within", "--time-limit"),
    ("--output", "--out"),
    ("--output-dir", "--out"),
    ("--continue", "--resume"),
    ("--duration", "--seconds"),
    ("--port", "--bind"),
    ("--listen", "--bind"),
    ("--controller", "--beside"),
];

/// Values of scenarios that people write as options.
const SCENARIO_KEYS: [(&str, &str); 7] = [
    ("--duration", "duration"),
    ("--rtt", "path.rtt"),
    ("--capacity", "path.forward.capacity"),
    ("--trace", "path.forward.capacity"),
    ("--bandwidth", "path.forward.capacity"),
    ("--loss", "path.forward.loss"),
    ("--delay", "path.forward.delay"),
];

/// Returns the hint for a list of controllers that is written with blanks, one of which is `name`.
fn list_hint(words: &[String], name: Option<&str>) -> Option<String> {
    let (place, first) = words.iter().enumerate().find_map(|(n, word)| Some((n, value_in(word)?)))?;
    let after = words[place + 1..].iter().map(String::as_str).take_while(|word| !word.starts_with('-'));
    let written: Vec<&str> = Some(first).filter(|first| !first.is_empty()).into_iter().chain(after).collect();
    let names = written.iter().flat_map(|word| word.split(',')).map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<&str> = names.collect();
    let is_list = !names.is_empty() && name.is_none_or(|name| written[1..].contains(&name));
    let names_joined = names.join(",");
    is_list.then(|| match written.len() {
        1 => format!("leave out the comma without a name beside it: `--controllers {names_joined}`"),
        _ => format!("write the list with commas and without blanks: `--controllers {names_joined}`"),
    })
}

/// Returns the value in the word of the option for controllers; empty if it follows in the next word.
fn value_in(word: &str) -> Option<&str> {
    let rest = word.strip_prefix("--controllers").or(word.strip_prefix("--controller"))?;
    (rest.is_empty() || rest.starts_with('=')).then(|| rest.trim_start_matches('='))
}
