// SPDX-License-Identifier: GPL-2.0
/*
 * Fake GPUs: exports the BARs of QEMU's ivshmem functions to user space, backed by struct pages, so that RDMA can register them.
 * A plain BAR has no struct pages: ibv_reg_mr() on it fails with EFAULT, as on a machine without nvidia-peermem. registration.c
 * decides which NIC may register which GPU.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "fakegpu.h"
#include "settings.h"

#define GPU_BAR 2
#define MAX_GPUS 256

static char *settings = "/run/gdr/guest";
module_param(settings, charp, 0444);
MODULE_PARM_DESC(settings, "file with the lines that begin with #gpu and #refuse");

/* Lines "#gpu NUMBER WHERE WINDOW PEERMEM": WHERE is 8 * slot number of the port above + function number. */
struct gpu_setting {
	unsigned int place;
	u64 window;
	unsigned int needs_peermem;
};
static struct gpu_setting gpu_settings[MAX_GPUS];

struct gpu_range {
	struct list_head by_offset;
	u64 offset;
	u64 size;
	struct file *owner;
};

static struct gpu *gpu_of(struct file *file)
{
	return container_of(file->private_data, struct gpu, device); /* misc_open() set it to the miscdevice */
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
	struct gdr_gpu_query query = {.gpu = gpu->index, .bar_size = gpu->size, .window_size = gpu->window};

	mutex_lock(&gpu->lock);
	query.memory_left = gpu->size - gpu->allocated;
	query.window_left = gpu->window - gpu->counts.registered;
	mutex_unlock(&gpu->lock);
	return copy_to_user(to, &query, sizeof(query)) ? -EFAULT : 0;
}

static struct gdr_gpu_counts counts_of(struct gpu *gpu)
{
	struct gdr_gpu_counts counts;

	mutex_lock(&gpu->lock);
	counts = gpu->counts;
	mutex_unlock(&gpu->lock);
	counts.cpu_read = atomic64_read(&gpu->cpu_read);
	counts.cpu_written = atomic64_read(&gpu->cpu_written);
	counts.nic_read = atomic64_read(&gpu->nic_read);
	counts.nic_written = atomic64_read(&gpu->nic_written);
	counts.host_read = atomic64_read(&host_read);
	counts.host_written = atomic64_read(&host_written);
	return counts;
}

static long gpu_counts(struct gpu *gpu, void __user *to)
{
	struct gdr_gpu_counts counts = counts_of(gpu);

	return copy_to_user(to, &counts, sizeof(counts)) ? -EFAULT : 0;
}

/* /sys/class/misc/gdr-gpuN/counts, for programs without ioctls. */
static ssize_t counts_show(struct device *device, struct device_attribute *attribute, char *to)
{
	struct gpu *gpu = container_of(dev_get_drvdata(device), struct gpu, device); /* misc_register() set it */
	struct gdr_gpu_counts counts = counts_of(gpu);

	return sysfs_emit(to,
			  "regions %llu\nregistered %llu\nall_regions %llu\nrefused %llu\ncpu_read %llu\ncpu_written %llu\n"
			  "nic_read %llu\nnic_written %llu\nhost_read %llu\nhost_written %llu\n",
			  counts.regions, counts.registered, counts.all_regions, counts.refused, counts.cpu_read,
			  counts.cpu_written, counts.nic_read, counts.nic_written, counts.host_read, counts.host_written);
}
static DEVICE_ATTR_RO(counts);
static struct attribute *gpu_attrs[] = {&dev_attr_counts.attr, NULL};
ATTRIBUTE_GROUPS(gpu);

/* pread() and pwrite() stand for the GPU's copy engines. */
static ssize_t gpu_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	struct gpu *gpu = gpu_of(file);
	ssize_t result = simple_read_from_buffer(to, size, offset, gpu->memory, gpu->size);

	if (result > 0)
		atomic64_add(result, &gpu->cpu_read);
	return result;
}

static ssize_t gpu_write(struct file *file, const char __user *from, size_t size, loff_t *offset)
{
	struct gpu *gpu = gpu_of(file);
	ssize_t result = *offset < gpu->size ? simple_write_to_buffer(gpu->memory, gpu->size, offset, from, size) : -ENOSPC;

	if (result > 0)
		atomic64_add(result, &gpu->cpu_written);
	return result;
}

static loff_t gpu_seek(struct file *file, loff_t offset, int whence)
{
	return fixed_size_llseek(file, offset, whence, gpu_of(file)->size);
}

/* First fit: finds the range after which a new one fits, and the new one's offset. */
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

/* Frees all that `file` allocated, or only the range that starts at `offset`. Returns the number of ranges freed. */
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
	case GDR_GPU_COUNTS:
		return gpu_counts(gpu, user);
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
	.read = gpu_read,
	.write = gpu_write,
	.llseek = gpu_seek,
	.mmap = gpu_mmap,
	.unlocked_ioctl = gpu_ioctl,
	.release = gpu_release,
};

struct gpu *gpu_behind(struct file *file)
{
	return file && file->f_op == &gpu_operations ? gpu_of(file) : NULL;
}

static int index_of(struct pci_dev *function)
{
	struct pci_dev *port = pci_upstream_bridge(function);
	unsigned int i, place;
	u32 capabilities = 0;

	if (!port || pcie_capability_read_dword(port, PCI_EXP_SLTCAP, &capabilities))
		return -ENODEV;
	place = ((capabilities & PCI_EXP_SLTCAP_PSN) >> 19) * 8 + PCI_FUNC(function->devfn);
	for (i = 0; place && i < MAX_GPUS; i++)
		if (gpu_settings[i].place == place)
			return i;
	return -ENODEV;
}

static int gpu_probe(struct pci_dev *function, const struct pci_device_id *id)
{
	struct gpu *gpu;
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
	gpu->window = gpu_settings[index].window;
	gpu->needs_peermem = gpu_settings[index].needs_peermem;
	gpu->start = pci_resource_start(function, GPU_BAR);
	gpu->size = pci_resource_len(function, GPU_BAR);
	mutex_init(&gpu->lock);
	INIT_LIST_HEAD(&gpu->ranges);

	gpu->pages.type = MEMORY_DEVICE_GENERIC;
	gpu->pages.range.start = gpu->start;
	gpu->pages.range.end = gpu->start + gpu->size - 1;
	gpu->pages.nr_range = 1;
	gpu->memory = devm_memremap_pages(&function->dev, &gpu->pages);
	if (IS_ERR(gpu->memory)) {
		dev_err(&function->dev, "gpu%d: no pages for its BAR of %llu bytes: %ld\n", index, (u64)gpu->size,
			PTR_ERR(gpu->memory));
		return PTR_ERR(gpu->memory);
	}

	snprintf(gpu->name, sizeof(gpu->name), "gdr-gpu%d", index);
	gpu->device.minor = MISC_DYNAMIC_MINOR;
	gpu->device.name = gpu->name;
	gpu->device.fops = &gpu_operations;
	gpu->device.mode = 0666;
	gpu->device.parent = &function->dev;
	gpu->device.groups = gpu_groups;
	pci_set_drvdata(function, gpu);
	return misc_register(&gpu->device);
}

static void gpu_remove(struct pci_dev *function)
{
	struct gpu *gpu = pci_get_drvdata(function);

	misc_deregister(&gpu->device);
}

/* A GPU is recognised by its place, since gdr_pci_overlay changes the IDs. */
static const struct pci_device_id gpu_ids[] = {
	{PCI_DEVICE(PCI_ANY_ID, PCI_ANY_ID)},
	{},
};

static struct pci_driver gpu_driver = {
	.name = "gdr_fakegpu",
	.id_table = gpu_ids,
	.probe = gpu_probe,
	.remove = gpu_remove,
	/* Forbid unbinding, so that a GPU disappears only with the module, which cannot be unloaded while its memory is in use. */
	.driver.suppress_bind_attrs = true,
};

static int take_line(const char *line)
{
	struct gpu_setting setting;
	unsigned int number;

	if (!strncmp(line, "#refuse ", 8))
		return add_refusal(line + 8, true);
	if (!strncmp(line, "#nic ", 5))
		return add_nic_rate(line + 5);
	if (strncmp(line, "#gpu ", 5))
		return 0;
	if (sscanf(line, "#gpu %u %u %llu %u", &number, &setting.place, &setting.window, &setting.needs_peermem) != 4 ||
	    number >= MAX_GPUS)
		return -EINVAL;
	gpu_settings[number] = setting;
	return 0;
}

static int __init fakegpu_start(void)
{
	int error = for_each_setting(settings, take_line);

	error = error ?: pci_register_driver(&gpu_driver);
	if (error)
		return error;
	error = start_registration();
	if (error)
		pci_unregister_driver(&gpu_driver);
	return error;
}

static void __exit fakegpu_stop(void)
{
	stop_registration();
	pci_unregister_driver(&gpu_driver);
}

module_init(fakegpu_start);
module_exit(fakegpu_stop);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Fake GPUs of the gdr testbed: ivshmem BARs that RDMA can register");
