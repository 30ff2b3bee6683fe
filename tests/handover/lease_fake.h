/* lease_fake.h - stands in front of controller/kube/lease.c, which is compiled into the simulation:
 * its clock, its timers and its requests are simulated, its rules are the real ones. */
#pragma once

#include <time.h>
#include <uv.h>

#include "tallyman/kube/client.h"

/* Of whichever replica is at work. */
uint64_t fake_hrtime(void);
int fake_clock_gettime(clockid_t clock, struct timespec *ret_now);
int fake_timer_init(uv_loop_t *loop, uv_timer_t *timer);
int fake_timer_start(uv_timer_t *timer, uv_timer_cb on_timer, uint64_t after_ms, uint64_t repeat);
int fake_timer_stop(uv_timer_t *timer);
void fake_close(uv_handle_t *handle, uv_close_cb on_closed);
struct kube_call *fake_client_send(struct kube_client *client, const struct kube_request *request);
void fake_call_cancel(struct kube_call *call);

#define uv_hrtime        fake_hrtime
#define clock_gettime    fake_clock_gettime
#define uv_timer_init    fake_timer_init
#define uv_timer_start   fake_timer_start
#define uv_timer_stop    fake_timer_stop
#define uv_close         fake_close
#define uv_update_time   (void)
#define kube_client_send fake_client_send
#define kube_call_cancel fake_call_cancel
