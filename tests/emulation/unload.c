// Unloads gdr_fakegpu while memory of /dev/gdr-gpu0 is registered and nothing else holds the
// module: refused until the region is gone. A region of ordinary memory outlives the module. Run
// with nvidia_peermem loaded; both modules are gone after it. Prints the line that fails.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define HOLDS(condition)                                               \
  do {                                                                 \
    if (!(condition)) {                                                \
      printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
      return 1;                                                        \
    }                                                                  \
  } while (0)

static long unload(const char* module) { return syscall(SYS_delete_module, module, O_NONBLOCK); }

int main(void) {
  enum { bytes = 1 << 16 };
  struct ibv_device** devices = ibv_get_device_list(NULL);
  struct ibv_context* context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
  struct ibv_pd* domain = context ? ibv_alloc_pd(context) : NULL;
  const int gpu = open("/dev/gdr-gpu0", O_RDWR);
  char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, gpu, 0);
  char* ordinary = malloc(bytes);
  HOLDS(domain != NULL && memory != MAP_FAILED && ordinary != NULL);
  struct ibv_mr* of_gpu = ibv_reg_mr(domain, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_mr* of_host = ibv_reg_mr(domain, ordinary, bytes, IBV_ACCESS_LOCAL_WRITE);
  HOLDS(of_gpu != NULL && of_host != NULL);
  // nvidia_peermem uses a function of gdr_fakegpu.
  HOLDS(unload("gdr_fakegpu") == -1 && errno == EWOULDBLOCK);
  HOLDS(unload("nvidia_peermem") == 0);
  // The mapping, and the file.
  HOLDS(unload("gdr_fakegpu") == -1 && errno == EWOULDBLOCK);
  HOLDS(munmap(memory, bytes) == 0 && close(gpu) == 0);
  // Only the region is left.
  HOLDS(unload("gdr_fakegpu") == -1 && errno == EWOULDBLOCK);
  HOLDS(ibv_dereg_mr(of_gpu) == 0);
  HOLDS(unload("gdr_fakegpu") == 0 && access("/dev/gdr-gpu0", F_OK) != 0);
  HOLDS(ibv_dereg_mr(of_host) == 0);
  of_host = ibv_reg_mr(domain, ordinary, bytes, IBV_ACCESS_LOCAL_WRITE);
  HOLDS(of_host != NULL && ibv_dereg_mr(of_host) == 0);
  puts("refused while it is registered");
  return 0;
}
