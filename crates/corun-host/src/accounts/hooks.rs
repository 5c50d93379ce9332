// SPDX-License-Identifier: GPL-2.0-only
//! Which of the accounts' programs this kernel can carry.

use crate::error::Result;
use crate::events::{
    EXIT, Event, HALT, HALT_END, INJECTED, IPI_SENT, Present, SPIN, VCPU_PUT, YIELD_TO,
};
use crate::skel::accounts::OpenAccountsProgs;
use libbpf_rs::OpenProgramMut;

/// Chooses the programs to load; tells of each event that is not there. The others must be:
/// without them there are no accounts.
pub(super) fn choose(progs: &mut OpenAccountsProgs<'_>) -> Result<Vec<String>> {
    Ok(choose_by(progs, &Present::here()?))
}

fn choose_by(progs: &mut OpenAccountsProgs<'_>, present: &Present) -> Vec<String> {
    for prog in [
        &mut progs.acct_vcpu_load,
        &mut progs.acct_vcpu_destroy,
        &mut progs.acct_destroy_vm,
    ] {
        prog.set_autoload(true);
    }
    // A helper of scx's headers that nothing here uses.
    progs.scx_lib_init_probe.set_autoload(false);
    let optional: [(Event, &mut OpenProgramMut<'_>); 8] = [
        (HALT, &mut progs.acct_halt),
        (HALT_END, &mut progs.acct_halt_end),
        (VCPU_PUT, &mut progs.acct_vcpu_put),
        (EXIT, &mut progs.acct_exit),
        (IPI_SENT, &mut progs.acct_ipi_sent),
        (INJECTED, &mut progs.acct_injected),
        (SPIN, &mut progs.acct_spin),
        (YIELD_TO, &mut progs.acct_yield_to),
    ];
    let mut missing = Vec::new();
    // Half of a halt would never end.
    let halts = present.has(&HALT) && present.has(&HALT_END);
    for (event, prog) in optional {
        let is_there = present.has(&event);
        let is_halt = event == HALT || event == HALT_END;
        prog.set_autoload(is_there && (halts || !is_halt));
        if !is_there {
            missing.push(event.missing());
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::kallsyms_without;
    use crate::skel::accounts::AccountsSkelBuilder;
    use libbpf_rs::skel::SkelBuilder;
    use std::mem::MaybeUninit;

    /// What is missing, and which of the programs are loaded, on a kernel without `absent`.
    fn chosen(absent: &[&Event]) -> (Vec<String>, Vec<String>) {
        let mut object = MaybeUninit::uninit();
        let mut open = AccountsSkelBuilder::default()
            .open(&mut object)
            .expect("opens");
        let missing = choose_by(&mut open.progs, &Present::of(&kallsyms_without(absent)));
        let object = libbpf_rs::skel::OpenSkel::open_object(&open);
        let loaded = object.progs().filter(libbpf_rs::OpenProgram::autoload);
        (
            missing,
            loaded
                .map(|p| p.name().to_string_lossy().into_owned())
                .collect(),
        )
    }

    #[test]
    fn all_is_loaded_where_all_is_there() {
        let (missing, loaded) = chosen(&[]);
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(loaded.len(), 13, "{loaded:?}");
    }

    #[test]
    fn what_is_not_there_is_told_and_not_loaded() {
        let (missing, loaded) = chosen(&[&EXIT]);
        assert_eq!(missing, [EXIT.missing()]);
        assert!(!loaded.contains(&"acct_exit".to_owned()));
        assert_eq!(loaded.len(), 12);
    }

    #[test]
    fn halts_need_both_their_ends() {
        let (missing, loaded) = chosen(&[&HALT_END]);
        assert_eq!(missing.len(), 1);
        assert!(!loaded.contains(&"acct_halt".to_owned()), "{loaded:?}");
    }
}
