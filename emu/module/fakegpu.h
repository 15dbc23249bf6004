/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the files of gdr_fakegpu. */
#ifndef GDR_FAKEGPU_H
#define GDR_FAKEGPU_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include "gdr_gpu.h"

struct gpu {
	unsigned int index;
	resource_size_t start;
	resource_size_t size;
	u64 window; /* bytes that can be registered at a time */
	bool needs_peermem;
	void *memory;
	struct dev_pagemap pages;
	struct miscdevice device;
	char name[16];
	struct mutex lock;	 /* ranges, allocated, counts */
	struct list_head ranges; /* by offset */
	u64 allocated;
	struct gdr_gpu_counts counts; /* the atomic counts below are separate */
	atomic64_t cpu_read, cpu_written, nic_read, nic_written;
};

/* The GPU whose memory `file` represents, or NULL. */
struct gpu *gpu_behind(struct file *file);

/* Bytes that rdma_rxe read from and wrote to memory other than GPU memory. */
extern atomic64_t host_read, host_written;

/* Hooks into verbs, to check registrations of GPU memory. */
int start_registration(void);
/* "NUMBER SPEED WIDTH": the port speed and width that the RDMA device rxeNUMBER reports (enum ib_port_speed, ib_port_width). */
int add_nic_rate(const char *text);
void stop_registration(void);

/* "gpu0-nic1[,after=N][,above=BYTES] [REASON]"; * stands for any number. `fixed` refusals stay when "none" is written. */
int add_refusal(const char *text, bool fixed);
/* Why a registration of `bytes` is refused, or NULL. `reason` has room for MAX_REASON. */
#define MAX_REASON 64
bool is_refused(unsigned int gpu, int nic, u64 bytes, char *reason);
int start_refusals(void);
void stop_refusals(void);

#endif
