/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/gdr-gpuN, the memory of fake GPU N (topology gpuN) as the guests of `gdr emulate` see it.
 *
 * mmap() at offset X maps bytes [X, X + length) of the GPU's BAR. Any range may be mapped, allocated
 * or not: a program that does not know this interface (ib_write_bw --mmap=/dev/gdr-gpu0) maps from 0.
 * pread() and pwrite() copy, as a GPU's copy engine does, and are counted; accesses to a mapping are
 * not. /sys/class/misc/gdr-gpuN/counts has the counts as text. Programs that allocate by the ioctls
 * below get separate ranges. What was allocated through a descriptor is freed when its last copy is
 * closed.
 */
#ifndef GDR_GPU_H
#define GDR_GPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

struct gdr_gpu_query {
	__u32 gpu;         /* N */
	__u32 reserved;    /* 0 */
	__u64 bar_size;    /* bytes that can be mapped */
	__u64 memory_left; /* bytes of these that are not allocated */
	__u64 window_size; /* bytes that can be registered at a time, in pages of 64 KiB: the topology's BAR */
	__u64 window_left;
};

struct gdr_gpu_range {
	__u64 size;   /* in: bytes; out: rounded up to whole pages */
	__u64 offset; /* ALLOCATE: out; FREE: in; what mmap() takes */
};

/* Since the module was loaded. A region registered twice counts twice, also in the window. */
struct gdr_gpu_counts {
	__u64 regions;     /* memory regions registered now */
	__u64 registered;  /* their bytes, in whole pages of 64 KiB */
	__u64 all_regions; /* all regions ever registered */
	__u64 refused;     /* refused registrations */
	__u64 cpu_read;    /* bytes copied by pread() */
	__u64 cpu_written; /* bytes copied by pwrite() */
	__u64 nic_read;    /* bytes that rdma_rxe read from GPU memory, each message once */
	__u64 nic_read_again; /* bytes read again, for packets built before */
	__u64 nic_written; /* bytes that rdma_rxe wrote into GPU memory */
	/* The same for memory other than GPUs', in the whole guest. */
	__u64 host_read;
	__u64 host_read_again;
	__u64 host_written;
};

#define GDR_GPU_QUERY _IOR('G', 0, struct gdr_gpu_query)
/* EINVAL: size 0; ENOSPC: no hole of that size is left */
#define GDR_GPU_ALLOCATE _IOWR('G', 1, struct gdr_gpu_range)
/* EINVAL: this descriptor allocated nothing at offset; size is ignored */
#define GDR_GPU_FREE _IOW('G', 2, struct gdr_gpu_range)
#define GDR_GPU_COUNTS _IOR('G', 3, struct gdr_gpu_counts)

#endif
