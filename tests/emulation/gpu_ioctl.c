// Checks what emu/module/gdr_gpu.h promises, on /dev/gdr-gpu0 of a guest. Prints the line that
// fails.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gdr_gpu.h"

#define HOLDS(condition)                                            \
  do {                                                              \
    if (!(condition)) {                                             \
      printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
      return 1;                                                     \
    }                                                               \
  } while (0)

static uint64_t left(int gpu) {
  struct gdr_gpu_query query;
  memset(&query, 0xff, sizeof query);
  return ioctl(gpu, GDR_GPU_QUERY, &query) == 0 && query.gpu == 0 ? query.memory_left : UINT64_MAX;
}

int main(void) {
  const int gpu = open("/dev/gdr-gpu0", O_RDWR);
  const int other = open("/dev/gdr-gpu0", O_RDWR);
  struct gdr_gpu_query query;
  HOLDS(gpu >= 0 && other >= 0 && ioctl(gpu, GDR_GPU_QUERY, &query) == 0);
  const uint64_t size = query.bar_size;
  HOLDS(size == 256u << 20 && query.memory_left == size);

  struct gdr_gpu_range a = {.size = 5000}, b = {.size = 1 << 20}, c = {.size = 8192}, all = {.size = size};
  HOLDS(ioctl(gpu, GDR_GPU_ALLOCATE, &a) == 0 && a.size == 8192 && a.offset == 0);
  HOLDS(ioctl(other, GDR_GPU_ALLOCATE, &b) == 0 && b.offset == 8192);
  HOLDS(left(gpu) == size - 8192 - (1 << 20));
  HOLDS(ioctl(gpu, GDR_GPU_ALLOCATE, &all) == -1 && errno == ENOSPC);
  // Only the descriptor that allocated a range frees it; the hole is used again.
  HOLDS(ioctl(other, GDR_GPU_FREE, &a) == -1 && errno == EINVAL);
  HOLDS(ioctl(gpu, GDR_GPU_FREE, &a) == 0);
  HOLDS(ioctl(gpu, GDR_GPU_ALLOCATE, &c) == 0 && c.offset == 0);
  struct gdr_gpu_range nothing = {0}, huge = {.size = UINT64_MAX};
  HOLDS(ioctl(gpu, GDR_GPU_ALLOCATE, &nothing) == -1 && errno == EINVAL);
  HOLDS(ioctl(gpu, GDR_GPU_ALLOCATE, &huge) == -1 && errno == ENOSPC);
  HOLDS(ioctl(gpu, _IO('G', 99)) == -1 && errno == ENOTTY);
  // Closing frees.
  HOLDS(close(other) == 0 && left(gpu) == size - 8192);
  HOLDS(ioctl(gpu, GDR_GPU_FREE, &c) == 0 && left(gpu) == size);
  HOLDS(ioctl(gpu, GDR_GPU_ALLOCATE, &all) == 0 && all.offset == 0 && left(gpu) == 0);

  // The last page of the BAR can be mapped, the one after it cannot.
  char* last = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, gpu, (off_t)(size - 4096));
  HOLDS(last != MAP_FAILED);
  memcpy(last, "last page", 9);
  HOLDS(mmap(NULL, 8192, PROT_READ, MAP_SHARED, gpu, (off_t)(size - 4096)) == MAP_FAILED && errno == EINVAL);
  // The K40's window is its BAR without the 32 MiB that the driver keeps. Copies are counted, accesses to a mapping are not.
  char bytes[5000];
  struct gdr_gpu_counts counts;
  memset(bytes, 'x', sizeof bytes);
  HOLDS(query.window_size == 224u << 20 && query.window_left == query.window_size);
  HOLDS(pwrite(gpu, bytes, sizeof bytes, (off_t)(size - sizeof bytes)) == (ssize_t)sizeof bytes);
  HOLDS(pwrite(gpu, bytes, 1, (off_t)size) == -1 && errno == ENOSPC);
  HOLDS(pread(gpu, bytes, sizeof bytes, (off_t)(size - 100)) == 100 && bytes[0] == 'x');
  HOLDS(ioctl(gpu, GDR_GPU_COUNTS, &counts) == 0 && counts.cpu_written == 5000 && counts.cpu_read == 100);
  HOLDS(counts.regions == 0 && counts.registered == 0 && counts.all_regions == 0 && counts.refused == 0);
  memcpy(last, "last page", 9);
  puts("all of it holds");
  return 0;
}
