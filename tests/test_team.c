/* test_team.c - the worker pool: every chunk once, barriers that hold, more threads than cores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/os.h"
#include "base/team.h"

#define TEAM_CHUNKS 1000
#define TEAM_LOOPS 50

typedef struct team_work {
    _Atomic int hits[TEAM_LOOPS][TEAM_CHUNKS];
    int32_t before[TEAM_LOOPS][64]; /* what a member saw of the loop before, after the barrier */
    _Atomic int n_run;
} team_work;

static void team_fn(void *arg, sl_member *me) {
    team_work *work = arg;
    atomic_fetch_add(&work->n_run, 1);
    for (int loop = 0; loop < TEAM_LOOPS; loop++) {
        int64_t i;
        while (sl_team_next(me, TEAM_CHUNKS, &i)) {
            atomic_fetch_add_explicit(&work->hits[loop][i], 1, memory_order_relaxed);
        }
        sl_team_meet(me);
        int32_t n = 0;
        for (int k = 0; k < TEAM_CHUNKS; k++) {
            n += atomic_load_explicit(&work->hits[loop][k], memory_order_relaxed);
        }
        work->before[loop][me->i_thread] = n;
    }
}

static void test_chunks(void **state) {
    (void)state;
    static team_work work;
    const int32_t sizes[] = {1, 2, 3, 5, 16};
    sl_ledger ledger;
    sl_error err;
    sl_ledger_init(&ledger, 0);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        sl_team *team;
        assert_int_equal(sl_team_open(&ledger, sizes[k], &team, &err), SL_OK);
        assert_int_equal(sl_team_size(team), sizes[k]);
        for (int run = 0; run < 3; run++) {
            memset(&work, 0, sizeof work);
            sl_team_run(team, team_fn, &work);
            assert_int_equal(atomic_load(&work.n_run), sizes[k]);
            for (int loop = 0; loop < TEAM_LOOPS; loop++) {
                for (int i = 0; i < TEAM_CHUNKS; i++) {
                    assert_int_equal(atomic_load(&work.hits[loop][i]), 1);
                }
                for (int32_t t = 0; t < sizes[k]; t++) {
                    assert_int_equal(work.before[loop][t], TEAM_CHUNKS);
                }
            }
        }
        sl_team_close(team);
    }
    assert_true(atomic_load(&ledger.total) == 0);
}

/* Barriers with pauses between them, long enough that members fall asleep and must be woken. */
static void team_sleepy(void *arg, sl_member *me) {
    _Atomic int *sum = arg;
    for (int i = 0; i < 20; i++) {
        if (me->i_thread == i % me->n_thread) {
            const uint64_t until = sl_os_now_us() + 2000;
            while (sl_os_now_us() < until) {
                sl_os_cpu_relax();
            }
        }
        atomic_fetch_add(sum, 1);
        sl_team_meet(me);
    }
}

static void test_sleep_and_wake(void **state) {
    (void)state;
    sl_ledger ledger;
    sl_error err;
    sl_team *team;
    _Atomic int sum = 0;
    sl_ledger_init(&ledger, 0);
    assert_int_equal(sl_team_open(&ledger, 4, &team, &err), SL_OK);
    sl_team_run(team, team_sleepy, (void *)&sum);
    assert_int_equal(atomic_load(&sum), 80);
    sl_team_close(team);
}

static void test_bad_sizes(void **state) {
    (void)state;
    sl_ledger ledger;
    sl_error err;
    sl_team *team;
    sl_ledger_init(&ledger, 0);
    assert_int_equal(sl_team_open(&ledger, 0, &team, &err), SL_EINVAL);
    assert_int_equal(sl_team_open(&ledger, SL_MAX_THREADS + 1, &team, &err), SL_EINVAL);
    sl_team_close(NULL);
    assert_in_range(sl_os_n_core(), 1, SL_MAX_THREADS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_sleep_and_wake),
        cmocka_unit_test(test_bad_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
