// SPDX-License-Identifier: GPL-2.0-only
//! The repository's vectors through the native build. (The lab's smoke puts the
//! same ones through the BPF build.)

use corun_policy::vector::{OPS, Vector, repository};

#[test]
fn every_vector_holds() {
    for expected in repository().unwrap() {
        let vector = expected
            .vector()
            .unwrap_or_else(|| panic!("unknown op {:?}", expected.op));
        let ran = vector.run_native();
        assert_eq!(ran.done, 1);
        assert_eq!(
            ran.outputs.as_slice(),
            expected.outputs,
            "{}: {}",
            expected.op,
            expected.why
        );
    }
}

#[test]
fn every_op_has_vectors() {
    let all = repository().unwrap();
    for op in OPS {
        assert!(all.iter().any(|v| v.op == op), "no vector for {op}");
    }
}

#[test]
fn an_unknown_op_is_not_done() {
    let nr = u32::try_from(OPS.len()).unwrap();
    assert_eq!(Vector::new(nr, &[]).run_native().done, 0);
    assert_eq!(Vector::new(nr - 1, &[]).run_native().done, 1);
}
