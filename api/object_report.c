/* object_report.c - hands a decoded or a malformed object to a watch_handler. */
#include "object_report.h"

/* "Job ml/train: " in front of the sentence, as much of it as is known. */
static struct rc name_object(const struct kind_info *kind, const struct object_meta *meta,
                             struct err *why)
{
    struct rc rc = {RC_INVALID};

    if (str_is_empty(meta->name)) {
        return err_prefix(why, rc, "%s without a name", kind->name);
    }
    if (str_is_empty(meta->namespace_name)) {
        return err_prefix(why, rc, "%s " STR_FMT, kind->name, STR_ARG(meta->name));
    }
    return err_prefix(why, rc, "%s " STR_FMT "/" STR_FMT, kind->name, STR_ARG(meta->namespace_name),
                      STR_ARG(meta->name));
}

static struct rc report_malformed(const struct watch_handler *handler, struct item_decoder *item,
                                  struct err *err)
{
    const struct object_meta *meta = item_decoder_value(item);
    struct rc rc = name_object(item->kind, meta, &item->why);

    if (handler->on_malformed != NULL) {
        handler->on_malformed(handler->ctx, meta, &item->why);
        return RC_SUCCESS;
    }
    return err_set(err, rc.code, STR_FMT, STR_ARG(err_text(&item->why)));
}

struct rc object_report(const struct watch_handler *handler, struct item_decoder *item,
                        enum watch_event_type type, struct err *err)
{
    if (item->is_malformed) {
        return report_malformed(handler, item, err);
    }
    struct watch_event event = {
        .type = type,
        .object = {item->kind->kind, item_decoder_value(item)},
    };

    return handler->on_event(handler->ctx, &event, err);
}
