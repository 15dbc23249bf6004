// SPDX-License-Identifier: GPL-2.0
/*
 * All bytes that rdma_rxe moves pass rxe_mr_copy(region, iova, address, length, direction). When it reads, `address` is where the
 * packet that it is building gets its payload, and that packet's headers stand in front of it already. A reliable connection numbers
 * its packets: each one that is new has the next number (PSN), and each one that is built again, whether it was lost on its way or
 * dropped before it left the guest, has a number that it had before. So a read is a repeated one exactly if the packet's PSN is not
 * beyond all those that its queue pair has built packets for. What bytes of memory are read says nothing: two messages may well
 * send the same ones.
 *
 * Requests and responses of a queue pair have numbers of their own: those of the data that it returns to the peer's reads are the
 * peer's. Unreliable services repeat nothing.
 */
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/kprobes.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/udp.h>
#include <net/ipv6.h>
#include <rdma/ib_pack.h>

#include "nic_traffic.h"

#define ROCE_PORT 4791
#define PSN_BITS 24
#define BTH_BYTES 12
#define RETH_BYTES 16
#define SHORT_HEADER_BYTES 4 /* AETH, immediate data, a key to invalidate */
#define ICRC_BYTES 4
#define HEADERS_BYTES (sizeof(struct ipv6hdr) + sizeof(struct udphdr) + BTH_BYTES + RETH_BYTES + SHORT_HEADER_BYTES)

struct nic_traffic host_traffic;

static LIST_HEAD(regions);
static LIST_HEAD(queue_pairs);
static DEFINE_SPINLOCK(lock); /* of both lists; the NIC looks things up in softirqs */

enum { REQUESTS, RESPONSES };

/* A reliable connection, as the packets that it sends show it. */
struct queue_pair {
	struct list_head next;
	struct ib_qp *qp;
	union ib_gid from;
	union ib_gid to;
	u32 peer;	 /* number of the peer's queue pair */
	u32 next_psn[2]; /* beyond all of which packets have been built, of REQUESTS and of RESPONSES */
	/* Of the packet that was built last: how much of its payload is still to come, out of other regions, and where it goes. */
	unsigned int missing;
	unsigned long filled_to;
	bool built_before;
};

/* What the headers of a packet say. */
struct packet {
	union ib_gid from;
	union ib_gid to;
	u32 peer;
	u32 psn;
	int kind;
	unsigned int payload; /* bytes */
};

void count_region(struct counted_region *region, struct ib_mr *mr, struct nic_traffic *traffic)
{
	unsigned long flags;

	region->mr = mr;
	region->traffic = traffic;
	spin_lock_irqsave(&lock, flags);
	list_add(&region->next, &regions);
	spin_unlock_irqrestore(&lock, flags);
}

struct counted_region *stop_counting_region(struct ib_mr *mr)
{
	struct counted_region *region, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	list_for_each_entry(region, &regions, next)
		if (region->mr == mr)
			found = region;
	if (found)
		list_del(&found->next);
	spin_unlock_irqrestore(&lock, flags);
	return found;
}

static struct queue_pair *find_queue_pair(struct ib_qp *qp)
{
	struct queue_pair *pair;

	list_for_each_entry(pair, &queue_pairs, next)
		if (pair->qp == qp)
			return pair;
	return NULL;
}

void forget_queue_pair(struct ib_qp *qp)
{
	struct queue_pair *pair;
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	pair = find_queue_pair(qp);
	if (pair)
		list_del(&pair->next);
	spin_unlock_irqrestore(&lock, flags);
	kfree(pair);
}

/* "Ready to receive" names the peer and the first number of its requests, "ready to send" the first of our own. */
int follow_queue_pair(struct ib_qp *qp, const struct ib_qp_attr *attributes, int mask)
{
	const struct ib_global_route *route;
	struct queue_pair *pair;
	unsigned long flags;

	if (qp->qp_type != IB_QPT_RC)
		return 0;
	if ((mask & IB_QP_STATE) && attributes->qp_state == IB_QPS_RESET)
		forget_queue_pair(qp);
	if ((mask & IB_QP_DEST_QPN) && (mask & IB_QP_AV) && (mask & IB_QP_RQ_PSN)) {
		route = rdma_ah_read_grh(&attributes->ah_attr);
		pair = route->sgid_attr ? kzalloc(sizeof(*pair), GFP_KERNEL) : NULL;
		if (!pair)
			return route->sgid_attr ? -ENOMEM : 0;
		forget_queue_pair(qp);
		pair->qp = qp;
		pair->from = route->sgid_attr->gid;
		pair->to = route->dgid;
		pair->peer = attributes->dest_qp_num;
		pair->next_psn[RESPONSES] = attributes->rq_psn;
		spin_lock_irqsave(&lock, flags);
		list_add(&pair->next, &queue_pairs);
		spin_unlock_irqrestore(&lock, flags);
	}
	if (mask & IB_QP_SQ_PSN) {
		spin_lock_irqsave(&lock, flags);
		pair = find_queue_pair(qp);
		if (pair)
			pair->next_psn[REQUESTS] = attributes->sq_psn;
		spin_unlock_irqrestore(&lock, flags);
	}
	return 0;
}

/* Of the transport's headers before the payload, in packets of a reliable connection that have one; 0: no such opcode. */
static unsigned int headers_of(u8 opcode)
{
	switch (opcode) {
	case IB_OPCODE_RC_SEND_FIRST:
	case IB_OPCODE_RC_SEND_MIDDLE:
	case IB_OPCODE_RC_SEND_LAST:
	case IB_OPCODE_RC_SEND_ONLY:
	case IB_OPCODE_RC_RDMA_WRITE_MIDDLE:
	case IB_OPCODE_RC_RDMA_WRITE_LAST:
	case IB_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE:
		return BTH_BYTES;
	case IB_OPCODE_RC_SEND_LAST_WITH_IMMEDIATE:
	case IB_OPCODE_RC_SEND_ONLY_WITH_IMMEDIATE:
	case IB_OPCODE_RC_SEND_LAST_WITH_INVALIDATE:
	case IB_OPCODE_RC_SEND_ONLY_WITH_INVALIDATE:
	case IB_OPCODE_RC_RDMA_WRITE_LAST_WITH_IMMEDIATE:
	case IB_OPCODE_RC_RDMA_READ_RESPONSE_FIRST:
	case IB_OPCODE_RC_RDMA_READ_RESPONSE_LAST:
	case IB_OPCODE_RC_RDMA_READ_RESPONSE_ONLY:
		return BTH_BYTES + SHORT_HEADER_BYTES;
	case IB_OPCODE_RC_RDMA_WRITE_FIRST:
	case IB_OPCODE_RC_RDMA_WRITE_ONLY:
		return BTH_BYTES + RETH_BYTES;
	case IB_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE:
		return BTH_BYTES + RETH_BYTES + SHORT_HEADER_BYTES;
	default:
		return 0;
	}
}

static bool is_response(u8 opcode)
{
	return opcode >= IB_OPCODE_RC_RDMA_READ_RESPONSE_FIRST && opcode <= IB_OPCODE_RC_RDMA_READ_RESPONSE_ONLY;
}

/* Addresses as GIDs: an IPv4 address is one that is mapped into IPv6. */
static bool read_addresses(const u8 *udp, struct packet *packet)
{
	const struct iphdr *v4 = (const struct iphdr *)(udp - sizeof(*v4));
	const struct ipv6hdr *v6 = (const struct ipv6hdr *)(udp - sizeof(*v6));

	if (v4->version == 4 && v4->ihl == 5 && v4->protocol == IPPROTO_UDP) {
		ipv6_addr_set_v4mapped(v4->saddr, (struct in6_addr *)&packet->from);
		ipv6_addr_set_v4mapped(v4->daddr, (struct in6_addr *)&packet->to);
		return true;
	}
	if (v6->version != 6 || v6->nexthdr != IPPROTO_UDP)
		return false;
	memcpy(&packet->from, &v6->saddr, sizeof(packet->from));
	memcpy(&packet->to, &v6->daddr, sizeof(packet->to));
	return true;
}

/* What the packet is whose payload begins at `payload`. False: none begins there, or it is of no reliable connection. */
static bool read_headers(unsigned long payload, struct packet *packet)
{
	static const unsigned int lengths[] = {BTH_BYTES, BTH_BYTES + SHORT_HEADER_BYTES, BTH_BYTES + RETH_BYTES,
					       BTH_BYTES + RETH_BYTES + SHORT_HEADER_BYTES};
	u8 bytes[HEADERS_BYTES];
	unsigned int i;

	if (copy_from_kernel_nofault(bytes, (const void *)(payload - sizeof(bytes)), sizeof(bytes)))
		return false;
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		const u8 *bth = bytes + sizeof(bytes) - lengths[i];
		const struct udphdr *udp = (const struct udphdr *)(bth - sizeof(*udp));

		if (udp->dest != htons(ROCE_PORT) || headers_of(bth[0]) != lengths[i] || !read_addresses((const u8 *)udp, packet))
			continue;
		packet->kind = is_response(bth[0]) ? RESPONSES : REQUESTS;
		packet->peer = bth[5] << 16 | bth[6] << 8 | bth[7];
		packet->psn = bth[9] << 16 | bth[10] << 8 | bth[11];
		packet->payload = ntohs(udp->len) - sizeof(*udp) - lengths[i] - (bth[1] >> 4 & 3) - ICRC_BYTES;
		return true;
	}
	return false;
}

/* The queue pair that sends `packet`. */
static struct queue_pair *sender_of(const struct packet *packet)
{
	struct queue_pair *pair;

	list_for_each_entry(pair, &queue_pairs, next)
		if (pair->peer == packet->peer && !memcmp(&pair->from, &packet->from, sizeof(pair->from)) &&
		    !memcmp(&pair->to, &packet->to, sizeof(pair->to)))
			return pair;
	return NULL;
}

/* Whether what is read to `payload` has been read for the same packet before. */
static bool is_read_again(unsigned long payload, unsigned int length)
{
	struct queue_pair *pair;
	struct packet packet;

	if (!read_headers(payload, &packet)) {
		list_for_each_entry(pair, &queue_pairs, next)
			if (pair->missing && pair->filled_to == payload) {
				pair->missing -= min(length, pair->missing);
				pair->filled_to += length;
				return pair->built_before;
			}
		return false;
	}
	pair = sender_of(&packet);
	if (!pair)
		return false;
	/* Numbers go round: what is less than half of them ahead is new. */
	pair->built_before = (packet.psn - pair->next_psn[packet.kind]) >> (PSN_BITS - 1) & 1;
	if (!pair->built_before)
		pair->next_psn[packet.kind] = packet.psn + 1;
	pair->missing = packet.payload - min(length, packet.payload);
	pair->filled_to = payload + length;
	return pair->built_before;
}

/* rxe's regions begin a little before their struct ib_mr; regions are further apart than this. */
#define MR_HEAD 256

static int count_copy(struct kprobe *probe, struct pt_regs *registers)
{
#ifdef CONFIG_X86_64
	unsigned long rxe_region = registers->di;
	unsigned long payload = registers->dx;
	unsigned int length = registers->cx;
	bool reads = (u32)registers->r8 == 1;
	struct nic_traffic *traffic = &host_traffic;
	struct counted_region *region;
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	list_for_each_entry(region, &regions, next) {
		if ((unsigned long)region->mr - rxe_region >= MR_HEAD)
			continue;
		traffic = region->traffic;
		break;
	}
	/* While it is listed, its GPU stays. */
	if (!reads)
		atomic64_add(length, &traffic->written);
	else if (is_read_again(payload, length))
		atomic64_add(length, &traffic->read_again);
	else
		atomic64_add(length, &traffic->read);
	spin_unlock_irqrestore(&lock, flags);
#endif
	return 0;
}

static struct kprobe copies = {.symbol_name = "rxe_mr_copy", .pre_handler = count_copy};
static bool counting;

void start_counting(void)
{
	counting = !register_kprobe(&copies);
	if (!counting)
		pr_err("gdr: bytes that NICs move are not counted: no rxe_mr_copy\n");
}

void stop_counting(void)
{
	struct queue_pair *pair, *next;

	if (counting)
		unregister_kprobe(&copies);
	list_for_each_entry_safe(pair, next, &queue_pairs, next)
		kfree(pair);
}
