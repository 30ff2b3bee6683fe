/* The real lease, on a simulated loop. */
#include "lease_fake.h"

#include "../../controller/kube/lease.c"
