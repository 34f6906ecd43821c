// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of bad input: the line, the underlined text, the message, and the hint.

use crate::fixtures::{check_errors, registry};
use paceline_netsim::link::queue::QueueLimit;
use paceline_scenario::{Catalogue, Changes, Origin, Override, Scenario, ScenarioError, load};
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::fs;
use std::path::{Path, PathBuf};

/// A valid scenario; every case below breaks one of its lines.
const GOOD: &str = r#"id = "test/good"
title = "Good"
duration = "60s"

[path]
rtt = "50ms"

[path.forward]
capacity = "1Mbps"
queue = { discipline = "drop-tail", limit = "300ms" }
delay = "10ms"
loss = "1 %"

[[flow]]
id = "video"
controller = "gcc-2016"
start = "0s"
stop = "60s"
encoder = { max = "2Mbps" }

[flow.config]
k_u = 0.01

[[assert]]
id = "used"
metric = "utilization"
bounds = [0.2, 1.0]
window = ["10s", "60s"]
"#;

// Each line of a table is a case: its name, the line of `GOOD` that is replaced, the text in its place (`⏎` starts a new
// line), the line of the error or `none`, the underlined text, a part of the message, and a part of the hint.

/// Malformed files, unknown keys and missing keys.
const SYNTAX: &str = r#"
no value | 3 | duration = | 3 | ⏎ | value | TOML
text without a closing quote | 2 | title = "Good | 2 | ⏎ | string | TOML
duplicate key | 3 | duration = "60s"⏎duration = "50s" | 4 | duration | duplicate key | once
unknown key at the top | 2 | title = "Good"⏎repeat = 3 | 3 | repeat | unknown | `repeats`
unknown key in the path | 6 | rrt = "50ms" | 6 | rrt | unknown | `rtt`
unknown key in a way | 9 | capcity = "1Mbps" | 9 | capcity | unknown | `capacity`
unknown key in a queue | 10 | queue = { limits = "300ms" } | 10 | limits | unknown | `limit`
unknown key in a server | 9 | server = { kind = "token-bucket", burts = "5 KB" } | 9 | burts | unknown | did you mean `burst`? Known: `kind`, `burst`, `rate_step`
unknown key in a flow | 17 | begin = "0s" | 17 | begin | unknown | `start`
unknown key in a source | 19 | encoder = { maximum = "2Mbps" } | 19 | maximum | unknown | `max`
unknown key in an assert | 27 | bound = [0.2, 1.0] | 27 | bound | unknown | `bounds`
no id | 1 |  | none |  | missing key `id` | add `id =
no duration | 3 |  | none |  | missing key `duration` | add `duration =
flow without a controller | 16 |  | 15 | "video" | needs a `controller` | list controllers
unknown DSCP | 17 | dscp = "AF44" | 17 | "AF44" | `AF44` is not a DSCP | `AF41`
"#;

/// Values of a wrong type, in a wrong unit, or out of range.
const VALUES: &str = r#"
wrong unit of a time | 3 | duration = "60 sec" | 3 | "60 sec" | `60 sec` is not a time | `s`
rate in place of a time | 3 | duration = "60 Mbps" | 3 | "60 Mbps" | is not a time | `ms`
number in place of a time | 3 | duration = 60 | 3 | 60 | a time with its unit | "60 s"
number in place of a rate | 9 | capacity = 1000000 | 9 | 1000000 | a rate | "1000000 bps"
number in place of a fraction | 12 | loss = 0.01 | 12 | 0.01 | a fraction | "1 %"
wrong case of a unit | 9 | capacity = "1 mbps" | 9 | "1 mbps" | `1 mbps` is not a rate | `Mbps`
bytes for bits | 9 | capacity = "1 MB/s" | 9 | "1 MB/s" | `1 MB/s` is not a rate | `Mbps`
negative rate | 9 | capacity = "-1Mbps" | 9 | "-1Mbps" | `-1Mbps` is not a rate from 0 |
negative rate in a schedule | 9 | capacity = [["0s", "1Mbps"], ["5s", "-2Mbps"]] | 9 | "-2Mbps" | `-2Mbps` is not a rate from 0 |
capacity of zero | 9 | capacity = "0 bps" | 9 | "0 bps" | capacity must be > 0 | unlimited
negative delay | 11 | delay = "-10ms" | 11 | "-10ms" | negative | 0 ms
negative delay in a schedule | 11 | delay = [["0s", "10ms"], ["5s", "-10ms"]] | 11 | [["0s", "10ms"], ["5s", "-10ms"]] | negative | 0 ms
negative round trip | 6 | rtt = "-50ms" | 6 | "-50ms" | negative | 0 ms
negative access delay | 18 | access_delay = "-1ms" | 18 | "-1ms" | negative | 0 ms
negative jitter of a host | 18 | host = { jitter = "-1ms" } | 18 | "-1ms" | negative | 0 ms
stalls without a length | 18 | host = { stall_every = "9s" } | 18 | { stall_every = "9s" } | need a length | or neither
loss over 100 % | 12 | loss = "101 %" | 12 | "101 %" | from 0 % to 100 % |
negative loss | 12 | loss = "-1 %" | 12 | "-1 %" | from 0 % to 100 % |
unknown loss model | 12 | loss = { model = "gilbert" } | 12 | "gilbert" | `gilbert` | `gilbert-elliott`
loss without model | 12 | loss = { to_bad = "1 %" } | 12 | { to_bad = "1 %" } | `model` | gilbert-elliott
loss model without its numbers | 12 | loss = { model = "gilbert-elliott", to_bad = "1 %" } | 12 | "gilbert-elliott" | `gilbert-elliott` of the hop `forward` needs `to_good` | `to_good =
loss model without its numbers in a schedule | 12 | loss = [["0s", "1 %"], ["5s", { model = "bernoulli" }]] | 12 | "bernoulli" | `bernoulli` of the hop `forward` needs `probability` | `probability = "1 %"`
loss model with a number of another | 12 | loss = { model = "bernoulli", probability = "1 %", bad = "1 %" } | 12 | bad | `bad` | `probability`
queue of zero | 10 | queue = { limit = "0ms" } | 10 | "0ms" | at least one packet | 1 packet
queue of zero packets | 10 | queue = { limit = "0 packets" } | 10 | "0 packets" | at least one | 1 packet
queue of few bytes | 10 | queue = { limit = "100 B" } | 10 | "100 B" | at least one packet | 1 packet
mark at the limit | 10 | queue = { limit = "60 KB", mark = "60 KB" } | 10 | "60 KB" | the level `mark` has no effect | a `mark` below the limit
mark above the limit | 10 | queue = { limit = "50 ms", mark = "51 ms" } | 10 | "51 ms" | the level `mark` has no effect | a `mark` below the limit
mark in drain time without a capacity | 9 | hops = [{ queue = { limit = "60 KB", mark = "5 ms", follows_capacity = false } }]⏎[path.reverse] | 9 | "5 ms" | a `mark` in drain time needs a capacity | write the mark like
mark in a wrong unit | 10 | queue = { limit = "50 ms", mark = "5 pkt" } | 10 | "5 pkt" | `5 pkt` | 50 packets
queue limit without unit | 10 | queue = { limit = 50 } | 10 | 50 | a queue limit | "50 packets"
queue limit in a wrong unit | 10 | queue = { limit = "50 pkt" } | 10 | "50 pkt" | `50 pkt` | 50 packets
key of another queue discipline | 10 | queue = { discipline = "codel", limit = "300ms", mark = "5 ms" } | 10 | mark | the queue discipline `codel` has no `mark` | `target`
key of a discipline that is not named | 10 | queue = { limit = "300ms", target = "5 ms" } | 10 | target | the queue discipline `drop-tail` has no `target` | `mark`
parameter out of its range | 10 | queue = { discipline = "codel", limit = "300ms", target = "11 s" } | 10 | "11 s" | `target` must be 1 ns to 10 s | default
parameter of a wrong type | 10 | queue = { discipline = "codel", limit = "300ms", ecn = "yes" } | 10 | "yes" | true or false | without quotes
unknown queue discipline | 10 | queue = { discipline = "droptail", limit = "300ms" } | 10 | "droptail" | no queue discipline `droptail` | `drop-tail`
schedule that does not start at 0 s | 9 | capacity = [["1s", "1Mbps"]] | 9 | [["1s", "1Mbps"]] | start at 0s | [["0s"
schedule that goes back | 9 | capacity = [["0s", "1Mbps"], ["9s", "2Mbps"], ["5s", "3Mbps"]] | 9 | [["0s", "1Mbps"], ["9s", "2Mbps"], ["5s", "3Mbps"]] | 5 s comes after 9 s |
empty schedule | 9 | capacity = [] | 9 | [] | start at 0s | [["0s"
schedule without times | 9 | capacity = ["1Mbps", "2Mbps"] | 9 | "1Mbps" | a pair | [["0s"
MTU below that of every host | 11 | mtu = "575 B" | 11 | "575 B" | an MTU must be 576 to 65535 bytes | 1500 B
MTU in a schedule | 11 | mtu = [["0s", "1500 B"], ["5s", "70 KB"]] | 11 | [["0s", "1500 B"], ["5s", "70 KB"]] | 576 to 65535 bytes | 1500 B
MTU without unit | 11 | mtu = 1500 | 11 | 1500 | a size | 1500 B
negative jitter | 11 | jitter = { std = "-1ms" } | 11 | "-1ms" | negative | 0 ms
duration of zero | 3 | duration = "0s" | 3 | "0s" | duration must be > 0 | 60 s
duration of a year | 3 | duration = "31536000 s" | 3 | "31536000 s" | at most a week |
repeats of zero | 2 | title = ""⏎repeats = 0 | 3 | 0 | 1 to 10000 | --repeats
negative repeats | 2 | title = ""⏎repeats = -1 | 3 | -1 | not negative | like 10
id with a space | 1 | id = "my test" | 1 | "my test" | must not be empty or contain spaces | my-test
"#;

/// Flows with wrong keys, sources and streams.
const FLOWS: &str = r#"
unknown controller | 16 | controller = "gcc2016" | 16 | "gcc2016" | no controller `gcc2016` | `gcc-2016`?
controller like no other | 16 | controller = "xyz" | 16 | "xyz" | no controller `xyz` | the nearest of
unknown parameter | 22 | k_v = 0.01 | 22 | k_v | no parameter `k_v` | `k_u`
parameter out of range | 22 | k_u = -1 | 22 | -1 | k_u = -1 is outside | 0.01
parameter not a number | 22 | k_u = nan | 22 | nan | k_u = NaN is outside | 0.01
parameter as text | 22 | k_u = "0.01" | 22 | "0.01" | a number | without quotes
flow that stops before it starts | 17 | start = "60s" | 18 | "60s" | `video` stops before it starts | stop
flow that starts after the end | 18 | stop = "80s"⏎[[flow]]⏎id = "late"⏎controller = "gcc-2016"⏎start = "70s" | 22 | "70s" | starts after the run has ended | 60 s
two flows with one id | 20 | [[flow]]⏎id = "video"⏎controller = "gcc-2016" | 21 | "video" | two flows have the id `video` |
unknown kind of flow | 17 | kind = "udp" | 17 | "udp" | no kind of flow `udp` | `media`
keys of media on a TCP flow | 17 | kind = "tcp" | 16 | controller | has no `controller` | "media"
keys of TCP on a media flow | 17 | profile = "rfc" | 17 | profile | has no `profile` | "tcp"
count of zero | 17 | count = 0 | 17 | 0 | count must be 1 to | one
start spread longer than the flow | 17 | start_spread = "61 s" | 17 | "61 s" | after it stops | 60 s
unknown congestion control | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎congestion = "cubik"⏎[[flow]] | 17 | "cubik" | no congestion control `cubik` | did you mean `cubic`
unknown profile | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎profile = "bsd"⏎[[flow]] | 17 | "bsd" | no TCP profile `bsd` | `linux`
packet time of TCP | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎host = { packet_time = "80 us" }⏎[[flow]] | 17 | "80 us" | only hosts of media flows | leave it out
segment of zero | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎segment = "0 B"⏎[[flow]] | 17 | "0 B" | 100 to 1460 bytes | 1448
segment above the MTU | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎segment = "1460 B"⏎[[flow]] | 17 | "1460 B" | `t` has packets of 1512 B, but the MTU of its hop `forward` is 1500 B | segment = "1448 B"
window of one segment | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎receive_window = "1448 B"⏎[[flow]] | 17 | "1448 B" | two segments | leave the key out
unknown workload | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎workload = { kind = "onoff" }⏎[[flow]] | 17 | "onoff" | no workload `onoff` | did you mean `on-off`
workload without its times | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎workload = { kind = "on-off", on = "3s" }⏎[[flow]] | 17 | "on-off" | needs `off` | add `off =
workload with keys of another | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎workload = { kind = "bulk", on = "3s" }⏎[[flow]] | 17 | on | has no `on` | leave it out
coupling under a controller with a receiver's rate | 19 | encoder = { max = "2Mbps" }⏎coupling = { group = "g" } | 16 | "gcc-2016" | flows under `gcc-2016` cannot be coupled | window: gcc-med16
coupling with a priority of zero | 14 | [[flow]]⏎id = "t"⏎controller = "nada"⏎coupling = { group = "g", priority = 0 }⏎[[flow]] | 17 | 0 | priority must be above 0 | usual weight
coupling without a group | 14 | [[flow]]⏎id = "t"⏎controller = "nada"⏎coupling = { priority = 2 }⏎[[flow]] | 17 | { priority = 2 } | missing key `group` | group
coupling by an unknown algorithm | 14 | [[flow]]⏎id = "t"⏎controller = "nada"⏎coupling = { group = "g", algorithm = "passive" }⏎[[flow]] | 17 | "passive" | no algorithm of coupling `passive` | `active`
coupling of two senders | 14 | [[flow]]⏎id = "t"⏎controller = "nada"⏎coupling = { group = "g" }⏎[[flow]]⏎id = "u"⏎direction = "reverse"⏎controller = "nada"⏎coupling = { group = "g" }⏎[[flow]] | 17 | { group = "g" } | two directions | a group of their own
coupling by two algorithms | 14 | [[flow]]⏎id = "t"⏎controller = "nada"⏎coupling = { group = "g" }⏎[[flow]]⏎id = "u"⏎controller = "nada"⏎coupling = { group = "g", algorithm = "conservative" }⏎[[flow]] | 17 | { group = "g" } | two algorithms | the same `algorithm`
unknown FEC | 19 | encoder = { max = "2Mbps" }⏎protection = { fec = "ulpfecc" } | 20 | "ulpfecc" | no forward error correction `ulpfecc` | did you mean `ulpfec`
unknown budget | 19 | encoder = { max = "2Mbps" }⏎protection = { resend_budget = "third" } | 20 | "third" | no budget for retransmissions `third` | rtt
unknown use | 19 | encoder = { max = "2Mbps" }⏎use = "gamme" | 20 | "gamme" | no use of media `gamme` | did you mean `game`
use of TCP | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎use = "game"⏎[[flow]] | 17 | use | has no `use` | media
protection of TCP | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎protection = {}⏎[[flow]] | 17 | protection | has no `protection` | media
sizes in the wrong order | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎workload = { kind = "short", size = ["2 MB", "1 MB"], pause = "1s" }⏎[[flow]] | 17 | ["2 MB", "1 MB"] | smallest, largest | 100 KB
unknown source | 19 | encoder = { source = "encodr" } | 19 | "encodr" | no source `encodr` | `encoder`
lowest rate above the highest | 19 | encoder = { min = "3Mbps", max = "2Mbps" } | 19 | "2Mbps" | `max` is 2 Mbps | `min`
frame rate of zero | 19 | encoder = { fps = 0 } | 19 | 0 | `fps` is 0 | 30
key that the source does not read | 19 | encoder = { source = "ideal", key_ratio = 3.0 } | 19 | key_ratio | `key_ratio` | `encoder`
missing folder of frames | 19 | encoder = { frames = "no/dir" } | 19 | "no/dir" | cannot read no/dir | in the folder of the scenario file
frames without a folder | 19 | encoder = { source = "frames" } | 19 | "frames" | the source `frames` of the flow `video` needs `frames` | folder of recorded frame sizes
lowest rate above the start rate | 18 | min_rate = "500kbps" | 18 | "500kbps" | min 500 kbps | `start_rate`
route over an unknown hop | 18 | route = ["forwards"] | 18 | "forwards" | no hop `forwards` | `forward`
route over a hop of the reverse way | 18 | route = ["reverse"] | 18 | "reverse" | no hop `reverse` | `forward`
route over a hop twice | 18 | route = [⏎"forward",⏎"forward"] | 20 | "forward" | contains the hop `forward` twice | a route crosses each hop once
encoder beside streams | 20 | [[flow.stream]]⏎id = "a"⏎encoder = {}⏎ | 19 | { max = "2Mbps" } | not both | [[flow.stream]]
priority of zero | 19 | [[flow.stream]]⏎id = "a"⏎priority = 0⏎encoder = {}⏎ | 21 | 0 | above 0 | 1
clock drift out of range | 18 | clock = { drift_ppm = 1e9 } | 18 | 1e9 | at most 100000 ppm | ppm
packet size below a padding packet | 18 | packet_size = "299 B" | 18 | "299 B" | a packet size must be 300 to 65507 bytes | 1200 B
packet size above an IP packet | 18 | packet_size = "65508 B" | 18 | "65508 B" | 300 to 65507 bytes | 1200 B
packet size above an Ethernet frame | 18 | packet_size = "1473 B" | 18 | "1473 B" | MTU of its hop | "1472 B"
packet size on a TCP flow | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎packet_size = "600 B"⏎[[flow]] | 17 | packet_size | has no `packet_size` | media
limits over time that contradict each other | 18 | min_rate = [["0s", "30kbps"], ["9s", "300kbps"]]⏎max_rate = [["0s", "1Mbps"], ["5s", "200kbps"]] | 19 | [["0s", "1Mbps"], ["5s", "200kbps"]] | `max_rate` is 200 kbps at 9 | lower `min_rate`
highest rate without a unit | 18 | max_rate = 500 | 18 | 500 | a rate like | "500 kbps"
highest rate that begins late | 18 | max_rate = [["5s", "1Mbps"]] | 18 | [["5s", "1Mbps"]] | times must start at 0s | [["0s", …]
route changes out of order | 18 | route_change_at = ["20s", "10s"] | 18 | ["20s", "10s"] | must increase | ["20s", "40s"]
route change at the start | 18 | route_change_at = ["0s"] | 18 | ["0s"] | must increase from above 0s | ["20s", "40s"]
availability in words | 18 | available = [["0s", "yes"]] | 18 | "yes" | true or false | without quotes
availability that begins late | 18 | available = [["5s", false]] | 18 | [["5s", false]] | times must start at 0s | [["0s", …]
availability of TCP | 14 | [[flow]]⏎id = "t"⏎kind = "tcp"⏎available = [["0s", true]]⏎[[flow]] | 17 | available | has no `available` | media
REMBs out of order | 18 | remb = [["5s", "1Mbps"], ["5s", "2Mbps"]] | 18 | [["5s", "1Mbps"], ["5s", "2Mbps"]] | times must increase | ["40s", "100 Mbps"]
feedback interval of zero | 18 | feedback_interval = "0s" | 18 | "0s" | must be > 0 | leave
host that is too slow | 18 | host = { packet_time = "20 ms" } | 18 | "20 ms" | at most 10 ms | such as "80 us"
RTCP interval of zero | 18 | rtcp_interval = "0s" | 18 | "0s" | must be > 0 | leave
"#;

/// Paths with wrong hops and traces.
const PATHS: &str = r#"
token bucket below a packet | 9 | capacity = "1Mbps"⏎server = { burst = "1 KB" } | 10 | "1 KB" | at least one packet of 1500 bytes | leave the key out
token bucket without a rate | 9 | server = { burst = "5 KB" } | 9 | "5 KB" | a token bucket needs a capacity that is a rate | leave `server` out
medium without rates | 9 | server = { medium = "air" } | 9 | "air" | a shared medium needs a capacity of rates | leave `server` out
Wi-Fi without a rate | 9 | server = { kind = "wifi", medium = "air" } | 9 | "wifi" | a Wi-Fi station needs a capacity of rates | give the hop a `capacity`
Wi-Fi without a channel | 9 | capacity = "52Mbps"⏎server.kind = "wifi" | 10 | "wifi" | the link server `wifi` of the hop `forward` needs `medium` | add `medium =
Wi-Fi with a value out of range | 9 | capacity = "52Mbps"⏎server = { kind = "wifi", medium = "air", ampdu_packets = 65 } | 10 | 65 | `ampdu_packets` must be 1 to 64 | leave the key out
Wi-Fi with windows in the wrong order | 9 | capacity = "52Mbps"⏎server = { kind = "wifi", medium = "air", cw_max = 7, cw_min = 9 } | 10 | 9 | `cw_min` must not be above `cw_max` | 15 and 1023
Wi-Fi with an unknown order | 9 | capacity = "52Mbps"⏎server = { kind = "wifi", medium = "air", order = "fifo" } | 10 | "fifo" | unknown order of hops | `round-robin`
stations with different slots | 9 | hops = [{ server = { kind = "wifi", medium = "air" }, capacity = "9Mbps" }, { server = { kind = "wifi", medium = "air", slot = "20us" }, capacity = "9Mbps" }]⏎[path.reverse] | 9 | "20us" | `slot` differs from that of the hop `forward/0` | the same `slot`
two kinds of one medium | 9 | hops = [{ server = { medium = "air" }, capacity = "9Mbps" }, { server = { kind = "wifi", medium = "air" }, capacity = "9Mbps" }]⏎[path.reverse] | 9 | "air" | `air` is the medium `half-duplex` of the hop `forward/0` | the same server
server without its key | 9 | capacity = "1Mbps"⏎server = { kind = "token-bucket" } | 10 | "token-bucket" | the link server `token-bucket` of the hop `forward` needs `burst` | `burst =
key of another server | 9 | capacity = "1Mbps"⏎server = { kind = "line", burst = "5 KB" } | 10 | burst | the link server `line` has no `burst` | leave it out
unknown server | 9 | server = { kind = "bucket" } | 9 | "bucket" | no link server `bucket` | `token-bucket`
server as text | 9 | server = "wifi"⏎medium = "air" | 9 | "wifi" | a link server is a table | write server = { kind = "wifi", … }
server as a number | 9 | server = 1 | 9 | 1 | expected a table like { kind = "wifi", medium = "air" }, found 1 | paceline schema
key of a server in its hop | 9 | capacity = "1Mbps"⏎burst = "5 KB" | 10 | burst | unknown key `burst` | server = { kind = "token-bucket", burst = … }
server beside hops | 9 | server = { burst = "5 KB" }⏎hops = [{ id = "a" }] | 9 | server | `hops` | move
keys beside hops | 9 | capacity = "1Mbps"⏎hops = [{ id = "a" }] | 9 | capacity | `hops` | move
empty list of hops | 9 | hops = []⏎[path.reverse] | 9 | [] | no hop | leave
two hops with one id | 8 | [path.reverse]⏎hops = [{ id = "a" }, { id = "a" }]⏎[path.forward] | 9 | "a" | two hops have the id `a` | its own
missing trace | 9 | capacity = { trace = "no.trace" } | 9 | "no.trace" | cannot read | in the folder of the scenario file
MTU that no full packet passes | 11 | mtu = "1227 B" | 15 | "video" | `video` has packets of 1228 B, but the MTU of its hop `forward` is 1227 B | packet_size = "1199 B"
MTU in the middle | 9 | hops = [{ id = "in" }, { id = "mid", mtu = "1 KB" }, { id = "out" }]⏎[path.reverse] | 16 | "video" | MTU of its hop `mid` is 1000 B | packet_size = "972 B"
unknown end of a trace | 9 | capacity = { trace = "x", end = "stop" } | 9 | "stop" | `stop` | `loop`
"#;

/// Wrong published values and bounds.
const MEASURES: &str = r#"
unknown metric | 26 | metric = "utilisation" | 26 | "utilisation" | no metric | did you mean `utilization`?
bounds in the wrong order | 27 | bounds = [1.0, 0.2] | 27 | [1.0, 0.2] | [lowest, highest] | [0.2, 1.0]
bounds of NaN | 27 | bounds = [nan, 0.2] | 27 | [nan, 0.2] | [lowest, highest] | inf
one bound | 27 | bounds = [0.2] | 27 | [0.2] | a pair of values, found a list of 1 | inf
window outside the run | 28 | window = ["10s", "70s"] | 28 | ["10s", "70s"] | within the run | 60 s
window in the wrong order | 28 | window = ["9s", "3s"] | 28 | ["9s", "3s"] | within the run | 60 s
metric of an unknown flow | 28 | flow = "vidio" | 28 | "vidio" | no flow `vidio` | `video`
condition with an unknown metric | 23 | [measure]⏎include_if = { metric = "overuse", at_least = 1 }⏎ | 24 | "overuse" | no metric | `overuse_count`
condition with an unknown flow | 23 | [measure]⏎include_if = { metric = "overuse_count", flow = "someone", at_least = 1 }⏎ | 24 | "someone" | no flow | video
condition with an infinite number | 23 | [measure]⏎include_if = { metric = "overuse_count", at_least = inf }⏎ | 24 | inf | a finite number | like 1
unknown queue measure | 23 | [measure]⏎queue = "rtp"⏎ | 24 | "rtp" | no queue measure `rtp` | `rtcp`
renamed key of conditions | 23 | [measure]⏎keep = { metric = "jain", at_least = 1 }⏎ | 24 | keep | unknown key `keep` | `keep` is called `include_if` now
renamed metric | 26 | metric = "attained" | 26 | "attained" | no metric `attained` | `attained` is called `link_share` now
bound of an unknown case | 28 | case = { rtt = "1" } | 28 | { rtt = "1" } | no case matches `rtt=1` | [[case]]
ratio to itself | 28 | relative_to = {} | 28 | {} | the value itself | `metric`
ratio to an unknown metric | 28 | relative_to = { metric = "rtt_ms" } | 28 | "rtt_ms" | no metric `rtt_ms` | `rtt_p50_ms`
unknown claim | 23 | [[expect]]⏎metric = "jain"⏎published = 1⏎claim = "use"⏎ | 26 | "use" | no [[assert]] has the id `use` | `used`
tolerance without a reason | 23 | [[expect]]⏎metric = "jain"⏎published = 1⏎tolerance = 0.1⏎ | 26 | 0.1 | needs a reason | add why
negative tolerance | 23 | [[expect]]⏎metric = "jain"⏎published = 1⏎tolerance = -0.1⏎why = "so" | 26 | -0.1 | above 0 | unit
malformed change | 28 | reproduced_with = ["duration"] | 28 | "duration" | is not KEY=VALUE | --set
missing file of constants | 2 | title = ""⏎constants = "no.constants.toml" | 3 | "no.constants.toml" | cannot read | in the folder of the scenario file
each of no duration | 28 | each = "often" | 28 | "often" | a duration or "change" | "1 s"
each beyond its window | 28 | each = "61 s" | 28 | "61 s" | at most the span of the bound | lasts 60 s
each of many windows | 28 | each = "10 ms" | 28 | "10 ms" | more than 3600 windows | a longer `each`
each with another window | 28 | each = "1 s"⏎relative_to = { metric = "jain", window = ["0s", "9s"] } | 29 | { metric = "jain", window = ["0s", "9s"] } | the same windows | leave `case` and `window` out
share above all windows | 28 | each = "1 s"⏎share = 1.1 | 29 | 1.1 | from 0 to 1 | 0.95
share without windows | 28 | share = 0.9 | 28 | 0.9 | of the windows of `each` | each = "1 s"
stream without its flow | 28 | stream = "video" | 28 | "video" | a part of a flow | flow = "…"
stream of a metric of flows | 28 | flow = "video"⏎stream = "video" | 26 | "utilization" | no values of single streams | goodput_bps
unknown stream | 26 | metric = "goodput_bps"⏎flow = "video"⏎stream = "audio" | 28 | "audio" | no stream `audio` | `video`
published value of NaN | 23 | [[expect]]⏎metric = "jain"⏎published = nan⏎ | 25 | nan | published | unit
"#;

/// [`GOOD`] with line `line` replaced by `text`.
fn broken(line: usize, text: &str) -> String {
    let lines = GOOD.lines().enumerate().map(|(i, good)| if i + 1 == line { text } else { good });
    lines.collect::<Vec<_>>().join("\n")
}

fn read(text: &str, settings: &[&str]) -> Result<Scenario, ScenarioError> {
    let settings = settings.iter().map(|s| s.parse().expect("KEY=VALUE")).collect();
    let changes = Changes { settings, ..Changes::default() };
    load(&Origin::from_text("broken.toml", text), &changes, paceline_lab::registries(registry()))
}

fn check(table: &str) {
    check_errors(table, |given| {
        let [name, line, text, at] = given else { panic!("{given:?}") };
        let error = read(&broken(line.parse().unwrap(), text), &[]).err()?;
        assert_eq!(error.line(), at.parse().ok(), "{name}: {error}");
        Some(error)
    });
}

#[test]
fn accepts_the_scenario_that_all_cases_break() {
    if let Err(error) = read(GOOD, &[]) {
        panic!("{error}: {:?}", error.offending());
    }
}

#[test]
fn rejects_malformed_files() {
    check(SYNTAX);
}

#[test]
fn rejects_wrong_values() {
    check(VALUES);
}

#[test]
fn rejects_wrong_flows() {
    check(FLOWS);
}

#[test]
fn rejects_wrong_paths() {
    check(PATHS);
}

#[test]
fn rejects_wrong_measures() {
    check(MEASURES);
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("broken-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Checks the error about [`GOOD`] in a file of `folder`, with line `line` replaced by `text`.
#[track_caller]
fn check_beside(folder: &Path, line: usize, text: &str, underlined: &str, message: &str, hint: &str) {
    let path = folder.join("scenario.toml");
    fs::write(&path, broken(line, text)).unwrap();
    let origin = Catalogue.find(path.to_str().unwrap()).unwrap();
    let scenario = load(&origin, &Changes::default(), paceline_lab::registries(registry()));
    let error = scenario.expect_err("the file is broken");
    assert_eq!((error.line(), error.offending()), (Some(line), Some(format!("{underlined:?}").as_str())));
    let (got, help) = (error.to_string(), error.hint().unwrap_or_default());
    assert!(got.contains(message) && help.contains(hint) && !help.is_empty(), "{got} / {help}");
}

#[test]
fn names_the_broken_line_of_a_trace() {
    let folder = folder("trace");
    for (name, text, message, hint) in [
        ("back.csv", "0,1\n2,1\n1,3\n", "back.csv, line 3: time goes back, from 2 s to 1 s (`1,3`)", "sort"),
        ("letters.mahimahi", "1\n2\nx\n", "letters.mahimahi, line 3:", "whole number"),
        ("negative.csv", "time_s,rate_mbps\n0,-1\n", "negative.csv, line 2:", "not negative"),
        ("empty.trace", "# nothing\n", "empty.trace, line 1:", ""),
    ] {
        fs::write(folder.join(name), text).unwrap();
        check_beside(&folder, 9, &format!("capacity = {{ trace = \"{name}\" }}"), name, message, hint);
    }
}

#[test]
fn names_the_broken_file_of_frame_sizes() {
    let folder = folder("frames");
    let frames = folder.join("sizes");
    fs::create_dir(&frames).unwrap();
    let check = |message: &str, hint: &str| {
        check_beside(&folder, 19, "encoder = { frames = \"sizes\" }", "sizes", message, hint);
    };
    check("sizes holds no frame sizes", "<content>_<resolution>_<kbps>.txt");
    fs::write(frames.join("talk_360p_500.txt"), "0 1 0 0.0 100\n1 1 0 0.1 many\n").unwrap();
    check("sizes/talk_360p_500.txt, line 2: `many`", "bytes");
    let recording = |frames: usize| (0..frames).map(|i| format!("{i} 1 0 0.0 100\n")).collect::<String>();
    fs::write(frames.join("talk_360p_500.txt"), recording(30)).unwrap();
    fs::write(frames.join("talk_360p_900.txt"), recording(25)).unwrap();
    check("same number of frames", "resolution");
}

#[test]
fn names_what_a_scenario_without_flows_lacks() {
    let text: String = GOOD.lines().take(12).map(|l| format!("{l}\n")).collect();
    let error = read(&text, &[]).unwrap_err();
    assert_eq!(error.line(), None, "there is nothing to underline");
    assert!(error.to_string().contains("at least one [[flow]]"));
    assert!(error.hint().unwrap().contains("add [[flow]] with id = "));
}

#[test]
fn suggests_the_nearest_scenario() {
    let error = Catalogue.find("mmsys16/tabel1").unwrap_err();
    assert!(error.to_string().contains("no scenario `mmsys16/tabel1`"));
    assert!(error.hint().unwrap().contains("did you mean `mmsys16/table1`?"));
    let error = Catalogue.find("no/such/file.toml").unwrap_err();
    assert!(error.to_string().contains("cannot read no/such/file.toml"), "{error}");
    assert!(error.hint().unwrap().contains("list scenarios"));
}

#[test]
fn underlines_the_wrong_part_of_an_override() {
    for (setting, underlined, message, hint) in [
        ("path.foward.capacity=2Mbps", "foward", "unknown key `foward`", "`forward`"),
        ("path.forward.capacity=fast", "fast", "`fast` is not a rate", "2.5 Mbps"),
        ("path.forward.capacity=2", "2", "expected a rate", "\"2 bps\""),
        ("path.forward.capacity=[[\"0s\", 2]]", "2", "expected a rate", "\"2 bps\""),
        ("duration=0s", "0s", "duration must be > 0", ""),
        ("duration.of=1s", "duration", "expected a time", ""),
        ("flow.video.config.k_u=7", "7", "k_u = 7 is outside", "default"),
        ("flow.video.config.gain=7", "gain", "no parameter `gain`", "known"),
        ("flow.video.controller=quux", "quux", "no controller `quux`", "the nearest of"),
        ("flow.vidio.start=1s", "vidio", "`flow` has no element `vidio`", "`video`"),
        ("flow.1.start=1s", "1", "`flow` has no element `1`", "`video`"),
        ("flow.video=1", "video", "`flow.video` names a whole element", "flow.video.key"),
        ("flow=1", "1", "expected a list", ""),
        ("path..capacity=1Mbps", "path..capacity", "part of the key is empty", "path.forward.capacity"),
        ("media.encode=1", "media.encode", "unknown key `encode`", "`encoder`"),
        ("assert.used.bounds=[1,0]", "[1,0]", "[lowest, highest]", "[0.0, 1.0]"),
        ("measure.keep={}", "keep", "unknown key `keep`", "`keep` is called `include_if` now"),
    ] {
        let error = read(GOOD, &[setting]).expect_err(setting);
        let (got, help) = (error.to_string(), error.hint().unwrap_or_default());
        assert_eq!((error.source_name(), error.offending()), ("--set", Some(underlined)), "{setting}: {got}");
        assert!(help.contains(&format!("--set {setting}")), "{setting} is not named: {help}");
        assert!(got.contains(message) && help.contains(hint), "{setting}: {got} / {help}");
    }
    for text in ["duration", "=5s", ""] {
        assert!(text.parse::<Override>().unwrap_err().contains("KEY=VALUE"), "{text}");
    }
}

#[test]
fn names_overrides_only_for_errors_that_they_can_cause() {
    let error = read(&GOOD.replace("60s", "60 sec"), &["path.forward.capacity=2Mbps"]).unwrap_err();
    assert_eq!(error.offending(), Some("\"60 sec\""));
    assert!(!error.hint().unwrap().contains("--set"), "{:?}", error.hint());
    // The stop in the file is wrong only with this start.
    let error = read(GOOD, &["flow.video.start=60s"]).unwrap_err();
    assert_eq!((error.line(), error.offending()), (Some(18), Some("\"60s\"")));
    assert!(error.hint().unwrap().contains("changed by --set flow.video.start=60s"), "{:?}", error.hint());
}

fn notes(text: &str) -> Vec<String> {
    read(text, &[]).unwrap_or_else(|error| panic!("{error}: {:?}", error.offending())).notes
}

#[test]
fn converts_a_drain_time_once_if_it_does_not_follow_capacity() {
    let folder = folder("queue");
    fs::write(folder.join("steps.csv"), "time_s,rate_mbps\n0,4\n10,0\n20,2\n").unwrap();
    fs::write(folder.join("one.mahimahi"), "1\n").unwrap();
    let queue = "queue = { limit = \"100 ms\", follows_capacity = false }";
    let steps = format!("{{ trace = {:?} }}", folder.join("steps.csv").to_str().unwrap());
    let one = format!("{{ trace = {:?} }}", folder.join("one.mahimahi").to_str().unwrap());
    for (capacity, bytes, rate) in [
        ("\"1Mbps\"", 12_500, "1 Mbps"),
        // The first rate counts, 1 Mbps.
        ("[[\"0s\", \"1Mbps\"], [\"5s\", \"8Mbps\"]]", 12_500, "1 Mbps"),
        // One round: 4, 0 and 2 Mbps for 10 s each.
        (&steps, 25_000, "2 Mbps"),
        // 1504 bytes a millisecond.
        (&one, 150_400, "12.032 Mbps"),
    ] {
        let text = GOOD.replace("capacity = \"1Mbps\"", &format!("capacity = {capacity}"));
        let text = text.replace("queue = { discipline = \"drop-tail\", limit = \"300ms\" }", queue);
        let limit = read(&text, &[]).unwrap().plan.hops[0].queue.limit;
        assert_eq!(limit, QueueLimit::Bytes(DataSize::from_bytes(bytes)), "{capacity}");
        let note = format!("forward: the queue's limit of 100 ms is {bytes} bytes, at {rate}, and stays so");
        assert!(notes(&text).contains(&note), "{note}: {:?}", notes(&text));
    }
}

#[test]
fn notes_describe_the_end_of_a_trace() {
    let folder = folder("end");
    fs::write(folder.join("steps.csv"), "time_s,rate_mbps\n0,4\n10,2\n15,1\n").unwrap();
    fs::write(folder.join("four.mahimahi"), "1\n2\n2\n40\n").unwrap();
    for (file, end, then, at_90_s) in [
        ("steps.csv", "", "holds its last rate", 1_000_000),
        ("steps.csv", ", end = \"hold\"", "holds its last rate", 1_000_000),
        // The last step is as long as the one before it: rounds of 20 s, and 90 s is in the middle of the fifth.
        ("steps.csv", ", end = \"loop\"", "loops after 20 s", 2_000_000),
        ("four.mahimahi", "", "loops after 40 ms", 4 * 1504 * 8 * 25),
        ("four.mahimahi", ", end = \"hold\"", "nothing passes after its end", 0),
    ] {
        let trace = folder.join(file);
        let capacity = format!("capacity = {{ trace = {:?}{end} }}", trace.to_str().unwrap());
        let text = GOOD.replace("capacity = \"1Mbps\"", &capacity);
        let notes = notes(&text);
        let note = notes.iter().find(|note| note.contains(" trace, ")).unwrap();
        assert!(note.starts_with("forward: ") && note.ends_with(&format!("; {then}")), "{note}");
        assert!(!note.trim_end_matches(then).contains("loop") && !note.contains("at its end"), "{note}");
        let capacity = read(&text, &[]).unwrap().plan.hops[0].capacity.clone().unwrap();
        assert_eq!(capacity.rate_at(Time::from_secs(90)).as_bps(), at_90_s, "{file}{end}");
    }
}

#[test]
fn loops_a_trace_of_steps() {
    let steps = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/real/traces/steps.csv");
    let looped = GOOD.replace("\"1Mbps\"", &format!("{{ trace = {steps:?}, end = \"loop\" }}"));
    let capacity = read(&looped, &[]).unwrap().plan.hops[0].capacity.clone().unwrap();
    // Thirty steps of 2 s; the first is 250 kbps, the last 500 kbps.
    for (ms, kbps) in [(0, 250), (59_999, 500), (60_000, 250), (119_999, 500), (120_000, 250)] {
        assert_eq!(capacity.rate_at(Time::from_millis(ms)), Rate::from_kbps(kbps), "at {ms} ms");
    }
    let folder = folder("loop");
    fs::write(folder.join("one.csv"), "0,1000000\n").unwrap();
    let one = folder.join("one.csv");
    let text = GOOD.replace("\"1Mbps\"", &format!("{{ trace = {:?}, end = \"loop\" }}", one.to_str().unwrap()));
    assert!(read(&text, &[]).unwrap_err().to_string().contains("one entry has no length"));
}

#[test]
fn notes_name_replaced_delays() {
    let own = "forward: its own delay replaces half of path.rtt";
    let count = |text: &str, note: &str| notes(text).iter().filter(|n| n.contains(note)).count();
    assert_eq!((count(GOOD, own), count(GOOD, "reverse: its own")), (1, 0));
    assert_eq!(count(&GOOD.replace("delay = \"10ms\"\n", ""), own), 0);
    assert_eq!(count(&GOOD.replace("rtt = \"50ms\"\n", ""), own), 0);
    let hops = "[path.reverse]\nhops = [{ id = \"a\" }, { id = \"b\", delay = \"5ms\" }]\n[path.forward]";
    assert_eq!(count(&GOOD.replace("[path.forward]", hops), "reverse: its own delay"), 1);
}

#[test]
fn overrides_address_elements_of_inline_lists() {
    let text = GOOD.replace("capacity = \"1Mbps\"", "hops = [{ id = \"a\", capacity = \"1Mbps\" }, { id = \"b\" }]");
    let text = text.replace("queue = {", "#").replace("delay = ", "#").replace("loss = ", "#");
    let plan = read(&text, &["path.forward.hops.a.capacity=2Mbps", "path.forward.hops.1.delay=3ms"]).unwrap();
    assert_eq!(plan.plan.hops[0].capacity.as_ref().unwrap().rate_at(Time::ZERO), Rate::from_kbps(2000));
    assert_eq!(*plan.plan.hops[1].delay.at(Time::ZERO), TimeDelta::from_millis(3));
}
