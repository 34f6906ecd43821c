// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the expected series from the tables, without code of the crate.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// Points of each series, by `panel/series/flow`; limits have no flow.
pub type Expected = BTreeMap<String, Vec<(f64, f64)>>;

fn table(run: &Path, name: &str) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(run.join(name)).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect()
}

fn cell<'a>(row: &'a Row, column: &str) -> &'a Field {
    row.get_column_iter().find(|(name, _)| *name == column).unwrap_or_else(|| panic!("no column {column}")).1
}

fn text(row: &Row, column: &str) -> String {
    match cell(row, column) {
        Field::Str(text) => text.clone(),
        Field::Null => String::new(),
        other => panic!("{column}: {other:?}"),
    }
}

fn number(row: &Row, column: &str) -> f64 {
    match cell(row, column) {
        Field::Long(n) => *n as f64,
        Field::Int(n) => f64::from(*n),
        Field::Double(x) => *x,
        other => panic!("{column}: {other:?}"),
    }
}

pub fn of_run(run: &Path) -> Expected {
    let about = serde_json::to_value(paceline_lab::results::Store::read_run(run).unwrap().about).unwrap();
    let setting = &about["inputs"]["setting"];
    let length = setting["duration_s"].as_f64().unwrap();
    let flow_setting =
        |flow: &str| setting["flows"].as_array().unwrap().iter().find(|f| f["id"] == flow).unwrap().clone();
    let limited: Vec<String> = setting["hops"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|hop| !hop["capacity"].is_null())
        .map(|hop| hop["id"].as_str().unwrap().to_owned())
        .collect();
    let mut all = Expected::new();
    // From and to of a flow, s.
    let stop = |flow: &str| flow_setting(flow)["lives_s"][1].as_f64().unwrap();

    let is_reverse = |flow: &str| {
        let first = flow_setting(flow)["route"][0].clone();
        setting["hops"].as_array().unwrap().iter().any(|hop| hop["id"] == first && hop["forward"] == false)
    };
    let panel = |reverse: bool| if reverse { "rate-reverse" } else { "rate" };
    let flows = setting["flows"].as_array().unwrap();
    let has_reverse = flows.iter().any(|flow| is_reverse(flow["id"].as_str().unwrap()));

    for hop in setting["hops"].as_array().unwrap().iter().filter(|hop| !hop["capacity"].is_null()) {
        if hop["forward"] == true || has_reverse {
            let steps = hop["capacity"].as_array().unwrap().iter();
            let mut points: Vec<(f64, f64)> =
                steps.map(|step| (step[0].as_f64().unwrap(), step[1].as_f64().unwrap() / 1e6)).collect();
            points.push((length, points.last().unwrap().1));
            let panel = panel(hop["forward"] == false);
            all.insert(format!("{panel}/capacity:{}/", hop["id"].as_str().unwrap()), points);
        }
    }

    let mut received: BTreeMap<String, BTreeMap<i64, f64>> = BTreeMap::new();
    let mut sent: BTreeMap<String, BTreeMap<i64, (f64, f64)>> = BTreeMap::new();
    let mut values: BTreeMap<(&str, String), Vec<f64>> = BTreeMap::new();
    for row in table(run, "packets.parquet") {
        let (flow, class, event) = (text(&row, "flow"), text(&row, "class"), text(&row, "event"));
        if class == "receiver_control" || class == "tcp_ack" {
            continue;
        }
        let (time, size) = (number(&row, "time_ns"), number(&row, "size_bytes"));
        let second = (time / 1e9).floor() as i64;
        match event.as_str() {
            "sent" => sent.entry(flow).or_default().entry(second).or_default().0 += size,
            "dropped" => sent.entry(flow).or_default().entry(second).or_default().1 += size,
            "crossed" => {
                let hop = text(&row, "hop");
                if limited.contains(&hop) {
                    let waited = number(&row, "waited_ns") / 1e6;
                    let key = format!("queue/waited:{hop}/{flow}");
                    all.entry(key).or_default().push((number(&row, "left_ns") / 1e9, waited));
                    values.entry(("cdf-queue", flow)).or_default().push(waited);
                }
            }
            "arrived" => {
                *received.entry(flow.clone()).or_default().entry((time / 0.5e9).floor() as i64).or_default() += size;
                values.entry(("cdf-owd", flow)).or_default().push(number(&row, "delay_ns") / 1e6);
            }
            other => panic!("{other}"),
        }
    }
    for points in all.iter_mut().filter(|(key, _)| key.starts_with("queue/")).map(|(_, points)| points) {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    for (flow, bins) in received {
        let (first, last) = (*bins.keys().next().unwrap(), *bins.keys().last().unwrap());
        let rate = |bin: i64| bins.get(&bin).copied().unwrap_or(0.0) * 8.0 / 0.5 / 1e6;
        let inside = (first..=last).filter(|bin| (*bin as f64) * 0.5 < length);
        let mut points: Vec<(f64, f64)> = inside.map(|bin| (bin as f64 * 0.5, rate(bin))).collect();
        let end = ((last + 1) as f64 * 0.5).min(length);
        if end > points.last().unwrap().0 {
            points.push((end, points.last().unwrap().1));
        }
        all.insert(format!("{}/received/{flow}", panel(is_reverse(&flow))), points);
    }
    for (flow, bins) in sent {
        let last = *bins.keys().last().unwrap();
        let ratio = |second: i64| {
            let (sent, dropped) = bins.get(&second).copied().unwrap_or_default();
            if sent > 0.0 { 100.0 * dropped / sent } else { f64::NAN }
        };
        let mut points: Vec<(f64, f64)> = (0..=last).map(|second| (second as f64, ratio(second))).collect();
        let end = ((last + 1) as f64).min(length);
        if end > last as f64 {
            points.push((end, ratio(last)));
        }
        all.insert(format!("loss/dropped/{flow}"), points);
    }

    for row in table(run, "flows.parquet") {
        let (flow, kind, value) = (text(&row, "flow"), text(&row, "kind"), number(&row, "value"));
        let at = number(&row, "time_ns") / 1e9;
        let mut put = |key: &str, y: f64| all.entry(format!("{key}/{flow}")).or_default().push((at, y));
        match kind.as_str() {
            "target" => put("rate/target", value / 1e6),
            "fraction_lost" => put("loss/reported", value * 100.0),
            "remb" => put("control/REMB", value / 1e6),
            "rtt" => {
                let propagation = flow_setting(&flow)["propagation"].clone();
                let steps = propagation.as_array().unwrap();
                let holds = steps.iter().rev().find(|step| step[0].as_f64().unwrap() <= at).unwrap();
                put("rtt/rtt", value);
                put("queue/rtcp", value - holds[1].as_f64().unwrap());
                values.entry(("cdf-rtt", flow)).or_default().push(value);
            }
            "pacing" | "read" => {}
            other => panic!("{other}"),
        }
    }

    for row in table(run, "frames.parquet") {
        let flow = text(&row, "flow");
        let stream = flow_setting(&flow)["streams"][number(&row, "stream") as usize].as_str().unwrap().to_owned();
        let at = number(&row, "time_ns") / 1e9;
        if *cell(&row, "refused") == Field::Bool(true) {
            all.entry(format!("frames/refused:{stream}/{flow}")).or_default().push((at, 0.0));
        } else {
            let delay = (number(&row, "time_ns") - number(&row, "captured_ns")) / 1e6;
            all.entry(format!("frames/delay:{stream}/{flow}")).or_default().push((at, delay));
            values.entry(("cdf-frames", flow)).or_default().push(delay);
        }
    }
    let rendered: Vec<(String, Vec<(f64, f64)>)> = all
        .iter()
        .filter_map(|(key, points)| Some((key.strip_prefix("frames/delay:")?.to_owned(), points.clone())))
        .collect();
    for (key, points) in rendered {
        let mut times: Vec<f64> = points.iter().map(|point| point.0).collect();
        times.push(stop(key.split('/').nth(1).unwrap()));
        let mut gaps: Vec<f64> = Vec::new();
        let mut freezes = Vec::new();
        for pair in times.windows(2) {
            let gap = pair[1] - pair[0];
            let recent = &gaps[gaps.len().saturating_sub(30)..];
            let mean = recent.iter().sum::<f64>() / recent.len() as f64;
            if recent.len() >= 2 && gap > (3.0 * mean).max(mean + 0.15) {
                freezes.extend([(pair[0], 0.0), (pair[1], f64::NAN)]);
            }
            gaps.push(gap);
        }
        if !freezes.is_empty() {
            all.insert(format!("frames/freezes:{key}"), freezes);
        }
    }

    let mut states: Vec<String> = Vec::new();
    for row in table(run, "signals.parquet") {
        let (flow, name, unit) = (text(&row, "flow"), text(&row, "signal"), text(&row, "unit"));
        let (at, value) = (number(&row, "time_ns") / 1e9, number(&row, "value"));
        let half = usize::from(text(&row, "half") == "receive");
        let declared = flow_setting(&flow)["signals"][half].clone();
        let declared = declared.as_array().unwrap().iter().find(|s| s["name"] == *name).unwrap();
        let mut put = |key: String, y: f64| all.entry(format!("{key}/{flow}")).or_default().push((at, y));
        match (name.as_str(), unit.as_str()) {
            ("m scaled", _) => put("gradient/m scaled".to_owned(), value),
            ("gamma", _) => {
                put("gradient/+gamma".to_owned(), value);
                put("gradient/−gamma".to_owned(), -value);
            }
            (name, _) if declared["states"].is_array() => {
                let key = format!("states/{name}");
                states.push(format!("{key}/{flow}"));
                put(key, value);
            }
            (name, "bit/s") => put(format!("control/{name}"), value / 1e6),
            (name, "B") => put(format!("window/{name}"), if value < 1e15 { value / 1e3 } else { f64::NAN }),
            (name, "ms") => put(format!("signals-ms/{name}"), value),
            (name, "") => put(format!("signals/{name}"), value),
            other => panic!("{other:?}"),
        }
    }
    // Series of steps contain only changes.
    let holding = ["rate/target/", "states/", "control/", "window/", "signals-ms/", "signals/"];
    for (key, points) in &mut all {
        if holding.iter().any(|begin| key.starts_with(begin)) && !key.starts_with("control/REMB") {
            points.dedup_by(|later, earlier| later.1 == earlier.1);
            let end = stop(key.rsplit('/').next().unwrap());
            if points.last().unwrap().0 < end {
                points.push((end, points.last().unwrap().1));
            }
        }
    }

    for ((panel, flow), mut values) in values {
        values.sort_by(f64::total_cmp);
        let steps = values.len().min(1000);
        let share = |k: usize| k as f64 / steps as f64;
        let value = |k: usize| {
            // The smallest value that this share of all values does not exceed.
            let enough = (1..=values.len()).find(|rank| rank * steps >= k * values.len()).unwrap();
            values[enough - 1]
        };
        all.insert(format!("{panel}/cdf/{flow}"), (0..=steps).map(|k| (value(k), share(k))).collect());
    }
    all
}
