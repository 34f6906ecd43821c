// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page in a real browser, opened from disk: it draws, a changed control redraws it, and its trace hashes are those of native
//! runs. `cargo xtask playground` writes the page.

use paceline::Registry;
use paceline_browser::chromium::{Browser, Page, Scratch, required};
use paceline_lab::run::Runner;
use paceline_scenario::{Changes, Origin};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Returns the path of the page, or prints a note that the test is skipped.
///
/// # Panics
/// The page is not built although `PACELINE_REQUIRE` lists `chromium`.
fn page_file() -> Option<PathBuf> {
    required()?;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    let page = target.join("playground/playground.html").canonicalize().ok();
    let is_required = std::env::var("PACELINE_REQUIRE").is_ok_and(|list| list.contains("chromium"));
    assert!(page.is_some() || !is_required, "`cargo xtask playground` writes the page");
    if page.is_none() {
        eprintln!("NOT TESTED: `cargo xtask playground` writes the page");
    }
    page
}

/// Opens the page. Errors of the page and of its policy go to the list.
fn open(browser: &Browser, width: u32) -> Option<(Page, Arc<Mutex<Vec<String>>>)> {
    let file = page_file()?;
    let page = browser.open("about:blank").unwrap();
    for domain in ["Page", "Runtime", "Log"] {
        page.call(&format!("{domain}.enable"), json!({})).unwrap();
    }
    let screen = json!({"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false});
    page.call("Emulation.setDeviceMetricsOverride", screen).unwrap();
    page.navigate(&format!("file://{}", file.display())).unwrap();
    let problems = Arc::new(Mutex::new(Vec::new()));
    let list = problems.clone();
    page.listen(move |method, parameters| {
        let is_problem = method == "Runtime.exceptionThrown"
            || method == "Log.entryAdded" && parameters["entry"]["level"] == "error";
        if is_problem {
            list.lock().unwrap().push(parameters.to_string());
        }
    });
    assert!(
        becomes(&page, "window.paceline && (paceline.ready || paceline.error || paceline.problem)"),
        "{}",
        state(&page)
    );
    Some((page, problems))
}

/// Waits at most a minute until an expression of the page is true, and returns whether it became true.
fn becomes(page: &Page, condition: &str) -> bool {
    let wait = format!(
        "new Promise((done) => {{ const began = performance.now(); const look = () => ({condition}) ? done(true) \
         : performance.now() - began > 60000 ? done(false) : setTimeout(look, 5); look(); }})"
    );
    page.evaluate(&wait).unwrap() == json!(true)
}

fn state(page: &Page) -> Value {
    page.evaluate("JSON.stringify(paceline)").unwrap()
}

/// Moves a control as a user does, and waits until the page is redrawn.
fn set(page: &Page, selector: &str, value: &str, event: &str) {
    let before = page.evaluate("paceline.drawn").unwrap();
    let script = format!(
        "(() => {{ const control = document.querySelector({selector:?}); control.value = {value:?}; \
         control.dispatchEvent(new Event({event:?}, {{ bubbles: true }})); }})()"
    );
    page.evaluate(&script).unwrap();
    assert!(becomes(page, &format!("paceline.drawn > {before} || paceline.problem")), "{}", state(page));
}

fn text(page: &Page) -> String {
    page.evaluate("document.getElementById('text').value").unwrap().as_str().unwrap().to_owned()
}

/// Returns the trace hash of a native run.
fn native(text: &str, controller: Option<&str>, seed: u64) -> Value {
    let registry = Registry::standard();
    let changes = Changes { controller: controller.map(str::to_owned), ..Changes::default() };
    let scenario = paceline_lab::load(&Origin::from_text("call.toml", text), &changes, &registry).unwrap();
    json!(Runner::simulator(&registry).run(&scenario, seed, None).unwrap().trace_hash)
}

#[test]
fn page_in_the_browser_simulates_what_its_text_says() {
    if page_file().is_none() {
        return;
    }
    let browser = Browser::start(Scratch::new().unwrap(), 0, &[]).unwrap();
    let Some((page, problems)) = open(&browser, 1400) else { return };
    let hashes = || page.evaluate("paceline.hashes").unwrap();
    let first = text(&page);
    assert_eq!(hashes(), json!([native(&first, None, 1), native(&first, Some("nada"), 1)]));
    let mut times = vec![page.evaluate("paceline.startMs").unwrap()];

    // A slider, a choice, the other controller, the seed: each is redrawn as the text says.
    let plot = || page.evaluate("document.querySelector('.side.a .rate canvas').toDataURL()").unwrap();
    let before = plot();
    set(&page, "#capacity input[type=range]", "600", "input");
    times.push(page.evaluate("paceline.redrawMs").unwrap());
    let slower = text(&page);
    assert!(slower.contains("[[\"0 s\", \"4.8 Mbps\"]"), "{slower}");
    assert_ne!(plot(), before, "the plot is redrawn");
    assert_eq!(hashes(), json!([native(&slower, None, 1), native(&slower, Some("nada"), 1)]));
    set(&page, "#discipline", "codel", "change");
    times.push(page.evaluate("paceline.redrawMs").unwrap());
    set(&page, "#beside", "scream", "change");
    set(&page, "#seed", "7", "input");
    times.push(page.evaluate("paceline.redrawMs").unwrap());
    let codel = text(&page);
    assert_eq!(hashes(), json!([native(&codel, None, 7), native(&codel, Some("scream"), 7)]));
    let command = page.evaluate("document.getElementById('command').textContent").unwrap();
    assert_eq!(command, json!("paceline compare call.toml --controllers gcc-2016,scream --seed 7 --repeats 1"));

    // A wrong text shows the error and leaves the plots; the correct text removes it.
    let typed = |text: &str| {
        let script = format!(
            "(() => {{ const box = document.getElementById('text'); box.value = {}; \
             box.dispatchEvent(new Event('input')); }})()",
            json!(text)
        );
        page.evaluate(&script).unwrap();
    };
    let shown = "document.getElementById('problem').textContent";
    typed(&codel.replace("gcc-2016", "gcc-2061"));
    assert!(becomes(&page, "paceline.problem"));
    let error = page.evaluate(shown).unwrap().to_string();
    assert!(error.contains("line 15") && error.contains("did you mean `gcc-2016`"), "{error}");
    let drawn = page.evaluate("paceline.drawn").unwrap();
    typed("]");
    typed(&codel.replace("gcc-2016", "googcc"));
    assert!(becomes(&page, &format!("!paceline.problem && paceline.drawn > {drawn}")), "{}", state(&page));

    // A recorded trace and constants of a paper need files, which the page has.
    set(&page, "#open", "mmsys16/table1", "change");
    let table = text(&page);
    assert_eq!(hashes()[0], native(&table, None, 7));
    assert_eq!(*problems.lock().unwrap(), Vec::<String>::new());
    eprintln!("ms from the start, and from changes, to the drawn page: {}", json!(times));
}

/// Writes a screenshot to the file `PACELINE_PICTURE`, `PACELINE_WIDTH` px wide, or 1240 px.
#[test]
#[ignore = "writes a screenshot"]
fn writes_screenshot() {
    let picture = std::env::var_os("PACELINE_PICTURE").expect("PACELINE_PICTURE names a file");
    let width = std::env::var("PACELINE_WIDTH").map_or(1240, |width| width.parse().expect("a number of px"));
    let browser = Browser::start(Scratch::new().unwrap(), 0, &[]).unwrap();
    let Some((page, _)) = open(&browser, width) else { return };
    let height = if width < 1000 { 3000.0 } else { 960.0 };
    std::fs::write(picture, page.screenshot((f64::from(width), 0.0, height)).unwrap()).unwrap();
}
