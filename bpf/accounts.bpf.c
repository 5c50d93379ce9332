// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounts of vCPUs, whatever scheduler runs: where their time goes, what happens
 * to them, how long they wait. Reads only.
 */
#include <scx/common.bpf.h>

#include "accounts_find.bpf.h"
#include "accounts_time.bpf.h"
#include "accounts_ipi.bpf.h"
#include "accounts_exit.bpf.h"

char _license[] SEC("license") = "GPL";
