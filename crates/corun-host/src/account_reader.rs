// SPDX-License-Identifier: GPL-2.0-only
//! Accounts for those that do not know yet whether they may be kept here.

use crate::accounts::{AccountOptions, Accounts};
use corun_events::account::Snapshot;
use std::error::Error;

/// Reads the accounts, which begin with the first reading; says in one line why they
/// cannot be kept or read. Begins anew with the next reading when they could not begin.
pub fn account_reader(options: AccountOptions) -> impl FnMut() -> Result<Snapshot, String> {
    let mut accounts: Option<Accounts> = None;
    move || {
        let accounts = match &mut accounts {
            Some(accounts) => accounts,
            none => none.insert(begin(options.clone())?),
        };
        accounts.read().map_err(|e| in_one_line(&e))
    }
}

fn begin(options: AccountOptions) -> Result<Accounts, String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("BPF needs root".to_owned());
    }
    Accounts::begin(options).map_err(|e| in_one_line(&e))
}

/// An error with its causes.
fn in_one_line(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line = format!("{line}: {error}");
        cause = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostError;

    #[test]
    fn causes_are_told() {
        let error = HostError::Io {
            step: "reading",
            source: std::io::Error::other("no rights"),
        };
        assert_eq!(in_one_line(&error), "reading: no rights");
    }
}
