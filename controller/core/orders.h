/* orders.h - the total orders of the core's trees. Part of state.h, which includes it at its end.
 */
#pragma once

/* Priority desc, queue-order time, uid. Total. */
int gang_compare_order(const struct gang *a, const struct gang *b);
int gang_compare_uid(const struct gang *a, const struct gang *b);
int gang_compare_timer(const struct gang *a, const struct gang *b);
int gang_compare_admitted(const struct gang *a, const struct gang *b);
int shape_compare_head(const struct shape *a, const struct shape *b);
int queue_compare_name(const struct queue_state *a, const struct queue_state *b);
int queue_compare_due(const struct queue_state *a, const struct queue_state *b);
int node_compare_name(const struct node_state *a, const struct node_state *b);
int device_compare_key(const struct device_state *a, const struct device_state *b);

RB_PROTOTYPE(shape_tree, shape, by_head, shape_compare_head)
RB_PROTOTYPE(queue_tree, queue_state, by_name, queue_compare_name)
RB_PROTOTYPE(ready_tree, queue_state, by_ready, queue_compare_name)
RB_PROTOTYPE(queue_due_tree, queue_state, by_due, queue_compare_due)
RB_PROTOTYPE(node_tree, node_state, by_name, node_compare_name)
RB_PROTOTYPE(device_tree, device_state, by_key, device_compare_key)
RB_PROTOTYPE(ailing_tree, device_state, among_ailing, device_compare_key)
