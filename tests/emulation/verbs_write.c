// One-byte RDMA writes between two hosts, one after another.
//   verbs_write server
//   verbs_write client SERVER rc|uc TIMEOUT RETRY_COUNT WRITES
// Connected by TCP over the management network. With rc the client prints the first write that fails and how long it took to fail;
// with uc the server prints which writes did not come.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { port = 7471, most_writes = 4096, gid_index = 1, first_psn = 1000 };

struct end {
  uint32_t qp, rkey, is_uc;
  uint64_t address;
  union ibv_gid gid;
};

static void need(int holds, const char* what) {
  if (holds) return;
  perror(what);
  exit(2);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int serve(void) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  need(bind(listener, (struct sockaddr*)&any, sizeof any) == 0 && listen(listener, 1) == 0, "listen");
  const int peer = accept(listener, NULL, NULL);
  need(peer >= 0, "accept");
  close(listener);
  return peer;
}

static int reach(const char* server) {
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
  need(getaddrinfo(server, "7471", &hints, &found) == 0, server);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int peer = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(peer, found->ai_addr, found->ai_addrlen) == 0) return peer;
    close(peer);
    usleep(100000);
  }
  need(0, "connect");
  return -1;
}

static struct ibv_context* open_rxe0(void) {
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i)
    if (strcmp(ibv_get_device_name(devices[i]), "rxe0") == 0) return ibv_open_device(devices[i]);
  return NULL;
}

static void connect_qp(struct ibv_qp* qp, int is_uc, const struct end* far, int timeout, int retry) {
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  need(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = far->qp, .rq_psn = first_psn,
                            .max_dest_rd_atomic = 1, .min_rnr_timer = 12};
  rtr.ah_attr.is_global = 1;
  rtr.ah_attr.port_num = 1;
  rtr.ah_attr.grh.dgid = far->gid;
  rtr.ah_attr.grh.sgid_index = gid_index;
  rtr.ah_attr.grh.hop_limit = 4;
  const int common = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  need(ibv_modify_qp(qp, &rtr, is_uc ? common : common | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .sq_psn = first_psn, .timeout = (uint8_t)timeout, .retry_cnt = (uint8_t)retry,
                            .rnr_retry = 7, .max_rd_atomic = 1};
  need(ibv_modify_qp(qp, &rts,
                     is_uc ? IBV_QP_STATE | IBV_QP_SQ_PSN
                           : IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                 IBV_QP_MAX_QP_RD_ATOMIC) == 0,
       "RTS");
}

static enum ibv_wc_status write_byte(struct ibv_qp* qp, struct ibv_cq* cq, struct ibv_mr* mr, const struct end* far, int number) {
  struct ibv_sge source = {.addr = (uintptr_t)mr->addr + (unsigned)number, .length = 1, .lkey = mr->lkey};
  struct ibv_send_wr write = {.sg_list = &source, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
  write.wr.rdma.remote_addr = far->address + (unsigned)number;
  write.wr.rdma.rkey = far->rkey;
  need(ibv_post_send(qp, &write, &bad) == 0, "ibv_post_send");
  struct ibv_wc done;
  while (ibv_poll_cq(cq, 1, &done) == 0) usleep(100);
  return done.status;
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const int is_client = argc == 7 && strcmp(argv[1], "client") == 0;
  if (!is_client && argc != 2) return 2;
  const int peer = is_client ? reach(argv[2]) : serve();
  struct end mine = {.is_uc = is_client && strcmp(argv[3], "uc") == 0}, far;
  const int writes = is_client ? atoi(argv[6]) : 0;
  static unsigned char memory[most_writes];
  memset(memory, is_client, sizeof memory);

  // The client first sends the type of queue pair.
  need(is_client ? write(peer, &mine.is_uc, 4) == 4 : recv(peer, &mine.is_uc, 4, MSG_WAITALL) == 4, "exchange");
  struct ibv_context* device = open_rxe0();
  need(device != NULL, "rxe0");
  struct ibv_pd* pd = ibv_alloc_pd(device);
  struct ibv_cq* cq = ibv_create_cq(device, 64, NULL, NULL, 0);
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  struct ibv_qp_init_attr make = {.send_cq = cq, .recv_cq = cq, .qp_type = mine.is_uc ? IBV_QPT_UC : IBV_QPT_RC,
                                  .cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  struct ibv_qp* qp = ibv_create_qp(pd, &make);
  need(mr != NULL && qp != NULL && ibv_query_gid(device, 1, gid_index, &mine.gid) == 0, "verbs");
  mine.qp = qp->qp_num;
  mine.rkey = mr->rkey;
  mine.address = (uintptr_t)memory;
  need(write(peer, &mine, sizeof mine) == sizeof mine && recv(peer, &far, sizeof far, MSG_WAITALL) == sizeof far, "exchange");
  connect_qp(qp, (int)mine.is_uc, &far, is_client ? atoi(argv[4]) : 14, is_client ? atoi(argv[5]) : 7);
  char byte = 1;
  need(write(peer, &byte, 1) == 1 && recv(peer, &byte, 1, MSG_WAITALL) == 1, "exchange");

  if (!is_client) {
    int sent = 0;
    need(recv(peer, &sent, sizeof sent, MSG_WAITALL) == sizeof sent, "end");
    usleep(500000);
    printf("missing:");
    for (int i = 0; i < sent; ++i)
      if (memory[i] != 1) printf(" %d", i);
    printf("\n");
    return 0;
  }
  int sent = 0, failed = 0;
  for (; sent < writes && !failed; ++sent) {
    const double start = now();
    const enum ibv_wc_status status = write_byte(qp, cq, mr, &far, sent);
    failed = status != IBV_WC_SUCCESS;
    if (failed) printf("write %d failed: status %d after %.0f ms\n", sent, status, (now() - start) * 1e3);
  }
  need(write(peer, &sent, sizeof sent) == sizeof sent, "end");
  if (!failed) printf("%d writes done\n", sent);
  return 0;
}
