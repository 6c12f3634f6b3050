/* team.h - a team of threads that walk through the same code together.
 *
 * sl_team_run wakes the workers, and all n threads (the caller is thread 0) execute fn once. Inside, they meet at
 * barriers and share loops:
 *
 *     void fn(void *arg, sl_member *me) {
 *         int64_t i;
 *         while (sl_team_next(me, n_chunk, &i)) { ... chunk i ... }     each chunk goes to one thread, whoever is free
 *         sl_team_meet(me);                                            all chunks done, all writes visible
 *     }
 *
 * Waiting spins briefly, then sleeps, so that more threads than cores cost little. Which thread takes which chunk
 * varies; results must not depend on it (outputs are split, never reductions).
 *
 * Invariants  every member calls meet the same number of times; a loop is over only after a meet.
 * Threads     one run at a time per team (the engine's lock sees to it). */
#ifndef SL_BASE_TEAM_H
#define SL_BASE_TEAM_H

#include "base/ledger.h"

typedef struct sl_team sl_team;

typedef struct sl_member {
    sl_team *team;
    int32_t i_thread; /* 0..n_thread-1 */
    int32_t n_thread;
    uint32_t phase;
} sl_member;

sl_status sl_team_open(sl_ledger *ledger, int32_t n_thread, sl_team **out, sl_error *err);
void sl_team_close(sl_team *team);
int32_t sl_team_size(const sl_team *team);
void sl_team_run(sl_team *team, void (*fn)(void *arg, sl_member *me), void *arg);

/* Barrier; also resets the chunk counter for the next loop. */
void sl_team_meet(sl_member *me);
/* The next chunk of the current loop, in 0..n_chunk-1; false when none is left. */
bool sl_team_next(sl_member *me, int64_t n_chunk, int64_t *i_chunk);

#endif
