// SPDX-License-Identifier: GPL-2.0-only
//! Both servers, spoken to over real sockets.

mod openmetrics;

use corun_events::account::{Snapshot, Vm};
use corun_metrics::{HttpServer, MAX_VCPUS, StatsSocket, page};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn snapshot() -> Arc<Snapshot> {
    let vm = Vm {
        name: "web".to_owned(),
        ..Vm::default()
    };
    let mut snapshot = Snapshot {
        vms: vec![vm],
        ..Snapshot::default()
    };
    snapshot.host.corun.insert("spins".to_owned(), 5);
    Arc::new(snapshot)
}

/// Runs `talk` against a server whose page is `make`.
fn with_server(make: &(dyn Fn() -> Result<String, String> + Sync), talk: impl FnOnce(SocketAddr)) {
    let server = HttpServer::bind("127.0.0.1:0".parse().expect("address")).expect("listens");
    let address = server.address().expect("address");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(&stop, make));
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| talk(address)));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Sends bytes, and returns the head and the body of the answer.
fn ask(address: SocketAddr, request: &[u8]) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.write_all(request).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

fn served() -> Result<String, String> {
    page(snapshot(), MAX_VCPUS).map_err(|e| e.to_string())
}

#[test]
fn a_scrape_is_a_valid_page() {
    with_server(&served, |address| {
        let request = b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n";
        let (head, body) = ask(address, request);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(
            head.contains("application/openmetrics-text; version=1.0.0"),
            "{head}"
        );
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())),
            "{head}"
        );
        let families = openmetrics::parse(&body);
        assert_eq!(families["corun_vms"].value(&[]), Some(1.0));
        let (head_only, nothing) = ask(address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert_eq!((head_only, nothing), (head, String::new()));
    });
}

#[test]
fn mistakes_get_their_status_and_the_server_goes_on() {
    with_server(&served, |address| {
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(9000));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
        for (request, status) in [
            ("GET /other HTTP/1.1\r\n\r\n", 404),
            (
                "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
                405,
            ),
            ("rubbish\r\n\r\n", 400),
            (long.as_str(), 431),
            (many.as_str(), 431),
            ("GET / HTTP/1.1\r\n\r\n", 200),
        ] {
            let (head, _) = ask(address, request.as_bytes());
            assert!(
                head.starts_with(&format!("HTTP/1.1 {status} ")),
                "{request}: {head}"
            );
        }
        // A client that leaves without a word.
        drop(TcpStream::connect(address).expect("connects"));
        let (head, _) = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    });
}

#[test]
fn a_request_may_come_in_pieces() {
    with_server(&served, |address| {
        let mut stream = TcpStream::connect(address).expect("connects");
        for piece in ["GET /me", "trics HTT", "P/1.1\r\n", "\r\n"] {
            stream.write_all(piece.as_bytes()).expect("sent");
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    });
}

#[test]
fn silent_connections_do_not_lock_others_out_for_good() {
    with_server(&served, |address| {
        let silent: Vec<TcpStream> = (0..40)
            .map(|_| TcpStream::connect(address).expect("connects"))
            .collect();
        drop(silent);
        // As soon as the server has noticed that they left: it needs a pCPU for that.
        let answered = (0..1000).any(|_| {
            let (head, _) = ask(address, b"GET / HTTP/1.1\r\n\r\n");
            let served = head.starts_with("HTTP/1.1 200 ");
            if !served {
                std::thread::sleep(Duration::from_millis(10));
            }
            served
        });
        assert!(answered);
    });
}

#[test]
fn an_account_that_cannot_be_read_is_an_error_of_the_server() {
    with_server(&|| Err("kvm went".to_owned()), |address| {
        let (head, body) = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 500 "), "{head}");
        assert_eq!(body, "kvm went\n");
    });
}

#[test]
fn an_address_in_use_says_so() {
    let first = HttpServer::bind("127.0.0.1:0".parse().expect("address")).expect("listens");
    let address = first.address().expect("address");
    let error = HttpServer::bind(address).expect_err("in use").to_string();
    assert!(
        error.contains(&address.to_string()) && error.contains("ADDR:PORT"),
        "{error}"
    );
}

#[test]
fn the_client_of_scx_stats_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("scx/root/stats");
    let socket = StatsSocket::bind(&path).expect("listens");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| socket.serve(&stop, &|| Ok(snapshot())));
        let talked = std::panic::catch_unwind(|| talk_to_socket(&path));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = talked {
            std::panic::resume_unwind(panic);
        }
    });
    drop(socket);
    assert!(!path.exists(), "left behind");
}

fn talk_to_socket(path: &std::path::Path) {
    let client = scx_stats::StatsClient::new().set_path(path);
    let mut client = client.connect(Some(5000)).expect("connects");
    let stats: serde_json::Value = client.request("stats", vec![]).expect("stats");
    assert_eq!(stats["counters"]["spins"], 5);
    assert_eq!(stats["vms"]["web"]["vcpus"], 0);
    let meta: std::collections::BTreeMap<String, scx_stats::StatsMeta> = client
        .request("stats_meta", vec![])
        .expect("described as the crate's own");
    assert!(meta["Corun"].attrs.top.is_some());
    assert!(
        client
            .request::<serde_json::Value>("nonesuch", vec![])
            .is_err()
    );
    let again: serde_json::Value = client.request("stats", vec![]).expect("goes on");
    assert_eq!(again, stats);
    let error = StatsSocket::bind(path).expect_err("is in use").to_string();
    assert!(error.contains("another scheduler"), "{error}");
}

#[test]
fn a_socket_that_was_left_is_replaced_and_long_lines_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stats");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a dead one's"));
    let socket = StatsSocket::bind(&path).expect("replaces it");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| socket.serve(&stop, &|| Ok(snapshot())));
        let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("connects");
        // The server hangs up meanwhile.
        let _ = stream.write_all(&vec![b'x'; 20_000]);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        stop.store(true, Ordering::Relaxed);
        assert!(answer.is_empty() || answer.contains("too long"), "{answer}");
    });
}
