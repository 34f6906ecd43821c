// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page in a real browser, opened from disk: it draws, a changed control redraws it, and its trace hashes are those of native
//! runs. `cargo xtask playground` writes the page. The stage `browser` runs the tests whose names contain that word.

use paceline::Registry;
use paceline_browser::chromium::{Browser, Page, Scratch, required};
use paceline_lab::compare::{compare, score_text};
use paceline_lab::run::Runner;
use paceline_scenario::{Call, CallPath, Changes, Origin, Scenario};
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

/// Opens the page with a fragment. Errors of the page and of its policy go to the list.
fn open(browser: &Browser, width: u32, fragment: &str) -> Option<(Page, Arc<Mutex<Vec<String>>>)> {
    let file = page_file()?;
    let page = browser.open("about:blank").unwrap();
    for domain in ["Page", "Runtime", "Log"] {
        page.call(&format!("{domain}.enable"), json!({})).unwrap();
    }
    let screen = json!({"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false});
    page.call("Emulation.setDeviceMetricsOverride", screen).unwrap();
    page.navigate(&format!("file://{}{fragment}", file.display())).unwrap();
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
    let script = format!(
        "(() => {{ const control = document.querySelector({selector:?}); control.value = {value:?}; \
         control.dispatchEvent(new Event({event:?}, {{ bubbles: true }})); }})()"
    );
    act(page, &script);
}

fn text(page: &Page) -> String {
    page.evaluate("document.getElementById('text').value").unwrap().as_str().unwrap().to_owned()
}

/// Runs a script, and waits until the page is redrawn or shows another error.
fn act(page: &Page, script: &str) {
    let before = page.evaluate("window.earlier = paceline.problem; paceline.drawn").unwrap();
    page.evaluate(script).unwrap();
    let after = format!("paceline.drawn > {before} || paceline.problem && paceline.problem !== earlier");
    assert!(becomes(page, &after), "{script}: {}", state(page));
}

/// Drops files on the page, as a user does.
fn drop_files(page: &Page, files: &[(&str, &str)]) -> String {
    let script = format!(
        "(() => {{ const data = new DataTransfer(); \
         for (const [name, text] of {}) data.items.add(new File([text], name)); \
         document.body.dispatchEvent(new DragEvent('drop', {{ dataTransfer: data, bubbles: true, cancelable: true }})); }})()",
        json!(files)
    );
    act(page, &script);
    page.evaluate("document.getElementById('problem')?.textContent ?? ''").unwrap().as_str().unwrap().to_owned()
}

/// Drags the pointer over the curve, through these shares of its width and height.
fn drag(page: &Page, places: &[(f64, f64)]) {
    let corners = "(() => { const curve = document.getElementById('curve'); curve.scrollIntoView({ block: 'center' }); \
                   const box = curve.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; })()";
    let corners = page.evaluate(corners).unwrap();
    let [left, top, width, height] = [0, 1, 2, 3].map(|nth| corners[nth].as_f64().unwrap());
    let pointer = |kind: &str, (x, y): (f64, f64), buttons: u32| {
        let (x, y) = (left + x * width, top + (1.0 - y) * height);
        let event = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1});
        page.call("Input.dispatchMouseEvent", event).unwrap();
    };
    let before = page.evaluate("paceline.drawn").unwrap();
    pointer("mousePressed", places[0], 1);
    places[1..].iter().for_each(|place| pointer("mouseMoved", *place, 1));
    pointer("mouseReleased", places[places.len() - 1], 0);
    assert!(becomes(page, &format!("paceline.drawn > {before} || paceline.problem")), "{}", state(page));
}

fn scenario(origin: &Origin, controller: Option<&str>) -> Scenario {
    let changes = Changes { controller: controller.map(str::to_owned), ..Changes::default() };
    paceline_lab::load(origin, &changes, &Registry::standard()).unwrap()
}

/// Returns the trace hash of a native run.
fn hash(origin: &Origin, controller: Option<&str>, seed: u64) -> Value {
    let registry = Registry::standard();
    json!(Runner::simulator(&registry).run(&scenario(origin, controller), seed, None).unwrap().trace_hash)
}

fn native(text: &str, controller: Option<&str>, seed: u64) -> Value {
    hash(&Origin::from_text("call.toml", text), controller, seed)
}

/// Returns the scores in the ranking of `compare`, with what costs points.
fn compared(text: &str, names: [&str; 2], seed: u64) -> Value {
    let (registry, names) = (Registry::standard(), names.map(str::to_owned));
    let scenarios = names.each_ref().map(|name| scenario(&Origin::from_text("call.toml", text), Some(name)));
    let runner = Runner::simulator(&registry);
    let results = scenarios.iter().map(|scenario| runner.run_all(scenario, &[seed]).unwrap()).collect();
    let ranking = compare(&names, &scenarios, results, &registry).table.ranking;
    json!(names.map(|name| {
        let entry = ranking.iter().find(|entry| entry.controller == name).unwrap();
        let lost = [entry.lost_to_rate, entry.lost_to_delay, entry.lost_to_freezes];
        score_text(entry.score.mean, f64::INFINITY, lost)
    }))
}

#[test]
fn page_in_the_browser_simulates_what_its_text_says() {
    if page_file().is_none() {
        return;
    }
    let browser = Browser::start(Scratch::new().unwrap(), 0, &[]).unwrap();
    let Some((page, problems)) = open(&browser, 1400, "") else { return };
    let hashes = || page.evaluate("paceline.hashes").unwrap();
    let first = text(&page);
    assert_eq!(hashes(), json!([native(&first, None, 1), native(&first, Some("nada"), 1)]));
    assert_eq!(page.evaluate("paceline.scores").unwrap(), compared(&first, ["gcc-2016", "nada"], 1));
    let shown = page.evaluate("[...document.querySelectorAll('.score')].map((score) => score.textContent)").unwrap();
    assert!(shown[0].as_str().unwrap().contains(" lost to rate") && shown[0] != shown[1], "{shown}");
    let mut times = vec![page.evaluate("paceline.startMs").unwrap()];

    // A slider, a choice, the other controller, the seed: each is redrawn as the text says.
    let plot = || page.evaluate("document.querySelector('.side.a .rate canvas').toDataURL()").unwrap();
    let before = plot();
    set(&page, "#delay", "100", "input");
    times.push(page.evaluate("paceline.redrawMs").unwrap());
    let slower = text(&page);
    assert!(slower.contains("delay = \"100 ms\""), "{slower}");
    assert_ne!(plot(), before, "the plot is redrawn");
    assert_eq!(hashes(), json!([native(&slower, None, 1), native(&slower, Some("nada"), 1)]));
    set(&page, "#discipline", "codel", "change");
    times.push(page.evaluate("paceline.redrawMs").unwrap());
    set(&page, "#beside", "scream", "change");
    set(&page, "#seed", "7", "input");
    times.push(page.evaluate("paceline.redrawMs").unwrap());
    let codel = text(&page);
    assert_eq!(hashes(), json!([native(&codel, None, 7), native(&codel, Some("scream"), 7)]));
    assert_eq!(page.evaluate("paceline.scores").unwrap(), compared(&codel, ["gcc-2016", "scream"], 7));
    let command = page.evaluate("document.getElementById('command').textContent").unwrap();
    assert_eq!(command, json!("paceline compare call.toml --controllers gcc-2016,scream --seed 7 --repeats 1"));

    // A wrong text shows the error beside it and leaves the plots; the correct text removes it.
    let typed = |text: &str| {
        let script = format!(
            "(() => {{ const box = document.getElementById('text'); box.value = {}; \
             box.dispatchEvent(new Event('input')); }})()",
            json!(text)
        );
        page.evaluate(&script).unwrap();
    };
    let beside = |field: &str, place: &str| {
        let shown = format!(
            "document.getElementById({field:?}).{place}.id === 'problem' && document.getElementById('problem').textContent"
        );
        page.evaluate(&shown).unwrap().to_string()
    };
    typed(&codel.replace("gcc-2016", "gcc-2061"));
    assert!(becomes(&page, "paceline.problem"));
    let error = beside("text", "previousElementSibling");
    assert!(error.contains("line 16") && error.contains("did you mean `gcc-2016`"), "{error}");
    let drawn = page.evaluate("paceline.drawn").unwrap();
    typed("]");
    typed(&codel.replace("gcc-2016", "googcc"));
    assert!(becomes(&page, &format!("!paceline.problem && paceline.drawn > {drawn}")), "{}", state(&page));
    assert_eq!(page.evaluate("document.getElementById('problem')").unwrap(), Value::Null);
    set(&page, "#duration", "0", "change");
    let error = beside("duration", "closest('label').nextElementSibling");
    assert!(error.contains("Error"), "{error}");

    // A recorded trace and constants of a paper need files, which the page has.
    set(&page, "#open", "mmsys16/table1", "change");
    let table = text(&page);
    assert_eq!(hashes()[0], native(&table, None, 7));
    assert_eq!(*problems.lock().unwrap(), Vec::<String>::new());
    eprintln!("ms from the start, and from changes, to the drawn page: {}", json!(times));
}

/// Files of the user, and the link that restores them.
#[test]
fn page_in_the_browser_opens_dropped_files_and_its_link_restores_them() {
    if page_file().is_none() {
        return;
    }
    let browser = Browser::start(Scratch::new().unwrap(), 0, &[]).unwrap();
    let Some((page, problems)) = open(&browser, 1400, "") else { return };
    let first = text(&page);
    let trace = "time_s,rate_mbps\n0,2.5\n10,0.7\n25,3\n40,1\n";
    let call = |trace: &str| {
        let path = CallPath::of_trace_text("up.csv", trace, &Call::default()).unwrap();
        path.origin.with_files([("up.csv".to_owned(), trace.to_owned())].into())
    };
    let both = |trace: &str, seed| json!(["gcc-2016", "nada"].map(|name| hash(&call(trace), Some(name), seed)));
    let hashes = |page: &Page| page.evaluate("paceline.hashes").unwrap();
    assert_eq!(drop_files(&page, &[("up.csv", trace)]), "");
    assert_eq!(hashes(&page), both(trace, 1));
    let note = page.evaluate("document.getElementById('files-note').textContent").unwrap().to_string();
    assert!(note.contains("queue of 0.6 s"), "{note}");

    // The link carries the trace.
    set(&page, "#seed", "5", "input");
    let text_of_trace = text(&page);
    let link = |page: &Page| {
        assert!(becomes(page, "location.hash.slice(1) === paceline.link && paceline.link"), "{}", state(page));
        page.evaluate("location.hash").unwrap().as_str().unwrap().to_owned()
    };
    assert!(becomes(&page, "paceline.link.includes('seed=5')"));
    let fragment = link(&page);
    assert!(fragment.len() < 1500, "{} characters", fragment.len());
    let (restored, _) = open(&browser, 1400, &fragment).unwrap();
    assert_eq!((text(&restored), hashes(&restored)), (text_of_trace, both(trace, 5)));

    // A wrong trace is an error beside the field, and leaves the plots.
    let error = drop_files(&page, &[("up.csv", "5\n4\n")]);
    assert!(error.contains("up.csv, line 2: time goes back") && error.contains("Hint: sort the lines"), "{error}");
    let below = "document.getElementById('drop').nextElementSibling.id";
    assert_eq!(page.evaluate(below).unwrap(), json!("problem"));
    assert_eq!(hashes(&page), both(trace, 5));

    // A scenario first, then the trace that it names. A link without a long trace says so, and the page that it opens wants the trace.
    let capacity = first.lines().find(|line| line.starts_with("capacity")).unwrap();
    let traced = first.replace(capacity, "capacity = { trace = \"long.csv\" }");
    let error = drop_files(&page, &[("mine.toml", &traced)]);
    assert!(error.contains("long.csv is missing") && error.contains("mine.toml, line 10"), "{error}");
    let noise = |n: u64| (n * 2_654_435_761) % 4_000_037;
    let long: String = (0..20_000).map(|n| format!("{},{}\n", n * 10, 100_000 + noise(n))).collect();
    assert_eq!(drop_files(&page, &[("long.csv", &format!("time_ms,rate_bps\n{long}"))]), "");
    let drawn = hashes(&page);
    assert!(becomes(&page, "document.getElementById('link-note').textContent.includes('without long.csv')"));
    let (without, _) = open(&browser, 1400, &link(&page)).unwrap();
    let error = without.evaluate("document.getElementById('problem').textContent").unwrap().to_string();
    assert!(error.contains("long.csv is missing") && error.contains("open this file, too"), "{error}");
    assert_eq!(drop_files(&without, &[("long.csv", &format!("time_ms,rate_bps\n{long}"))]), "");
    assert_eq!(hashes(&without), drawn);

    // What differs from a shipped scenario.
    set(&page, "#open", "path:lte-drive-up", "change");
    set(&page, "#controller", "scream-v2", "change");
    let changed = text(&page);
    assert!(becomes(&page, "paceline.link.includes('lte-drive') && paceline.link.includes('edit')"));
    let fragment = link(&page);
    assert!(fragment.len() < 200 && fragment.contains("open=path"), "{fragment}");
    let (restored, _) = open(&browser, 1400, &fragment).unwrap();
    assert_eq!((text(&restored), hashes(&restored)), (changed, hashes(&page)));
    assert_eq!(*problems.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn page_in_the_browser_with_a_damaged_link_shows_the_first_call() {
    if page_file().is_none() {
        return;
    }
    let browser = Browser::start(Scratch::new().unwrap(), 0, &[]).unwrap();
    let Some((page, problems)) = open(&browser, 1400, "") else { return };
    let first = (text(&page), page.evaluate("paceline.hashes").unwrap());
    let pack = |value: &str| page.evaluate(&format!("Link.pack({value})")).unwrap().as_str().unwrap().to_owned();
    let start = "document.getElementById('text').value";
    let good = pack(&format!("{{ sum: Link.sum({start}), changes: [[0, 1, ['id = \"x\"']]] }}"));
    let damaged = [
        ("open=no/such".to_owned(), "does not have its start"),
        ("beside=%3Cimg%20src=x%3E".to_owned(), "names no controller"),
        ("seed=-1".to_owned(), "seed"),
        ("seed=99999999999".to_owned(), "seed"),
        ("edit=!!!".to_owned(), "changes are damaged"),
        (format!("edit={}", &good[..good.len() / 2]), "changes are damaged"),
        (format!("open=zoo/bufferbloat&edit={good}"), "another one in this version"),
        (format!("edit={}", pack("7")), "changes are damaged"),
        (format!("edit={}", pack("{ text: 7, name: 'x' }")), "text is damaged"),
        (format!("edit={}", pack("{ files: { x: 7 } }")), "files are damaged"),
        (
            format!("edit={}", pack(&format!("{{ sum: Link.sum({start}), changes: [[-1, 0, ['x']]] }}"))),
            "changes are damaged",
        ),
        (format!("edit={}", pack("{ text: 'x'.repeat(5e6), name: 'x' }")), "too large"),
    ];
    for (fragment, why) in &damaged {
        let (page, _) = open(&browser, 1400, &format!("#{fragment}")).unwrap();
        let notice = page.evaluate("document.getElementById('notice').textContent").unwrap().to_string();
        assert!(notice.contains(why), "{fragment}: {notice}");
        assert_eq!((text(&page), page.evaluate("paceline.hashes").unwrap()), first, "{fragment}");
        assert_eq!(page.evaluate("document.querySelectorAll('img').length").unwrap(), json!(0));
    }
    // The undamaged one, and a name that is no part of a link.
    let (page, _) = open(&browser, 1400, &format!("#edit={good}")).unwrap();
    assert!(text(&page).starts_with("id = \"x\"\ntitle"), "{}", text(&page));
    let (page, _) = open(&browser, 1400, "#controls").unwrap();
    assert_eq!(
        (text(&page), page.evaluate("document.getElementById('notice').hidden").unwrap()),
        (first.0, json!(true))
    );
    assert_eq!(*problems.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn capacity_is_drawn_in_the_browser_by_pointer_keys_and_numbers() {
    if page_file().is_none() {
        return;
    }
    let browser = Browser::start(Scratch::new().unwrap(), 0, &[]).unwrap();
    let Some((page, problems)) = open(&browser, 1400, "") else { return };
    let first = text(&page);
    let steps = |page: &Page| -> Vec<(f64, f64)> {
        let text = format!("{}[[flow]]", text(page).split("[[flow]]").next().unwrap());
        let flow = first.split("[[flow]]").nth(1).unwrap();
        let plan = scenario(&Origin::from_text("call.toml", format!("{text}{flow}")), None).plan;
        let capacity = plan.hops[plan.bottleneck].capacity.clone().unwrap();
        let steps = capacity.steps(paceline_units::Time::ZERO + plan.duration, plan.duration);
        steps.into_iter().map(|(at, rate)| (at.as_secs_f64(), rate.as_bps_f64() / 1e6)).collect()
    };
    // Up and down: the step under the pointer, here that from 50 s. The curve ends 30 % above the highest rate.
    drag(&page, &[(0.35, 0.77), (0.35, 0.6), (0.35, 0.3)]);
    let moved = steps(&page);
    assert!(
        moved[1].0 == 50.0 && (0.9..1.05).contains(&moved[1].1) && moved[2..] == [(100.0, 0.5), (150.0, 1.0)],
        "{moved:?}"
    );
    // Sideways: from 20 to 80 s, with what was before and after.
    act(&page, "document.getElementById('reset-capacity').click()");
    assert_eq!(text(&page), first);
    drag(&page, &[(0.1, 0.2), (0.2, 0.5), (0.4, 0.9)]);
    let drawn = steps(&page);
    assert!(drawn.len() > 20, "{drawn:?}");
    assert_eq!((drawn[0], drawn[drawn.len() - 2..].to_vec()), ((0.0, 1.0), vec![(100.0, 0.5), (150.0, 1.0)]));
    let inside: Vec<_> = drawn.iter().filter(|(at, _)| (20.0..81.0).contains(at)).collect();
    assert!(
        inside.is_sorted_by(|a, b| a.1 < b.1 || a.0 >= 80.0) && inside[0].1 < 0.8 && inside[inside.len() - 2].1 > 2.7,
        "{inside:?}"
    );
    assert!(inside.len() + 4 >= drawn.len(), "{drawn:?}");
    assert_eq!(page.evaluate("paceline.hashes[0]").unwrap(), native(&text(&page), None, 1));
    // Keys: the second step, lower.
    act(&page, "document.getElementById('reset-capacity').click()");
    let key = |key: &str| {
        format!(
            "document.getElementById('curve').dispatchEvent(new KeyboardEvent('keydown', {{ key: {key:?}, bubbles: true }}))"
        )
    };
    page.evaluate(&key("Home")).unwrap();
    page.evaluate(&key("ArrowRight")).unwrap();
    act(&page, &key("ArrowDown"));
    let lower = steps(&page);
    assert!(lower[0] == (0.0, 1.0) && lower[1].0 == 50.0 && (2.2..2.5).contains(&lower[1].1), "{lower:?}");
    // Numbers, and numbers that are wrong.
    let numbers = |from: &str, to: &str, rate: &str| {
        let set = [("from", from), ("to", to), ("rate", rate)]
            .map(|(id, value)| format!("document.getElementById('{id}').value = '{value}';"));
        act(&page, &format!("{} document.getElementById('set-capacity').click()", set.concat()));
    };
    numbers("60", "70", "4");
    assert!(
        steps(&page).contains(&(60.0, 4.0)) && steps(&page).iter().any(|step| step.0 == 70.0),
        "{:?}",
        steps(&page)
    );
    numbers("60", "30", "4");
    let error =
        page.evaluate("document.getElementById('capacity').nextElementSibling.textContent").unwrap().to_string();
    assert!(error.contains("begins before it ends"), "{error}");

    // A recorded capacity is one curve, too.
    set(&page, "#open", "path:lte-drive-up", "change");
    assert_eq!(page.evaluate("document.querySelectorAll('#capacity input').length").unwrap(), json!(3));
    let recorded = page.evaluate("paceline.hashes[0]").unwrap();
    drag(&page, &[(0.3, 0.5), (0.5, 0.5)]);
    assert!(text(&page).contains("[\"60 s\", "), "{}", text(&page));
    assert_ne!(page.evaluate("paceline.hashes[0]").unwrap(), recorded);
    act(&page, "document.getElementById('reset-capacity').click()");
    assert_eq!(page.evaluate("paceline.hashes[0]").unwrap(), recorded);
    assert_eq!(*problems.lock().unwrap(), Vec::<String>::new());

    // A phone: plots before controls, and nothing beside the screen.
    for fragment in ["", "#open=path:lte-drive-up", "#open=mmsys16/table1"] {
        let (page, _) = open(&browser, 400, fragment).unwrap();
        let top = |selector: &str| {
            let script = format!("document.querySelector({selector:?}).getBoundingClientRect().top + scrollY");
            page.evaluate(&script).unwrap().as_f64().unwrap()
        };
        assert!(top(".side.a .rate .plot") < 330.0 && top(".side.b .loss .plot") < top("#controls"), "{fragment}");
        assert!(top("#controls") < 2200.0, "{fragment}: {}", top("#controls"));
        assert_eq!(page.evaluate("document.documentElement.scrollWidth").unwrap(), json!(400), "{fragment}");
    }
}

/// Writes a screenshot to the file `PACELINE_PICTURE`, `PACELINE_WIDTH` px wide, or 1240 px, of the page with the fragment `PACELINE_FRAGMENT`.
#[test]
#[ignore = "writes a screenshot"]
fn writes_screenshot() {
    let picture = std::env::var_os("PACELINE_PICTURE").expect("PACELINE_PICTURE names a file");
    let width = std::env::var("PACELINE_WIDTH").map_or(1240, |width| width.parse().expect("a number of px"));
    let browser = Browser::start(Scratch::new().unwrap(), 0, &[]).unwrap();
    let fragment = std::env::var("PACELINE_FRAGMENT").unwrap_or_default();
    let Some((page, _)) = open(&browser, width, &fragment) else { return };
    let height = if width < 1000 { 3000.0 } else { 960.0 };
    std::fs::write(picture, page.screenshot((f64::from(width), 0.0, height)).unwrap()).unwrap();
}
