/* yaml_scalar.c - what an unquoted word of YAML is to kubectl. */
#include "yaml_scalar.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define YAML_NUMBER_TEXT_MAX_BYTES 400 /* a longer word isn't a number */

enum yaml_tag { TAG_NONE, TAG_TEXT, TAG_NULL, TAG_BOOL, TAG_INT, TAG_FLOAT, TAG_OTHER };

static const struct {
    const char *name;
    enum yaml_tag tag;
} tags[] = {
    /* "!" says: take it as it stands. No kind that is read here holds bytes: !!binary stays text.
     */
    {"!", TAG_TEXT},
    {"tag:yaml.org,2002:str", TAG_TEXT},
    {"tag:yaml.org,2002:binary", TAG_TEXT},
    {"tag:yaml.org,2002:timestamp", TAG_TEXT},
    {"tag:yaml.org,2002:null", TAG_NULL},
    {"tag:yaml.org,2002:bool", TAG_BOOL},
    {"tag:yaml.org,2002:int", TAG_INT},
    {"tag:yaml.org,2002:float", TAG_FLOAT},
};

static enum yaml_tag tag_of(struct str tag)
{
    if (str_is_empty(tag)) {
        return TAG_NONE;
    }
    for (size_t i = 0; i < ARRAY_COUNT(tags); i++) {
        if (str_eq_c(tag, tags[i].name)) {
            return tags[i].tag;
        }
    }
    return TAG_OTHER;
}

static bool is_one_of(struct str text, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        if (str_eq_c(text, words[i])) {
            return true;
        }
    }
    return false;
}

static const char *const true_words[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                         "True", "TRUE", "on",  "On",  "ON",  NULL};
static const char *const false_words[] = {"n",     "N",     "no",  "No",  "NO",  "false",
                                          "False", "FALSE", "off", "Off", "OFF", NULL};
static const char *const null_words[] = {"", "~", "null", "Null", "NULL", NULL};
static const char *const infinite_words[] = {".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",
                                             ".INF",  "+.inf", "+.Inf", "+.INF", "-.inf",
                                             "-.Inf", "-.INF", NULL};

/* -- whole numbers ----------------------------------------------------------------------------- */

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* Takes "0x", "0b", "0o" or a leading 0 off, as Go's ParseInt with base 0 reads them. */
static int take_base(const char **digits)
{
    const char *p = *digits;

    if (p[0] != '0' || p[1] == '\0') {
        return 10;
    }
    *digits = p + 2;
    switch (p[1]) {
    case 'x':
    case 'X':
        return 16;
    case 'b':
    case 'B':
        return 2;
    case 'o':
    case 'O':
        return 8;
    default:
        *digits = p + 1;
        return 8;
    }
}

static bool parse_unsigned(const char *digits, uint64_t *ret_value)
{
    const char *p = digits;
    int base = take_base(&p);
    uint64_t value = 0;

    if (*p == '\0') {
        return false;
    }
    for (; *p != '\0'; p++) {
        int digit = digit_value(*p);

        if (digit >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

/* An int64, or a uint64 without a sign. */
static bool whole_number(const char *text, char number[YAML_NUMBER_BYTES])
{
    bool has_sign = text[0] == '-' || text[0] == '+';
    bool is_negative = text[0] == '-';
    uint64_t value;

    if (!parse_unsigned(text + (has_sign ? 1 : 0), &value)) {
        return false;
    }
    if (has_sign && value > (uint64_t)INT64_MAX + (is_negative ? 1 : 0)) {
        return false;
    }
    snprintf(number, YAML_NUMBER_BYTES, "%s%" PRIu64, is_negative && value > 0 ? "-" : "", value);
    return true;
}

/* -- numbers with a fraction or an exponent ---------------------------------------------------- */

static size_t count_digits(const char *p)
{
    return strspn(p, "0123456789");
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool looks_like_float(const char *text)
{
    const char *p = text + (text[0] == '-' || text[0] == '+' ? 1 : 0);
    size_t whole = count_digits(p);

    p += whole;
    if (*p == '.') {
        size_t fraction = count_digits(p + 1);

        if (whole + fraction == 0) {
            return false;
        }
        p += 1 + fraction;
    } else if (whole == 0) {
        return false;
    }
    if (*p == 'e' || *p == 'E') {
        p += p[1] == '-' || p[1] == '+' ? 2 : 1;
        if (count_digits(p) == 0) {
            return false;
        }
        p += count_digits(p);
    }
    return *p == '\0';
}

/* "-0.00123" of digits "123" and exponent -3; as Go's encoding/json lays a float64 out. */
static void layout_float(const char *digits, int exponent, bool is_negative,
                         char number[YAML_NUMBER_BYTES])
{
    const char *sign = is_negative ? "-" : "";
    int count = (int)strlen(digits);

    if (exponent < -6 || exponent >= 21) {
        snprintf(number, YAML_NUMBER_BYTES, "%s%c%s%se%+d", sign, digits[0], count > 1 ? "." : "",
                 digits + 1, exponent);
    } else if (exponent < 0) {
        snprintf(number, YAML_NUMBER_BYTES, "%s0.%.*s%s", sign, -exponent - 1, "00000", digits);
    } else if (exponent >= count - 1) {
        snprintf(number, YAML_NUMBER_BYTES, "%s%s%.*s", sign, digits, exponent - count + 1,
                 "00000000000000000000");
    } else {
        snprintf(number, YAML_NUMBER_BYTES, "%s%.*s.%s", sign, exponent + 1, digits,
                 digits + exponent + 1);
    }
}

/* The shortest digits that give the same float64 again. */
static void format_float(double value, char number[YAML_NUMBER_BYTES])
{
    char text[32];
    char digits[24];
    size_t count = 0;

    for (int precision = 0; precision <= 17; precision++) {
        snprintf(text, sizeof(text), "%.*e", precision, fabs(value));
        if (strtod(text, NULL) >= fabs(value) && strtod(text, NULL) <= fabs(value)) {
            break;
        }
    }
    char *exponent = strchr(text, 'e');

    for (const char *p = text; p < exponent; p++) {
        if (*p != '.') {
            digits[count++] = *p;
        }
    }
    digits[count] = '\0';
    layout_float(digits, (int)strtol(exponent + 1, NULL, 10), signbit(value) != 0, number);
}

static bool fraction_number(const char *text, char number[YAML_NUMBER_BYTES])
{
    if (!looks_like_float(text)) {
        return false;
    }
    double value = strtod(text, NULL);

    if (isinf(value)) {
        return false; /* as in Go: out of range, so it stays a text */
    }
    format_float(value, number);
    return true;
}

/* -- the whole --------------------------------------------------------------------------------- */

/* True, and the number as JSON writes it, if the word is a number. */
static bool number_of(struct str text, char number[YAML_NUMBER_BYTES])
{
    char plain[YAML_NUMBER_TEXT_MAX_BYTES + 1];
    size_t len = 0;

    if (text.len == 0 || text.len > YAML_NUMBER_TEXT_MAX_BYTES ||
        strchr("+-.0123456789", text.ptr[0]) == NULL || text.ptr[0] == '\0') {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        /* "1_000" is a number; behind a leading point it isn't. */
        if (text.ptr[i] == '\0' || (text.ptr[i] == '_' && text.ptr[0] == '.')) {
            return false;
        }
        if (text.ptr[i] != '_') {
            plain[len++] = text.ptr[i];
        }
    }
    plain[len] = '\0';
    return (text.ptr[0] != '.' && whole_number(plain, number)) || fraction_number(plain, number);
}

/* What the word is by itself. */
static struct rc resolve_plain(struct str text, char number[YAML_NUMBER_BYTES],
                               struct token *ret_token, struct err *err)
{
    if (is_one_of(text, null_words)) {
        *ret_token = (struct token){.kind = TOKEN_NULL};
    } else if (is_one_of(text, true_words) || is_one_of(text, false_words)) {
        *ret_token = (struct token){TOKEN_BOOL, is_one_of(text, true_words), text};
    } else if (is_one_of(text, infinite_words)) {
        return err_set(err, RC_INVALID,
                       STR_FMT " is a number that JSON can't hold; put it in quotes if a text is "
                               "meant",
                       STR_ARG(text));
    } else if (number_of(text, number)) {
        *ret_token = (struct token){.kind = TOKEN_NUMBER, .text = str_from_c(number)};
    } else {
        *ret_token = (struct token){.kind = TOKEN_STRING, .text = text};
    }
    return RC_SUCCESS;
}

static bool tag_fits(enum yaml_tag tag, const struct token *token)
{
    switch (tag) {
    case TAG_NULL:
        return token->kind == TOKEN_NULL;
    case TAG_BOOL:
        return token->kind == TOKEN_BOOL;
    case TAG_INT:
        return token->kind == TOKEN_NUMBER && strpbrk(token->text.ptr, ".e") == NULL;
    case TAG_FLOAT:
        return token->kind == TOKEN_NUMBER;
    case TAG_NONE:
    case TAG_TEXT:
    case TAG_OTHER:
        break;
    }
    return tag == TAG_NONE;
}

struct rc yaml_scalar_resolve(const struct yaml_scalar *scalar, char number[YAML_NUMBER_BYTES],
                              struct token *ret_token, struct err *err)
{
    enum yaml_tag tag = tag_of(scalar->tag);
    struct token token;

    if (tag == TAG_OTHER) {
        return err_set(err, RC_INVALID, "the tag " STR_FMT " isn't known; leave it out",
                       STR_ARG(str_cut_utf8(scalar->tag, 64)));
    }
    if (tag == TAG_TEXT || (tag == TAG_NONE && !scalar->is_plain)) {
        *ret_token = (struct token){.kind = TOKEN_STRING, .text = scalar->text};
        return RC_SUCCESS;
    }
    TRY(resolve_plain(scalar->text, number, &token, err));
    if (!tag_fits(tag, &token)) {
        return err_set(err, RC_INVALID, "\"" STR_FMT "\" doesn't fit its tag " STR_FMT,
                       STR_ARG(str_cut_utf8(scalar->text, 64)), STR_ARG(scalar->tag));
    }
    *ret_token = token;
    return RC_SUCCESS;
}
