// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline play`: a scenario in the playground, one HTML page that simulates in the browser.

use super::{check_controllers, reject_external};
use crate::{output, worlds};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use paceline::Registry;
use paceline_lab::registries;
use paceline_live::http::Document;
use paceline_scenario::{Catalogue, Changes, Origin, Override, edited, file_name, load};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// The page, with an empty object in place of what it starts with; none in a build without the feature.
#[cfg(feature = "playground")]
const PAGE: Option<&str> = Some(include_str!(env!("PACELINE_PLAYGROUND")));
#[cfg(not(feature = "playground"))]
const PAGE: Option<&str> = None;

/// The element of the page that holds what it starts with.
const START: &str = r#"<script type="application/json" id="start">{}"#;

/// Arguments of `play`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Scenario id (see `paceline list scenarios`) or a TOML file; a call on a link whose capacity changes if absent.
    scenario: Option<String>,
    /// Sets a value of the scenario: dotted key, elements of lists by id or number. Can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "scenario")]
    settings: Vec<Override>,
    /// The controller beside that of the scenario; none if absent.
    #[arg(long, value_name = "CONTROLLER")]
    beside: Option<String>,
    /// Seed.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32))]
    seed: u32,
    /// File for the page; `-` prints it.
    #[arg(long, value_name = "FILE", default_value = "playground.html")]
    out: PathBuf,
    /// Shows the page at an address of this machine in place of writing a file, until Ctrl-C. The browser simulates; nothing runs here.
    #[arg(long, conflicts_with = "out")]
    serve: bool,
    /// Port of that address; any free port if absent.
    #[arg(long, requires = "serve", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

/// Writes the page and prints its address.
pub fn play(arguments: &Arguments) -> Result<ExitCode> {
    let Some(page) = PAGE else {
        let hint = "in a clone, run `cargo xtask playground`; its page target/playground/playground.html opens in any browser, \
                    and `cargo build --release --features playground` then builds this command";
        let missing = ("this build lacks the Cargo feature".to_owned(), hint.to_owned());
        return Err(worlds::unavailable("the command `play`", missing));
    };
    let own = [&arguments.beside].into_iter().flatten().cloned();
    let set = arguments.settings.iter().map(ToString::to_string);
    let set = set.filter_map(|change| Some(change.split_once('=')?.1.trim_matches('"').to_owned()));
    let why = "the page simulates in the browser, which starts no program and loads no library";
    let hint = "`paceline compare SCENARIO --controllers A,B` runs it beside another controller";
    reject_external(&own.chain(set).collect::<Vec<_>>(), why, hint)?;
    let registry = Registry::standard();
    if let Some(name) = &arguments.beside {
        check_controllers(std::slice::from_ref(name), &registry)?;
    }
    let mut start = json!({"seed": arguments.seed});
    if let Some(name) = &arguments.scenario {
        add_scenario(&mut start, &Catalogue.find(name)?, &arguments.settings, &registry)?;
        start["beside"] = json!("");
    }
    if let Some(name) = &arguments.beside {
        start["beside"] = json!(name);
    }
    let page = with_start(page, &start);
    if arguments.serve {
        return serve(page, arguments.port);
    }
    if arguments.out.as_os_str() == "-" {
        output::print(page.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let out = arguments.out.display();
    fs::write(&arguments.out, page).into_diagnostic().wrap_err_with(|| format!("cannot write {out}"))?;
    let path = arguments.out.canonicalize().into_diagnostic()?;
    output::print(&format!("The playground is {out}. To open it:\n  file://{}", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Adds a scenario with these settings, and the files that it names.
fn add_scenario(start: &mut Value, origin: &Origin, settings: &[Override], registry: &Registry) -> Result<()> {
    let origin = origin.with_text(origin.portable_text());
    let origin = origin.with_text(edited(&origin, settings, registry)?);
    load(&origin, &Changes::default(), registries(registry))?;
    start["name"] = json!(origin.name.rsplit('/').next());
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for name in origin.file_names() {
        let Ok(text) = origin.read(&name) else { continue };
        let own = file_name(&name).to_owned();
        // The page has no folders.
        if files.get(&own).is_some_and(|other| *other != text) {
            return Err(miette!(help = "rename one of them", "the scenario has two different files `{own}`"));
        }
        files.insert(own, text);
    }
    start["files"] = json!(files);
    start["text"] = json!(origin.text);
    Ok(())
}

/// Shows the page on the loopback until the process ends.
fn serve(page: String, port: u16) -> Result<ExitCode> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).into_diagnostic();
    let listener = listener.wrap_err_with(|| format!("cannot listen at port {port} of this machine"))?;
    eprintln!("The playground is at http://{}/ until Ctrl-C", listener.local_addr().into_diagnostic()?);
    let page = Arc::<str>::from(page);
    Document { path: "/", kind: "text/html; charset=utf-8", body: move || page.clone() }.serve(listener);
    Ok(ExitCode::SUCCESS)
}

/// Returns the page with what it starts with.
fn with_start(page: &str, start: &Value) -> String {
    // `<` is written as an escape, so that no text ends the element.
    page.replacen(START, &START.replace("{}", &start.to_string().replace('<', "\\u003c")), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page cannot read files; shipped ones are in it.
    #[test]
    fn page_has_the_files_that_the_scenario_names() {
        let trace = "shipped:cellular/lte-drive-1.csv";
        let text = Catalogue.find("cellular/lte-drive").unwrap().portable_text();
        assert!(text.contains(trace), "{text}");
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("up.csv");
        fs::write(&own, Catalogue.find("cellular/lte-drive").unwrap().read("lte-drive-1.csv").unwrap()).unwrap();
        let added = |text: &str| {
            let (mut start, origin) = (json!({}), Origin::from_text("mine.toml", text));
            add_scenario(&mut start, &origin, &[], &Registry::standard()).unwrap();
            start
        };
        let start = added(&text.replacen(trace, &own.display().to_string(), 1));
        assert_eq!(start["files"], json!({"up.csv": fs::read_to_string(&own).unwrap()}));
        assert!(start["text"].as_str().unwrap().contains("up.csv") && start["name"] == "mine.toml");
        assert_eq!(added(&text)["files"], json!({}));
    }

    #[test]
    fn page_starts_with_the_scenario() {
        let empty = include_str!("../../../paceline-wasm/src/playground/page/page.html");
        let page = with_start(empty, &json!({"text": "title = \"</script>\"", "seed": 7}));
        assert!(page.contains(r#"{"seed":7,"text":"title = \"\u003c/script>\""}</script>"#));
        assert_eq!(page.matches("</script>").count(), empty.matches("</script>").count());
    }
}
