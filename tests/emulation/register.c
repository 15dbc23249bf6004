// Registers memory of /dev/gdr-gpu0 as an unmodified program would: register DEVICE BYTES TIMES.
// Prints how often it worked, the first refusal, and the module's counts.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>

#include "gdr_gpu.h"

static struct ibv_context* open_device(const char* name) {
  int count;
  struct ibv_device** devices = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i)
    if (strcmp(ibv_get_device_name(devices[i]), name) == 0) return ibv_open_device(devices[i]);
  return NULL;
}

int main(int argc, char** argv) {
  enum { most = 64 };
  if (argc != 4) return 2;
  const size_t bytes = strtoull(argv[2], NULL, 10);
  const int times = atoi(argv[3]);
  struct ibv_context* context = open_device(argv[1]);
  struct ibv_pd* domain = context ? ibv_alloc_pd(context) : NULL;
  const int gpu = open("/dev/gdr-gpu0", O_RDWR);
  char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, gpu, 0);
  if (domain == NULL || gpu < 0 || memory == MAP_FAILED || times > most) return 3;
  // DMA-BUF first: what NCCL's probe asks.
  errno = 0;
  const int dmabuf = ibv_reg_dmabuf_mr(domain, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE) == NULL ? errno : 0;

  struct ibv_mr* regions[most];
  int made = 0;
  errno = 0;
  while (made < times && (regions[made] = ibv_reg_mr(domain, memory, bytes, IBV_ACCESS_LOCAL_WRITE)) != NULL) ++made;
  const int refused = made < times ? errno : 0;
  struct gdr_gpu_counts counts;
  struct gdr_gpu_query before, after;
  if (ioctl(gpu, GDR_GPU_COUNTS, &counts) != 0 || ioctl(gpu, GDR_GPU_QUERY, &before) != 0) return 4;
  for (int i = 0; i < made; ++i)
    if (ibv_dereg_mr(regions[i]) != 0) return 5;
  if (ioctl(gpu, GDR_GPU_QUERY, &after) != 0) return 6;
  printf("%s made %d errno %d dmabuf %d regions %llu registered %llu window %llu left %llu then %llu\n", argv[1], made, refused,
         dmabuf, counts.regions, counts.registered, before.window_size, before.window_left, after.window_left);
  return 0;
}
