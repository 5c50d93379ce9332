// SPDX-License-Identifier: GPL-2.0-only
/*
 * corun_guest: TLB shootdowns by the hypervisor instead of IPIs.
 */
#include <linux/module.h>

static int __init corun_guest_init(void)
{
	return 0;
}

static void __exit corun_guest_exit(void)
{
}

module_init(corun_guest_init);
module_exit(corun_guest_exit);
MODULE_DESCRIPTION("TLB shootdowns by the hypervisor instead of IPIs (Shoot4U on stock KVM)");
MODULE_LICENSE("GPL");
