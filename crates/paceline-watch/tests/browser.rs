//! The page in a real browser, over a run on the test track: what it shows is what the run does, and what its sliders say is
//! what the link does.
#![cfg(target_os = "linux")]

use paceline::Registry;
use paceline_chromium::{Browser, Page, Scratch, required};
use paceline_lab::moves::{Move, Moves};
use paceline_lab::network::End;
use paceline_lab::pictures::Pictures;
use paceline_lab::rows::{Row, RowSink};
use paceline_lab::run::header;
use paceline_lab::scenario::{Changes, Origin, load};
use paceline_lab::store::Setting;
use paceline_lab::world::World;
use paceline_live::Testbed;
use paceline_units::{Rate, TimeDelta};
use paceline_watch::{Look, Watch};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::thread;

const CALL: &str = r#"
id = "test/watch"
title = "A call to be watched"
duration = "120s"
[path]
rtt = "50ms"
[path.forward]
capacity = "1Mbps"
queue = { discipline = "drop-tail", limit = "300ms" }
[[flow]]
id = "video"
controller = "gcc-2016"
start_rate = "800kbps"
encoder = { source = "ideal", min = "100kbps", max = "3Mbps" }
"#;

/// Whether there is a test track; a panic if there is none and the environment requires it.
fn track() -> bool {
    let missing = Testbed::missing();
    let required = std::env::var("PACELINE_REQUIRE").is_ok_and(|list| list.split([',', ' ']).any(|r| r == "track"));
    assert!(missing.is_none() || !required, "PACELINE_REQUIRE asks for the test track: {missing:?}");
    if let Some(missing) = &missing {
        eprintln!("NOT TESTED: no run was watched: {missing}");
    }
    missing.is_none()
}

/// The moves that the run tells of.
#[derive(Clone, Default)]
struct Moved(Arc<Mutex<Vec<Move>>>);

impl RowSink for Moved {
    fn row(&mut self, row: &Row) {
        if let Row::Moved { to, .. } = row {
            self.0.lock().unwrap().push(*to);
        }
    }
}

/// Waits until an expression of the page is true, for `seconds` at most, and answers whether it became so.
fn becomes(page: &Page, condition: &str, seconds: u32) -> bool {
    let wait = format!(
        "new Promise((done) => {{ const began = performance.now(); const look = () => ({condition}) ? done(true) \
         : performance.now() - began > {seconds}000 ? done(false) : setTimeout(look, 50); look(); }})"
    );
    page.evaluate(&wait).unwrap() == json!(true)
}

/// Pulls a slider as a hand would.
fn pull(page: &Page, slider: &str, place: f64) {
    let pulled = format!(
        "(() => {{ const s = document.getElementById('{slider}'); s.value = {place}; \
         s.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    );
    page.evaluate(&pulled).unwrap();
}

/// The mean of a flow's number over the last second of points, per second.
const RECEIVED: &str = "paceline.points.slice(-10).reduce((sum, p) => sum + p.flows[0].received, 0) * 8";

#[test]
fn sliders_move_the_link_and_the_plots_follow() {
    let Some(_) = required() else { return };
    if !track() {
        return;
    }
    let registry = Registry::standard();
    let plan = load(&Origin::from_text("watch.toml", CALL), &Changes::default(), &registry).unwrap();
    let (moves, moved) = (Moves::default(), Moved::default());
    let look = Look {
        setting: Setting::of(&plan, &registry),
        header: header(&plan, &registry, "testbed", 1),
        plan: plan.clone(),
        moves: moves.clone(),
        pictures: Pictures::default(),
    };
    let pictures = look.pictures.clone();
    let watch = Watch::serve(look, 0).unwrap();
    let url = watch.url();
    let sink = watch.sink();
    let run = {
        let (moves, moved) = (moves.clone(), moved.clone());
        thread::spawn(move || {
            let bed = Testbed { moves: Some(moves), ..Testbed::default() };
            bed.run(&plan, &Registry::standard(), 1, &mut (moved, sink)).unwrap()
        })
    };

    let browser = Browser::start(Scratch::new().unwrap(), 0, &[]).unwrap();
    let page = browser.open(&url).unwrap();
    let complaints = Arc::new(Mutex::new(Vec::new()));
    let heard = complaints.clone();
    page.listen(move |method, parameters| {
        let bad = match method {
            "Runtime.exceptionThrown" => true,
            "Log.entryAdded" => parameters["entry"]["level"] == "error",
            _ => false,
        };
        if bad {
            heard.lock().unwrap().push(parameters.to_string());
        }
    });
    for domain in ["Page", "Runtime", "Log"] {
        page.call(&format!("{domain}.enable"), json!({})).unwrap();
    }
    let screen = json!({"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    page.call("Emulation.setDeviceMetricsOverride", screen).unwrap();
    assert!(becomes(&page, "window.paceline && paceline.ready", 10), "the page is there");
    // On 1 Mbit/s the call gets near it, and no further.
    assert!(becomes(&page, &format!("{RECEIVED} > 600e3 && {RECEIVED} < 1.1e6"), 30), "{}", now(&page));

    // The slider's scale is logarithmic from 100 kbit/s: 398 of 1000 are 10^(5 + 2 * 0.398) = 625 kbit/s, told as 630.
    pull(&page, "capacity", 398.0);
    assert!(becomes(&page, "paceline.points.at(-1).capacity === 630e3", 3), "{}", now(&page));
    assert!(becomes(&page, &format!("{RECEIVED} > 350e3 && {RECEIVED} < 690e3"), 20), "{}", now(&page));
    assert_eq!(page.evaluate("document.getElementById('capacity-is').textContent").unwrap(), json!("630 kbit/s"));

    pull(&page, "delay", 200.0);
    // Reports come back over 25 ms: the smallest round trip is 225 ms.
    assert!(
        becomes(&page, "paceline.points.at(-1).flows[0].rtt > 220 && paceline.points.at(-1).delay === 200", 10),
        "{}",
        now(&page)
    );
    pull(&page, "loss", 50.0);
    assert!(becomes(&page, "paceline.points.at(-1).loss === 0.05", 3), "{}", now(&page));
    let lost = "paceline.points.slice(-20).reduce((sum, p) => sum + p.flows[0].dropped, 0)";
    assert!(becomes(&page, &format!("{lost} > 0"), 10), "5 % of some 60 packets a second: {}", now(&page));
    let by_chance = "paceline.points.slice(-20).every((p) => p.flows[0].by_queue === 0) && paceline.now.lost > 2 \
                     && !document.getElementById('sentence').textContent.includes('The queue is full')";
    assert!(becomes(&page, by_chance, 15), "what is lost by chance was in no full queue: {}", now(&page));

    // 3 s in which nothing arrives, and the picture stands still; then it goes on.
    page.evaluate("document.getElementById('outage').click()").unwrap();
    assert!(becomes(&page, "paceline.points.at(-1).capacity === 0", 3), "{}", now(&page));
    let silent = "paceline.points.slice(-15).every((p) => p.flows[0].received === 0)";
    assert!(becomes(&page, silent, 5), "{}", now(&page));
    assert!(becomes(&page, "!document.querySelector('.still').hidden", 3), "it says so");
    // The slider stays where it was, and half is half of what there was: 320 kbit/s, with which the link is back, then 160,
    // of which half is less than the slider can.
    assert_eq!(page.evaluate("document.getElementById('capacity').value").unwrap(), json!("400"));
    let click = "document.getElementById('halve').click()";
    let able = "['halve', 'double'].map((id) => !document.getElementById(id).disabled).join()";
    assert_eq!(page.evaluate(able).unwrap(), json!("true,true"));
    page.evaluate(click).unwrap();
    assert!(
        becomes(&page, &format!("paceline.points.at(-1).capacity === 320e3 && {RECEIVED} > 50e3"), 8),
        "{}",
        now(&page)
    );
    page.evaluate(click).unwrap();
    assert!(becomes(&page, "paceline.points.at(-1).capacity === 160e3", 3), "{}", now(&page));
    assert!(becomes(&page, &format!("{able} === 'false,true'"), 3), "half of it is too little");

    page.evaluate("document.getElementById('scenario').click()").unwrap();
    let restored =
        "(({ capacity, delay, loss }) => capacity === 1e6 && delay === 25 && loss === 0)(paceline.points.at(-1))";
    assert!(becomes(&page, restored, 3), "{}", now(&page));

    // A picture of an end is shown.
    pictures.put(0, End::Sender, jpeg(&page));
    assert!(
        becomes(&page, "paceline.pictures === 1 && !document.querySelector('#sender canvas').hidden", 3),
        "a picture"
    );

    // Every plot has coloured pixels, and the states of the controller are bands.
    let empty = "[...document.querySelectorAll('.plot canvas')].filter((canvas) => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let coloured = 0;
        for (let i = 0; i < data.length; i += 4)
          if (data[i + 3] > 60 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 50) coloured++;
        return coloured < 50;
      }).length";
    assert_eq!(page.evaluate(empty).unwrap(), json!(0), "each plot shows something");
    assert_eq!(page.evaluate("document.querySelectorAll('.plot canvas').length").unwrap(), json!(5));
    assert!(becomes(&page, "document.getElementById('sentence').textContent.startsWith('gcc-2016: ')", 3));
    // A signal in bit/s has an axis in larger units.
    let press = "(() => { const { signals } = paceline.hello.flows[0], numbers = signals.filter((s) => !s.states.length); \
                 document.querySelectorAll('#signals button')[numbers.findIndex((s) => s.unit === 'bit/s')].click(); })()";
    page.evaluate(press).unwrap();
    assert!(becomes(&page, "/^[kM]bit\\/s$/.test(document.getElementById('inside-unit').textContent)", 3));
    let picture = page.picture((1280.0, 0.0, 900.0)).unwrap();
    assert!(picture.len() > 50_000, "{} bytes", picture.len());
    if let Some(to) = std::env::var_os("PACELINE_PICTURE") {
        std::fs::write(to, picture).unwrap();
    }

    // Another page cannot reach the socket: the server refuses its origin, and a wrong token.
    let other = browser.open("about:blank").unwrap();
    let refused = |url: &str| {
        let knock = format!(
            "new Promise((done) => {{ const s = new WebSocket({url:?}); s.onopen = () => done('open'); s.onerror = () => done('refused'); }})"
        );
        other.evaluate(&knock).unwrap()
    };
    let socket = url.replacen("http", "ws", 1) + "socket";
    assert_eq!(refused(&socket), json!("refused"), "about:blank has another origin");

    moves.stop();
    let outcome = run.join().unwrap();
    assert!((300..20_000).contains(&outcome.delivered), "{}", outcome.delivered);
    watch.over("stopped");
    assert!(becomes(&page, "paceline.over === 'stopped' && document.getElementById('capacity').disabled", 5));
    assert_eq!(page.evaluate("paceline.error").unwrap(), Value::Null);
    let complaints = complaints.lock().unwrap();
    assert!(complaints.is_empty(), "{complaints:?}");

    // What was asked for is in the rows, as it was asked.
    let moved = moved.0.lock().unwrap();
    let ms = TimeDelta::from_millis;
    let loss = |to: &Move| matches!(to, Move::Loss(loss) if (loss.get() - 0.05).abs() < 1e-9);
    assert_eq!(moved[..2], [Move::Capacity(Rate::from_kbps(630)), Move::Delay(ms(200))]);
    assert!(loss(&moved[2]), "{moved:?}");
    let halves = [320, 160].map(|kbps| Move::Capacity(Rate::from_kbps(kbps)));
    assert_eq!(moved[3..], [Move::Outage(ms(3000)), halves[0], halves[1], Move::Scenario]);
}

/// The last point, for complaints.
fn now(page: &Page) -> Value {
    page.evaluate("JSON.stringify([paceline.now, paceline.points.at(-1)])").unwrap_or_default()
}

/// A picture, as JPEG: made by the browser itself.
fn jpeg(page: &Page) -> Vec<u8> {
    let made = page.evaluate(
        "(async () => { const canvas = new OffscreenCanvas(64, 36), ink = canvas.getContext('2d'); ink.fillStyle = '#3478b0'; \
         ink.fillRect(0, 0, 64, 36); const blob = await canvas.convertToBlob({ type: 'image/jpeg' }); \
         return [...new Uint8Array(await blob.arrayBuffer())]; })()",
    );
    made.unwrap().as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8).collect()
}
