/* os_posix.c - Linux, macOS, Android, iOS.
 *
 * Not here: Windows (a file of its own when it comes). */
#define _GNU_SOURCE
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include "base/error.h"
#include "base/limits.h"

/* ---- files -------------------------------------------------------------------------------------------------------- */

static const char *os_why(int code, char *buffer, size_t cap) {
#if defined(__GLIBC__)
    return strerror_r(code, buffer, cap);
#else
    return strerror_r(code, buffer, cap) == 0 ? buffer : "unknown error";
#endif
}

sl_status sl_os_open(const char *path, bool direct, sl_os_file *file, sl_error *err) {
    char buffer[128];
    int fd = -1;
    bool got_direct = false;
#if defined(O_DIRECT)
    if (direct) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
        got_direct = fd >= 0;
    }
#endif
    if (fd < 0) {
        /* O_NONBLOCK: opening a FIFO must not hang; it has no effect on regular files. */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    if (fd < 0) {
        const int code = errno;
        if (code == ENOENT || code == ENOTDIR) {
            return SL_FAIL(err, SL_ENOTFOUND, "%s: no such file", path);
        }
        return SL_FAIL(err, SL_EIO, "%s: cannot open: %s", path,
                       os_why(code, buffer, sizeof buffer));
    }
    struct stat info;
    if (fstat(fd, &info) != 0) {
        const int code = errno;
        (void)close(fd);
        return SL_FAIL(err, SL_EIO, "%s: cannot stat: %s", path,
                       os_why(code, buffer, sizeof buffer));
    }
    if (!S_ISREG(info.st_mode)) {
        (void)close(fd);
        return SL_FAIL(err, SL_EINVAL, "%s: %s, a model file is needed", path,
                       S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file");
    }
#if defined(F_NOCACHE)
    if (direct) {
        got_direct = fcntl(fd, F_NOCACHE, 1) == 0;
    }
#endif
    *file = (sl_os_file){.fd = fd, .size_bytes = (uint64_t)info.st_size, .direct = got_direct};
    return SL_OK;
}

void sl_os_close(sl_os_file *file) {
    if (file->fd >= 0) {
        (void)close(file->fd);
        file->fd = -1;
    }
}

sl_status sl_os_read(const sl_os_file *file, uint64_t offset, void *dst, size_t size, size_t *n_out,
                     const char *path, sl_error *err) {
    size_t done = 0;
    while (done < size) {
        /* One call moves at most 1 GiB: some systems fail on more than 2 GiB. */
        const size_t want = size - done < ((size_t)1 << 30) ? size - done : ((size_t)1 << 30);
        const ssize_t got = pread(file->fd, (uint8_t *)dst + done, want, (off_t)(offset + done));
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            char buffer[128];
            return SL_FAIL(err, SL_EIO, "%s: reading %zu bytes at %llu failed: %s", path, want,
                           (unsigned long long)(offset + done),
                           os_why(errno, buffer, sizeof buffer));
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
        if (file->direct && (size_t)got % SL_OS_DIRECT_ALIGN != 0) {
            break; /* the file's end: going on from an unaligned offset would be refused */
        }
    }
    if (n_out != NULL) {
        *n_out = done;
    } else if (done != size) {
        return SL_FAIL(err, SL_EIO, "%s: the file ends at %llu, %zu bytes at %llu were expected",
                       path, (unsigned long long)(offset + done), size, (unsigned long long)offset);
    }
    return SL_OK;
}

sl_status sl_os_map_file(const sl_os_file *file, const void **out, const char *path,
                         sl_error *err) {
    if (file->size_bytes == 0) {
        *out = NULL;
        return SL_OK;
    }
    if (file->size_bytes > SIZE_MAX) {
        return SL_FAIL(err, SL_ENOMEM,
                       "%s: %llu bytes are more than this machine can map; use the direct store",
                       path, (unsigned long long)file->size_bytes);
    }
    void *p = mmap(NULL, (size_t)file->size_bytes, PROT_READ, MAP_SHARED, file->fd, 0);
    if (p == MAP_FAILED) {
        char buffer[128];
        return SL_FAIL(err, SL_EIO, "%s: cannot map: %s", path,
                       os_why(errno, buffer, sizeof buffer));
    }
    *out = p;
    return SL_OK;
}

void sl_os_unmap_file(const void *p, uint64_t size) {
    if (p != NULL) {
        (void)munmap((void *)(uintptr_t)p, (size_t)size);
    }
}

bool sl_os_file_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

#define OS_HUGE ((size_t)2 << 20)

/* Map `size` rounded up to whole huge pages, cut to a huge-page boundary, so that the kernel can back all of it. */
void *sl_os_map_anonymous(size_t size) {
    const size_t whole = (size + OS_HUGE - 1) / OS_HUGE * OS_HUGE;
    uint8_t *raw =
        mmap(NULL, whole + OS_HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) {
        return NULL;
    }
    const size_t skip = (OS_HUGE - ((uintptr_t)raw & (OS_HUGE - 1))) & (OS_HUGE - 1);
    if (skip != 0) {
        (void)munmap(raw, skip);
    }
    if (skip != OS_HUGE) {
        (void)munmap(raw + skip + whole, OS_HUGE - skip);
    }
#if defined(MADV_HUGEPAGE)
    (void)madvise(raw + skip, size / OS_HUGE * OS_HUGE,
                  MADV_HUGEPAGE); /* not the part page: it would round the size up */
#endif
    return raw + skip;
}

void sl_os_unmap_anonymous(void *p, size_t size) {
    (void)munmap(p, (size + OS_HUGE - 1) / OS_HUGE * OS_HUGE);
}

size_t sl_os_ram_bytes(void) {
    const long n = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return n > 0 && page > 0 ? (size_t)n * (size_t)page : 0;
}

/* ---- threads ------------------------------------------------------------------------------------------------------ */

typedef struct os_start {
    void (*run)(void *);
    void *arg;
} os_start;

_Static_assert(sizeof(pthread_t) <= sizeof(sl_os_thread), "sl_os_thread is too small");
_Static_assert(sizeof(pthread_mutex_t) <= sizeof(sl_os_mutex), "sl_os_mutex is too small");
_Static_assert(sizeof(pthread_cond_t) <= sizeof(sl_os_cond), "sl_os_cond is too small");

/* A thread's entry needs two words; they are handed over through this small record, guarded by its own handshake, so
 * that starting a thread needs no heap. */
typedef struct os_handover {
    os_start start;
    pthread_mutex_t lock;
    pthread_cond_t taken;
    bool done;
} os_handover;

static void *os_thread_main(void *p) {
    os_handover *handover = p;
    const os_start start = handover->start;
    pthread_mutex_lock(&handover->lock);
    handover->done = true;
    pthread_cond_signal(&handover->taken);
    pthread_mutex_unlock(&handover->lock);
    start.run(start.arg);
    return NULL;
}

sl_status sl_os_thread_start(sl_os_thread *thread, void (*run)(void *), void *arg, sl_error *err) {
    os_handover handover = {.start = {run, arg},
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .taken = PTHREAD_COND_INITIALIZER,
                            .done = false};
    pthread_attr_t attr;
    pthread_t id;
    int code = pthread_attr_init(&attr);
    if (code == 0) {
        (void)pthread_attr_setstacksize(&attr, SL_STACK_BYTES);
        code = pthread_create(&id, &attr, os_thread_main, &handover);
        (void)pthread_attr_destroy(&attr);
    }
    if (code != 0) {
        char buffer[128];
        return SL_FAIL(err, SL_ENOMEM, "cannot start a thread: %s; fewer threads may help",
                       os_why(code, buffer, sizeof buffer));
    }
    pthread_mutex_lock(&handover.lock);
    while (!handover.done) {
        pthread_cond_wait(&handover.taken, &handover.lock);
    }
    pthread_mutex_unlock(&handover.lock);
    pthread_mutex_destroy(&handover.lock);
    pthread_cond_destroy(&handover.taken);
    memcpy(thread->opaque, &id, sizeof id);
    return SL_OK;
}

void sl_os_thread_join(sl_os_thread *thread) {
    pthread_t id;
    memcpy(&id, thread->opaque, sizeof id);
    (void)pthread_join(id, NULL);
}

static sl_status os_sync_status(int code, sl_error *err) {
    return code == 0 ? SL_OK : SL_FAIL(err, SL_ENOMEM, "the system gave no lock");
}

sl_status sl_os_mutex_init(sl_os_mutex *m, sl_error *err) {
    return os_sync_status(pthread_mutex_init((pthread_mutex_t *)m, NULL), err);
}
void sl_os_mutex_done(sl_os_mutex *m) { (void)pthread_mutex_destroy((pthread_mutex_t *)m); }
void sl_os_mutex_lock(sl_os_mutex *m) { (void)pthread_mutex_lock((pthread_mutex_t *)m); }
void sl_os_mutex_unlock(sl_os_mutex *m) { (void)pthread_mutex_unlock((pthread_mutex_t *)m); }
sl_status sl_os_cond_init(sl_os_cond *c, sl_error *err) {
    return os_sync_status(pthread_cond_init((pthread_cond_t *)c, NULL), err);
}
void sl_os_cond_done(sl_os_cond *c) { (void)pthread_cond_destroy((pthread_cond_t *)c); }
void sl_os_cond_wait(sl_os_cond *c, sl_os_mutex *m) {
    (void)pthread_cond_wait((pthread_cond_t *)c, (pthread_mutex_t *)m);
}
void sl_os_cond_wake_all(sl_os_cond *c) { (void)pthread_cond_broadcast((pthread_cond_t *)c); }

void sl_os_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
    __asm__ volatile("yield");
#endif
}

/* ---- cores -------------------------------------------------------------------------------------------------------- */

/* The first line of a small text file into buffer; false if there is none. */
static bool os_read_line(const char *path, char *buffer, size_t cap) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    const ssize_t n = read(fd, buffer, cap - 1);
    (void)close(fd);
    if (n <= 0) {
        return false;
    }
    buffer[n] = '\0';
    char *end = strchr(buffer, '\n');
    if (end != NULL) {
        *end = '\0';
    }
    return true;
}

#if defined(__linux__)
/* Quota of one cgroup v2 folder in cores, 0: none. The file holds "max 100000" or "150000 100000". */
static double os_quota_of(const char *folder) {
    char path[4400], line[128];
    (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
    if (!os_read_line(path, line, sizeof line) || strncmp(line, "max", 3) == 0) {
        return 0;
    }
    char *rest;
    const double quota = strtod(line, &rest);
    const double period = strtod(rest, NULL);
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* The smallest quota from our own control group up to the root; cgroup v1 has one pair of files. 0: none. */
static double os_cgroup_quota(void) {
    double least = 0;
    char line[4200];
    if (os_read_line("/proc/self/cgroup", line, sizeof line) && strncmp(line, "0::", 3) == 0) {
        char *folder = line + 3;
        for (;;) {
            const double quota = os_quota_of(strcmp(folder, "/") == 0 ? "" : folder);
            if (quota > 0 && (least <= 0 || quota < least)) {
                least = quota;
            }
            char *slash = strrchr(folder, '/');
            if (slash == NULL || folder[0] == '\0') {
                break;
            }
            *slash = '\0';
        }
    } else {
        char quota[64], period[64];
        if (os_read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof quota) &&
            os_read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period)) {
            const double q = strtod(quota, NULL), p = strtod(period, NULL);
            least = q > 0 && p > 0 ? q / p : 0;
        }
    }
    return least;
}

/* How many of the processors in the set are the first of their core: hyper-threads count once. */
static int os_physical(const cpu_set_t *set) {
    int n = 0;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET((size_t)i, set)) {
            continue;
        }
        char path[128], line[256];
        (void)snprintf(path, sizeof path,
                       "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        if (!os_read_line(path, line, sizeof line)) {
            n++;
            continue;
        }
        /* "0,4" or "0-1": count this one only if no earlier sibling is in our set */
        bool first = true;
        for (char *p = line; *p != '\0' && first;) {
            char *end;
            long a = strtol(p, &end, 10), b = a;
            if (end == p) {
                break;
            }
            if (*end == '-') {
                b = strtol(end + 1, &end, 10);
            }
            for (long k = a; k <= b && k < i; k++) {
                if (k >= 0 && k < CPU_SETSIZE && CPU_ISSET((size_t)k, set)) {
                    first = false;
                }
            }
            p = *end == ',' ? end + 1 : end;
        }
        n += first ? 1 : 0;
    }
    return n;
}
#endif

int32_t sl_os_n_core(void) {
    int n = 0;
#if defined(__linux__)
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        n = os_physical(&set);
    }
    const double quota = os_cgroup_quota();
    if (quota > 0 && quota < n) {
        n = (int)quota;
    }
#endif
    if (n <= 0) {
        n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    }
    return n < 1 ? 1 : (n > SL_MAX_THREADS ? SL_MAX_THREADS : n);
}

uint64_t sl_os_now_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

uint64_t sl_os_random(void) {
    uint64_t value = 0;
    const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        const ssize_t n = read(fd, &value, sizeof value);
        (void)close(fd);
        if (n == (ssize_t)sizeof value) {
            return value;
        }
    }
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u ^ (uint64_t)now.tv_sec ^
           ((uint64_t)getpid() << 32);
}
