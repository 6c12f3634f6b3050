/* interrupt.c - see interrupt.h.
 *
 * The handler stores the signal's number and calls sl_session_cancel, which is no more than an atomic store and so
 * allowed in a handler. SA_RESETHAND puts the default action back, so a second signal ends a program that does not
 * come to an end by itself. Signals are blocked while the library starts its threads: they inherit that, and the
 * handler runs in the program's own thread only; a session can therefore not be closed under it. */
#define _GNU_SOURCE
#include "interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

static volatile sig_atomic_t interrupt_signal;
static _Atomic(sl_session *) interrupt_session;

static void interrupt_handler(int number) {
    interrupt_signal = number;
    sl_session *session = atomic_load(&interrupt_session);
    if (session != NULL) {
        sl_session_cancel(session);
    }
}

static void interrupt_set(sigset_t *set) {
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGTERM);
}

void cli_interrupt_begin(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupt_handler;
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    struct sigaction old;
    /* A signal that the caller had ignored stays ignored, as in a background job of a shell. */
    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
        (void)sigaction(SIGINT, &action, NULL);
    }
    if (sigaction(SIGTERM, NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
        (void)sigaction(SIGTERM, &action, NULL);
    }
    sigset_t set;
    interrupt_set(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void cli_interrupt_ready(void) {
    sigset_t set;
    interrupt_set(&set);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void cli_interrupt_watch(sl_session *session) { atomic_store(&interrupt_session, session); }

int cli_interrupted(void) { return interrupt_signal; }
