// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports in a browser: pages open without network access and without errors, every plot has content, and the plotted values
//! equal the tables.

#![cfg(unix)]

mod chromium;
mod expected;

use crate::report::results::{Runs, run_into};
use chromium::Browser;
use paceline_browser::chromium::required;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const TABLE_1: Runs<'_> = Runs { scenario: "mmsys16/table1", controller: None, case: None, seeds: &[1] };

/// Writes and opens the page of the folder, and checks what holds for every page.
fn open(browser: &mut Browser, dir: &Path) -> PathBuf {
    let page = dir.join("report.html");
    paceline_lab::report::page::write(dir, &page, paceline_lab::metrics::catalogue()).unwrap();
    browser.open(&page);
    assert_eq!(browser.evaluate("paceline.error"), Value::Null);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    let outside: Vec<&String> = browser.requests.iter().filter(|url| !url.starts_with("file://")).collect();
    assert!(outside.is_empty() && browser.requests.len() == 1, "{:?}", browser.requests);

    // The initial range covers nearly all values.
    let narrow = browser.evaluate(
        "paceline.figures.flatMap((figure) => figure.panels).filter(({ plot, y, series }) =>
           !plot.lanes && !y.range && !series.filter((s) => s.n && s.kind !== 'band' && s.role !== 'limit' && plot.visible(s))
             .every((s) => s.shares && plot.u.scales.y.max >= s.shares[1])).map(({ id }) => id)",
    );
    assert_eq!(narrow, Value::Array(Vec::new()), "ranges that are too small");

    // Every plot has coloured pixels and draws every series with points.
    browser.evaluate(
        "document.querySelectorAll('.more, .subjects input:not(:checked), .key [aria-pressed=false]:not(.whole)')\
           .forEach((box) => box.click()), \
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
    assert_eq!(empty, Value::Array(Vec::new()), "series without drawing");
    let panels = browser.evaluate("paceline.figures.flatMap((figure) => figure.panels).length");
    assert!(panels.as_u64().unwrap() >= 6, "{panels} plots");
    page
}

/// Decodes 64-bit floats from base64.
fn numbers(value: &Value) -> Vec<f64> {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap()).unwrap();
    bytes.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// Whether two numbers are equal as 32-bit floats.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1.2e-7 * b.abs() + 1e-9
}

/// Checks that the points of a down-sampled series are points of the tables, and that the extremes and ends are among them.
fn check_selection(name: &str, plotted: &[(f64, f64)], wanted: &[(f64, f64)]) {
    let (first, last) = (wanted[0], wanted[wanted.len() - 1]);
    // A hundredth of an interval, of which there are at least 250; and four digits.
    let tick = (last.0 - first.0) / 250.0 / 100.0;
    let fits = |(x, y): (f64, f64), (wanted_x, wanted_y): (f64, f64)| {
        (x - wanted_x).abs() <= tick
            && ((y - wanted_y).abs() <= 1.3e-4 * wanted_y.abs() || (y.is_nan() && wanted_y.is_nan()))
    };
    for point in plotted {
        let near = wanted.partition_point(|(x, _)| *x < point.0 - tick);
        let found = wanted[near..].iter().take_while(|(x, _)| *x <= point.0 + tick).any(|wanted| fits(*point, *wanted));
        assert!(found, "{name} has {point:?}, and the tables do not");
    }
    assert!(fits(plotted[0], first) && fits(plotted[plotted.len() - 1], last), "{name}: ends");
    let values = || wanted.iter().filter(|(_, y)| !y.is_nan());
    let extremes = [values().min_by(|a, b| a.1.total_cmp(&b.1)), values().max_by(|a, b| a.1.total_cmp(&b.1))];
    for extreme in extremes.into_iter().flatten() {
        let kept = plotted.iter().any(|(_, y)| (y - extreme.1).abs() <= 1.3e-4 * extreme.1.abs());
        assert!(kept, "{name}: {extreme:?} is missing");
    }
}

/// Compares every series of the open page with the tables. Returns the number of down-sampled series.
fn compare(browser: &mut Browser, dir: &Path) -> usize {
    let plotted = browser.evaluate(
        "(() => {
           const text = (values) => {
             const bytes = new Uint8Array(Float64Array.from(values).buffer);
             let binary = '';
             for (let i = 0; i < bytes.length; i += 32768) binary += String.fromCharCode(...bytes.subarray(i, i + 32768));
             return btoa(binary);
           };
           const ofSingleRuns = paceline.figures.filter(({ id }) => !id.endsWith('/overlay'));
           return ofSingleRuns.flatMap((figure) => figure.panels.flatMap((panel) => panel.series.map((series) => {
             const { run, flow } = series.subject === null ? { run: null, flow: '' } : figure.subjects[series.subject];
             return { key: `${panel.id}/${series.id}/${flow}`, run, x: text(series.x), y: text(series.y), kind: series.kind };
           })));
         })()",
    );
    let plotted = plotted.as_array().unwrap();
    let (mut points, mut limits, mut selections) = (0, 0, 0);
    let mut runs: Vec<PathBuf> = fs::read_dir(dir.join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    runs.sort();
    for run in &runs {
        let mut wanted = expected::of_run(run);
        let name = run.file_name().unwrap().to_str().unwrap();
        for series in plotted.iter().filter(|series| series["run"].as_str().is_none_or(|of| of == name)) {
            let key = series["key"].as_str().unwrap();
            let Some(wanted) = wanted.remove(key) else {
                // A limit of another run.
                assert!(series["run"].is_null(), "{name}: {key} is not in the tables");
                continue;
            };
            limits += usize::from(series["run"].is_null());
            let (x, y) = (numbers(&series["x"]), numbers(&series["y"]));
            assert_eq!(x.len(), y.len());
            let plotted = x.iter().copied().zip(y.iter().copied());
            if x.len() < wanted.len() {
                check_selection(&format!("{name}: {key}"), &plotted.collect::<Vec<_>>(), &wanted);
                selections += 1;
                continue;
            }
            assert_eq!(x.len(), wanted.len(), "{name}: {key}");
            let cdf = series["kind"] == "cdf";
            for ((x, y), (wanted_x, wanted_y)) in plotted.zip(&wanted) {
                // Times to the microsecond, everything else to a 32-bit float.
                let x_fits = if cdf { close(x, *wanted_x) } else { (x - wanted_x).abs() <= 0.501e-6 };
                let y_fits = close(y, *wanted_y) || (y.is_nan() && wanted_y.is_nan());
                assert!(x_fits && y_fits, "{name}: {key} has ({x}, {y}), and the tables ({wanted_x}, {wanted_y})");
            }
            points += x.len();
        }
        assert!(wanted.is_empty(), "{name}: not on the page: {:?}", wanted.keys());
    }
    assert!(points > 10_000 && limits >= runs.len(), "{points} points, {limits} limits were compared");
    selections
}

/// Opens the page of these runs and compares it with the tables. Returns the browser, if there is one.
fn check(wanted: &[Runs<'_>]) -> Option<Browser> {
    required()?;
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("results");
    wanted.iter().for_each(|wanted| run_into(&dir, *wanted));
    let mut browser = Browser::start();
    open(&mut browser, &dir);
    assert_eq!(compare(&mut browser, &dir), 0, "a page of short runs has every point");
    Some(browser)
}

#[test]
fn page_of_two_controllers_matches_the_tables() {
    let Some(mut browser) = check(&[TABLE_1, Runs { controller: Some("fixed"), ..TABLE_1 }]) else { return };
    // The full view draws a selection of the points; a zoomed view draws all.
    let drawn = "paceline.figures[0].panels.find((p) => p.id === 'queue').series[0]";
    let mut count = |expression: String| browser.evaluate(&expression).as_u64().unwrap();
    let all = count(format!("{drawn}.n"));
    let of_all = count(format!("{drawn}.drawn"));
    assert!(of_all > 500 && of_all < all / 2, "{of_all} of {all} drawn");
    let zoomed = count(format!(
        "paceline.figures[0].panels[0].plot.u.setScale('x', {{ min: 60, max: 61 }}), \
         new Promise((done) => setTimeout(() => done({drawn}.drawn), 100))"
    ));
    let inside = count(format!("{drawn}.x.filter((x) => x > 60 && x < 61).length"));
    assert!(zoomed >= inside && zoomed <= inside + 2, "{zoomed} drawn, {inside} in the span");
    let spans = browser.evaluate(
        "paceline.figures[0].panels.every(({ plot }) => plot.u.scales.x.min === 60 && plot.u.scales.x.max === 61)",
    );
    assert_eq!(spans, Value::Bool(true), "all plots share the time span");
}

/// Returns whether every series of queuing delay is drawn up to its largest value, in spans of several lengths around it.
const PEAKS_ARE_DRAWN: &str = "(() => {
  const { plot, series, x } = paceline.figures[0].panels.find((p) => p.id === 'queue');
  const lowest = (index) => {
    let lowest = Infinity;
    const real = Path2D;
    window.Path2D = class { moveTo(_, y) { lowest = Math.min(lowest, y); } lineTo(_, y) { this.moveTo(0, y); } rect() {} };
    plot.path(plot.u, index);
    window.Path2D = real;
    return lowest;
  };
  return [1, 4, 16, 64, 256].every((part) => series.every((s, index) => {
    if (s.kind !== 'line' || !plot.visible(s)) return true;
    const peak = s.y.reduce((peak, y, i) => (y > s.y[peak] ? i : peak), 0);
    const length = x.range[1] / part;
    plot.u.scales.x.min = Math.max(0, s.x[peak] - length / 2);
    plot.u.scales.x.max = plot.u.scales.x.min + length;
    const { min, max } = plot.u.scales.y, { top, height } = plot.u.bbox;
    return Math.abs(lowest(index) - (top + height - ((s.y[peak] - min) / (max - min)) * height)) < 0.01;
  }));
})()";

/// Checks the overlay of two seeds by the series of the single runs. Returns the names of its groups. The interval of two
/// values is 12.706 (Student's t, 97.5 %, one degree of freedom) times half their distance.
const OVERLAY_HAS_THE_MEANS: &str = "(() => {
  const [time, , overlay] = paceline.figures;
  const rates = time.panels.find(({ id }) => id === 'rate').series.filter(({ id }) => id === 'received');
  const means = overlay.panels.find(({ id }) => id.startsWith('rate:')).series.filter(({ id }) => id === 'mean');
  const held = ({ x, y }, at) => y[x.findLastIndex((from) => from <= at)];
  const wrong = means.flatMap((mean) => {
    const { kind, label } = overlay.subjects[mean.subject];
    const runs = rates.filter(({ subject }) => time.subjects[subject].kind === kind);
    if (runs.length !== 2 || mean.n < 100) return [`${label}: ${runs.length} runs, ${mean.n} points`];
    return [...mean.x].flatMap((at, i) => {
      const [a, b] = runs.map((run) => held(run, at));
      const near = Math.abs(mean.y[i] - (a + b) / 2) < 1e-5 && Math.abs(mean.ci95[i] - 12.706 * Math.abs(a - b) / 2) < 1e-3;
      return near || a === undefined || b === undefined ? [] : [`${label} at ${at}: ${mean.y[i]} ± ${mean.ci95[i]}, not of ${a} and ${b}`];
    });
  });
  return wrong.length ? wrong : means.map(({ subject }) => overlay.subjects[subject].label);
})()";

/// Controllers and seeds have separate checkboxes; initially only the first seed is shown.
#[test]
fn checkboxes_select_controllers_and_seeds() {
    if required().is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("results");
    for controller in [None, Some("fixed")] {
        run_into(&dir, Runs { controller, seeds: &[1, 2], ..TABLE_1 });
    }
    let mut browser = Browser::start();
    let page = open(&mut browser, &dir);
    compare(&mut browser, &dir);
    browser.open(&page);
    assert_eq!(browser.evaluate(OVERLAY_HAS_THE_MEANS), json!(["fixed (n = 2)", "gcc-2016 (n = 2)"]));
    let cut = "[2, 0].map((figure) => paceline.figures[figure].panels.filter(({ id }) => /^(rate:|queue:|gradient)/.test(id))\
               .map(({ plot }) => [plot.cut(-1), plot.yRange()[0] < 0].join())).flat()";
    assert_eq!(browser.evaluate(cut), json!(["0,false", "0,false", "-1,true"]), "only signals are below 0");
    let boxes = "[...document.querySelectorAll('.set:last-of-type .subjects label')].map((l) => [l.textContent, l.firstChild.checked])";
    let expected = json!([["fixed", true], ["gcc-2016", true], ["seed 1", true], ["seed 2", false]]);
    assert_eq!(browser.evaluate(boxes), expected);
    let shown = "(() => { const { plot, series } = paceline.figures[0].panels[0];
                   return [...new Set(series.filter((s) => s.subject !== null && plot.visible(s)).map((s) => s.subject))]
                     .map((s) => paceline.figures[0].subjects[s].label).sort(); })()";
    assert_eq!(browser.evaluate(shown), json!(["fixed · seed 1", "gcc-2016 · seed 1"]));
    let click = |nth| format!("document.querySelectorAll('.set:last-of-type .subjects input')[{nth}].click()");
    browser.evaluate(&click(0));
    assert_eq!(browser.evaluate(shown), json!(["gcc-2016 · seed 1"]));
    browser.evaluate(&click(3));
    assert_eq!(browser.evaluate(shown), json!(["gcc-2016 · seed 1", "gcc-2016 · seed 2"]));
    let colours = "new Set(paceline.figures[0].panels[0].series.filter((s) => paceline.figures[0].panels[0].plot.visible(s) \
                   && s.subject !== null).map((s) => paceline.figures[0].panels[0].plot.colourOf(s))).size";
    assert_eq!(browser.evaluate(colours), json!(1), "one controller has one colour");

    // If the controllers have different seeds, each run has a checkbox and all are shown.
    run_into(&dir, Runs { seeds: &[3], ..TABLE_1 });
    open(&mut browser, &dir);
    let all = browser.evaluate(&format!("{boxes}.filter(([, checked]) => checked).length"));
    assert_eq!(all, json!(5));
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn page_of_table_2_matches_the_tables() {
    check(&[Runs { scenario: "mmsys16/table2", ..TABLE_1 }]);
}

#[test]
fn page_of_two_directions_matches_the_tables() {
    let Some(mut browser) = check(&[Runs { scenario: "mmsys16/table6", ..TABLE_1 }]) else { return };
    let panels = "paceline.figures[0].panels.filter(({ id }) => id.startsWith('rate')).map(({ series }) => \
                  series.map(({ subject }) => (subject === null ? 'limit' : paceline.figures[0].subjects[subject].flow)))";
    let flows = browser.evaluate(&format!("{panels}.map((flows) => [...new Set(flows)].sort())"));
    assert_eq!(flows, json!([["limit", "video"], ["limit", "tcp"]]));
}

#[test]
fn page_of_two_cases_matches_the_tables() {
    let figure = Runs { scenario: "mmsys16/fig11", ..TABLE_1 };
    let cases = ["threshold=static", "threshold=adaptive"].map(|case| Runs { case: Some(case), ..figure });
    check(&cases);
}

#[test]
fn million_points_become_a_small_page_with_every_peak() {
    if required().is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("results");
    run_into(&dir, Runs { seeds: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], ..TABLE_1 });
    let mut browser = Browser::start();
    let page = open(&mut browser, &dir);
    let size = fs::metadata(&page).unwrap().len();
    let points = browser.evaluate("paceline.points").as_u64().unwrap();
    let opened = browser.evaluate("paceline.openedMs").as_f64().unwrap();
    eprintln!("{points} points in {:.1} MB, open after {opened:.0} ms", size as f64 / 1e6);
    assert!((300_000..=500_000).contains(&points), "{points}");
    assert!((500_000..3_000_000).contains(&size), "{size} bytes");
    let note = browser.evaluate("document.querySelector('.left-out').textContent");
    assert!(note.as_str().unwrap().contains(&format!("The plots have {points} of 1")), "{note}");
    let selections = compare(&mut browser, &dir);
    assert!((16 * 3..16 * 20).contains(&selections), "{selections} series are down-sampled");
    assert_eq!(browser.evaluate(PEAKS_ARE_DRAWN), Value::Bool(true));
    browser.open(&page);
    let count = |value: Value| value.as_u64().unwrap();

    // A hidden flow is drawn nowhere and can be shown again.
    let toggle = "document.querySelector('.set:last-of-type .subjects input').click(), new Promise((done) => setTimeout(done, 100))";
    let drawn_of_first = "paceline.figures.flatMap((f) => f.panels).flatMap((p) => p.series)\
                          .filter((s) => s.subject === 0 && s.kind !== 'band' && paceline.figures[0].panels[0].plot.visible(s)).length";
    assert!(count(browser.evaluate(drawn_of_first)) > 0);
    browser.evaluate(toggle);
    assert_eq!(count(browser.evaluate(drawn_of_first)), 0);
    browser.evaluate(toggle);
    assert!(count(browser.evaluate(drawn_of_first)) > 0);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

/// The filters work by CSS alone and hide cells, tables and empty experiments.
#[test]
fn scoreboard_filters_work_without_script_and_fit_a_phone() {
    if required().is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    // Written by `paceline reproduce mmsys16/fig7 mmsys16/fig9 --out board`.
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/report/browser/board");
    let page = scratch.path().join("scoreboard.html");
    paceline_lab::report::scoreboard::write(&kept, &page, paceline_lab::metrics::catalogue()).unwrap();
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
    // Visible cells, and experiments with visible cells.
    let expected = |hidden: &dyn Fn(&Value) -> bool| {
        let left = |experiment: &Value| experiment["cells"].as_array().unwrap().iter().filter(|c| !hidden(c)).count();
        let left: Vec<usize> = board["experiments"].as_array().unwrap().iter().map(left).collect();
        let cells: usize = left.iter().sum();
        json!([cells, cells, left.iter().filter(|left| **left > 0).count()])
    };
    let reproduced = |cell: &Value| cell["verdict"] == "reproduced";
    let given = |cell: &Value| cell["null_reproduces"] == true || cell["fitted"].is_string();
    let tick = |browser: &mut Browser, id: &str| browser.evaluate(&format!("document.getElementById('{id}').click()"));
    assert_eq!(seen(&mut browser), expected(&|_| false));
    tick(&mut browser, "open");
    assert_eq!(seen(&mut browser), expected(&reproduced));
    tick(&mut browser, "hard");
    assert_eq!(seen(&mut browser), expected(&|cell| reproduced(cell) || given(cell)));
    tick(&mut browser, "open");
    assert_eq!(seen(&mut browser), expected(&given));
    assert_ne!(expected(&given), expected(&|_| false), "the filter has an effect");
    // Every link has a target on the page.
    let astray = "[...document.links].filter((a) => !document.getElementById(decodeURI(a.hash.slice(1)))).length";
    assert_eq!(browser.evaluate(astray), json!(0));
    let phone = json!({"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": true});
    browser.call("Emulation.setDeviceMetricsOverride", phone);
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth"), json!(390), "only tables scroll horizontally");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    assert!(browser.requests.len() == 1 && browser.requests[0].starts_with("file://"), "{:?}", browser.requests);
}

/// Not a test: `cargo xtask screenshots` runs it and names the file.
#[test]
#[ignore = "writes the README's picture"]
fn writes_screenshot() {
    let to = std::env::var_os("PACELINE_PICTURE").expect("PACELINE_PICTURE names the file");
    required().expect("a screenshot needs a browser");
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("results");
    for controller in ["gcc-2016", "nada"] {
        run_into(&dir, Runs { controller: Some(controller), ..TABLE_1 });
    }
    let mut browser = Browser::start();
    let (width, height) = (1100.0, 900.0);
    let screen = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
    browser.call("Emulation.setDeviceMetricsOverride", screen);
    open(&mut browser, &dir);
    let top = browser
        .evaluate("document.querySelector('.set:last-of-type .legend').getBoundingClientRect().top + scrollY")
        .as_f64()
        .unwrap();
    fs::write(to, browser.picture((width, top, top + height))).unwrap();
}
