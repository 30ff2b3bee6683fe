#include "tallyman/kube/curl_loop.h"

#include <assert.h>

#include "tallyman/base/alloc.h"

struct curl_socket {
    uv_poll_t poll;
    struct curl_loop *owner;
    curl_socket_t fd;
};

static void curl_loop_finish_close(struct curl_loop *curl_loop)
{
    if (curl_loop->is_closing && curl_loop->open_handles == 0) {
        curl_loop->on_closed(curl_loop->ctx);
    }
}

static void curl_loop_collect(struct curl_loop *curl_loop)
{
    int left = 0;
    CURLMsg *message = NULL;
    while (curl_loop->multi != NULL &&
           (message = curl_multi_info_read(curl_loop->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            CURL *easy = message->easy_handle;
            CURLcode result = message->data.result;
            curl_loop->on_done(curl_loop->ctx, easy, result);
        }
    }
}

static void curl_loop_act(struct curl_loop *curl_loop, curl_socket_t fd, int flags)
{
    int running = 0;
    CURLMcode result = curl_multi_socket_action(curl_loop->multi, fd, flags, &running);
    /* It has lost track of its sockets: what waits for one of them would wait for ever. */
    if (result == CURLM_OUT_OF_MEMORY || result == CURLM_INTERNAL_ERROR) {
        mem_die("out of memory for a curl multi handle's sockets");
    }
    curl_loop_collect(curl_loop);
}

static void curl_loop_on_timer(uv_timer_t *timer)
{
    curl_loop_act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int curl_loop_set_timer(CURLM *multi, long wait_ms, void *ctx)
{
    struct curl_loop *curl_loop = ctx;
    (void)multi;
    if (curl_loop->is_closing) {
        return 0;
    }
    if (wait_ms < 0) {
        uv_timer_stop(&curl_loop->timer);
    } else {
        /* 0 as well goes through the loop: libcurl must not be entered again from here. */
        uv_timer_start(&curl_loop->timer, curl_loop_on_timer, (uint64_t)wait_ms, 0);
    }
    return 0;
}

static void curl_socket_on_event(uv_poll_t *poll, int status, int events)
{
    struct curl_socket *socket = poll->data;
    struct curl_loop *curl_loop = socket->owner;
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;
    if ((events & UV_READABLE) != 0) {
        flags |= CURL_CSELECT_IN;
    }
    if ((events & UV_WRITABLE) != 0) {
        flags |= CURL_CSELECT_OUT;
    }
    /* May close this socket: it isn't touched any more. */
    curl_loop_act(curl_loop, socket->fd, flags);
}

static void curl_socket_on_closed(uv_handle_t *handle)
{
    struct curl_socket *socket = handle->data;
    struct curl_loop *curl_loop = socket->owner;
    mem_free(socket);
    curl_loop->open_handles--;
    curl_loop_finish_close(curl_loop);
}

/* libcurl gives a multi handle up for good where a socket can't be watched, and libuv ends the
 * program where it finds out later: so do we, and say so. */
static struct curl_socket *curl_socket_new(struct curl_loop *curl_loop, curl_socket_t fd)
{
    struct curl_socket *socket = MEM_NEW(struct curl_socket);
    socket->owner = curl_loop;
    socket->fd = fd;
    if (uv_poll_init_socket(curl_loop->loop, &socket->poll, fd) != 0) {
        mem_die("the system can't watch another socket (see fs.epoll.max_user_watches)");
    }
    socket->poll.data = socket;
    curl_loop->open_handles++;
    if (curl_multi_assign(curl_loop->multi, fd, socket) != CURLM_OK) {
        mem_die("libcurl doesn't know its own socket");
    }
    return socket;
}

static int curl_loop_set_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
    struct curl_loop *curl_loop = ctx;
    struct curl_socket *socket = socket_ctx;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (socket != NULL) {
            curl_multi_assign(curl_loop->multi, fd, NULL);
            uv_close((uv_handle_t *)&socket->poll, curl_socket_on_closed);
        }
        return 0;
    }
    if (socket == NULL) {
        socket = curl_socket_new(curl_loop, fd);
    }
    int events = (what & CURL_POLL_IN) != 0 ? UV_READABLE : 0;
    if ((what & CURL_POLL_OUT) != 0) {
        events |= UV_WRITABLE;
    }
    int error = uv_poll_start(&socket->poll, events, curl_socket_on_event);
    assert(error == 0); /* only a handle that is closing is refused */
    (void)error;
    return 0;
}

void curl_loop_open(struct curl_loop *curl_loop, uv_loop_t *loop)
{
    CURLM *multi = curl_multi_init();
    if (multi == NULL) {
        mem_die("out of memory for a curl multi handle");
    }
    curl_loop->loop = loop;
    curl_loop->multi = multi;
    curl_loop->is_closing = false;
    curl_loop->open_handles = 1;
    uv_timer_init(loop, &curl_loop->timer);
    curl_loop->timer.data = curl_loop;
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, curl_loop_set_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, curl_loop);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, curl_loop_set_timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, curl_loop);
}

static void curl_loop_on_timer_closed(uv_handle_t *handle)
{
    struct curl_loop *curl_loop = handle->data;
    curl_loop->open_handles--;
    curl_loop_finish_close(curl_loop);
}

void curl_loop_close(struct curl_loop *curl_loop)
{
    assert(!curl_loop->is_closing);
    curl_loop->is_closing = true;
    /* Closes the kept connections; their sockets come through curl_loop_set_socket(). */
    CURLM *multi = curl_loop->multi;
    curl_multi_cleanup(multi);
    curl_loop->multi = NULL;
    uv_close((uv_handle_t *)&curl_loop->timer, curl_loop_on_timer_closed);
}
