/* os.h - the operating system, and the only door to it.
 *
 * One file a system (os_posix.c, ...); no other file of src/ includes a system header. */
#ifndef SL_BASE_OS_H
#define SL_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice.h"

/* ---- files ---- */

typedef struct sl_os_file {
    int fd;
    uint64_t size_bytes;
    bool direct; /* opened unbuffered */
} sl_os_file;

/* Open for reading. direct: ask for unbuffered reads; where the file system refuses, the file is opened buffered and
 * file->direct says so. SL_ENOTFOUND, SL_EIO (with the system's words), SL_EINVAL (a directory or other non-file). */
sl_status sl_os_open(const char *path, bool direct, sl_os_file *file, sl_error *err);
void sl_os_close(sl_os_file *file);
/* Read exactly size bytes; retries short reads and interruptions. With file->direct, offset, size and dst must be
 * multiples of SL_OS_DIRECT_ALIGN, and a read may end at the file's end: *n_out (may be NULL: then all size bytes are
 * demanded) is what came. SL_EIO. */
#define SL_OS_DIRECT_ALIGN ((size_t)4096)
sl_status sl_os_read(const sl_os_file *file, uint64_t offset, void *dst, size_t size, size_t *n_out,
                     const char *path, sl_error *err);
/* Map the whole file read-only; *out NULL for an empty file. */
sl_status sl_os_map_file(const sl_os_file *file, const void **out, const char *path, sl_error *err);
void sl_os_unmap_file(const void *p, uint64_t size);
bool sl_os_file_exists(const char *path); /* a regular file */

/* ---- memory ---- */

void *sl_os_map_anonymous(
    size_t size); /* zeroed, huge pages where the system has them; NULL on failure */
void sl_os_unmap_anonymous(void *p, size_t size);
size_t sl_os_ram_bytes(void); /* 0: unknown */

/* ---- threads ---- */

typedef struct sl_os_thread {
    uint64_t opaque[2];
} sl_os_thread;
typedef struct sl_os_mutex {
    uint64_t opaque[8];
} sl_os_mutex;
typedef struct sl_os_cond {
    uint64_t opaque[8];
} sl_os_cond;

sl_status sl_os_thread_start(sl_os_thread *thread, void (*run)(void *), void *arg,
                             sl_error *err); /* stack: SL_STACK_BYTES */
void sl_os_thread_join(sl_os_thread *thread);
sl_status sl_os_mutex_init(sl_os_mutex *m, sl_error *err);
void sl_os_mutex_done(sl_os_mutex *m);
void sl_os_mutex_lock(sl_os_mutex *m);
void sl_os_mutex_unlock(sl_os_mutex *m);
sl_status sl_os_cond_init(sl_os_cond *c, sl_error *err);
void sl_os_cond_done(sl_os_cond *c);
void sl_os_cond_wait(sl_os_cond *c, sl_os_mutex *m);
void sl_os_cond_wake_all(sl_os_cond *c);
void sl_os_cpu_relax(void); /* a hint inside a spin loop */

/* Cores that this process may use: min(physical cores, affinity, control-group quota rounded down), at least 1. */
int32_t sl_os_n_core(void);

uint64_t sl_os_now_us(void); /* monotonic */
uint64_t sl_os_random(void); /* for default seeds only */

#endif
