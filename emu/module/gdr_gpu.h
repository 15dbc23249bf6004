/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/gdr-gpuN, the memory of fake GPU N (topology gpuN) as the guests of `gdr emulate` see it.
 *
 * mmap() at offset X maps bytes [X, X + length) of the GPU's BAR. Any range may be mapped, allocated or not: a program that knows
 * nothing of this interface (ib_write_bw --mmap=/dev/gdr-gpu0) maps from 0. The ioctls below keep programs that do know it out of each
 * other's way. What was allocated through a descriptor is freed when its last copy is closed.
 */
#ifndef GDR_GPU_H
#define GDR_GPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

struct gdr_gpu_query {
	__u32 gpu;         /* N */
	__u32 reserved;    /* 0 */
	__u64 bar_size;    /* bytes */
	__u64 window_left; /* bytes of the BAR that are not allocated */
};

struct gdr_gpu_range {
	__u64 size;   /* in: bytes; out: rounded up to whole pages */
	__u64 offset; /* ALLOCATE: out; FREE: in; what mmap() takes */
};

#define GDR_GPU_QUERY _IOR('G', 0, struct gdr_gpu_query)
/* EINVAL: size 0; ENOSPC: no hole of that size is left */
#define GDR_GPU_ALLOCATE _IOWR('G', 1, struct gdr_gpu_range)
/* EINVAL: nothing that this descriptor allocated starts at offset; size is not looked at */
#define GDR_GPU_FREE _IOW('G', 2, struct gdr_gpu_range)

#endif
