/* pre.c - walk a text word by word through the stages of a rule, and find rules; see pre.h.
 *
 *     stage 0   |----------- end[0] -----------|-------- ...
 *     stage 1   |--- end[1] ---|
 *     stage 2   |-- word --|                      the walk stands at `at` and renews only the ends it has reached
 *
 * Threads: a walk belongs to one thread.
 * Not here: the stages (pre_rules.c). */
#include "token/pre.h"

#include <string.h>

bool sl_pre_next(sl_pre_walk *w, size_t *begin, size_t *n) {
    if (w->at >= w->n) {
        return false;
    }
    size_t end = w->n;
    for (int32_t i = 0; i < SL_PRE_MAX_STAGE && w->rule != NULL && w->rule->stage[i] != NULL; i++) {
        if (w->end[i] <= w->at) {
            w->end[i] = w->at + w->rule->stage[i](w->text + w->at, end - w->at);
        }
        end = w->end[i];
    }
    *begin = w->at;
    *n = end - w->at;
    w->at = end;
    return true;
}

static bool pre_name_in(const char *list, const char *name, size_t n) {
    while (*list != '\0') {
        const char *space = strchr(list, ' ');
        const size_t n_item = space != NULL ? (size_t)(space - list) : strlen(list);
        if (n_item == n && memcmp(list, name, n) == 0) {
            return true;
        }
        list += n_item + (space != NULL ? 1 : 0);
    }
    return false;
}

const sl_pre_rule *sl_pre_find(const char *name, size_t n) {
    for (int32_t i = 0; i < sl_pre_n_rule; i++) {
        const sl_pre_rule *rule = &sl_pre_rules[i];
        if ((strlen(rule->name) == n && memcmp(rule->name, name, n) == 0) ||
            pre_name_in(rule->aliases, name, n)) {
            return rule;
        }
    }
    return NULL;
}

const sl_pre_rule *sl_pre_find_stages(const sl_pre_cut *stage, int32_t n_stage) {
    for (int32_t i = 0; i < sl_pre_n_rule; i++) {
        const sl_pre_rule *rule = &sl_pre_rules[i];
        int32_t k = 0;
        while (k < n_stage && k < SL_PRE_MAX_STAGE && rule->stage[k] == stage[k]) {
            k++;
        }
        if (k == n_stage && (k == SL_PRE_MAX_STAGE || rule->stage[k] == NULL)) {
            return rule;
        }
    }
    return NULL;
}
