// SPDX-License-Identifier: GPL-2.0-only
//! `corun guest`: what guests need.

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use corun_lab::guest_options;
use serde_json::json;
use std::process::ExitCode;

/// Guests with corun's kernel module.
#[derive(Subcommand)]
pub(crate) enum Command {
    Options(OptionsArgs),
}

/// Print the VM options that the guest module needs
///
/// For `corun_guest` in mode shoot4u: the host offers Hyper-V's flush hypercalls, and
/// not those features of KVM that need hypercalls of KVM's own.
#[derive(clap::Args)]
pub(crate) struct OptionsArgs {
    /// Whose words to use
    #[arg(long, value_enum, default_value_t = Vmm::Qemu)]
    vmm: Vmm,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Vmm {
    /// Arguments of QEMU
    Qemu,
    /// XML of a libvirt domain
    Libvirt,
}

pub(crate) fn dispatch(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Options(args) => print!("{}", options(args)?),
    }
    Ok(ExitCode::SUCCESS)
}

fn options(args: &OptionsArgs) -> Result<String> {
    let (vmm, options, advice) = match args.vmm {
        Vmm::Qemu => (
            "qemu",
            format!("-cpu host,{}\n", guest_options::qemu_cpu()),
            "# QEMU; take your own CPU model for \"host\"\n",
        ),
        Vmm::Libvirt => (
            "libvirt",
            guest_options::libvirt_xml(),
            "<!-- virsh edit DOMAIN: add these elements; libvirt 11.0 or newer (without it,\n     \
             leave <extended/> out: VMs of up to 64 vCPUs do not need it) -->\n",
        ),
    };
    if args.json {
        let object = json!({
            "vmm": vmm,
            "options": options.trim_end(),
            "cpu_flags_on": guest_options::HYPERV.split(',').collect::<Vec<_>>(),
            "cpu_flags_off": guest_options::WITHOUT,
        });
        return Ok(format!("{}\n", serde_json::to_string_pretty(&object)?));
    }
    Ok(format!("{advice}{options}"))
}
