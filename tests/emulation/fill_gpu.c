// Writes the first MiB of /dev/gdr-gpu0.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

int main(void) {
  const int size = 1 << 20, gpu = open("/dev/gdr-gpu0", O_RDWR);
  char* memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, gpu, 0);
  if (memory == MAP_FAILED) return 1;
  memset(memory, 1, size);
  return 0;
}
