// SPDX-License-Identifier: GPL-2.0
/*
 * The pairs of GPU and NIC that may not register: from the settings file (the topology's verdict, gdr emulate
 * --refuse-registration) and from writes to /dev/gdr-refusals.
 */
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "fakegpu.h"

struct refusal {
	struct list_head next;
	int gpu, nic; /* -1: any */
	u64 after;    /* this many registrations pass first */
	u64 above;    /* registrations up to this size pass and do not count */
	u64 passed, refused;
	bool fixed;
	char reason[MAX_REASON];
};

static LIST_HEAD(refusals);
static DEFINE_MUTEX(lock);

/* "gpu3" or "gpu*"; advances `at` past it. */
static int take_number(const char **at, const char *word, int *number)
{
	unsigned int digits = 0;

	if (strncmp(*at, word, 3))
		return -EINVAL;
	*at += 3;
	if (**at == '*') {
		*number = -1;
		(*at)++;
		return 0;
	}
	if (sscanf(*at, "%3d", number) != 1 || *number < 0)
		return -EINVAL;
	while ((*at)[digits] >= '0' && (*at)[digits] <= '9')
		digits++;
	*at += digits;
	return 0;
}

int add_refusal(const char *text, bool fixed)
{
	struct refusal *refusal = kzalloc(sizeof(*refusal), GFP_KERNEL);
	int error;

	if (!refusal)
		return -ENOMEM;
	refusal->fixed = fixed;
	error = take_number(&text, "gpu", &refusal->gpu);
	if (!error && *text++ != '-')
		error = -EINVAL;
	error = error ?: take_number(&text, "nic", &refusal->nic);
	while (!error && *text == ',') {
		if (sscanf(text, ",after=%llu", &refusal->after) != 1 && sscanf(text, ",above=%llu", &refusal->above) != 1)
			error = -EINVAL;
		text++;
		text += strcspn(text, ", ");
	}
	if (!error && *text && *text != ' ')
		error = -EINVAL;
	if (error) {
		kfree(refusal);
		return error;
	}
	strscpy(refusal->reason, *text ? text + 1 : "fault", MAX_REASON);
	mutex_lock(&lock);
	list_add_tail(&refusal->next, &refusals);
	mutex_unlock(&lock);
	return 0;
}

bool is_refused(unsigned int gpu, int nic, u64 bytes, char *reason)
{
	struct refusal *refusal;
	bool refused = false;

	mutex_lock(&lock);
	list_for_each_entry(refusal, &refusals, next) {
		if ((refusal->gpu >= 0 && refusal->gpu != gpu) || (refusal->nic >= 0 && refusal->nic != nic))
			continue;
		if (bytes <= refusal->above || refused)
			continue;
		if (refusal->passed < refusal->after) {
			refusal->passed++;
			continue;
		}
		refusal->refused++;
		refused = true;
		strscpy(reason, refusal->reason, MAX_REASON);
	}
	mutex_unlock(&lock);
	return refused;
}

static void drop(bool all)
{
	struct refusal *refusal, *next;

	mutex_lock(&lock);
	list_for_each_entry_safe(refusal, next, &refusals, next) {
		if (refusal->fixed && !all)
			continue;
		list_del(&refusal->next);
		kfree(refusal);
	}
	mutex_unlock(&lock);
}

static ssize_t refusals_write(struct file *file, const char __user *from, size_t size, loff_t *offset)
{
	char text[128];
	int error = 0;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, size))
		return -EFAULT;
	text[size] = 0;
	strim(text);
	if (!strcmp(text, "none"))
		drop(false);
	else
		error = add_refusal(text, false);
	return error ?: size;
}

static int print_number(char *to, size_t room, const char *word, int number)
{
	return number < 0 ? scnprintf(to, room, "%s*", word) : scnprintf(to, room, "%s%d", word, number);
}

static ssize_t refusals_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	size_t room = SZ_64K, length = 0;
	char *text = kvmalloc(room, GFP_KERNEL);
	struct refusal *refusal;
	ssize_t result;

	if (!text)
		return -ENOMEM;
	mutex_lock(&lock);
	list_for_each_entry(refusal, &refusals, next) {
		length += print_number(text + length, room - length, "gpu", refusal->gpu);
		length += print_number(text + length, room - length, "-nic", refusal->nic);
		length += scnprintf(text + length, room - length, ",after=%llu,above=%llu %s: %llu refused\n", refusal->after,
				    refusal->above, refusal->reason, refusal->refused);
	}
	mutex_unlock(&lock);
	result = simple_read_from_buffer(to, size, offset, text, length);
	kvfree(text);
	return result;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = refusals_read,
	.write = refusals_write,
	.llseek = default_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gdr-refusals",
	.fops = &operations,
	.mode = 0644,
};

int start_refusals(void)
{
	return misc_register(&device);
}

void stop_refusals(void)
{
	misc_deregister(&device);
	drop(true);
}
