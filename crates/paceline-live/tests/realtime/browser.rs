// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page in a real browser with a run on the testbed: its plots follow the run, and its sliders control the link.

use paceline::Registry;
use paceline_browser::chromium::{Browser, Page, Scratch, required};
use paceline_live::testbed::Testbed;
use paceline_live::watch::{WatchServer, WatchedRun};
use paceline_netsim::link_control::LinkControl;
use paceline_netsim::network::FlowEnd;
use paceline_netsim::preview::PreviewImages;
use paceline_netsim::records::LinkUpdate;
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_netsim::world::World;
use paceline_scenario::{Changes, Origin, load};
use paceline_units::{Rate, TimeDelta};
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

/// Records the link updates of the run.
#[derive(Clone, Default)]
struct Updates(Arc<Mutex<Vec<LinkUpdate>>>);

impl EventObserver for Updates {
    fn on_event(&mut self, row: &EventRecord) {
        if let EventRecord::LinkUpdated { to, .. } = row {
            self.0.lock().unwrap().push(*to);
        }
    }
}

/// Waits at most `seconds` until an expression of the page is true, and returns whether it became true.
fn becomes(page: &Page, condition: &str, seconds: u32) -> bool {
    let wait = format!(
        "new Promise((done) => {{ const began = performance.now(); const look = () => ({condition}) ? done(true) \
         : performance.now() - began > {seconds}000 ? done(false) : setTimeout(look, 50); look(); }})"
    );
    page.evaluate(&wait).unwrap() == json!(true)
}

/// Moves a slider as a user does.
fn set_slider(page: &Page, slider: &str, place: f64) {
    let pulled = format!(
        "(() => {{ const s = document.getElementById('{slider}'); s.value = {place}; \
         s.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    );
    page.evaluate(&pulled).unwrap();
}

/// The received rate over the last second, bit/s.
const RECEIVED: &str = "paceline.points.slice(-10).reduce((sum, p) => sum + p.flows[0].received, 0) * 8";

#[test]
fn sliders_in_the_browser_move_the_link_and_the_plots_follow() {
    let Some(_) = required() else { return };
    if !crate::common::is_testbed_available() {
        return;
    }
    let registry = Registry::standard();
    let plan = load(&Origin::from_text("watch.toml", CALL), &Changes::default(), &registry).unwrap();
    let (link_control, moved) = (LinkControl::default(), Updates::default());
    let watched = WatchedRun {
        description: plan.plan.describe(&registry),
        header: plan.plan.header(&registry, "testbed", 1),
        plan: plan.clone().plan,
        link_control: Some(link_control.clone()),
        preview_images: PreviewImages::default(),
    };
    let preview_images = watched.preview_images.clone();
    let watch = WatchServer::serve(watched, 0).unwrap();
    let url = watch.url();
    let sink = watch.observer();
    let run = {
        let (link_control, moved) = (link_control.clone(), moved.clone());
        thread::spawn(move || {
            let bed = Testbed { link_control: Some(link_control), ..Testbed::default() };
            bed.run(&plan.plan, &Registry::standard(), 1, &mut (moved, sink)).unwrap()
        })
    };

    let browser = Browser::start(Scratch::new().unwrap(), 0, &[]).unwrap();
    let page = browser.open(&url).unwrap();
    let complaints = Arc::new(Mutex::new(Vec::new()));
    let messages = complaints.clone();
    page.listen(move |method, parameters| {
        let bad = match method {
            "Runtime.exceptionThrown" => true,
            "Log.entryAdded" => parameters["entry"]["level"] == "error",
            _ => false,
        };
        if bad {
            messages.lock().unwrap().push(parameters.to_string());
        }
    });
    for domain in ["Page", "Runtime", "Log"] {
        page.call(&format!("{domain}.enable"), json!({})).unwrap();
    }
    let screen = json!({"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    page.call("Emulation.setDeviceMetricsOverride", screen).unwrap();
    assert!(becomes(&page, "window.paceline && paceline.ready", 10), "the page is ready");
    // The call uses most of the 1 Mbit/s.
    assert!(becomes(&page, &format!("{RECEIVED} > 600e3 && {RECEIVED} < 1.1e6"), 30), "{}", now(&page));

    // The scale is logarithmic from 100 kbit/s: 398 of 1000 is 10^(5 + 2 * 0.398) = 625 kbit/s, rounded to 630.
    set_slider(&page, "capacity", 398.0);
    assert!(becomes(&page, "paceline.points.at(-1).capacity === 630e3", 3), "{}", now(&page));
    assert!(becomes(&page, &format!("{RECEIVED} > 350e3 && {RECEIVED} < 690e3"), 20), "{}", now(&page));
    assert_eq!(page.evaluate("document.getElementById('capacity-is').textContent").unwrap(), json!("630 kbit/s"));

    set_slider(&page, "delay", 200.0);
    // The reverse path has 25 ms, so the smallest round-trip time is 225 ms.
    assert!(
        becomes(&page, "paceline.points.at(-1).flows[0].rtt > 220 && paceline.points.at(-1).delay === 200", 10),
        "{}",
        now(&page)
    );
    set_slider(&page, "loss", 50.0);
    assert!(becomes(&page, "paceline.points.at(-1).loss === 0.05", 3), "{}", now(&page));
    let lost = "paceline.points.slice(-20).reduce((sum, p) => sum + p.flows[0].dropped, 0)";
    assert!(becomes(&page, &format!("{lost} > 0"), 10), "5 % of about 60 packets per second: {}", now(&page));
    let by_chance = "paceline.points.slice(-20).every((p) => p.flows[0].by_queue === 0) && paceline.now.lost > 2 \
                     && !document.getElementById('sentence').textContent.includes('The queue is full')";
    assert!(becomes(&page, by_chance, 15), "random loss does not count as queue loss: {}", now(&page));

    // No packet arrives for 3 s, and the video freezes.
    page.evaluate("document.getElementById('outage').click()").unwrap();
    assert!(becomes(&page, "paceline.points.at(-1).capacity === 0", 3), "{}", now(&page));
    let silent = "paceline.points.slice(-15).every((p) => p.flows[0].received === 0)";
    assert!(becomes(&page, silent, 5), "{}", now(&page));
    assert!(becomes(&page, "!document.querySelector('.still').hidden", 3), "the freeze is shown");
    // The slider keeps its value. Halving ends the outage at 320 kbit/s, then gives 160; half of that is below the range.
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
    assert!(becomes(&page, &format!("{able} === 'false,true'"), 3), "half is below the range");

    page.evaluate("document.getElementById('scenario').click()").unwrap();
    let restored =
        "(({ capacity, delay, loss }) => capacity === 1e6 && delay === 25 && loss === 0)(paceline.points.at(-1))";
    assert!(becomes(&page, restored, 3), "{}", now(&page));

    // An image of an endpoint is shown.
    preview_images.put(0, FlowEnd::Sender, jpeg(&page));
    assert!(
        becomes(&page, "paceline.pictures === 1 && !document.querySelector('#sender canvas').hidden", 3),
        "an image"
    );

    // Every plot has coloured pixels, and the states of the controller are bands.
    let empty = "[...document.querySelectorAll('.plot canvas')].filter((canvas) => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let coloured = 0;
        for (let i = 0; i < data.length; i += 4)
          if (data[i + 3] > 60 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 50) coloured++;
        return coloured < 50;
      }).length";
    assert_eq!(page.evaluate(empty).unwrap(), json!(0), "every plot has content");
    assert_eq!(page.evaluate("document.querySelectorAll('.plot canvas').length").unwrap(), json!(5));
    assert!(becomes(&page, "document.getElementById('sentence').textContent.startsWith('gcc-2016: ')", 3));
    // The axis of a signal in bit/s uses a larger unit.
    let press = "(() => { const { signals } = paceline.hello.flows[0], numbers = signals.filter((s) => !s.states.length); \
                 document.querySelectorAll('#signals button')[numbers.findIndex((s) => s.unit === 'bit/s')].click(); })()";
    page.evaluate(press).unwrap();
    assert!(becomes(&page, "/^[kM]bit\\/s$/.test(document.getElementById('inside-unit').textContent)", 3));
    let picture = page.screenshot((1280.0, 0.0, 900.0)).unwrap();
    assert!(picture.len() > 50_000, "{} bytes", picture.len());
    if let Some(to) = std::env::var_os("PACELINE_PICTURE") {
        std::fs::write(to, picture).unwrap();
    }

    // The server rejects a socket from another origin.
    let other = browser.open("about:blank").unwrap();
    let refused = |url: &str| {
        let knock = format!(
            "new Promise((done) => {{ const s = new WebSocket({url:?}); s.onopen = () => done('open'); s.onerror = () => done('refused'); }})"
        );
        other.evaluate(&knock).unwrap()
    };
    let socket = url.replacen("http", "ws", 1) + "socket";
    assert_eq!(refused(&socket), json!("refused"), "about:blank has another origin");

    link_control.stop();
    let outcome = run.join().unwrap();
    assert!((300..20_000).contains(&outcome.delivered), "{}", outcome.delivered);
    watch.finish("stopped");
    assert!(becomes(&page, "paceline.over === 'stopped' && document.getElementById('capacity').disabled", 5));
    assert_eq!(page.evaluate("paceline.error").unwrap(), Value::Null);
    let complaints = complaints.lock().unwrap();
    assert!(complaints.is_empty(), "{complaints:?}");

    // The events contain the commands in order.
    let moved = moved.0.lock().unwrap();
    let ms = TimeDelta::from_millis;
    let loss = |to: &LinkUpdate| matches!(to, LinkUpdate::Loss(loss) if (loss.get() - 0.05).abs() < 1e-9);
    assert_eq!(moved[..2], [LinkUpdate::Capacity(Rate::from_kbps(630)), LinkUpdate::Delay(ms(200))]);
    assert!(loss(&moved[2]), "{moved:?}");
    let halves = [320, 160].map(|kbps| LinkUpdate::Capacity(Rate::from_kbps(kbps)));
    assert_eq!(moved[3..], [LinkUpdate::Outage(ms(3000)), halves[0], halves[1], LinkUpdate::Scenario]);
}

/// Returns the last point, for assertion messages.
fn now(page: &Page) -> Value {
    page.evaluate("JSON.stringify([paceline.now, paceline.points.at(-1)])").unwrap_or_default()
}

/// Returns a JPEG that the browser encodes.
fn jpeg(page: &Page) -> Vec<u8> {
    let made = page.evaluate(
        "(async () => { const canvas = new OffscreenCanvas(64, 36), ink = canvas.getContext('2d'); ink.fillStyle = '#3478b0'; \
         ink.fillRect(0, 0, 64, 36); const blob = await canvas.convertToBlob({ type: 'image/jpeg' }); \
         return [...new Uint8Array(await blob.arrayBuffer())]; })()",
    );
    made.unwrap().as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8).collect()
}
