"""What config/rbac allows: to the controller what it needs and nothing beyond, to users what they
read; and that the pod of config/manager may run where pod security `restricted` is enforced."""

import json
import pathlib

CONTROLLER = "system:serviceaccount:tallyman-system:tallyman"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CONFIG = pathlib.Path(__file__).resolve().parents[3] / "config"
READ = ("get", "list", "watch")
FOLLOW = ("list", "watch")
WRITE = ("create", "update", "patch", "delete", "deletecollection")

# (group, resource, the verbs on it in every namespace)
NEEDED = (
    ("batch", "jobs", (*READ, "patch")),
    ("", "pods", (*FOLLOW, "patch")), ("", "nodes", FOLLOW), ("", "namespaces", FOLLOW), ("", "limitranges", FOLLOW),
    ("node.k8s.io", "runtimeclasses", FOLLOW),
    ("scheduling.k8s.io", "priorityclasses", FOLLOW),
    ("resource.k8s.io", "resourceclaims", FOLLOW),
    ("resource.k8s.io", "resourceclaimtemplates", FOLLOW),
    ("resource.k8s.io", "resourceslices", FOLLOW),
    ("resource.k8s.io", "deviceclasses", FOLLOW),
    ("resource.k8s.io", "devicetaintrules", FOLLOW),
    ("tallyman.dev", "queues", (*FOLLOW, "patch")),
    ("tallyman.dev", "cohorts", FOLLOW), ("tallyman.dev", "resourceflavors", FOLLOW),
    ("tallyman.dev", "queues/status", ("patch",)),
    ("tallyman.dev", "cohorts/status", ("patch",)),
    ("tallyman.dev", "resourceflavors/status", ("patch",)),
    ("tallyman.dev", "admissions", (*FOLLOW, "create", "patch", "delete")),
    ("autoscaling.x-k8s.io", "provisioningrequests", (*FOLLOW, "create", "patch", "delete")),
    ("", "podtemplates", ("create", "update")),
    ("events.k8s.io", "events", ("create",)),
    ("authentication.k8s.io", "tokenreviews", ("create",)),
    ("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)
# Looked at as well, and not one verb of it is the controller's.
FOREIGN = (
    ("", "secrets"), ("", "configmaps"), ("", "serviceaccounts"), ("", "serviceaccounts/token"),
    ("", "pods/exec"), ("", "pods/status"), ("", "pods/eviction"), ("", "events"),
    ("batch", "jobs/status"), ("batch", "cronjobs"), ("apps", "deployments"),
    ("resource.k8s.io", "resourceclaims/status"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("coordination.k8s.io", "leases"),
)


def _may(cluster, user, verb, group, resource, namespace="", name="", groups=()):
    resource, _, subresource = resource.partition("/")
    answer = cluster.request("POST", REVIEWS, {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": list(groups), "resourceAttributes": {
            "verb": verb, "group": group, "resource": resource, "subresource": subresource,
            "namespace": namespace, "name": name}}})
    return answer["status"]["allowed"]


def _controller_may(cluster, verb, group, resource, namespace="", name=""):
    return _may(cluster, CONTROLLER, verb, group, resource, namespace, name,
                ("system:serviceaccounts", "system:serviceaccounts:tallyman-system",
                 "system:authenticated"))


def test_the_controller_has_the_rights_it_needs_and_no_other(context):
    cluster = context.cluster
    context.session.install(cluster)
    wanted = {(group, resource): verbs for group, resource, verbs in NEEDED}
    wanted.update({key: () for key in FOREIGN})
    for (group, resource), verbs in wanted.items():
        for verb in READ + WRITE:
            seen = _controller_may(cluster, verb, group, resource)
            assert seen == (verb in verbs), f"{verb} {resource}.{group}: allowed is {seen}"
    assert _controller_may(cluster, "get", "", "namespaces", name="kube-system")
    assert not _controller_may(cluster, "get", "", "namespaces", name="default")
    context.note(f"{len(wanted)} resources, {len(READ + WRITE)} verbs each")


def test_the_lease_is_one_of_the_controllers_own_namespace(context):
    cluster, lease = context.cluster, ("coordination.k8s.io", "leases")
    context.session.install(cluster)
    for verb in ("get", "update"):
        assert _controller_may(cluster, verb, *lease, "tallyman-system", "tallyman"), verb
        assert not _controller_may(cluster, verb, *lease, "tallyman-system", "other"), verb
        assert not _controller_may(cluster, verb, *lease, "kube-system", "tallyman"), verb
    assert _controller_may(cluster, "create", *lease, "tallyman-system")
    assert not _controller_may(cluster, "create", *lease, "kube-system")
    assert not _controller_may(cluster, "patch", *lease, "tallyman-system", "tallyman")
    assert not _controller_may(cluster, "delete", *lease, "tallyman-system", "tallyman")


def test_no_role_of_ours_has_a_wildcard(context):
    cluster = context.cluster
    context.session.install(cluster)
    api = "/apis/rbac.authorization.k8s.io/v1"
    roles = [role for path in (f"{api}/clusterroles", f"{api}/namespaces/tallyman-system/roles")
             for role in cluster.items(path) if role["metadata"]["name"].startswith("tallyman-")]
    assert len(roles) == 6, [role["metadata"]["name"] for role in roles]
    for role in roles:
        assert "*" not in json.dumps(role["rules"]), f"{role['metadata']['name']}: {role['rules']}"


def test_who_may_view_a_namespace_may_read_its_admissions(context):
    cluster, namespace = context.cluster, context.namespace
    context.session.install(cluster)
    cluster.kubectl("-n", namespace, "create", "rolebinding", "reads", "--clusterrole=view",
                    "--user=rita")

    def reads():
        return all(_may(cluster, "rita", verb, "tallyman.dev", "admissions", namespace)
                   for verb in READ)

    cluster.wait_for(reads, 10, "the view role holds the rights on admissions")
    for verb in WRITE:
        assert not _may(cluster, "rita", verb, "tallyman.dev", "admissions", namespace), verb
    assert not _may(cluster, "rita", "list", "tallyman.dev", "admissions", "kube-system")
    assert not _may(cluster, "rita", "list", "tallyman.dev", "queues")


def test_queues_are_for_the_admin_to_give(context):
    """The edit role of a namespace gives none of them; tallyman-queue-admin, bound, gives all."""
    cluster, namespace = context.cluster, context.namespace
    context.session.install(cluster)
    cluster.kubectl("-n", namespace, "create", "rolebinding", "edits", "--clusterrole=edit",
                    "--user=eddi")
    binding = context.name("owns")
    context.defer(cluster.kubectl, "delete", "clusterrolebinding", binding)
    cluster.kubectl("create", "clusterrolebinding", binding, "--clusterrole=tallyman-queue-admin",
                    "--user=olga")
    for kind in ("queues", "cohorts", "resourceflavors"):
        for verb in READ + WRITE:
            cluster.wait_for(lambda: _may(cluster, "olga", verb, "tallyman.dev", kind), 10,
                             f"olga may {verb} {kind}")
            assert not _may(cluster, "eddi", verb, "tallyman.dev", kind, namespace), (verb, kind)
    assert not _may(cluster, "olga", "patch", "tallyman.dev", "queues/status")


def test_the_pod_may_run_where_restricted_is_enforced(context):
    """The namespace enforces and warns; a pod made from the StatefulSet's template is taken."""
    cluster, namespace = context.cluster, context.namespace
    context.session.install(cluster)
    labels = cluster.get_json("/api/v1/namespaces/tallyman-system")["metadata"]["labels"]
    enforced = {key: value for key, value in labels.items() if key.startswith("pod-security")}
    assert enforced["pod-security.kubernetes.io/enforce"] == "restricted", labels
    cluster.kubectl("label", "namespace", namespace, *(f"{k}={v}" for k, v in enforced.items()))
    text = (CONFIG / "manager" / "statefulset.yaml").read_text()
    text = text.replace("namespace: tallyman-system", f"namespace: {namespace}")
    made = cluster.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=text)
    assert not made.stderr, made.stderr
    template = cluster.get_json(
        "/apis/apps/v1/namespaces/tallyman-system/statefulsets/tallyman")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": "probe", "namespace": "tallyman-system"}, "spec": {
               **template["spec"], "volumes": [
                   {"name": "store", "persistentVolumeClaim": {"claimName": "store-tallyman-0"}}]}}
    path = "/api/v1/namespaces/tallyman-system/pods?dryRun=All"
    cluster.request("POST", path, pod)
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    status, text = cluster.api.exchange("POST", path, pod)
    assert status == 403 and "violates PodSecurity" in text, f"{status} {text}"


def test_installing_again_changes_nothing(context):
    """kubectl can't compare the claims in a StatefulSet with what the server made of them; all
    else reads `unchanged`."""
    cluster = context.cluster
    context.session.install(cluster)
    again = cluster.kubectl("apply", "-k", CONFIG / "default")
    changed = [line for line in again.stdout.splitlines() if not line.endswith(" unchanged")]
    assert changed in ([], ["statefulset.apps/tallyman configured"]), changed
    assert not again.stderr, again.stderr
    difference = cluster.kubectl("diff", "-k", CONFIG / "default", check=False)
    assert difference.returncode == 0, difference.stdout + difference.stderr
