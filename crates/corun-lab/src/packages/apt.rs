// SPDX-License-Identifier: GPL-2.0-only
//! apt in a private root: its own lists, state and sources, so that neither
//! root rights nor a change to the machine is needed.

use super::manifest::Package;
use super::request::{KERNEL_SUITE, NEVER_USED, SUITES};
use super::{PackageError, Stop, mirror, tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The archive's keys. Named explicitly: on an older Debian the newer suites'
/// keys are in this file but not among the keys that apt trusts by default.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Every suite whose lists are fetched.
fn suites() -> impl Iterator<Item = &'static str> {
    SUITES.into_iter().chain([KERNEL_SUITE])
}

/// Keeps apt from the kernels' suite wherever another one has a package.
fn preferences() -> String {
    format!("Package: *\nPin: release n={KERNEL_SUITE}\nPin-Priority: 1\n")
}

/// A private apt root.
pub(super) struct Apt<'a> {
    root: PathBuf,
    stop: Stop<'a>,
}

impl<'a> Apt<'a> {
    /// Opens the root at `root`, making it when it is missing.
    pub(super) fn open(root: &Path, stop: Stop<'a>) -> Result<Self, PackageError> {
        for dir in ["lists/partial", "cache/archives/partial", "etc"] {
            let dir = root.join(dir);
            fs::create_dir_all(&dir).map_err(PackageError::io("making", &dir))?;
        }
        let status = root.join("status");
        fs::write(&status, "").map_err(PackageError::io("writing", &status))?;
        let root = root.to_owned();
        Ok(Self { root, stop })
    }

    /// Whether the package lists of all suites have been fetched.
    pub(super) fn has_lists(&self) -> bool {
        let sources = fs::read_to_string(self.root.join("etc/sources.list"));
        let known = sources.is_ok_and(|s| suites().all(|suite| s.contains(&format!(" {suite} "))));
        known && self.root.join("updated").exists()
    }

    /// Fetches the package lists from the machine's mirror.
    pub(super) fn update(&self) -> Result<(), PackageError> {
        let uri = mirror::find(self.stop)?;
        let signed = if Path::new(KEYRING).exists() {
            format!("[signed-by={KEYRING}] ")
        } else {
            String::new()
        };
        let line = |suite| format!("deb {signed}{uri} {suite} main\n");
        let sources: String = suites().map(line).collect();
        let at = |name: &str| self.root.join(name);
        let (list, pins, stamp) = (at("etc/sources.list"), at("etc/preferences"), at("updated"));
        fs::write(&list, sources).map_err(PackageError::io("writing", &list))?;
        fs::write(&pins, preferences()).map_err(PackageError::io("writing", &pins))?;
        let mut cmd = self.command("apt-get");
        cmd.args(["-qq", "-o", "APT::Update::Error-Mode=any", "update"]);
        tool::output(&mut cmd, self.stop)?;
        fs::write(&stamp, "").map_err(PackageError::io("writing", &stamp))
    }

    /// Names of the packages that begin with `prefix`, one per line.
    pub(super) fn names(&self, prefix: &str) -> Result<String, PackageError> {
        let mut cmd = self.command("apt-cache");
        tool::output(cmd.args(["pkgnames", prefix]), self.stop)
    }

    /// Packages that installing `names` on an empty machine would take, less
    /// those that the lab never uses; as `name=version`.
    pub(super) fn closure(&self, names: &[String]) -> Result<Vec<String>, PackageError> {
        let mut cmd = self.command("apt-get");
        cmd.args([
            "-qq",
            "-y",
            "--no-install-recommends",
            "--print-uris",
            "install",
        ]);
        let text = tool::output(cmd.args(names), self.stop)?;
        Ok(text
            .lines()
            .filter_map(parse_uri_line)
            .filter(|p| !NEVER_USED.iter().any(|prefix| p.name.starts_with(prefix)))
            .map(|p| format!("{}={}", p.name, p.version))
            .collect())
    }

    /// Files, sizes and checksums of exactly these packages.
    pub(super) fn describe(&self, packages: &[String]) -> Result<Vec<Package>, PackageError> {
        let mut cmd = self.command("apt-get");
        cmd.args(["-qq", "--print-uris", "download"]).args(packages);
        let text = tool::output(&mut cmd, self.stop)?;
        let mut found: Vec<_> = text.lines().filter_map(parse_uri_line).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.dedup();
        Ok(found)
    }

    /// Downloads packages into `dir`, calling `tick` now and then.
    pub(super) fn download(
        &self,
        packages: &[&Package],
        dir: &Path,
        tick: impl FnMut(),
    ) -> Result<(), PackageError> {
        let mut cmd = self.command("apt-get");
        cmd.args(["-qq", "-o", "Acquire::Retries=2", "download"])
            .args(packages.iter().map(|p| format!("{}={}", p.name, p.version)))
            .current_dir(dir);
        tool::watch(&mut cmd, self.stop, tick).map(|_| ())
    }

    fn command(&self, program: &str) -> Command {
        let at = |path: &str| self.root.join(path).display().to_string();
        let [.., newest] = SUITES;
        let mut cmd = Command::new(program);
        for option in [
            format!("Dir::State={}", at("")),
            format!("Dir::State::lists={}", at("lists")),
            format!("Dir::State::status={}", at("status")),
            format!("Dir::Cache={}", at("cache")),
            format!("Dir::Etc={}", at("etc")),
            format!("Dir::Etc::sourcelist={}", at("etc/sources.list")),
            "Dir::Etc::sourceparts=-".to_owned(),
            "Dir::Etc::preferencesparts=-".to_owned(),
            // A sandbox user could not write below the caller's home.
            "APT::Sandbox::User=root".to_owned(),
            "APT::Architecture=amd64".to_owned(),
            "APT::Architectures::=amd64".to_owned(),
            "APT::Get::List-Cleanup=false".to_owned(),
            "Acquire::Languages=none".to_owned(),
            format!("APT::Default-Release={newest}"),
        ] {
            cmd.arg("-o").arg(option);
        }
        cmd
    }
}

/// Reads a line of `--print-uris`: `'URI' FILE SIZE [HASH]`.
fn parse_uri_line(line: &str) -> Option<Package> {
    let mut words = line.split_whitespace();
    let file = words.nth(1)?.to_owned();
    let size = words.next()?.parse().ok()?;
    let sha256 = words.next().and_then(|h| h.strip_prefix("SHA256:"));
    let mut parts = file.strip_suffix(".deb")?.split('_');
    let (name, version) = (parts.next()?.to_owned(), parts.next()?.replace("%3a", ":"));
    Some(Package {
        name,
        version,
        size,
        sha256: sha256.unwrap_or_default().to_owned(),
        file,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_lines_are_read() {
        let line = "'http://m/p/x_1.2_amd64.deb' x_1%3a1.2-3+b1_amd64.deb 14888 SHA256:ab12";
        let p = parse_uri_line(line).expect("a package");
        assert_eq!((p.name.as_str(), p.version.as_str()), ("x", "1:1.2-3+b1"));
        assert_eq!((p.size, p.sha256.as_str()), (14888, "ab12"));
        assert!(parse_uri_line("Reading package lists...").is_none());
    }
}
