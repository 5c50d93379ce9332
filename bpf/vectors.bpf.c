// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test program: puts one policy vector through the BPF build of the policy
 * (BPF_PROG_TEST_RUN on a syscall program; never attached to anything).
 */
#include <vmlinux.h>

#include <bpf/bpf_helpers.h>

#include "corun/vector.h"

char _license[] SEC("license") = "GPL";

struct corun_vector vector;

SEC("syscall")
int run_vector(void *ctx)
{
	corun_vector_run(&vector);
	return 0;
}
