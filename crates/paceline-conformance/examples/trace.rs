//! Temporary.
use paceline_conformance::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let class = Class::ALL[a[1].parse::<usize>().unwrap()];
    let (seed, from, to): (u64, f64, f64) = (a[2].parse().unwrap(), a[3].parse().unwrap(), a[4].parse().unwrap());
    let script = Script { class, seed };
    let case = Case::ALL[a[5].parse::<usize>().unwrap()];
    let (mut o, mut s) = (Oracle::new(case.vintage()), Subject::new(&case.config()));
    let world = World::new(&script);
    let rtt = world.round_trip_ms();
    let mut last = (0, 0);
    world.run(|input| {
        let e = o.handle(input).clone();
        let g = s.handle(input).clone();
        if let Input::Report(at, ..) = input { let i = Input::Rtt(*at, rtt); o.handle(&i); s.handle(&i); }
        let t = input.at() as f64 / 1e6;
        if t >= from && t <= to {
            let kind: String = format!("{input:?}").chars().take(40).collect();
            if (e.target, g.target) != last || matches!(input, Input::Feedback{..}) { println!("{t:.3} {kind} {} {}", e.target, g.target); if matches!(input, Input::Feedback{..}) {
                let st = s.state(); let pick = |n: &str| st.lines().filter(|l| l.trim_start().starts_with(n)).map(|l| l.trim().to_owned()).collect::<Vec<_>>().join(" ");
                println!("    {} | {} | {} | {} | {}", pick("average_loss"), pick("usage"), pick("state:"), pick("inherent"), pick("result"));
                for key in ["best: Channel", "delay_limit: ", "acked: "] { if let Some(i) = st.find(key) { println!("    {}", st[i..(i+140).min(st.len())].split_whitespace().collect::<Vec<_>>().join(" ")); } }
            } }
        }
        last = (e.target, g.target);
        e
    });
}
