/* Preloaded: fsync and fdatasync fail with EIO while the file $FAIL_WHEN exists, for descriptors whose path
   ends in $FAIL_SUFFIX. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int fd) {
  const char *when = getenv("FAIL_WHEN"), *suffix = getenv("FAIL_SUFFIX");
  char link[64], path[4096];
  if (!when || !suffix || access(when, F_OK) != 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return (size_t)n >= strlen(suffix) && strcmp(path + n - strlen(suffix), suffix) == 0;
}

int fsync(int fd) {
  if (fails(fd)) { errno = EIO; return -1; }
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int fdatasync(int fd) {
  if (fails(fd)) { errno = EIO; return -1; }
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
