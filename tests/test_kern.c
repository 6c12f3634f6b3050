/* test_kern.c - the ladder of instruction sets: what is known, what is chosen, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "kern/kern.h"

static void test_ladder(void **state) {
    (void)state;
    assert_true(sl_isa_count() >= 1);
    assert_string_equal(sl_isa_at(0)->name, "scalar");
    assert_true(sl_isa_at(0)->usable());
    assert_null(sl_isa_at(-1));
    assert_null(sl_isa_at(sl_isa_count()));
}

static void test_best(void **state) {
    (void)state;
    const char *best = NULL;
    for (int32_t i = 0; i < sl_isa_count(); i++) {
        best = sl_isa_at(i)->usable() ? sl_isa_at(i)->name : best;
    }
    sl_kern kern;
    assert_int_equal(sl_kern_init(&kern, NULL, NULL), SL_OK);
    assert_string_equal(kern.isa, best);
}

/* Each by its name: used, or refused with the reason. */
static void test_named(void **state) {
    (void)state;
    for (int32_t i = 0; i < sl_isa_count(); i++) {
        sl_kern kern;
        sl_error err;
        const char *name = sl_isa_at(i)->name;
        const sl_status status = sl_kern_init(&kern, name, &err);
        if (sl_isa_at(i)->usable()) {
            assert_int_equal(status, SL_OK);
            assert_string_equal(kern.isa, name);
        } else {
            assert_int_equal(status, SL_ENOTSUP);
            assert_non_null(strstr(err.text, name));
            assert_non_null(strstr(err.text, "scalar"));
        }
    }
}

static void test_unknown(void **state) {
    (void)state;
    static const char *const names[] = {"", "AVX2", "avx3", "scalar ", "%s%n"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        sl_kern kern;
        sl_error err;
        memset(&kern, 0x5A, sizeof kern);
        assert_int_equal(sl_kern_init(&kern, names[i], &err), SL_EINVAL);
        assert_int_equal(err.code, SL_EINVAL);
        assert_non_null(strstr(err.text, names[i]));
        for (int32_t k = 0; k < sl_isa_count(); k++) {
            assert_non_null(strstr(err.text, sl_isa_at(k)->name));
        }
        /* The table was left alone. */
        for (size_t b = 0; b < sizeof kern; b++) {
            assert_int_equal(((const uint8_t *)&kern)[b], 0x5A);
        }
    }
}

/* No slot that callers use without asking is empty, in any row. */
static void test_complete(void **state) {
    (void)state;
    for (int32_t i = 0; i < sl_isa_count(); i++) {
        sl_kern kern;
        if (sl_kern_init(&kern, sl_isa_at(i)->name, NULL) != SL_OK) {
            continue;
        }
        assert_null(kern.act[SL_ACT_F32]);
        assert_non_null(kern.act[SL_ACT_Q8_32]);
        assert_non_null(kern.act[SL_ACT_Q8_256]);
        assert_non_null(kern.norm_rms);
        assert_non_null(kern.add);
        assert_non_null(kern.scale);
        assert_non_null(kern.glu[SL_GLU_SILU]);
        assert_non_null(kern.glu[SL_GLU_GELU_TANH]);
        assert_non_null(kern.softcap);
        assert_null(kern.rope[SL_ROPE_NONE]);
        assert_non_null(kern.rope[SL_ROPE_NEIGHBOUR]);
        assert_non_null(kern.rope[SL_ROPE_HALF]);
        for (int32_t t = 0; t < SL_KV_TYPE_COUNT; t++) {
            assert_non_null(kern.kv_store[t]);
            assert_non_null(kern.attn_score[t]);
            assert_non_null(kern.attn_mix[t]);
        }
        assert_non_null(kern.exp_sum);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ladder),   cmocka_unit_test(test_best),
        cmocka_unit_test(test_named),    cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
