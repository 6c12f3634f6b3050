/* interrupt.h - Ctrl-C and SIGTERM: the first ends the generation in an orderly way, the second ends the program. */
#ifndef SLUICE_CLI_INTERRUPT_H
#define SLUICE_CLI_INTERRUPT_H

#include <stdbool.h>

#include "sluice.h"

/* From here on a signal is noted instead of ending the program. Threads that are started between begin and the
 * matching ready leave signals to the thread that called, so the handler never runs beside it. */
void cli_interrupt_begin(void);
void cli_interrupt_ready(void);
/* The session that a signal cancels; NULL: none (before it is closed). */
void cli_interrupt_watch(sl_session *session);
int cli_interrupted(void); /* the signal's number, 0: none */

#endif
