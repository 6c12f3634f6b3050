/* test_quant_oracle.c - the decoders on the oracle's random blocks: 64 a type, with what another implementation makes of
 * them, in one safetensors file ("<type>.raw" u8 [64, n_byte] and "<type>.values" f32 [64, n_elem]). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "help_paths.h"
#include "quant/quant.h"

static const char *folder;

typedef struct span {
    size_t begin;
    size_t end;
} span;

/* The bytes of one entry. The header: u64 size, then JSON {"name": {"data_offsets": [begin, end], ...}, ...}, offsets
 * from its end. */
static bool find_entry(const char *file, size_t size, const char *name, span *out) {
    uint64_t n_header;
    assert_true(size > 8);
    memcpy(&n_header, file, 8);
    assert_true(n_header < size - 8);
    sl_json j;
    sl_json_text key;
    sl_json_init(&j, file + 8, (size_t)n_header);
    bool found = false;
    assert_true(sl_json_enter_object(&j));
    while (sl_json_next_key(&j, &key)) {
        if (!sl_json_text_is(&key, name)) {
            sl_json_skip(&j);
            continue;
        }
        assert_true(sl_json_enter_object(&j));
        while (sl_json_next_key(&j, &key)) {
            if (!sl_json_text_is(&key, "data_offsets")) {
                sl_json_skip(&j);
                continue;
            }
            int64_t offset[2] = {0, 0};
            assert_true(sl_json_enter_array(&j));
            for (int i = 0; i < 2; i++) {
                assert_true(sl_json_next_item(&j) && sl_json_int(&j, &offset[i]));
            }
            assert_false(sl_json_next_item(&j));
            assert_true(offset[0] >= 0 && offset[1] >= offset[0]);
            out->begin = 8 + (size_t)n_header + (size_t)offset[0];
            out->end = 8 + (size_t)n_header + (size_t)offset[1];
            assert_true(out->end <= size);
            found = true;
        }
    }
    assert_false(j.failed);
    return found;
}

static void test_blocks(void **unused) {
    (void)unused;
    size_t size;
    char *file = help_read(help_text("%s/quants/blocks.safetensors", folder), &size);
    assert_non_null(file);
    int n_checked = 0;
    for (int32_t i = 0; i < sl_qtype_count(); i++) {
        const sl_qtype_info *type = sl_qtype_at(i);
        span raw, values;
        if (!find_entry(file, size, help_text("%s.raw", type->name), &raw)) {
            continue;
        }
        assert_true(find_entry(file, size, help_text("%s.values", type->name), &values));
        const size_t n_block = (raw.end - raw.begin) / (size_t)type->n_byte;
        const size_t n = n_block * (size_t)type->n_elem;
        assert_int_equal(raw.end - raw.begin, n_block * (size_t)type->n_byte);
        assert_int_equal(values.end - values.begin, n * sizeof(float));
        if (type->decode == NULL) {
            print_message("%s: sizes only\n", type->name);
            continue;
        }
        float *wanted = malloc(n * sizeof *wanted);
        float *got = malloc(n * sizeof *got);
        memcpy(wanted, file + values.begin, n * sizeof *wanted);
        type->decode((const uint8_t *)file + raw.begin, got, (int64_t)n);
        for (size_t k = 0; k < n; k++) {
            if (memcmp(&got[k], &wanted[k], sizeof got[k]) != 0 &&
                !(isnan(got[k]) && isnan(wanted[k]))) {
                fail_msg("%s: element %zu is %a, not %a", type->name, k, (double)got[k],
                         (double)wanted[k]);
            }
        }
        free(got);
        free(wanted);
        n_checked++;
    }
    assert_true(n_checked >= 14);
    free(file);
}

int main(void) {
    folder = help_oracle();
    if (folder == NULL) {
        help_skip("no oracle folder");
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
