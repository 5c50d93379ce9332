// SPDX-License-Identifier: GPL-2.0-only
//! The options that a VM needs so that `corun_guest` can serve it in mode shoot4u,
//! in the words of QEMU and of libvirt.

use std::fmt::Write as _;

/// Added to QEMU's `-cpu`: Hyper-V's flush hypercalls, which KVM implements, for
/// sets of any vCPUs, and the features that these two need.
pub const HYPERV: &str = "hv-relaxed=on,hv-vpindex=on,hv-tlbflush=on,hv-tlbflush-ext=on";

/// Taken away: KVM's features that work by hypercalls of its own, which stop working
/// while the module identifies the guest to the Hyper-V interface.
pub const WITHOUT: [&str; 3] = ["kvm-pv-unhalt", "kvm-pv-ipi", "kvm-pv-sched-yield"];

/// What to add to the model in QEMU's `-cpu MODEL,...`. KVM's own signature stays
/// on, by which Linux finds KVM's clock and steal time.
pub fn qemu_cpu() -> String {
    let mut text = format!("kvm=on,{HYPERV}");
    for feature in WITHOUT {
        // Writing to a String cannot fail.
        let _ = write!(text, ",{feature}=off");
    }
    text
}

/// What to add to a libvirt domain. libvirt has no element for two of the features:
/// they are properties of every x86 CPU that QEMU has.
pub fn libvirt_xml() -> String {
    let mut text =
        "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n  \
         <features>\n    \
         <kvm>\n      \
         <hidden state='off'/>\n    \
         </kvm>\n    \
         <hyperv mode='custom'>\n      \
         <relaxed state='on'/>\n      \
         <vpindex state='on'/>\n      \
         <tlbflush state='on'>\n        \
         <extended state='on'/>\n      \
         </tlbflush>\n    \
         </hyperv>\n    \
         <pvspinlock state='off'/>\n  \
         </features>\n  \
         <qemu:commandline>\n"
            .to_owned();
    for feature in WITHOUT.iter().filter(|f| **f != "kvm-pv-unhalt") {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "    <qemu:arg value='-global'/>\n    <qemu:arg value='x86_64-cpu.{feature}=off'/>\n"
        );
    }
    text + "  </qemu:commandline>\n</domain>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_name_every_feature() {
        for name in ["relaxed", "vpindex", "tlbflush"] {
            assert!(qemu_cpu().contains(&format!("hv-{name}=on")), "{name}");
            assert!(
                libvirt_xml().contains(&format!("<{name} state='on'")),
                "{name}"
            );
        }
        for feature in WITHOUT {
            assert!(qemu_cpu().contains(&format!("{feature}=off")), "{feature}");
        }
        assert!(libvirt_xml().contains("<pvspinlock state='off'/>"));
        assert!(libvirt_xml().contains("x86_64-cpu.kvm-pv-ipi=off"));
        assert!(libvirt_xml().contains("x86_64-cpu.kvm-pv-sched-yield=off"));
    }
}
