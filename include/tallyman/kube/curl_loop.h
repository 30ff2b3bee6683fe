/* curl_loop.h - one libcurl multi handle, driven by a libuv loop.
 *
 * libcurl says which sockets and which time-out it waits for; here they become uv_poll and uv_timer
 * handles. Finished transfers are handed to on_done outside libcurl, where handles may be removed
 * and added again. */
#pragma once

#include <curl/curl.h>
#include <uv.h>

#include "tallyman/base/err.h"

struct curl_loop {
    uv_loop_t *loop; /* borrowed */
    CURLM *multi;    /* owned */
    uv_timer_t timer;
    uint32_t open_handles; /* uv handles that still have to close */
    bool is_closing;
    /* The easy handle is still in the multi; take it out before it is used again. */
    void (*on_done)(void *ctx, CURL *easy, CURLcode result);
    void (*on_closed)(void *ctx);
    void *ctx; /* borrowed until on_closed */
};

/* on_done, on_closed and ctx are the caller's to set before. */
void curl_loop_open(struct curl_loop *curl_loop, uv_loop_t *loop);
/* Every easy handle must have been removed. on_closed comes when the last uv handle is gone. */
void curl_loop_close(struct curl_loop *curl_loop);
