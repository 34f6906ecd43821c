//! Errors of the command line, in the form of all other errors, with hints for usual mistakes.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use miette::{Report, miette};

/// Converts an error of the command line. Requests for help or the version are printed, and end the process.
pub fn usage_error(error: &clap::Error, words: &[String]) -> Report {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        error.exit();
    }
    let text = error.render().to_string();
    let (message, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let message: Vec<&str> = message.trim_start_matches("error: ").split_whitespace().collect();
    let hint = hint(error, words).into_iter();
    let rest = rest.split("\n\n").map(|part| part.trim().trim_start_matches("tip: ").to_owned());
    let rest = rest.filter(|part| !part.is_empty() && !part.starts_with("to pass"));
    let help: Vec<String> = hint.chain(rest).collect();
    miette!(help = help.join("\n"), "{}", message.join(" "))
}

/// Returns a hint for a usual mistake.
fn hint(error: &clap::Error, words: &[String]) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    // The value may follow in the same word or in the next.
    let place = words.iter().position(|word| word == argument || word.starts_with(&format!("{argument}=")))?;
    if !argument.starts_with('-') {
        return list_hint(&words[..=place]);
    }
    let key = SCENARIO_KEYS.iter().find(|(option, _)| option == argument).map(|(_, key)| key)?;
    let own = words[place].split_once('=').map(|(_, value)| value);
    let value = own.or_else(|| words.get(place + 1).map(String::as_str)).filter(|value| !value.starts_with('-'));
    Some(format!("write `--set {key}={}`: a value of the scenario", value.unwrap_or("VALUE")))
}

/// Values of scenarios that people write as options.
const SCENARIO_KEYS: [(&str, &str); 6] = [
    ("--duration", "duration"),
    ("--rtt", "path.rtt"),
    ("--capacity", "path.forward.capacity"),
    ("--bandwidth", "path.forward.capacity"),
    ("--loss", "path.forward.loss"),
    ("--delay", "path.forward.delay"),
];

/// Returns the hint for a list of controllers that is written with blanks.
fn list_hint(words: &[String]) -> Option<String> {
    let option = words.iter().rposition(|word| word.starts_with('-'))?;
    let is_list = matches!(words[option].as_str(), "--controllers" | "--controller");
    let names = &words[option + 1..];
    (is_list && names.len() > 1).then(|| format!("write the list with commas: `--controllers {}`", names.join(",")))
}
