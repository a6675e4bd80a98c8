/* To be preloaded: the system's clock is ahead by the nanoseconds in the file that the variable
   CLOCK_SHIFT names, and waits until a time of day go by it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define SLICE 5000000LL

static volatile int64_t *shift;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CLOCK_SHIFT");
  int file = path ? open(path, O_RDONLY) : -1;
  void *found = file < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) shift = found;
}

static int64_t ahead(void) { return shift ? *shift : 0; }

static struct timespec moment(int64_t ns) {
  return (struct timespec){ns / SECOND, ns % SECOND};
}

int clock_gettime(clockid_t clock, struct timespec *found) {
  int code = syscall(SYS_clock_gettime, clock, found);
  if (code == 0 && clock == CLOCK_REALTIME)
    *found = moment(found->tv_sec * SECOND + found->tv_nsec + ahead());
  return code;
}

/* How long is left until a time of day. */
static int64_t left(const struct timespec *until) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (until->tv_sec - now.tv_sec) * SECOND + until->tv_nsec - now.tv_nsec;
}

/* The moment, by the clock as it really is, until which is waited before it is looked again. */
static struct timespec next(int64_t left) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  return moment(now.tv_sec * SECOND + now.tv_nsec + (left < SLICE ? left : SLICE));
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until) {
  int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) =
      dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  for (;;) {
    int64_t now = left(until);
    struct timespec slice = next(now);
    int code = wait(condition, mutex, &slice);
    if (code != ETIMEDOUT || now <= SLICE) return code;
  }
}

/* A Python that was built for a C library before 2.30 knows sem_timedwait alone, and so waits until a
   time of day. With the variable CLOCK_OLD all do. */
int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until) {
  int (*wait)(sem_t *, clockid_t, const struct timespec *) = dlsym(RTLD_NEXT, "sem_clockwait");
  if (!getenv("CLOCK_OLD")) return wait(semaphore, clock, until);
  struct timespec begun, day;
  clock_gettime(clock, &begun);
  clock_gettime(CLOCK_REALTIME, &day);
  day = moment((day.tv_sec + until->tv_sec - begun.tv_sec) * SECOND + day.tv_nsec + until->tv_nsec -
               begun.tv_nsec);
  for (;;) {
    int64_t now = left(&day);
    struct timespec slice = next(now);
    int code = wait(semaphore, CLOCK_REALTIME, &slice);
    if (code == 0 || errno != ETIMEDOUT || now <= SLICE) return code;
  }
}
