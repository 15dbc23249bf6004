// SPDX-License-Identifier: GPL-2.0
/*
 * Intercepts memory registration and deregistration between verbs and the RDMA devices: finds the GPU that the memory belongs to,
 * refuses what a real machine would refuse, and counts. Programs need no changes.
 */
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "fakegpu.h"

#define GPU_PAGE SZ_64K /* the page size that NVIDIA's driver pins */
#define MAX_SHARES 8

static bool peermem;

void gdr_fakegpu_set_peermem(bool there);
void gdr_fakegpu_set_peermem(bool there)
{
	WRITE_ONCE(peermem, there);
}
EXPORT_SYMBOL_GPL(gdr_fakegpu_set_peermem);

#define MAX_NICS 256
static struct nic_rate {
	unsigned int speed; /* 0: the device's own value */
	unsigned int width;
} nic_rates[MAX_NICS];

int add_nic_rate(const char *text)
{
	struct nic_rate rate;
	unsigned int number;

	if (sscanf(text, "%u %u %u", &number, &rate.speed, &rate.width) != 3 || number >= MAX_NICS || !rate.speed ||
	    rate.speed > 128 || rate.width > 16)
		return -EINVAL;
	nic_rates[number] = rate;
	return 0;
}

/* A device whose operations we replaced. */
struct hooked {
	struct ib_device *device;
	int nic; /* -1: its name has no number */
	bool linked;
	struct ib_mr *(*reg_user_mr)(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access, struct ib_udata *udata);
	int (*dereg_mr)(struct ib_mr *mr, struct ib_udata *udata);
	int (*query_port)(struct ib_device *device, u32 port, struct ib_port_attr *attributes);
};

/* A memory region's share of a GPU's window. */
struct share {
	struct gpu *gpu;
	u64 bytes;
};

struct registration {
	struct list_head next;
	struct ib_mr *mr;
	unsigned int count;
	struct share shares[MAX_SHARES];
};

static LIST_HEAD(registrations);
static DEFINE_SPINLOCK(registrations_lock); /* the NIC looks up registrations in softirqs */

static struct ib_client client;

atomic64_t host_read, host_written;

/* Finds the GPUs whose memory is mapped from start to end. */
static int find_gpus(u64 start, u64 end, struct registration *found)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *area;
	int error = 0;

	found->count = 0;
	if (!mm || end <= start)
		return 0;
	mmap_read_lock(mm);
	for (area = find_vma(mm, start); area && area->vm_start < end; area = find_vma(mm, area->vm_end)) {
		struct gpu *gpu = gpu_behind(area->vm_file);
		u64 base = ((u64)area->vm_pgoff << PAGE_SHIFT) - area->vm_start; /* add to an address to get its offset in the BAR */
		u64 first = max_t(u64, start, area->vm_start) + base;
		u64 last = min_t(u64, end, area->vm_end) + base;

		if (!gpu)
			continue;
		if (found->count == MAX_SHARES) {
			error = -EINVAL;
			break;
		}
		found->shares[found->count].gpu = gpu;
		found->shares[found->count++].bytes = ALIGN(last, GPU_PAGE) - ALIGN_DOWN(first, GPU_PAGE);
	}
	mmap_read_unlock(mm);
	return error;
}

/* Returns the shares of the first `count` GPUs when a registration failed or ended. */
static void give_back(struct registration *registration, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct share *share = &registration->shares[i];

		mutex_lock(&share->gpu->lock);
		share->gpu->counts.registered -= share->bytes;
		share->gpu->counts.regions--;
		mutex_unlock(&share->gpu->lock);
	}
}

/* Takes `share` out of the GPU's window. */
static bool take(const struct share *share, int nic, u64 length)
{
	struct gpu *gpu = share->gpu;
	char reason[MAX_REASON] = "";
	bool refused = true;

	mutex_lock(&gpu->lock);
	if (gpu->needs_peermem && !READ_ONCE(peermem))
		strscpy(reason, "peermem-missing", MAX_REASON);
	else if (share->bytes > gpu->window - gpu->counts.registered)
		snprintf(reason, MAX_REASON, "bar-window-used-up: %llu of %llu bytes left", gpu->window - gpu->counts.registered,
			 gpu->window);
	else
		refused = is_refused(gpu->index, nic, length, reason);
	if (refused) {
		gpu->counts.refused++;
	} else {
		gpu->counts.registered += share->bytes;
		gpu->counts.regions++;
	}
	mutex_unlock(&gpu->lock);
	/* pr_err() reaches the console, where gdr looks for it. */
	if (refused && nic >= 0)
		pr_err("gdr: gpu%u on nic%d refused: %s\n", gpu->index, nic, reason);
	else if (refused)
		pr_err("gdr: gpu%u refused: %s\n", gpu->index, reason);
	return !refused;
}

static void count_registration(const struct registration *registration)
{
	unsigned int i;

	for (i = 0; i < registration->count; i++) {
		mutex_lock(&registration->shares[i].gpu->lock);
		registration->shares[i].gpu->counts.all_regions++;
		mutex_unlock(&registration->shares[i].gpu->lock);
	}
}

static void remember(struct registration *registration)
{
	unsigned long flags;

	spin_lock_irqsave(&registrations_lock, flags);
	list_add(&registration->next, &registrations);
	spin_unlock_irqrestore(&registrations_lock, flags);
}

static struct ib_mr *hooked_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access, struct ib_udata *udata)
{
	struct hooked *hooked = ib_get_client_data(pd->device, &client);
	struct registration *registration = kzalloc(sizeof(*registration), GFP_KERNEL);
	struct ib_mr *mr;
	unsigned int taken;
	int error;

	if (!registration)
		return ERR_PTR(-ENOMEM);
	error = find_gpus(start, start + length, registration);
	for (taken = 0; !error && taken < registration->count; taken++) {
		if (take(&registration->shares[taken], hooked->nic, length))
			continue;
		error = -EFAULT;
		break;
	}
	mr = error ? ERR_PTR(error) : hooked->reg_user_mr(pd, start, length, iova, access, udata);
	if (IS_ERR(mr) || !registration->count) {
		give_back(registration, taken);
		kfree(registration);
		return mr;
	}
	__module_get(THIS_MODULE); /* keep the module while GPU memory is registered */
	registration->mr = mr;
	count_registration(registration);
	remember(registration);
	return mr;
}

static struct registration *forget(struct ib_mr *mr)
{
	struct registration *registration, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&registrations_lock, flags);
	list_for_each_entry(registration, &registrations, next)
		if (registration->mr == mr)
			found = registration;
	if (found)
		list_del(&found->next);
	spin_unlock_irqrestore(&registrations_lock, flags);
	return found;
}

static int hooked_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	struct hooked *hooked = ib_get_client_data(mr->device, &client);
	/* Before the region is freed: another region may get its address at once. */
	struct registration *registration = forget(mr);
	int error = hooked->dereg_mr(mr, udata);

	if (!registration)
		return error;
	if (error) {
		remember(registration);
		return error;
	}
	give_back(registration, registration->count);
	kfree(registration);
	module_put(THIS_MODULE);
	return 0;
}

/* A guest's interfaces report no speed, so rdma_rxe would report its slowest. */
static int hooked_query_port(struct ib_device *device, u32 port, struct ib_port_attr *attributes)
{
	struct hooked *hooked = ib_get_client_data(device, &client);
	const struct nic_rate *rate = &nic_rates[hooked->nic];
	int error = hooked->query_port(device, port, attributes);

	if (!error) {
		attributes->active_speed = rate->speed;
		attributes->active_width = rate->width;
	}
	return error;
}

/* An rxe region begins slightly before its struct ib_mr; regions are farther apart than this. */
#define MR_HEAD 256

/* rxe_mr_copy(region, iova, address, length, direction) is how the NIC moves bytes. */
static int count_copy(struct kprobe *probe, struct pt_regs *registers)
{
#ifdef CONFIG_X86_64
	unsigned long region = registers->di;
	u64 length = (u32)registers->cx;
	bool from_region = (u32)registers->r8 == 1;
	atomic64_t *count = from_region ? &host_read : &host_written;
	struct registration *registration;
	unsigned long flags;

	spin_lock_irqsave(&registrations_lock, flags);
	list_for_each_entry(registration, &registrations, next) {
		if ((unsigned long)registration->mr - region >= MR_HEAD)
			continue;
		count = from_region ? &registration->shares[0].gpu->nic_read : &registration->shares[0].gpu->nic_written;
		break;
	}
	atomic64_add(length, count); /* its GPU stays while it is listed */
	spin_unlock_irqrestore(&registrations_lock, flags);
#endif
	return 0;
}

static struct kprobe copies = {.symbol_name = "rxe_mr_copy", .pre_handler = count_copy};
static bool counting;

/* The number at the end of rxe0. */
static int number_of(const char *name)
{
	size_t length = strlen(name);
	int number;

	while (length && name[length - 1] >= '0' && name[length - 1] <= '9')
		length--;
	return kstrtoint(name + length, 10, &number) ? -1 : number;
}

/* NCCL and hwloc follow the link "device" to an RDMA device's place in the PCI tree; software devices have no such link. */
static bool link_to_function(struct ib_device *device, int nic)
{
	struct device *parent;
	struct net_device *interface;
	char name[IFNAMSIZ];
	bool linked = false;

	snprintf(name, sizeof(name), "nic%d", nic);
	interface = device->dev.parent ? NULL : dev_get_by_name(&init_net, name);
	if (!interface)
		return false;
	for (parent = interface->dev.parent; parent && !dev_is_pci(parent); parent = parent->parent)
		;
	if (parent)
		linked = !sysfs_create_link(&device->dev.kobj, &parent->kobj, "device");
	dev_put(interface);
	return linked;
}

static int hook(struct ib_device *device)
{
	struct hooked *hooked;

	if (!device->ops.reg_user_mr || !device->ops.dereg_mr)
		return -EOPNOTSUPP;
	hooked = kzalloc(sizeof(*hooked), GFP_KERNEL);
	if (!hooked)
		return -ENOMEM;
	hooked->device = device;
	hooked->nic = number_of(dev_name(&device->dev));
	hooked->reg_user_mr = device->ops.reg_user_mr;
	hooked->dereg_mr = device->ops.dereg_mr;
	hooked->query_port = device->ops.query_port;
	hooked->linked = hooked->nic >= 0 && link_to_function(device, hooked->nic);
	ib_set_client_data(device, &client, hooked);
	device->ops.dereg_mr = hooked_dereg_mr;
	device->ops.reg_user_mr = hooked_reg_user_mr;
	if (hooked->nic >= 0 && hooked->nic < MAX_NICS && nic_rates[hooked->nic].speed)
		device->ops.query_port = hooked_query_port;
	return 0;
}

static void unhook(struct ib_device *device, void *data)
{
	struct hooked *hooked = data;

	device->ops.reg_user_mr = hooked->reg_user_mr;
	device->ops.dereg_mr = hooked->dereg_mr;
	device->ops.query_port = hooked->query_port;
	if (hooked->linked)
		sysfs_remove_link(&device->dev.kobj, "device");
	kfree(hooked);
}

static struct ib_client client = {.name = "gdr_fakegpu", .add = hook, .remove = unhook};

int start_registration(void)
{
	int error = start_refusals();

	if (error)
		return error;
	counting = !register_kprobe(&copies);
	if (!counting)
		pr_err("gdr: bytes that NICs move are not counted: no rxe_mr_copy\n");
	error = ib_register_client(&client);
	if (!error)
		return 0;
	if (counting)
		unregister_kprobe(&copies);
	stop_refusals();
	return error;
}

void stop_registration(void)
{
	ib_unregister_client(&client);
	if (counting)
		unregister_kprobe(&copies);
	stop_refusals();
}
