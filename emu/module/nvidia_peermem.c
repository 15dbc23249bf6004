// SPDX-License-Identifier: GPL-2.0
/*
 * Stands in for NVIDIA's module of this name: if a topology's host has nvidia-peermem, the memory of its fake GPUs can be
 * registered only while this module is loaded. It provides the files by which NCCL detects NVIDIA's module, and nothing else.
 */
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/sysfs.h>

void gdr_fakegpu_set_peermem(bool there);

static struct kobject *peers, *nv_mem;

static ssize_t version_show(struct kobject *object, struct kobj_attribute *attribute, char *buffer)
{
	return sysfs_emit(buffer, "%s\n", THIS_MODULE->version);
}
static struct kobj_attribute version = __ATTR_RO(version);

static int __init peermem_start(void)
{
	int error;

	peers = kobject_create_and_add("memory_peers", mm_kobj);
	nv_mem = peers ? kobject_create_and_add("nv_mem", peers) : NULL;
	error = nv_mem ? sysfs_create_file(nv_mem, &version.attr) : -ENOMEM;
	if (error) {
		kobject_put(nv_mem);
		kobject_put(peers);
		return error;
	}
	gdr_fakegpu_set_peermem(true);
	return 0;
}

static void __exit peermem_stop(void)
{
	gdr_fakegpu_set_peermem(false);
	kobject_put(nv_mem);
	kobject_put(peers);
}

module_init(peermem_start);
module_exit(peermem_stop);
MODULE_LICENSE("GPL");
MODULE_VERSION("0-gdr");
MODULE_DESCRIPTION("The gdr testbed's stand-in for nvidia-peermem");
