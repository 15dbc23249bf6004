/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counts the bytes that rdma_rxe, the guest's NIC, takes out of memory and puts into it. What it takes out once more, because it
 * sends it once more, is counted apart: nic_traffic.c says how it is told.
 */
#ifndef GDR_NIC_TRAFFIC_H
#define GDR_NIC_TRAFFIC_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <rdma/ib_verbs.h>

struct nic_traffic {
	atomic64_t read;       /* each byte of a message once */
	atomic64_t read_again; /* for a packet that was built before */
	atomic64_t written;
};

/* Of all memory regions that are not counted elsewhere. */
extern struct nic_traffic host_traffic;

/* A memory region with counts of its own. */
struct counted_region {
	struct list_head next;
	struct ib_mr *mr;
	struct nic_traffic *traffic;
};
void count_region(struct counted_region *region, struct ib_mr *mr, struct nic_traffic *traffic);
/* The region of `mr`, whose traffic counts as the host's from now on; NULL: it has no counts of its own. */
struct counted_region *stop_counting_region(struct ib_mr *mr);

/* A queue pair is about to be modified. An error: there is no memory to follow its packets in. */
int follow_queue_pair(struct ib_qp *qp, const struct ib_qp_attr *attributes, int mask);
/* The queue pair is about to be destroyed. */
void forget_queue_pair(struct ib_qp *qp);

void start_counting(void);
void stop_counting(void);

#endif
