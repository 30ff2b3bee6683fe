/* Listen addresses, as an operator writes them. */
#include <string.h>

#include "support/check.h"
#include "tallyman/http/address.h"

static void expect_same(const char *text)
{
    struct sockaddr_storage address;
    char buffer[ADDRESS_TEXT_BYTES];
    struct err err;

    if (rc_failed(address_parse(str_from_c(text), &address, &err))) {
        fail_msg("%s", err.text);
    }
    check_str(address_format(&address, buffer), text);
}

static void addresses_are_read_and_written_alike(void **state)
{
    (void)state;
    expect_same("127.0.0.1:8080");
    expect_same("0.0.0.0:0");
    expect_same("255.255.255.255:65535");
    expect_same("[::1]:8080");
    expect_same("[::]:1");
    expect_same("[2001:db8::17]:443");
    expect_same("[::ffff:10.0.0.1]:443");
    expect_same("[2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff]:65535");
}

static void what_isnt_an_address_is_refused_with_the_right_form(void **state)
{
    static const char *const wrong[] = {
        "",
        ":",
        ":8080",
        "8080",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:+1",
        "127.0.0.1: 1",
        "127.0.0.1:1 ",
        "127.0.0.1:008080",
        "127.0.0.1:80a",
        "127.0.0:80",
        "localhost:80",
        "::1:80",
        "[::1]",
        "[::1]:",
        "[]:80",
        "[127.0.0.1]:80",
        "[::1:80",
        "::1]:80",
        "[::1%lo]:80",
        "256.0.0.1:80",
        "http://127.0.0.1:80",
    };
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct sockaddr_storage address;
        struct rc rc = address_parse(str_from_c(wrong[i]), &address, &err);

        if (rc.code != RC_INVALID) {
            fail_msg("\"%s\" was taken", wrong[i]);
        }
    }
    struct sockaddr_storage address;

    assert_true(rc_failed(address_parse(STR("localhost:80"), &address, &err)));
    assert_string_equal(
        err.text, "listen address \"localhost:80\": want an IP address and a port from 0 to "
                  "65535, such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:8080 for all addresses");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_and_written_alike),
        cmocka_unit_test(what_isnt_an_address_is_refused_with_the_right_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
