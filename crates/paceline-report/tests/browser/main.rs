//! Reports as a browser shows them: they open without a network and without a complaint, every plot has something in it,
//! and what a plot holds is what the tables say.

#![cfg(unix)]

mod chromium;
mod expected;
mod folder;

use chromium::Browser;
use folder::{Scratch, Wanted, run_into};
use paceline_chromium::required;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const TABLE_1: Wanted<'_> = Wanted { scenario: "mmsys16/table1", controller: None, case: None, seeds: &[1] };

/// Writes the folder's page, opens it, and looks at what every page must keep to.
fn open(browser: &mut Browser, dir: &Path) -> PathBuf {
    let page = dir.join("report.html");
    paceline_report::page::write(dir, &page).unwrap();
    browser.open(&page);
    assert_eq!(browser.evaluate("paceline.error"), Value::Null);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    let outside: Vec<&String> = browser.requests.iter().filter(|url| !url.starts_with("file://")).collect();
    assert!(outside.is_empty() && browser.requests.len() == 1, "{:?}", browser.requests);

    // What a plot spans at first holds all but few of its values.
    let narrow = browser.evaluate(
        "paceline.figures.flatMap((figure) => figure.panels).filter(({ plot, y, series }) =>
           !plot.lanes && !y.range && !series.filter((s) => s.n && s.kind !== 'band' && s.role !== 'limit' && plot.visible(s))
             .every((s) => s.shares && plot.u.scales.y.max >= s.shares[1])).map(({ id }) => id)",
    );
    assert_eq!(narrow, Value::Array(Vec::new()), "these show too little");

    // Every plot has coloured pixels, and drew each series that has points, once all are shown.
    browser.evaluate(
        "document.querySelectorAll('.subjects input:not(:checked)').forEach((box) => box.click()), \
         new Promise((done) => setTimeout(done, 100))",
    );
    let empty = browser.evaluate(
        "paceline.figures.flatMap((figure) => figure.panels).flatMap(({ id, plot, series }) => {
           const canvas = plot.element.querySelector('canvas');
           const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
           let coloured = 0;
           for (let i = 0; i < data.length; i += 4)
             if (data[i + 3] > 60 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 50) coloured++;
           const idle = series.filter((s) => !s.n || !(s.drawn > 0)).map((s) => `${id}/${s.id}`);
           return [...(coloured < 20 ? [`${id}: ${coloured} coloured pixels`] : []), ...idle];
         })",
    );
    assert_eq!(empty, Value::Array(Vec::new()), "nothing is drawn of these");
    let panels = browser.evaluate("paceline.figures.flatMap((figure) => figure.panels).length");
    assert!(panels.as_u64().unwrap() >= 6, "{panels} plots");
    page
}

/// Numbers that come as the bytes of a 64-bit array, in base64.
fn numbers(value: &Value) -> Vec<f64> {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap()).unwrap();
    bytes.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// Compares every series of the open page with the tables that it was made from.
fn compare(browser: &mut Browser, dir: &Path) {
    let told = browser.evaluate(
        "(() => {
           const text = (values) => {
             const bytes = new Uint8Array(Float64Array.from(values).buffer);
             let binary = '';
             for (let i = 0; i < bytes.length; i += 32768) binary += String.fromCharCode(...bytes.subarray(i, i + 32768));
             return btoa(binary);
           };
           return paceline.figures.flatMap((figure) => figure.panels.flatMap((panel) => panel.series.map((series) => {
             const { run, flow } = series.subject === null ? { run: null, flow: '' } : figure.subjects[series.subject];
             return { key: `${panel.id}/${series.id}/${flow}`, run, x: text(series.x), y: text(series.y), kind: series.kind };
           })));
         })()",
    );
    let told = told.as_array().unwrap();
    let (mut points, mut limits) = (0, 0);
    let mut runs: Vec<PathBuf> = fs::read_dir(dir.join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    runs.sort();
    for run in &runs {
        let mut wanted = expected::of_run(run);
        let name = run.file_name().unwrap().to_str().unwrap();
        for series in told.iter().filter(|series| series["run"].as_str().is_none_or(|of| of == name)) {
            let key = series["key"].as_str().unwrap();
            let Some(wanted) = wanted.remove(key) else {
                // A limit of another run.
                assert!(series["run"].is_null(), "{name}: {key} is not in the tables");
                continue;
            };
            limits += usize::from(series["run"].is_null());
            let (x, y) = (numbers(&series["x"]), numbers(&series["y"]));
            assert_eq!((x.len(), y.len()), (wanted.len(), wanted.len()), "{name}: {key}");
            let cdf = series["kind"] == "cdf";
            for ((x, y), (wanted_x, wanted_y)) in x.iter().zip(&y).zip(&wanted) {
                // Times to the microsecond, everything else to a 32-bit float.
                let close = |a: f64, b: f64| (a - b).abs() <= 1.2e-7 * b.abs() + 1e-9;
                let x_fits = if cdf { close(*x, *wanted_x) } else { (x - wanted_x).abs() <= 0.501e-6 };
                let y_fits = close(*y, *wanted_y) || (y.is_nan() && wanted_y.is_nan());
                assert!(x_fits && y_fits, "{name}: {key} has ({x}, {y}), and the tables ({wanted_x}, {wanted_y})");
            }
            points += x.len();
        }
        assert!(wanted.is_empty(), "{name}: not on the page: {:?}", wanted.keys());
    }
    assert!(points > 10_000 && limits >= runs.len(), "{points} points, {limits} limits were compared");
}

/// Pages of these runs, each of which is opened and compared.
fn look(name: &str, wanted: &[Wanted<'_>]) {
    if required().is_none() {
        return;
    }
    let scratch = Scratch::new(name);
    let dir = scratch.0.join("results");
    wanted.iter().for_each(|wanted| run_into(&dir, *wanted));
    let mut browser = Browser::start();
    open(&mut browser, &dir);
    compare(&mut browser, &dir);
}

#[test]
fn table_1_under_two_controllers() {
    look("table1", &[TABLE_1, Wanted { controller: Some("fixed"), ..TABLE_1 }]);
}

/// Each controller is a box and a colour, each seed a box; at first the first seed is shown.
#[test]
fn seeds_of_two_controllers_are_shown_and_hidden_together() {
    if required().is_none() {
        return;
    }
    let scratch = Scratch::new("seeds");
    let dir = scratch.0.join("results");
    for controller in [None, Some("fixed")] {
        run_into(&dir, Wanted { controller, seeds: &[1, 2], ..TABLE_1 });
    }
    let mut browser = Browser::start();
    let page = open(&mut browser, &dir);
    compare(&mut browser, &dir);
    browser.open(&page);
    let boxes = "[...document.querySelectorAll('.subjects label')].map((l) => [l.textContent, l.firstChild.checked])";
    let told = json!([["fixed", true], ["gcc-2016", true], ["seed 1", true], ["seed 2", false]]);
    assert_eq!(browser.evaluate(boxes), told);
    let shown = "(() => { const { plot, series } = paceline.figures[0].panels[0];
                   return [...new Set(series.filter((s) => s.subject !== null && plot.visible(s)).map((s) => s.subject))]
                     .map((s) => paceline.figures[0].subjects[s].label).sort(); })()";
    assert_eq!(browser.evaluate(shown), json!(["fixed · seed 1", "gcc-2016 · seed 1"]));
    let click = |nth| format!("document.querySelectorAll('.subjects input')[{nth}].click()");
    browser.evaluate(&click(0));
    assert_eq!(browser.evaluate(shown), json!(["gcc-2016 · seed 1"]));
    browser.evaluate(&click(3));
    assert_eq!(browser.evaluate(shown), json!(["gcc-2016 · seed 1", "gcc-2016 · seed 2"]));
    let colours = "new Set(paceline.figures[0].panels[0].series.filter((s) => paceline.figures[0].panels[0].plot.visible(s) \
                   && s.subject !== null).map((s) => paceline.figures[0].panels[0].plot.colourOf(s))).size";
    assert_eq!(browser.evaluate(colours), json!(1), "one controller has one colour");

    // A seed that one of them lacks: each run is a box of its own, and all are shown.
    run_into(&dir, Wanted { seeds: &[3], ..TABLE_1 });
    open(&mut browser, &dir);
    let all = browser.evaluate(&format!("{boxes}.filter(([, checked]) => checked).length"));
    assert_eq!(all, json!(5));
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn table_2() {
    look("table2", &[Wanted { scenario: "mmsys16/table2", ..TABLE_1 }]);
}

#[test]
fn figure_11_in_its_cases() {
    let figure = Wanted { scenario: "mmsys16/fig11", ..TABLE_1 };
    let cases = ["threshold=static", "threshold=adaptive"].map(|case| Wanted { case: Some(case), ..figure });
    look("fig11", &cases);
}

#[test]
fn a_million_points_of_many_runs_are_one_small_page() {
    if required().is_none() {
        return;
    }
    let scratch = Scratch::new("million");
    let dir = scratch.0.join("results");
    run_into(&dir, Wanted { seeds: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], ..TABLE_1 });
    let mut browser = Browser::start();
    let page = open(&mut browser, &dir);
    let size = fs::metadata(&page).unwrap().len();
    let points = browser.evaluate("paceline.points").as_u64().unwrap();
    let opened = browser.evaluate("paceline.openedMs").as_f64().unwrap();
    eprintln!("{points} points in {:.1} MB, open after {opened:.0} ms", size as f64 / 1e6);
    assert!(points > 1_000_000, "{points}");
    assert!((1_000_000..15_000_000).contains(&size), "{size} bytes");
    compare(&mut browser, &dir);

    // What is drawn is a choice of the points, and zooming in draws them all.
    let drawn = "paceline.figures[0].panels.find((p) => p.id === 'queue').series[0]";
    let count = |value: Value| value.as_u64().unwrap();
    let all = count(browser.evaluate(&format!("{drawn}.n")));
    let of_all = count(browser.evaluate(&format!("{drawn}.drawn")));
    assert!(of_all > 500 && of_all < all / 2, "{of_all} of {all} drawn");
    browser.evaluate(
        "paceline.figures[0].panels[0].plot.u.setScale('x', { min: 60, max: 61 }), \
         new Promise((done) => setTimeout(done, 100))",
    );
    let inside = format!("{drawn}.x.filter((x) => x > 60 && x < 61).length");
    let (zoomed, inside) = (count(browser.evaluate(&format!("{drawn}.drawn"))), count(browser.evaluate(&inside)));
    assert!(zoomed >= inside && zoomed <= inside + 2, "{zoomed} drawn, {inside} in the span");
    let spans = browser.evaluate(
        "paceline.figures[0].panels.every(({ plot }) => plot.u.scales.x.min === 60 && plot.u.scales.x.max === 61)",
    );
    assert_eq!(spans, Value::Bool(true), "the other plots follow");

    // Who is switched off is drawn nowhere, and comes back.
    let toggle = "document.querySelector('.subjects input').click(), new Promise((done) => setTimeout(done, 100))";
    let drawn_of_first = "paceline.figures.flatMap((f) => f.panels).flatMap((p) => p.series)\
                          .filter((s) => s.subject === 0 && s.kind !== 'band' && paceline.figures[0].panels[0].plot.visible(s)).length";
    assert!(count(browser.evaluate(drawn_of_first)) > 0);
    browser.evaluate(toggle);
    assert_eq!(count(browser.evaluate(drawn_of_first)), 0);
    browser.evaluate(toggle);
    assert!(count(browser.evaluate(drawn_of_first)) > 0);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

/// Filters are style alone: what they hide is gone from the matrix and from the tables, and so is what has nothing left.
#[test]
fn a_scoreboard_is_filtered_without_a_script_and_fits_a_phone() {
    if required().is_none() {
        return;
    }
    let scratch = Scratch::new("scoreboard");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scoreboard/mmsys16");
    let page = scratch.0.join("scoreboard.html");
    paceline_report::scoreboard::write(&kept, &page).unwrap();
    let board: Value = serde_json::from_slice(&fs::read(kept.join("scoreboard.json")).unwrap()).unwrap();
    let mut browser = Browser::start();
    browser.requests.clear();
    browser.call("Page.navigate", json!({"url": format!("file://{}", page.display())}));
    browser.evaluate(
        "new Promise((done) => { const look = () => document.readyState === 'complete' && document.querySelector('footer') \
         ? done() : setTimeout(look, 20); look(); })",
    );
    let seen = |browser: &mut Browser| {
        let count = |selector: &str| {
            format!("[...document.querySelectorAll('{selector}')].filter((e) => e.getClientRects().length).length")
        };
        let wanted = ["a.square", "tbody.cell", "section.experiment.group"].map(count).join(", ");
        browser.evaluate(&format!("[{wanted}]"))
    };
    // What should be seen: cells that none of these hides, and experiments that have one.
    let expected = |hidden: &dyn Fn(&Value) -> bool| {
        let left = |experiment: &Value| experiment["cells"].as_array().unwrap().iter().filter(|c| !hidden(c)).count();
        let left: Vec<usize> = board["experiments"].as_array().unwrap().iter().map(left).collect();
        let cells: usize = left.iter().sum();
        json!([cells, cells, left.iter().filter(|left| **left > 0).count()])
    };
    let reproduced = |cell: &Value| cell["verdict"] == "reproduced";
    let given = |cell: &Value| cell["null_reproduces"] == true;
    let tick = |browser: &mut Browser, id: &str| browser.evaluate(&format!("document.getElementById('{id}').click()"));
    assert_eq!(seen(&mut browser), expected(&|_| false));
    tick(&mut browser, "open");
    assert_eq!(seen(&mut browser), expected(&reproduced));
    tick(&mut browser, "hard");
    assert_eq!(seen(&mut browser), expected(&|cell| reproduced(cell) || given(cell)));
    tick(&mut browser, "open");
    assert_eq!(seen(&mut browser), expected(&given));
    assert_ne!(expected(&given), expected(&|_| false), "there is something to hide");
    // Every link leads to something on the page.
    let astray = "[...document.links].filter((a) => !document.getElementById(decodeURI(a.hash.slice(1)))).length";
    assert_eq!(browser.evaluate(astray), json!(0));
    let phone = json!({"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": true});
    browser.call("Emulation.setDeviceMetricsOverride", phone);
    assert_eq!(
        browser.evaluate("document.documentElement.scrollWidth"),
        json!(390),
        "tables scroll, the page does not"
    );
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    assert!(browser.requests.len() == 1 && browser.requests[0].starts_with("file://"), "{:?}", browser.requests);
}

/// Not a test: `cargo xtask screenshots` asks for it, and names the file.
#[test]
#[ignore = "writes the README's picture"]
fn picture() {
    let to = std::env::var_os("PACELINE_PICTURE").expect("PACELINE_PICTURE names the file");
    required().expect("a picture needs a browser");
    let scratch = Scratch::new("picture");
    let dir = scratch.0.join("results");
    for controller in ["gcc-2016", "fixed"] {
        run_into(&dir, Wanted { controller: Some(controller), ..TABLE_1 });
    }
    let mut browser = Browser::start();
    let (width, height) = (1100.0, 900.0);
    let screen = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
    browser.call("Emulation.setDeviceMetricsOverride", screen);
    open(&mut browser, &dir);
    let top =
        browser.evaluate("document.querySelector('.legend').getBoundingClientRect().top + scrollY").as_f64().unwrap();
    fs::write(to, browser.picture((width, top, top + height))).unwrap();
}
