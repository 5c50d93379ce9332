// SPDX-License-Identifier: GPL-2.0-only
//! The module `corun_locks`: loading it, and its parameters.

use crate::error::Error;
use crate::module;
use std::fs;
use std::path::Path;

/// Its name.
const NAME: &str = "corun_locks";
/// Where it is, once it is loaded.
const LOADED: &str = "/sys/module/corun_locks";
/// Where it is controlled from.
pub(super) const FILES: &str = "/sys/kernel/debug/corun_locks";

/// Loads it unless that was done.
pub(super) fn load() -> Result<(), Error> {
    if Path::new(LOADED).exists() {
        Ok(())
    } else {
        module::load(NAME, "")
    }
}

/// Sets a parameter.
pub(super) fn set(parameter: &str, value: &str) -> Result<(), Error> {
    let path = Path::new(LOADED).join("parameters").join(parameter);
    fs::write(&path, value)
        .map_err(|e| Error::os(format!("cannot write {value:?} to {}", path.display()), e))
}
