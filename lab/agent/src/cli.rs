// SPDX-License-Identifier: GPL-2.0-only
//! The agent outside of a guest: for people and for tests.

use crate::control::Control;
use crate::run::{self, Plan};
use crate::serve::{AtEnd, Output, serve};
use crate::workload;
use anyhow::Context as _;
use clap::{ArgGroup, Parser};
use corun_lab_proto::agent::{ParamValue, WorkloadSpec};
use std::io::{BufReader, stdin, stdout};
use std::sync::Arc;
use std::time::Duration;

/// Runs the lab's guest workloads. As process 1 it takes no options and is the
/// guest's init; see docs for the protocol.
#[derive(Debug, Parser)]
#[command(version)]
#[command(group(ArgGroup::new("mode").required(true).args(["list", "run", "stdio"])))]
struct Args {
    /// Print all workloads, what they count, and their parameters
    #[arg(long)]
    list: bool,
    /// Run one workload here and print its result as JSON
    #[arg(long, value_name = "WORKLOAD")]
    run: Option<String>,
    /// Serve the protocol on the standard streams
    #[arg(long)]
    stdio: bool,
    /// Worker threads [default: one per CPU]
    #[arg(long, conflicts_with_all = ["list", "stdio"])]
    threads: Option<u32>,
    /// Run this long before anything counts, in milliseconds
    #[arg(long, conflicts_with_all = ["list", "stdio"], default_value_t = 500)]
    warmup_ms: u64,
    /// Length of the measured window, in milliseconds
    #[arg(long, conflicts_with_all = ["list", "stdio"], default_value_t = 2000)]
    measure_ms: u64,
    /// A parameter of the workload; may be given several times
    #[arg(long, conflicts_with_all = ["list", "stdio"], value_name = "NAME=VALUE", value_parser = parse_param)]
    param: Vec<(String, ParamValue)>,
}

/// The agent as a command.
pub(crate) fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if args.list {
        print!("{}", workload::list());
        return Ok(());
    }
    if args.stdio {
        return serve(
            BufReader::new(stdin()),
            AtEnd::Finish,
            Output::new(Box::new(stdout())),
        )
        .context("serving on the standard streams");
    }
    let plan = Plan {
        spec: WorkloadSpec {
            name: args.run.unwrap_or_default(),
            threads: args.threads,
            params: args.param.into_iter().collect(),
        },
        warmup: Duration::from_millis(args.warmup_ms),
        measure: Some(Duration::from_millis(args.measure_ms)),
    };
    let result = run::execute(&plan, &Arc::new(Control::default()), || {})?;
    println!("{}", serde_json::to_string_pretty(&result)?);
    Ok(())
}

fn parse_param(text: &str) -> Result<(String, ParamValue), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let value = value
        .parse()
        .map_or_else(|_| ParamValue::Text(value.to_owned()), ParamValue::Int);
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_are_numbers_where_they_can_be() {
        assert_eq!(
            parse_param("a=12"),
            Ok(("a".to_owned(), ParamValue::Int(12)))
        );
        assert_eq!(
            parse_param("a=b=c"),
            Ok(("a".to_owned(), ParamValue::Text("b=c".to_owned())))
        );
        assert!(parse_param("a").is_err());
    }

    #[test]
    fn exactly_one_mode() {
        assert!(Args::try_parse_from(["x"]).is_err());
        assert!(Args::try_parse_from(["x", "--list", "--stdio"]).is_err());
        assert!(Args::try_parse_from(["x", "--threads", "1", "--list"]).is_err());
        assert!(Args::try_parse_from(["x", "--run", "cpu", "--threads", "1"]).is_ok());
    }
}
