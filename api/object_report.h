/* object_report.h - hands a decoded or a malformed object to a watch_handler. */
#pragma once

#include "item_decoder.h"

/* The object's event, or on_malformed where it didn't decode; RC_INVALID with the reason if nobody
 * listens to that. The sentence names the object. */
NODISCARD struct rc object_report(const struct watch_handler *handler, struct item_decoder *item,
                                  enum watch_event_type type, struct err *err);
