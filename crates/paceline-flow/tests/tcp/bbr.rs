//! BBR over a bottleneck.

use crate::net::{Bottleneck, Net, delay};
use paceline_flow::tcp::{Profile, TcpConfig, Workload};
use paceline_units::{DataSize, Rate, Streams, Time, TimeDelta};

const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
const S: fn(i64) -> Time = Time::from_secs;

#[test]
fn look() {
    for profile in [Profile::RFC, Profile::LINUX] {
        for congestion in ["bbr", "cubic"] {
            let rate = Rate::from_kbps(10_000);
            let link = Bottleneck::new(rate, MS(20), rate * MS(1000));
            let mut net = Net::new();
            let config = TcpConfig { congestion, profile, ..TcpConfig::default() };
            net.add(config, Workload::Bulk, Time::ZERO, Bottleneck::path(&link), delay(MS(20)));
            net.run_until(S(60));
            let link = link.borrow();
            let good = Rate::of(net.read(0, S(5), S(60)), MS(55_000)).as_bps_f64() / 10e6;
            eprintln!("{congestion} {} good {good} p5 {} p50 {} p95 {} max {} wakes {:?}", profile.name, link.percentile(S(5), 5), link.percentile(S(5), 50),
                link.percentile(S(5), 95), link.percentile(S(0), 100), net.flows[0].wakes);
            if congestion == "bbr" {
                let mut last = 0.0;
                for (at, n, v) in &net.flows[0].signals { if *n == 0 && (at.as_secs_f64() < 1.0 || v / 1448.0 < 8.0) && (v - last).abs() > 7000.0 { last = *v; eprint!("{:.3}:{:.0} ", at.as_secs_f64(), v / 1448.0); } }
                eprintln!();
            }
            let streams = Streams::new(5);
            let mut random = streams.stream("loss");
            let link = Bottleneck::new(rate, MS(20), rate * MS(1000));
            let mut path = Bottleneck::path(&link);
            let mut net = Net::new();
            net.add(config, Workload::Bulk, Time::ZERO, Box::new(move |now, s| { let c = path(now, s); if random.chance(0.01) { [None, None] } else { c } }), delay(MS(20)));
            net.run_until(S(60));
            let good = Rate::of(net.read(0, S(5), S(60)), MS(55_000)).as_bps_f64() / 10e6;
            eprintln!("  1% loss: {good} wakes {:?} resent {}", net.flows[0].wakes, net.flows[0].resent);
        }
        let rate = Rate::from_kbps(10_000);
        let link = Bottleneck::new(rate, MS(20), rate * MS(1000));
        let mut net = Net::new();
        let config = TcpConfig { congestion: "bbr", profile, ..TcpConfig::default() };
        for start in [Time::ZERO, Time::from_millis(5_300)] {
            net.add(config, Workload::Bulk, start, Bottleneck::path(&link), delay(MS(20)));
        }
        net.run_until(S(120));
        let [a, b] = [0, 1].map(|f| net.read(f, S(20), S(120)).as_bytes() as f64);
        eprintln!("two: {} {} p50 {} p95 {}", a / 100.0 * 8.0 / 1e6, b / 100.0 * 8.0 / 1e6, link.borrow().percentile(S(20), 50), link.borrow().percentile(S(20), 95));
    }
    let _ = DataSize::ZERO;
}
