// SPDX-License-Identifier: GPL-2.0-only
//! `shell`: a script of the case's own, for what no other workload does.

use super::{Setup, ThreadRule, Workload};
use crate::error::Error;
use crate::external::{External, Figures, Program};
use crate::params::{Kind, Param};
use crate::session::Session;
use crate::sync::nanos;

const SH: Program = Program {
    name: "sh",
    package: "busybox-static",
};

pub(super) static WORKLOAD: Workload = Workload {
    name: "shell",
    about: "a shell script, run again and again; a run that does not exit with 0 fails the case",
    unit: "runs",
    latency: "one run of the script",
    threads: ThreadRule::ByParams,
    program: Some(SH),
    params: &[Param {
        name: "script",
        about: "what the guest's shell is given",
        kind: Kind::Text { default: "true" },
    }],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let args = vec!["-c".to_owned(), setup.params.text("script").to_owned()];
    Ok(Box::new(External::new(
        SH,
        args,
        1,
        Box::new(|_, took| {
            Ok(Figures {
                work: 1.0,
                latency: vec![(nanos(took), 1)],
            })
        }),
    )?))
}
