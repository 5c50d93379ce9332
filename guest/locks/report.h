/* SPDX-License-Identifier: GPL-2.0-only */
/* What a run came to, for people and for programs. */
#ifndef CORUN_LOCKS_REPORT_H
#define CORUN_LOCKS_REPORT_H

struct seq_file;
struct corun_bench;

/* @bench: NULL when there was no run. @refusal: why the last start failed. */
void corun_report_text(struct seq_file *m, const struct corun_bench *bench,
		       const char *refusal);
void corun_report_json(struct seq_file *m, const struct corun_bench *bench,
		       const char *refusal);

#endif /* CORUN_LOCKS_REPORT_H */
