/* team.c - see team.h.
 *
 * The barrier is a count of arrivals and a generation number, on cache lines of their own. Whoever arrives last resets
 * the count and the chunk counter and moves the generation; the others watch the generation: for a while by spinning,
 * then asleep on a condition variable. The waker takes the lock only when somebody sleeps: n_sleep is raised before the
 * sleeper looks at the generation again, and read after the generation moved (both sequentially consistent), so one of
 * the two always sees the other. */
#include "base/team.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/os.h"

/* Spinning lasts some tens of microseconds: longer than the skew inside an op, far shorter than a scheduler's tick. With
 * more threads than cores whoever spins keeps the one that he waits for from running: then hardly at all. */
#define TEAM_SPIN 4000
#define TEAM_SPIN_CROWDED 50

typedef struct team_line {
    _Alignas(64) _Atomic uint64_t value;
} team_line;

struct sl_team {
    team_line n_arrived;
    team_line generation; /* of the barrier */
    team_line i_next;     /* next chunk of the current loop */
    team_line n_sleep;
    team_line job; /* generation of the job */
    sl_ledger *ledger;
    int32_t n_thread;
    int32_t n_started;
    int32_t n_spin;
    bool quit;
    void (*fn)(void *arg, sl_member *me);
    void *arg;
    sl_os_mutex lock;
    sl_os_cond wake;
    struct team_worker {
        sl_team *team;
        int32_t i_thread;
        sl_os_thread thread;
    } worker[];
};

static size_t team_bytes(int32_t n_thread) {
    return sizeof(sl_team) + (size_t)n_thread * sizeof(struct team_worker);
}

/* Wait until *word differs from seen. */
static void team_wait(sl_team *team, _Atomic uint64_t *word, uint64_t seen) {
    for (int i = 0; i < team->n_spin; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen) {
            return;
        }
        sl_os_cpu_relax();
    }
    sl_os_mutex_lock(&team->lock);
    atomic_fetch_add(&team->n_sleep.value, 1);
    while (atomic_load(word) == seen) {
        sl_os_cond_wait(&team->wake, &team->lock);
    }
    atomic_fetch_sub(&team->n_sleep.value, 1);
    sl_os_mutex_unlock(&team->lock);
}

static void team_move(sl_team *team, _Atomic uint64_t *word) {
    atomic_fetch_add(word, 1);
    if (atomic_load(&team->n_sleep.value) != 0) {
        sl_os_mutex_lock(&team->lock);
        sl_os_cond_wake_all(&team->wake);
        sl_os_mutex_unlock(&team->lock);
    }
}

void sl_team_meet(sl_member *me) {
    sl_team *team = me->team;
    if (team->n_thread == 1) {
        atomic_store_explicit(&team->i_next.value, 0, memory_order_relaxed);
        return;
    }
    const uint64_t seen = atomic_load(&team->generation.value);
    if (atomic_fetch_add(&team->n_arrived.value, 1) + 1 == (uint64_t)team->n_thread) {
        atomic_store_explicit(&team->n_arrived.value, 0, memory_order_relaxed);
        atomic_store_explicit(&team->i_next.value, 0, memory_order_relaxed);
        team_move(team, &team->generation.value);
    } else {
        team_wait(team, &team->generation.value, seen);
    }
}

bool sl_team_next(sl_member *me, int64_t n_chunk, int64_t *i_chunk) {
    _Atomic uint64_t *next = &me->team->i_next.value;
    if (atomic_load_explicit(next, memory_order_relaxed) >= (uint64_t)n_chunk) {
        return false;
    }
    const uint64_t i = atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
    *i_chunk = (int64_t)i;
    return i < (uint64_t)n_chunk;
}

static void team_worker_run(void *arg) {
    struct team_worker *worker = arg;
    sl_team *team = worker->team;
    uint64_t seen = 0;
    for (;;) {
        team_wait(team, &team->job.value, seen);
        seen++;
        if (team->quit) {
            return;
        }
        sl_member me = {.team = team, .i_thread = worker->i_thread, .n_thread = team->n_thread};
        team->fn(team->arg, &me);
        sl_team_meet(&me); /* nobody leaves before all are done */
    }
}

sl_status sl_team_open(sl_ledger *ledger, int32_t n_thread, sl_team **out, sl_error *err) {
    if (n_thread < 1 || n_thread > SL_MAX_THREADS) {
        return SL_FAIL(err, SL_EINVAL, "threads: %d is outside 1..%d", n_thread, SL_MAX_THREADS);
    }
    void *p;
    SL_TRY(sl_alloc_zero(ledger, SL_ACCOUNT_MISC, 1, team_bytes(n_thread), &p, "worker pool", err));
    sl_team *team = p;
    team->ledger = ledger;
    team->n_thread = n_thread;
    team->n_spin = n_thread <= sl_os_n_core() ? TEAM_SPIN : TEAM_SPIN_CROWDED;
    sl_status status = sl_os_mutex_init(&team->lock, err);
    if (status != SL_OK) {
        sl_release(ledger, SL_ACCOUNT_MISC, team, team_bytes(n_thread));
        return status;
    }
    status = sl_os_cond_init(&team->wake, err);
    if (status != SL_OK) {
        sl_os_mutex_done(&team->lock);
        sl_release(ledger, SL_ACCOUNT_MISC, team, team_bytes(n_thread));
        return status;
    }
    for (int32_t i = 1; i < n_thread; i++) {
        struct team_worker *worker = &team->worker[i];
        worker->team = team;
        worker->i_thread = i;
        status = sl_os_thread_start(&worker->thread, team_worker_run, worker, err);
        if (status != SL_OK) {
            sl_team_close(team);
            return status;
        }
        team->n_started++;
    }
    *out = team;
    return SL_OK;
}

void sl_team_close(sl_team *team) {
    if (team == NULL) {
        return;
    }
    team->quit = true;
    team_move(team, &team->job.value);
    for (int32_t i = 1; i <= team->n_started; i++) {
        sl_os_thread_join(&team->worker[i].thread);
    }
    sl_os_cond_done(&team->wake);
    sl_os_mutex_done(&team->lock);
    sl_release(team->ledger, SL_ACCOUNT_MISC, team, team_bytes(team->n_thread));
}

int32_t sl_team_size(const sl_team *team) { return team->n_thread; }

void sl_team_run(sl_team *team, void (*fn)(void *arg, sl_member *me), void *arg) {
    sl_member me = {.team = team, .i_thread = 0, .n_thread = team->n_thread};
    atomic_store_explicit(&team->i_next.value, 0, memory_order_relaxed);
    if (team->n_thread > 1) {
        team->fn = fn;
        team->arg = arg;
        team_move(team, &team->job.value);
    }
    fn(arg, &me);
    sl_team_meet(&me);
}
