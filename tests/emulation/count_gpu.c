// Prints how many bytes NICs took out of and put into /dev/gdr-gpu0.
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "gdr_gpu.h"

int main(void) {
  struct gdr_gpu_counts counts;
  if (ioctl(open("/dev/gdr-gpu0", O_RDWR), GDR_GPU_COUNTS, &counts) != 0) return 1;
  printf("nic_read %llu again %llu nic_written %llu\n", counts.nic_read, counts.nic_read_again, counts.nic_written);
  return 0;
}
