/* pod.c - what a Pod's status says. */
#include "tallyman/api/pod.h"

bool pod_is_terminal(const struct pod *pod)
{
    return str_eq_c(pod->status.phase, "Succeeded") || str_eq_c(pod->status.phase, "Failed");
}

bool pod_is_ready(const struct pod *pod)
{
    return condition_is_true(&pod->status.conditions, "Ready");
}

/* NULL: an init container that ends before the others start. */
static const struct container *lasting_container(const struct pod_spec *spec, uint32_t index)
{
    if (index >= spec->init_containers.count) {
        return &spec->containers.items[index - spec->init_containers.count];
    }
    const struct container *init = &spec->init_containers.items[index];
    return str_eq_c(init->restart_policy, "Always") ? init : NULL;
}

/* With hostNetwork a pod gets its containerPorts as hostPorts by default; a template doesn't. */
static int64_t host_port_of(const struct pod_spec *spec, const struct container_port *port)
{
    if (port->host_port.is_set && port->host_port.value > 0) {
        return port->host_port.value;
    }
    bool is_of_host = spec->host_network.is_set && spec->host_network.value;
    return is_of_host && port->container_port.is_set ? port->container_port.value : 0;
}

int64_t pod_next_host_port(const struct pod_spec *spec, struct host_port_cursor *cursor)
{
    uint32_t count = spec->init_containers.count + spec->containers.count;
    while (cursor->container < count) {
        const struct container *container = lasting_container(spec, cursor->container);
        while (container != NULL && cursor->port < container->ports.count) {
            int64_t port = host_port_of(spec, &container->ports.items[cursor->port++]);
            if (port > 0) {
                return port;
            }
        }
        cursor->container++;
        cursor->port = 0;
    }
    return 0;
}
