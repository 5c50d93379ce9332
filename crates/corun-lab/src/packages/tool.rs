// SPDX-License-Identifier: GPL-2.0-only
//! Runs apt's, dpkg's and cargo's tools: interruptible, never outliving this process,
//! with what they say on failure turned into an error that tells the next step.

use super::PackageError;
use std::io::{ErrorKind, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Set by the command line's signal handler; everything that waits looks at it.
pub type Stop<'a> = &'a AtomicBool;

/// How often a waiting tool is looked at.
const POLL: Duration = Duration::from_millis(20);

/// Runs `cmd` and returns its standard output.
pub(crate) fn output(cmd: &mut Command, stop: Stop<'_>) -> Result<String, PackageError> {
    watch(cmd, stop, || ())
}

/// As [`output`], calling `tick` while the tool runs.
pub(super) fn watch(
    cmd: &mut Command,
    stop: Stop<'_>,
    mut tick: impl FnMut(),
) -> Result<String, PackageError> {
    let name = cmd.get_program().to_string_lossy().into_owned();
    let mut child = cmd
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| match e.kind() {
            ErrorKind::NotFound => PackageError::MissingTool { name: name.clone() },
            _ => PackageError::Io(format!("cannot start {name}"), e),
        })?;
    let out = drain(child.stdout.take());
    let err = drain(child.stderr.take());
    let status = wait(&mut child, stop, &name, &mut tick)?;
    let text = |pipe: JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&pipe.join().unwrap_or_default()).into_owned()
    };
    let (out, err) = (text(out), text(err));
    if status.success() {
        Ok(out)
    } else {
        Err(classify(&name, &err))
    }
}

fn wait(
    child: &mut Child,
    stop: Stop<'_>,
    name: &str,
    tick: &mut impl FnMut(),
) -> Result<ExitStatus, PackageError> {
    loop {
        let polled = child.try_wait();
        if let Some(status) =
            polled.map_err(|e| PackageError::Io(format!("waiting for {name}"), e))?
        {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(PackageError::Interrupted);
        }
        tick();
        thread::sleep(POLL);
    }
}

fn drain<R: Read + Send + 'static>(pipe: Option<R>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A pipe that breaks ends what can be told; the status decides.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// What a failed tool's own words mean for the user.
fn classify(tool: &str, stderr: &str) -> PackageError {
    let has = |words: &[&str]| words.iter().any(|w| stderr.contains(w));
    let said = last_lines(stderr);
    if has(&["No space left on device", "enough free space"]) {
        PackageError::DiskFull
    } else if has(&["NO_PUBKEY", "is not signed", "EXPKEYSIG"]) {
        PackageError::Signature { said }
    } else if has(&["does not have a Release file", "404 "]) {
        PackageError::MirrorLacks { said }
    } else if has(&[
        "Temporary failure resolving",
        "Could not resolve",
        "Could not connect",
        "Failed to fetch",
        "Connection failed",
        "Network is unreachable",
    ]) {
        PackageError::Network { said }
    } else {
        let tool = tool.to_owned();
        PackageError::Tool { tool, said }
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_apart() {
        let no_net = "E: Failed to fetch http://m/x  Temporary failure resolving 'm'";
        assert!(matches!(
            classify("apt-get", no_net),
            PackageError::Network { .. }
        ));
        let full = "tar: ./usr/bin/x: Cannot write: No space left on device";
        assert!(matches!(classify("dpkg-deb", full), PackageError::DiskFull));
        let gone = "E: The repository 'http://m trixie Release' does not have a Release file.";
        assert!(matches!(
            classify("apt-get", gone),
            PackageError::MirrorLacks { .. }
        ));
        let key = "W: GPG error: NO_PUBKEY 0123\nE: The repository is not signed.";
        assert!(matches!(
            classify("apt-get", key),
            PackageError::Signature { .. }
        ));
    }

    #[test]
    fn a_missing_tool_is_named() {
        let stop = AtomicBool::new(false);
        let err = output(&mut Command::new("corun-no-such-tool"), &stop).expect_err("missing");
        assert!(err.to_string().contains("corun-no-such-tool"), "{err}");
    }

    #[test]
    fn a_stop_ends_the_tool() {
        let stop = AtomicBool::new(true);
        let err = output(Command::new("sleep").arg("60"), &stop).expect_err("interrupted");
        assert!(matches!(err, PackageError::Interrupted));
    }
}
