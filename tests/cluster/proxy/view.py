"""Shows a controller one namespace and the nodes, queues, … with a label as if there was nothing
else in the cluster, so that many controllers can be tried side by side in one. Only requests are
changed, by paths and selectors that the API server itself knows: what it answers stays as it is."""

PLAN_LABEL = "example.com/plan"     # of cluster-wide objects of one plan: queues, flavors, …
WORLD_LABEL = "example.com/world"   # of nodes and slices, which plans use one after another

_OF_THE_NAMESPACE = {"jobs", "pods", "resourceclaims", "resourceclaimtemplates", "admissions",
                     "limitranges", "provisioningrequests"}
_OF_THE_PLAN = {"queues", "cohorts", "resourceflavors", "devicetaintrules"}
_OF_THE_WORLD = {"nodes", "resourceslices"}


class View:
    """One plan's part of the cluster."""

    def __init__(self, namespace, world):
        self.namespace, self.world = namespace, world

    def narrow(self, request):
        """Changes a list or watch of everything into one of this part."""
        if not request.is_list or request.namespace is not None:
            return
        plural = request.plural
        if plural in _OF_THE_NAMESPACE:
            path, question, query = request.target.partition("?")
            base = path.removesuffix(f"/{plural}")
            request.target = f"{base}/namespaces/{self.namespace}/{plural}{question}{query}"
        elif plural in _OF_THE_PLAN:
            request.set_query(labelSelector=f"{PLAN_LABEL}={self.namespace}")
        elif plural in _OF_THE_WORLD:
            request.set_query(labelSelector=f"{WORLD_LABEL}={self.world}")
        elif plural == "namespaces":
            request.set_query(labelSelector=f"kubernetes.io/metadata.name={self.namespace}")
