// SPDX-License-Identifier: GPL-2.0
/*
 * Makes QEMU's PCI functions look like the topology's: overlays registers in their config space, so that lspci, /sys and the
 * kernel's P2PDMA rule all see the same values. Lines of the settings file that begin with "#pci " describe the overlay:
 *
 *   #pci WHERE SPACE OFFSET MASK VALUE WRITABLE    a register (32 bits), all numbers hexadecimal
 *   #pci WHERE b BAR SIZE                          the size of a BAR in /sys/.../resource
 *
 * WHERE: dN is the function below the port with slot number N / 8, pN that port itself (of function 0: N is a multiple of 8).
 * SPACE: c config space, p the PCI Express capability, a the ACS capability, t the ATS capability. A function without the
 * capability gets one. Bits in WRITABLE can be written.
 *
 * It cannot be unloaded.
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "settings.h"

#define ADDED_PCIE 0x90 /* unused by QEMU's functions that lack the capability */
#define ADDED_ACS 0xf00
#define ADDED_ATS 0xf10
#define PCIE_SIZE 0x3c

static char *settings = "/run/gdr/guest";
module_param(settings, charp, 0444);
MODULE_PARM_DESC(settings, "file with the lines that begin with #pci");

struct patch {
	struct list_head next;
	u16 offset; /* of a 32-bit register */
	u32 mask;
	u32 value;
	u32 writable;
};

struct function {
	struct list_head next;
	struct list_head patches;
	struct pci_dev *device;
	bool added_pcie;
	resource_size_t bar_sizes[PCI_STD_NUM_BARS];
};

static LIST_HEAD(functions);
static DEFINE_XARRAY(by_address);
static struct pci_ops *real;

static unsigned long address_of(struct pci_bus *bus, unsigned int devfn)
{
	return (unsigned long)bus->number << 8 | devfn;
}

static int overlay_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	struct function *function = xa_load(&by_address, address_of(bus, devfn));
	struct patch *patch;
	int result;

	/* Conventional functions have no extended space, so it has only what we add. */
	if (function && function->added_pcie && where >= PCI_CFG_SPACE_SIZE) {
		*value = 0;
		result = PCIBIOS_SUCCESSFUL;
	} else {
		result = real->read(bus, devfn, where, size, value);
	}
	if (!function || result != PCIBIOS_SUCCESSFUL)
		return result;
	list_for_each_entry(patch, &function->patches, next) {
		int shift = 8 * (where & 3);

		if (patch->offset == (where & ~3))
			*value = (*value & ~(patch->mask >> shift)) | ((patch->value & patch->mask) >> shift);
	}
	if (size < 4)
		*value &= (1U << 8 * size) - 1;
	return result;
}

static int overlay_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct function *function = xa_load(&by_address, address_of(bus, devfn));
	u32 written = size < 4 ? (1U << 8 * size) - 1 : ~0U;
	struct patch *patch;

	if (!function)
		return real->write(bus, devfn, where, size, value);
	list_for_each_entry(patch, &function->patches, next) {
		int shift = 8 * (where & 3);
		u32 kept = patch->writable & (written << shift);

		if (patch->offset == (where & ~3))
			patch->value = (patch->value & ~kept) | ((value << shift) & kept);
	}
	if (function->added_pcie &&
	    (where >= PCI_CFG_SPACE_SIZE || (where >= ADDED_PCIE && where < ADDED_PCIE + PCIE_SIZE)))
		return PCIBIOS_SUCCESSFUL;
	return real->write(bus, devfn, where, size, value);
}

static struct pci_ops overlay = {.read = overlay_read, .write = overlay_write};

static u32 register_at(struct pci_dev *device, int offset)
{
	u32 value = 0;

	real->read(device->bus, device->devfn, offset, 4, &value);
	return value;
}

static int add_patch(struct function *function, u16 offset, u32 mask, u32 value, u32 writable)
{
	struct patch *patch;

	list_for_each_entry(patch, &function->patches, next) {
		if (patch->offset != offset)
			continue;
		patch->value = (patch->value & ~mask) | (value & mask);
		patch->mask |= mask;
		patch->writable |= writable;
		return 0;
	}
	patch = kzalloc(sizeof(*patch), GFP_KERNEL);
	if (!patch)
		return -ENOMEM;
	patch->offset = offset;
	patch->mask = mask;
	patch->value = value & mask;
	patch->writable = writable;
	list_add_tail(&patch->next, &function->patches);
	return 0;
}

/* Reads during set-up, before the functions are in `by_address`. */
static u32 seen_at(struct function *function, int offset)
{
	u32 value = function->added_pcie && offset >= PCI_CFG_SPACE_SIZE ? 0 : register_at(function->device, offset);
	struct patch *patch;

	list_for_each_entry(patch, &function->patches, next)
		if (patch->offset == offset)
			value = (value & ~patch->mask) | patch->value;
	return value;
}

/* Finds the PCI Express capability, or adds one at the head of the capability list. */
static int pcie_capability(struct function *function)
{
	struct pci_dev *device = function->device;
	u32 first;
	int error;

	if (device->pcie_cap)
		return device->pcie_cap;
	function->added_pcie = true;
	first = register_at(device, PCI_COMMAND) >> 16 & PCI_STATUS_CAP_LIST ? register_at(device, PCI_CAPABILITY_LIST) & 0xfc : 0;
	error = add_patch(function, PCI_COMMAND, PCI_STATUS_CAP_LIST << 16, PCI_STATUS_CAP_LIST << 16, 0);
	error = error ?: add_patch(function, PCI_CAPABILITY_LIST, 0xff, ADDED_PCIE, 0);
	/* Version 2, an endpoint, no slot; the rest reads as 0 unless other lines set it. */
	error = error ?: add_patch(function, ADDED_PCIE, ~0U, PCI_CAP_ID_EXP | first << 8 | 2 << 16, 0);
	for (first = 4; !error && first < PCIE_SIZE; first += 4)
		error = add_patch(function, ADDED_PCIE + first, ~0U, 0, 0);
	if (error)
		return error;
	device->pcie_cap = ADDED_PCIE;
	device->pcie_flags_reg = 2;
	device->cfg_size = PCI_CFG_SPACE_EXP_SIZE;
	return device->pcie_cap;
}

/* Finds an extended capability, or adds one at the end of the list. */
static int extended_capability(struct function *function, u16 id, u16 added)
{
	int at = PCI_CFG_SPACE_SIZE;
	int error = pcie_capability(function);
	u32 header;

	if (error < 0)
		return error;
	for (header = seen_at(function, at); header && PCI_EXT_CAP_ID(header) != id && PCI_EXT_CAP_NEXT(header);
	     header = seen_at(function, at))
		at = PCI_EXT_CAP_NEXT(header);
	if (header && PCI_EXT_CAP_ID(header) == id)
		return at;
	if (!header) /* the list is empty: its head has a fixed offset */
		added = at;
	else
		error = add_patch(function, at, 0xfff00000, (u32)added << 20, 0);
	error = error < 0 ? error : add_patch(function, added, ~0U, id | 1 << 16, 0);
	error = error < 0 ? error : add_patch(function, added + 4, ~0U, 0, 0);
	if (!error && id == PCI_EXT_CAP_ID_ACS)
		function->device->acs_cap = added;
	return error < 0 ? error : added;
}

static struct function *function_of(struct pci_dev *device)
{
	struct function *function;

	list_for_each_entry(function, &functions, next)
		if (function->device == device)
			return function;
	function = kzalloc(sizeof(*function), GFP_KERNEL);
	if (!function)
		return NULL;
	function->device = pci_dev_get(device);
	INIT_LIST_HEAD(&function->patches);
	list_add_tail(&function->next, &functions);
	return function;
}

/* Ports by slot number, found once. */
#define MAX_SLOTS 512
static struct pci_dev *ports[MAX_SLOTS];

static void find_ports(void)
{
	struct pci_dev *device = NULL;

	for_each_pci_dev(device) {
		u32 slot = 0;

		if (!pci_is_pcie(device) || !device->subordinate)
			continue;
		if (pci_pcie_type(device) != PCI_EXP_TYPE_ROOT_PORT && pci_pcie_type(device) != PCI_EXP_TYPE_DOWNSTREAM)
			continue;
		pcie_capability_read_dword(device, PCI_EXP_SLTCAP, &slot);
		slot = (slot & PCI_EXP_SLTCAP_PSN) >> 19;
		if (slot && slot < MAX_SLOTS)
			ports[slot] = pci_dev_get(device);
	}
}

static struct pci_dev *device_at(char kind, unsigned int place)
{
	struct pci_dev *port = place / 8 < MAX_SLOTS ? ports[place / 8] : NULL;

	if (!port || kind == 'p')
		return port;
	return pci_get_slot(port->subordinate, PCI_DEVFN(0, place % 8));
}

static int take_line(const char *line)
{
	unsigned int place, offset, mask, value, writable;
	unsigned long long size;
	struct function *function;
	struct pci_dev *device;
	char kind, space;
	int base = 0;

	if (strncmp(line, "#pci ", 5))
		return 0;
	if (sscanf(line, "#pci %c%x %c", &kind, &place, &space) != 3)
		return -EINVAL;
	device = device_at(kind, place);
	if (!device)
		return -ENODEV;
	function = function_of(device);
	if (!function)
		return -ENOMEM;
	if (space == 'b') {
		if (sscanf(line, "#pci %*c%*x %*c %x %llx", &offset, &size) != 2 || offset >= PCI_STD_NUM_BARS)
			return -EINVAL;
		function->bar_sizes[offset] = size;
		return 0;
	}
	if (sscanf(line, "#pci %*c%*x %*c %x %x %x %x", &offset, &mask, &value, &writable) != 4)
		return -EINVAL;
	if (space == 'p')
		base = pcie_capability(function);
	else if (space == 'a')
		base = extended_capability(function, PCI_EXT_CAP_ID_ACS, ADDED_ACS);
	else if (space == 't')
		base = extended_capability(function, PCI_EXT_CAP_ID_ATS, ADDED_ATS);
	if (base < 0)
		return base;
	return add_patch(function, base + offset, mask, value, writable);
}

static ssize_t resource_show(struct device *dev, struct device_attribute *attribute, char *buffer)
{
	struct pci_dev *device = to_pci_dev(dev);
	struct function *function = xa_load(&by_address, address_of(device->bus, device->devfn));
	int count = device->subordinate ? PCI_NUM_RESOURCES : PCI_BRIDGE_RESOURCES;
	ssize_t length = 0;
	int i;

	for (i = 0; i < count; i++) {
		resource_size_t start = device->resource[i].start, end = device->resource[i].end;

		if (function && i < PCI_STD_NUM_BARS && function->bar_sizes[i])
			end = start + function->bar_sizes[i] - 1;
		length += sysfs_emit_at(buffer, length, "0x%016llx 0x%016llx 0x%016llx\n", (u64)start, (u64)end,
					(u64)device->resource[i].flags);
	}
	return length;
}
static DEVICE_ATTR_RO(resource);

static bool has_bar_sizes(const struct function *function)
{
	int i;

	for (i = 0; i < PCI_STD_NUM_BARS; i++)
		if (function->bar_sizes[i])
			return true;
	return false;
}

/* Updates the kernel's copies of some registers, and the sysfs files that depend on capabilities. */
static void show(struct function *function)
{
	struct pci_dev *device = function->device;
	u32 class;

	pci_read_config_word(device, PCI_VENDOR_ID, &device->vendor);
	pci_read_config_word(device, PCI_DEVICE_ID, &device->device);
	pci_read_config_dword(device, PCI_CLASS_REVISION, &class);
	device->class = class >> 8;
	device->revision = class & 0xff;
	if (device->hdr_type == PCI_HEADER_TYPE_NORMAL) {
		pci_read_config_word(device, PCI_SUBSYSTEM_VENDOR_ID, &device->subsystem_vendor);
		pci_read_config_word(device, PCI_SUBSYSTEM_ID, &device->subsystem_device);
	}
	if (function->added_pcie && (sysfs_update_groups(&device->dev.kobj, device->dev.type->groups) ||
				     sysfs_update_groups(&device->dev.kobj, device->dev.bus->dev_groups)))
		pci_err(device, "gdr: its files for PCI Express are not there\n");
	if (has_bar_sizes(function)) {
		device_remove_file(&device->dev, &dev_attr_resource);
		if (device_create_file(&device->dev, &dev_attr_resource))
			pci_err(device, "gdr: its file resource is gone\n");
	}
}

static int __init overlay_start(void)
{
	struct function *function;
	struct pci_bus *root = NULL;
	int error;

	while ((root = pci_find_next_bus(root)) && !real)
		real = root->ops;
	if (!real)
		return -ENODEV;
	find_ports();
	error = for_each_setting(settings, take_line);
	if (error)
		return error;
	list_for_each_entry(function, &functions, next) {
		struct pci_bus *bus = function->device->bus;

		error = xa_err(xa_store(&by_address, address_of(bus, function->device->devfn), function, GFP_KERNEL));
		if (error)
			return error;
		if (bus->ops == real)
			pci_bus_set_ops(bus, &overlay);
	}
	list_for_each_entry(function, &functions, next)
		show(function);
	return 0;
}
module_init(overlay_start);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("The gdr testbed's PCI functions, as their topology says that they are");
