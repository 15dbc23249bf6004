/* SPDX-License-Identifier: GPL-2.0 */
/* Lines for our modules in the guest's settings file. The file is a shell script, in which these lines are comments. */
#ifndef GDR_SETTINGS_H
#define GDR_SETTINGS_H

#include <linux/kernel.h>
#include <linux/kernel_read_file.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

/* Calls `take` for every line that begins with '#'. A line that it rejects is reported and skipped. */
static inline int for_each_setting(const char *path, int (*take)(const char *line))
{
	void *content = NULL;
	ssize_t size = kernel_read_file_from_path(path, 0, &content, SZ_4M, NULL, READING_UNKNOWN);
	char *rest, *line, *text;

	if (size < 0) {
		pr_err("gdr: %s cannot be read: %zd\n", path, size);
		return size;
	}
	text = kvmalloc(size + 1, GFP_KERNEL);
	if (text) {
		memcpy(text, content, size);
		text[size] = 0;
	}
	vfree(content);
	if (!text)
		return -ENOMEM;
	for (rest = text; (line = strsep(&rest, "\n"));) {
		int error = *line == '#' ? take(line) : 0;

		if (error)
			pr_err("gdr: not understood: \"%s\": %d\n", line, error);
	}
	kvfree(text);
	return 0;
}

#endif
