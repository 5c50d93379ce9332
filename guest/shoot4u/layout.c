// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel hides two structures from modules that this one must read. Their
 * layout is checked against the running kernel's own description of its types
 * (BTF), so that a kernel that changed them is refused instead of misread.
 */
#include "shoot4u.h"

#include <linux/btf.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <uapi/linux/btf.h>

#define BTF_FILE "/sys/kernel/btf/vmlinux"

struct expected {
	const char *type;
	const char *member;
	size_t offset;
};

#define MEMBER(type, mine, member) { type, #member, offsetof(mine, member) }

static const struct expected expected[] = {
	MEMBER("flush_tlb_info", struct s4u_info, mm),
	MEMBER("flush_tlb_info", struct s4u_info, start),
	MEMBER("flush_tlb_info", struct s4u_info, end),
	MEMBER("flush_tlb_info", struct s4u_info, new_tlb_gen),
	MEMBER("flush_tlb_info", struct s4u_info, stride_shift),
	MEMBER("flush_tlb_info", struct s4u_info, freed_tables),
	MEMBER("tlb_state_shared", struct s4u_tlb_shared, is_lazy),
};

/* The types of a kernel in memory. All offsets are checked before use. */
struct btf_text {
	void *data;
	size_t size;
	const void *types;
	const void *types_end;
	const char *strings;
	u32 strings_size;
};

static const char *name_at(const struct btf_text *btf, u32 offset)
{
	return offset < btf->strings_size ? btf->strings + offset : "";
}

/* Bytes that follow a type's header; negative for a kind that is not known. */
static long tail_of(const struct btf_type *t)
{
	u32 n = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(u32);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return n * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return n * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return n * sizeof(struct btf_var_secinfo);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	default:
		return -1;
	}
}

static const struct btf_type *find_struct(const struct btf_text *btf,
					  const char *name)
{
	const void *at = btf->types;

	while (at + sizeof(struct btf_type) <= btf->types_end) {
		const struct btf_type *t = at;
		long tail = tail_of(t);

		at += sizeof(*t) + tail;
		if (tail < 0 || at > btf->types_end)
			return NULL;
		if (BTF_INFO_KIND(t->info) == BTF_KIND_STRUCT &&
		    !strcmp(name_at(btf, t->name_off), name))
			return t;
	}
	return NULL;
}

/* Offset in bytes, or -1. */
static long member_offset(const struct btf_text *btf, const struct btf_type *t,
			  const char *name)
{
	const struct btf_member *m = (const void *)(t + 1);
	u32 i, bits;

	for (i = 0; i < BTF_INFO_VLEN(t->info); i++, m++) {
		if (strcmp(name_at(btf, m->name_off), name))
			continue;
		bits = BTF_INFO_KFLAG(t->info)
			       ? BTF_MEMBER_BIT_OFFSET(m->offset)
			       : m->offset;
		return bits % 8 ? -1 : (long)(bits / 8);
	}
	return -1;
}

static int check_all(const struct btf_text *btf)
{
	const struct btf_type *t = NULL;
	const char *found = NULL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		const struct expected *e = &expected[i];
		long offset;

		/* A search goes through some 100,000 types. */
		if (!found || strcmp(found, e->type))
			t = find_struct(btf, e->type);
		found = e->type;
		offset = t ? member_offset(btf, t, e->member) : -1;
		if (offset == (long)e->offset)
			continue;
		pr_err("struct %s of this kernel has %s at %ld, not at %zu: do not load the module on this kernel, and report it\n",
		       e->type, e->member, offset, e->offset);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int parse_header(struct btf_text *btf)
{
	const struct btf_header *h = btf->data;
	u64 types, strings;

	if (btf->size < sizeof(*h) || h->magic != BTF_MAGIC)
		return -EINVAL;
	types = (u64)h->hdr_len + h->type_off;
	strings = (u64)h->hdr_len + h->str_off;
	if (types + h->type_len > btf->size ||
	    strings + h->str_len > btf->size || !h->str_len)
		return -EINVAL;
	btf->types = btf->data + types;
	btf->types_end = btf->types + h->type_len;
	btf->strings = btf->data + strings;
	btf->strings_size = h->str_len;
	/* Every string in there ends. */
	return btf->strings[h->str_len - 1] ? -EINVAL : 0;
}

static int read_all(struct file *file, struct btf_text *btf)
{
	loff_t at = 0;

	btf->size = i_size_read(file_inode(file));
	btf->data = kvmalloc(btf->size, GFP_KERNEL);
	if (!btf->data)
		return -ENOMEM;
	while ((size_t)at < btf->size) {
		ssize_t n =
			kernel_read(file, btf->data + at, btf->size - at, &at);

		if (n <= 0)
			return n ? n : -EIO;
	}
	return 0;
}

int s4u_check_layout(void)
{
	struct btf_text btf = {};
	struct file *file = filp_open(BTF_FILE, O_RDONLY, 0);
	int ret;

	if (IS_ERR(file)) {
		pr_err("%s cannot be read (%ld): the kernel needs CONFIG_DEBUG_INFO_BTF, and sysfs mounted\n",
		       BTF_FILE, PTR_ERR(file));
		return PTR_ERR(file);
	}
	ret = read_all(file, &btf);
	if (!ret)
		ret = parse_header(&btf);
	if (ret)
		pr_err("%s does not read (%d)\n", BTF_FILE, ret);
	else
		ret = check_all(&btf);
	kvfree(btf.data);
	filp_close(file, NULL);
	return ret;
}
