// SPDX-License-Identifier: GPL-2.0-only
//! An HTTP server for one page: GET and HEAD of `/metrics`, one request a connection.
//!
//! Made for a port that strangers may reach: a request's head has a size and a
//! deadline, and connections are bounded. (The small servers among the crates lack
//! deadlines, so that idle connections hold their threads; `httparse` does the
//! parsing.)

use crate::page::CONTENT_TYPE;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Largest head of a request. Bytes.
const MAX_HEAD: usize = 8 * 1024;
const MAX_HEADERS: usize = 64;
/// Time that a client has for its request, and for taking each part of the answer.
const DEADLINE: Duration = Duration::from_secs(5);
/// Time for a client to finish after its answer.
const DRAIN: Duration = Duration::from_millis(500);
/// Connections that are served at the same time; others get 503.
const MAX_CONNECTIONS: usize = 16;
/// How often the end is looked for.
const TICK_MS: u16 = 100;

/// Why the server does not listen.
#[derive(Debug, thiserror::Error)]
#[error("listening on {address} for metrics: {source}; choose another ADDR:PORT")]
pub struct BindError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Makes the page, or says why it cannot.
pub type MakePage<'a> = &'a (dyn Fn() -> Result<String, String> + Sync);

/// The server.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
}

impl HttpServer {
    /// Listens; port 0 is any free one.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let listen = || {
            let listener = TcpListener::bind(address)?;
            // A connection may go between poll() and accept().
            listener.set_nonblocking(true)?;
            Ok(Self { listener })
        };
        listen().map_err(|source| BindError { address, source })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is set; returns once all answers are given.
    pub fn serve(&self, stop: &AtomicBool, page: MakePage<'_>) {
        let open = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) {
                let Some(stream) = self.next_connection() else {
                    continue;
                };
                if open.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
                    Answer::text(503, "too many connections\n").send(&stream, false);
                    continue;
                }
                open.fetch_add(1, Ordering::Relaxed);
                let open = &open;
                scope.spawn(move || {
                    converse(stream, page);
                    open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
    }

    /// Waits for one a short time.
    fn next_connection(&self) -> Option<TcpStream> {
        let mut fds = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::from(TICK_MS)) {
            Ok(n) if n > 0 => {}
            _ => return None,
        }
        let (stream, _) = self.listener.accept().ok()?;
        let prepare = || {
            stream.set_nonblocking(false)?;
            stream.set_write_timeout(Some(DEADLINE))
        };
        prepare().ok().map(|()| stream)
    }
}

/// One request and its answer. What goes wrong is the client's matter.
fn converse(mut stream: TcpStream, page: MakePage<'_>) {
    let (answer, head_only) = match read_request(&mut stream) {
        Ok(Some(request)) => {
            let head_only = request.method == "HEAD";
            (respond(&request, page), head_only)
        }
        Ok(None) => return,
        Err(answer) => (answer, false),
    };
    answer.send(&stream, head_only);
    drain(&mut stream);
}

/// Takes what the client still sends, within bounds: closing with unread data would
/// reset the connection, and the answer with it.
fn drain(stream: &mut TcpStream) {
    let begin = Instant::now();
    let mut part = [0; 4096];
    if stream.set_read_timeout(Some(DRAIN)).is_ok() {
        while begin.elapsed() < DRAIN && stream.read(&mut part).is_ok_and(|n| n > 0) {}
    }
}

struct Request {
    method: String,
    path: String,
}

/// Reads a request's head; `None` when the client went away.
fn read_request(stream: &mut TcpStream) -> Result<Option<Request>, Answer> {
    let begin = Instant::now();
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        let left = DEADLINE.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return Err(Answer::text(408, "the request took too long\n"));
        }
        if stream.set_read_timeout(Some(left)).is_err() {
            return Ok(None);
        }
        match stream.read(&mut part) {
            Ok(0) => return Ok(None),
            Ok(n) => head.extend_from_slice(&part[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return Ok(None),
        }
        if let Some(request) = parse(&head)? {
            return Ok(Some(request));
        }
        if head.len() > MAX_HEAD {
            return Err(Answer::text(431, "the request is too large\n"));
        }
    }
}

/// The request, once its head is complete.
fn parse(head: &[u8]) -> Result<Option<Request>, Answer> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(_)) => Ok(Some(Request {
            method: request.method.unwrap_or_default().to_owned(),
            path: request.path.unwrap_or_default().to_owned(),
        })),
        Err(httparse::Error::TooManyHeaders) => {
            Err(Answer::text(431, "the request has too many headers\n"))
        }
        Err(e) => Err(Answer::text(400, &format!("not an HTTP request: {e}\n"))),
    }
}

fn respond(request: &Request, page: MakePage<'_>) -> Answer {
    let path = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("GET" | "HEAD", "/metrics") => match page() {
            Ok(body) => Answer {
                status: 200,
                content_type: CONTENT_TYPE,
                body,
            },
            Err(why) => Answer::text(500, &format!("{why}\n")),
        },
        ("GET" | "HEAD", "/") => Answer::text(200, "corun's metrics are at /metrics\n"),
        ("GET" | "HEAD", _) => Answer::text(404, "there is only /metrics\n"),
        _ => Answer::text(405, "only GET and HEAD\n"),
    }
}

struct Answer {
    status: u16,
    content_type: &'static str,
    body: String,
}

impl Answer {
    fn text(status: u16, body: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.to_owned(),
        }
    }

    fn send(&self, mut stream: &TcpStream, head_only: bool) {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Internal Server Error",
        };
        let allow = if self.status == 405 {
            "Allow: GET, HEAD\r\n"
        } else {
            ""
        };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}\
             Connection: close\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len()
        );
        let body = if head_only { "" } else { &self.body };
        // A client that does not take its answer loses it.
        let _ = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body.as_bytes()))
            .and_then(|()| stream.shutdown(std::net::Shutdown::Write));
    }
}
