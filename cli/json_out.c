/* json_out.c - see json_out.h. Writes to standard output through text_io.c, which remembers failures. */
#include "json_out.h"

#include <math.h>
#include <string.h>

#include "text_io.h"

static void json_quote(const char *bytes, size_t n) {
    cli_out("\"", 1);
    size_t from = 0;
    for (size_t i = 0; i < n;) {
        uint32_t point;
        const size_t size = cli_utf8(bytes + i, n - i, &point);
        const bool plain = size != 0 && point >= 0x20 && point != '"' && point != '\\' &&
                           !(point >= 0x7F && point < 0xA0);
        if (plain) {
            i += size;
            continue;
        }
        cli_out(bytes + from, i - from);
        if (size == 0) {
            cli_out("\xEF\xBF\xBD", 3);
        } else if (point == '"' || point == '\\') {
            cli_outf("\\%c", (char)point);
        } else if (point == '\n') {
            cli_out("\\n", 2);
        } else if (point == '\t') {
            cli_out("\\t", 2);
        } else {
            cli_outf("\\u%04x", (unsigned)point);
        }
        i += size != 0 ? size : 1;
        from = i;
    }
    cli_out(bytes + from, n - from);
    cli_out("\"", 1);
}

static void json_begin(cli_json *j, const char *key) {
    if (j->depth > 0) {
        if (j->some[j->depth - 1]) {
            cli_out(",", 1);
        }
        j->some[j->depth - 1] = true;
    }
    if (key != NULL) {
        json_quote(key, strlen(key));
        cli_out(":", 1);
    }
}

void cli_json_open(cli_json *j, const char *key, char bracket) {
    json_begin(j, key);
    cli_out(&bracket, 1);
    j->end[j->depth] = bracket == '{' ? '}' : ']';
    j->some[j->depth] = false;
    j->depth++;
}

void cli_json_close(cli_json *j) {
    j->depth--;
    cli_out(&j->end[j->depth], 1);
    if (j->depth == 0) {
        cli_out("\n", 1);
    }
}

void cli_json_text(cli_json *j, const char *key, const char *bytes, size_t n) {
    json_begin(j, key);
    json_quote(bytes, n);
}

void cli_json_str(cli_json *j, const char *key, const char *text) {
    if (text == NULL) {
        cli_json_null(j, key);
    } else {
        cli_json_text(j, key, text, strlen(text));
    }
}

void cli_json_hex(cli_json *j, const char *key, const char *bytes, size_t n) {
    static const char digits[] = "0123456789abcdef";
    json_begin(j, key);
    cli_out("\"", 1);
    for (size_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        const char pair[2] = {digits[byte >> 4], digits[byte & 15]};
        cli_out(pair, 2);
    }
    cli_out("\"", 1);
}

void cli_json_int(cli_json *j, const char *key, int64_t value) {
    json_begin(j, key);
    cli_outf("%lld", (long long)value);
}

void cli_json_uint(cli_json *j, const char *key, uint64_t value) {
    json_begin(j, key);
    cli_outf("%llu", (unsigned long long)value);
}

void cli_json_real(cli_json *j, const char *key, double value) {
    json_begin(j, key);
    if (isfinite(value)) {
        cli_outf("%.9g", value);
    } else {
        cli_out("null", 4);
    }
}

void cli_json_bool(cli_json *j, const char *key, bool value) {
    json_begin(j, key);
    cli_outf("%s", value ? "true" : "false");
}

void cli_json_null(cli_json *j, const char *key) {
    json_begin(j, key);
    cli_out("null", 4);
}

void cli_json_words(cli_json *j, const char *key, const char *words) {
    cli_json_open(j, key, '[');
    while (words != NULL && *words != '\0') {
        const size_t n = strcspn(words, " ");
        if (n != 0) {
            cli_json_text(j, NULL, words, n);
        }
        words += n + strspn(words + n, " ");
    }
    cli_json_close(j);
}
