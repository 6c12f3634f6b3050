/* unicode_nfc.c - normalisation form C, see unicode.h.
 *
 * Nothing below U+0300 changes under NFC or combines with anything but marks from U+0300 on, so text without a lead
 * byte of 0xCC or more is returned as it is without a look at any table. The rest is cut into runs that cannot affect
 * one another: an ASCII character begins a run, and everything up to the next ASCII character belongs to it. That keeps
 * the decomposition buffer small for most languages.
 *
 * Threads: no state.
 * Not here: other forms; case folding. */
#include "base/error.h"
#include "base/unicode.h"
#include "base/utf8.h"

#include <string.h>

#if defined(SL_WITH_UTF8PROC)
#include <utf8proc.h>
#endif

static bool nfc_is_plain(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if ((uint8_t)text[i] >= 0xCC) {
            return false;
        }
    }
    return true;
}

#if defined(SL_WITH_UTF8PROC)

/* The growing result and the buffer of code points. */
typedef struct nfc_work {
    sl_ledger *ledger;
    sl_account account;
    char *out;
    size_t n_out, cap_out;
    int32_t *codes;
    size_t cap_codes; /* in code points */
} nfc_work;

static sl_status nfc_put(nfc_work *w, const char *bytes, size_t n, sl_error *err) {
    if (w->cap_out - w->n_out < n) {
        const size_t cap = w->n_out + n + w->cap_out / 2;
        void *p = w->out;
        SL_TRY(sl_resize(w->ledger, w->account, &p, w->cap_out, cap, "normalised text", err));
        w->out = p;
        w->cap_out = cap;
    }
    memcpy(w->out + w->n_out, bytes, n);
    w->n_out += n;
    return SL_OK;
}

/* One run of valid UTF-8. */
static sl_status nfc_run(nfc_work *w, const char *text, size_t n, sl_error *err) {
    const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    for (;;) {
        const utf8proc_ssize_t got =
            utf8proc_decompose((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, w->codes,
                               (utf8proc_ssize_t)w->cap_codes, options);
        if (got < 0) {
            return SL_FAIL(err, SL_EINTERNAL, "normalising %zu bytes of text: %s", n,
                           utf8proc_errmsg(got));
        }
        /* The encoder writes in place and ends with a zero, for which one more place is needed. */
        if ((size_t)got < w->cap_codes) {
            const utf8proc_ssize_t bytes = utf8proc_reencode(w->codes, got, options);
            if (bytes < 0) {
                return SL_FAIL(err, SL_EINTERNAL, "normalising %zu bytes of text: %s", n,
                               utf8proc_errmsg(bytes));
            }
            return nfc_put(w, (const char *)w->codes, (size_t)bytes, err);
        }
        const size_t cap = (size_t)got + 64;
        void *p = w->codes;
        SL_TRY(sl_resize(w->ledger, w->account, &p, w->cap_codes * sizeof(int32_t),
                         cap * sizeof(int32_t), "characters to normalise", err));
        w->codes = p;
        w->cap_codes = cap;
    }
}

static sl_status nfc_all(nfc_work *w, const char *text, size_t n, sl_error *err) {
    size_t begin = 0;
    size_t at = 0;
    while (at < n) {
        const uint8_t byte = (uint8_t)text[at];
        const int len = byte < 0x80 ? 1 : sl_utf8_len((const uint8_t *)text + at, n - at);
        const bool valid = len > 0;
        if ((byte < 0x80 || !valid) && at > begin) {
            /* A single ASCII character alone is copied without a detour. */
            if (at - begin == 1) {
                SL_TRY(nfc_put(w, text + begin, 1, err));
            } else {
                SL_TRY(nfc_run(w, text + begin, at - begin, err));
            }
            begin = at;
        }
        if (!valid) {
            SL_TRY(nfc_put(w, text + at, 1, err));
            at++;
            begin = at;
        } else {
            at += (size_t)len;
        }
    }
    if (n - begin == 1) {
        return nfc_put(w, text + begin, 1, err);
    }
    return n > begin ? nfc_run(w, text + begin, n - begin, err) : SL_OK;
}

sl_status sl_unicode_nfc(sl_ledger *ledger, sl_account account, const char *text, size_t n,
                         char **out, size_t *n_out, size_t *cap, sl_error *err) {
    *out = NULL;
    *n_out = n;
    *cap = 0;
    if (nfc_is_plain(text, n)) {
        return SL_OK;
    }
    nfc_work w = {.ledger = ledger, .account = account, .cap_out = n + 16, .cap_codes = 256};
    void *p;
    SL_TRY(sl_alloc(ledger, account, w.cap_out, &p, "normalised text", err));
    w.out = p;
    sl_status status = sl_alloc(ledger, account, w.cap_codes * sizeof(int32_t), &p,
                                "characters to normalise", err);
    if (status == SL_OK) {
        w.codes = p;
        status = nfc_all(&w, text, n, err);
        sl_release(ledger, account, w.codes, w.cap_codes * sizeof(int32_t));
    }
    if (status != SL_OK) {
        sl_release(ledger, account, w.out, w.cap_out);
        return status;
    }
    *out = w.out;
    *n_out = w.n_out;
    *cap = w.cap_out;
    return SL_OK;
}

#else

sl_status sl_unicode_nfc(sl_ledger *ledger, sl_account account, const char *text, size_t n,
                         char **out, size_t *n_out, size_t *cap, sl_error *err) {
    (void)ledger;
    (void)account;
    *out = NULL;
    *n_out = n;
    *cap = 0;
    if (nfc_is_plain(text, n)) {
        return SL_OK;
    }
    return SL_FAIL(err, SL_ENOTSUP,
                   "this tokenizer normalises its text (NFC), and this build of the library was "
                   "made without utf8proc; only characters below U+0300 can be tokenised");
}

#endif
