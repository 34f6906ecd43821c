//! The fuzz targets of this crate (`fuzz/` at the root of the repository), for a short time and on stable Rust.

#[cfg(target_os = "linux")]
mod hosts;
#[cfg(target_os = "linux")]
mod hosts_samples;
#[path = "../../../../../fuzz/mutations.rs"]
mod mutations;
mod watch;

use paceline_live::watch::{AccessControl, parse_command};

#[test]
fn requests_and_commands_survive_changes() {
    let page = format!("GET /{}/ HTTP/1.1\r\nHost: 127.0.0.1:8411\r\nAccept: */*\r\n\r\n", watch::TOKEN);
    let socket = format!(
        "GET /{}/socket HTTP/1.1\r\nHost: localhost:8411\r\nOrigin: http://localhost:8411\r\nUpgrade: websocket\r\nConnection: \
         Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        watch::TOKEN
    );
    let access = AccessControl { port: 8411, token: watch::TOKEN.to_owned() };
    for request in [&page, &socket] {
        assert!(access.authorize(request.as_bytes()).is_ok(), "{request}");
    }
    let command = "{\"capacity_bps\": 1e6}";
    assert!(parse_command(command).is_ok());
    let samples = [page, socket, command.to_owned(), "\"scenario\"".to_owned(), "{\"loss\": 0.1}".to_owned()];
    mutations::check_mutations(&samples.map(String::into_bytes), 50_000, watch::check);
}
