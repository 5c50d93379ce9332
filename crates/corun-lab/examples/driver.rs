// SPDX-License-Identifier: GPL-2.0-only
//! The lab's driver alone, for trying it in an emulated host by hand:
//! `driver CASE.json [CORUN]`.

use corun_lab::driver::{DriverOptions, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let Some(case) = args.next() else {
        eprintln!("usage: driver CASE.json [CORUN]");
        return ExitCode::from(2);
    };
    let options = DriverOptions {
        case: case.into(),
        guests_only: false,
        corun: args.next().map(Into::into),
    };
    if run(&options) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
