// SPDX-License-Identifier: GPL-2.0
/*
 * Fake GPUs: gives the BARs of QEMU's ivshmem functions to user space, with pages behind them, so that RDMA can register them.
 * A BAR alone has no struct pages: ibv_reg_mr() on it fails with EFAULT, as on a machine without nvidia-peermem.
 */
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "gdr_gpu.h"

#define GPU_BAR 2
#define MAX_GPUS 256

/* GPU N is at places[N]: 8 * (physical slot number of the port above) + function; 0 for none. */
static unsigned int places[MAX_GPUS];
static unsigned int place_count;
module_param_array(places, uint, &place_count, 0444);
MODULE_PARM_DESC(places, "where GPU 0, 1... are: 8 * slot number of the port above + function");

struct gpu {
	unsigned int index;
	resource_size_t start;
	resource_size_t size;
	struct dev_pagemap pages;
	struct miscdevice device;
	char name[16];
	struct mutex lock;	 /* ranges, allocated */
	struct list_head ranges; /* by offset */
	u64 allocated;
};

struct gpu_range {
	struct list_head by_offset;
	u64 offset;
	u64 size;
	struct file *owner;
};

static struct gpu *gpu_of(struct file *file)
{
	return container_of(file->private_data, struct gpu, device); /* misc_open() puts the miscdevice there */
}

static int gpu_mmap(struct file *file, struct vm_area_struct *area)
{
	struct gpu *gpu = gpu_of(file);
	unsigned long pages = vma_pages(area);
	unsigned long bar_pages = gpu->size >> PAGE_SHIFT;
	unsigned long first = area->vm_pgoff;
	unsigned long i;

	if (first > bar_pages || pages > bar_pages - first)
		return -EINVAL;
	for (i = 0; i < pages; i++) {
		struct page *page = pfn_to_page((gpu->start >> PAGE_SHIFT) + first + i);
		int error = vm_insert_page(area, area->vm_start + (i << PAGE_SHIFT), page);

		if (error)
			return error;
	}
	return 0;
}

static long gpu_query(struct gpu *gpu, void __user *to)
{
	struct gdr_gpu_query query = {.gpu = gpu->index, .bar_size = gpu->size};

	mutex_lock(&gpu->lock);
	query.window_left = gpu->size - gpu->allocated;
	mutex_unlock(&gpu->lock);
	return copy_to_user(to, &query, sizeof(query)) ? -EFAULT : 0;
}

/* First fit. Finds the range that the new one goes behind, and its offset. */
static bool find_hole(struct gpu *gpu, u64 size, struct list_head **behind, u64 *offset)
{
	struct gpu_range *range;

	*behind = &gpu->ranges;
	*offset = 0;
	list_for_each_entry(range, &gpu->ranges, by_offset) {
		if (range->offset - *offset >= size)
			return true;
		*behind = &range->by_offset;
		*offset = range->offset + range->size;
	}
	return gpu->size - *offset >= size;
}

static long gpu_allocate(struct gpu *gpu, struct file *file, struct gdr_gpu_range __user *user)
{
	struct gdr_gpu_range wanted;
	struct list_head *behind;
	struct gpu_range *range;

	if (copy_from_user(&wanted, user, sizeof(wanted)))
		return -EFAULT;
	if (!wanted.size)
		return -EINVAL;
	if (wanted.size > gpu->size)
		return -ENOSPC;
	range = kzalloc(sizeof(*range), GFP_KERNEL);
	if (!range)
		return -ENOMEM;
	range->size = PAGE_ALIGN(wanted.size);
	range->owner = file;
	mutex_lock(&gpu->lock);
	if (!find_hole(gpu, range->size, &behind, &range->offset)) {
		mutex_unlock(&gpu->lock);
		kfree(range);
		return -ENOSPC;
	}
	wanted.size = range->size;
	wanted.offset = range->offset;
	if (copy_to_user(user, &wanted, sizeof(wanted))) {
		mutex_unlock(&gpu->lock);
		kfree(range);
		return -EFAULT;
	}
	list_add(&range->by_offset, behind);
	gpu->allocated += range->size;
	mutex_unlock(&gpu->lock);
	return 0;
}

/* Frees what `file` allocated: all of it, or the range that starts at `offset`. Returns how many ranges that were. */
static int free_ranges(struct gpu *gpu, struct file *file, bool all, u64 offset)
{
	struct gpu_range *range, *next;
	int freed = 0;

	mutex_lock(&gpu->lock);
	list_for_each_entry_safe(range, next, &gpu->ranges, by_offset) {
		if (range->owner != file || (!all && range->offset != offset))
			continue;
		list_del(&range->by_offset);
		gpu->allocated -= range->size;
		kfree(range);
		freed++;
	}
	mutex_unlock(&gpu->lock);
	return freed;
}

static long gpu_ioctl(struct file *file, unsigned int request, unsigned long argument)
{
	struct gpu *gpu = gpu_of(file);
	void __user *user = (void __user *)argument;
	struct gdr_gpu_range range;

	switch (request) {
	case GDR_GPU_QUERY:
		return gpu_query(gpu, user);
	case GDR_GPU_ALLOCATE:
		return gpu_allocate(gpu, file, user);
	case GDR_GPU_FREE:
		if (copy_from_user(&range, user, sizeof(range)))
			return -EFAULT;
		return free_ranges(gpu, file, false, range.offset) ? 0 : -EINVAL;
	default:
		return -ENOTTY;
	}
}

static int gpu_release(struct inode *inode, struct file *file)
{
	free_ranges(gpu_of(file), file, true, 0);
	return 0;
}

static const struct file_operations gpu_operations = {
	.owner = THIS_MODULE,
	.mmap = gpu_mmap,
	.unlocked_ioctl = gpu_ioctl,
	.release = gpu_release,
};

static int index_of(struct pci_dev *function)
{
	struct pci_dev *port = pci_upstream_bridge(function);
	unsigned int i, place;
	u32 capabilities = 0;

	if (!port || pcie_capability_read_dword(port, PCI_EXP_SLTCAP, &capabilities))
		return -ENODEV;
	place = ((capabilities & PCI_EXP_SLTCAP_PSN) >> 19) * 8 + PCI_FUNC(function->devfn);
	for (i = 0; i < place_count; i++)
		if (places[i] == place)
			return i;
	return -ENODEV;
}

static int gpu_probe(struct pci_dev *function, const struct pci_device_id *id)
{
	struct gpu *gpu;
	void *mapped;
	int index = index_of(function);
	int error;

	if (index < 0)
		return index;
	error = pcim_enable_device(function);
	if (error)
		return error;
	gpu = devm_kzalloc(&function->dev, sizeof(*gpu), GFP_KERNEL);
	if (!gpu)
		return -ENOMEM;
	gpu->index = index;
	gpu->start = pci_resource_start(function, GPU_BAR);
	gpu->size = pci_resource_len(function, GPU_BAR);
	mutex_init(&gpu->lock);
	INIT_LIST_HEAD(&gpu->ranges);

	gpu->pages.type = MEMORY_DEVICE_GENERIC;
	gpu->pages.range.start = gpu->start;
	gpu->pages.range.end = gpu->start + gpu->size - 1;
	gpu->pages.nr_range = 1;
	mapped = devm_memremap_pages(&function->dev, &gpu->pages);
	if (IS_ERR(mapped)) {
		dev_err(&function->dev, "gpu%d: no pages for its BAR of %llu bytes: %ld\n", index, (u64)gpu->size, PTR_ERR(mapped));
		return PTR_ERR(mapped);
	}

	snprintf(gpu->name, sizeof(gpu->name), "gdr-gpu%d", index);
	gpu->device.minor = MISC_DYNAMIC_MINOR;
	gpu->device.name = gpu->name;
	gpu->device.fops = &gpu_operations;
	gpu->device.mode = 0666;
	gpu->device.parent = &function->dev;
	pci_set_drvdata(function, gpu);
	return misc_register(&gpu->device);
}

static void gpu_remove(struct pci_dev *function)
{
	struct gpu *gpu = pci_get_drvdata(function);

	misc_deregister(&gpu->device);
}

static const struct pci_device_id gpu_ids[] = {
	{PCI_DEVICE(0x1af4, 0x1110)}, /* ivshmem */
	{},
};
MODULE_DEVICE_TABLE(pci, gpu_ids);

static struct pci_driver gpu_driver = {
	.name = "gdr_fakegpu",
	.id_table = gpu_ids,
	.probe = gpu_probe,
	.remove = gpu_remove,
};
module_pci_driver(gpu_driver);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Fake GPUs of the gdr testbed: ivshmem BARs that RDMA can register");
