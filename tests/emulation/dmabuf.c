// The kernel's answer to registering DMA-BUF memory on the first RDMA device, through the function
// by which libibverbs' providers with DMA-BUF support pass it on (rxe's has none): for descriptor
// -1, and for a real DMA-BUF, a buffer of the module vgem.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>

enum { bytes = 4096 };

// Of the kernel's drm.h and drm_mode.h, which libdrm-dev would bring.
struct create_dumb {
  uint32_t height, width, bpp, flags, handle, pitch;
  uint64_t size;
};
struct prime_handle {
  uint32_t handle, flags;
  int32_t fd;
};
#define CREATE_DUMB _IOWR('d', 0xB2, struct create_dumb)
#define PRIME_HANDLE_TO_FD _IOWR('d', 0x2d, struct prime_handle)

static int make_dmabuf(void) {
  const int card = open("/dev/dri/card0", O_RDWR);
  struct create_dumb dumb = {.height = 1, .width = bytes / 4, .bpp = 32};
  struct prime_handle prime = {.flags = O_RDWR | O_CLOEXEC};
  if (card < 0 || ioctl(card, CREATE_DUMB, &dumb) != 0) return -1;
  prime.handle = dumb.handle;
  return ioctl(card, PRIME_HANDLE_TO_FD, &prime) == 0 ? prime.fd : -1;
}

typedef int registration(struct ibv_pd*, uint64_t offset, size_t length, uint64_t iova, int fd, int access, void* verbs_mr);

int main(void) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  struct ibv_context* context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
  struct ibv_pd* domain = context ? ibv_alloc_pd(context) : NULL;
  registration* registers = (registration*)dlsym(RTLD_DEFAULT, "ibv_cmd_reg_dmabuf_mr");
  const int dmabuf = make_dmabuf();
  static uint64_t region[128];  // a struct verbs_mr, which only providers know
  if (domain == NULL || registers == NULL || dmabuf < 0) return 1;
  const int without = registers(domain, 0, bytes, 0, -1, IBV_ACCESS_LOCAL_WRITE, region);
  const int with = registers(domain, 0, bytes, 0, dmabuf, IBV_ACCESS_LOCAL_WRITE, region);
  printf("kernel's answer: %d without, %d with a dma-buf\n", without, with);
  return 0;
}
