// SPDX-License-Identifier: GPL-2.0-only
//! A browser without a screen, driven over a pipe by its debugging protocol:
//! JSON messages that end with a zero byte. Nothing listens on a port.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Programs that will do.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// A browser that hangs is ended after so many seconds.
const LIMIT_S: u32 = 300;

/// The browser to use; `None`: there is none.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let candidates = PROGRAMS
        .iter()
        .flat_map(|p| folders.iter().map(move |f| f.join(p)));
    candidates.into_iter().find(|file| file.is_file())
}

/// A running browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    session: Value,
    last: u64,
    /// Events that have come and were not looked at.
    pub(crate) events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts `program` and opens an empty page.
    pub(crate) fn start(program: &std::path::Path) -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        // The protocol's pipe is file descriptors 3 and 4. The sandbox is left
        // off: the page is ours, and it does not work as root or in containers.
        let script = format!(
            "exec timeout {LIMIT_S} \"$0\" --headless=new --no-sandbox --disable-gpu \
             --disable-dev-shm-usage --no-first-run --hide-scrollbars --remote-debugging-pipe \
             --user-data-dir=\"$1\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .args([program, profile.path()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the shell starts");
        let mut browser = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().expect("is piped")),
            child,
            session: Value::Null,
            last: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", &attach)["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Calls a method and gives its result.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        let input = self.input.as_mut().expect("is open until the end");
        write!(input, "{message}\0").expect("the browser listens");
        input.flush().expect("the browser listens");
        loop {
            let mut answer = self.next();
            if answer["id"] == self.last {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    fn next(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.output
            .read_until(0, &mut bytes)
            .expect("the browser answers");
        assert_eq!(bytes.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&bytes).expect("is JSON")
    }

    /// Loads `url` and waits until it is there.
    pub(crate) fn open(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", &json!({ "url": url }));
        let loaded = |e: &Value| e["method"] == "Page.loadEventFired";
        while !self.events.iter().any(loaded) {
            let event = self.next();
            self.events.push(event);
        }
        self.settle();
    }

    /// Waits until the page has painted what it was told.
    pub(crate) fn settle(&mut self) {
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))");
    }

    /// What an expression gives, promises awaited.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut result = self.call("Runtime.evaluate", &params);
        assert!(
            result.get("exceptionDetails").is_none(),
            "{expression}: {result}"
        );
        result["result"]["value"].take()
    }

    /// The size of the window.
    pub(crate) fn resize(&mut self, width: u32) {
        let metrics =
            json!({ "width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// The theme of the system, "light" or "dark", and the medium, "" or "print".
    pub(crate) fn media(&mut self, theme: &str, medium: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": theme });
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({ "media": medium, "features": [feature] }),
        );
    }

    /// What came of `method` since the page was opened.
    pub(crate) fn seen(&self, method: &str) -> Vec<&Value> {
        let of = self.events.iter().filter(|e| e["method"] == method);
        of.map(|e| &e["params"]).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when its pipe is closed.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
