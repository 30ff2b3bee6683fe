"""The kinds of crds/: the server takes them, and what each rule takes and refuses, word for word.

The cases are data: crd_cases/good/*.yaml are taken; crd_cases/bad/*.yaml are refused, with the text
of their first line `# expect: TEXT` in the message."""

import concurrent.futures
import json
import pathlib

CASES = pathlib.Path(__file__).resolve().parent.parent / "crd_cases"
ROOT = pathlib.Path(__file__).resolve().parents[3]
CRDS, REFERENCE = ROOT / "crds", ROOT / "docs" / "reference"
MAX_CRD_BYTES = 200 * 1024
CONTROLLER = "system:serviceaccount:tallyman-system:tallyman"
GROUP = "/apis/tallyman.dev/v1beta1"
EXPECT = "# expect: "
KUBECTL_AT_ONCE = 2


def _apply(cluster, file):
    """What kubectl says of the file; nothing is stored. Admissions are for the controller alone."""
    identity = [f"--as={CONTROLLER}"] if "kind: Admission\n" in file.read_text() else []
    return cluster.kubectl("create", "--dry-run=server", "-f", file, *identity, check=False)


def _for_each(cluster, directory, judge):
    """Runs the cases of a directory, and fails with all that went wrong."""
    files = sorted((CASES / directory).glob("*.yaml"))
    assert files, f"no case in {CASES / directory}"
    with concurrent.futures.ThreadPoolExecutor(KUBECTL_AT_ONCE) as pool:
        answers = list(pool.map(lambda file: _apply(cluster, file), files))
    wrong = [text for file, answer in zip(files, answers) if (text := judge(file, answer))]
    assert not wrong, f"{len(wrong)} of {len(files)} cases:\n" + "\n".join(wrong)
    return len(files)


def test_the_server_takes_the_kinds(context):
    context.session.install(context.cluster)
    for file in sorted(CRDS.glob("*.yaml")):
        assert file.stat().st_size < MAX_CRD_BYTES, f"{file.name}: {file.stat().st_size} bytes"
        crd = context.cluster.get_json(
            f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{file.stem}")
        conditions = {item["type"]: item for item in crd["status"]["conditions"]}
        assert conditions["Established"]["status"] == "True", f"{file.stem}: {conditions}"
        assert conditions["NamesAccepted"]["status"] == "True", f"{file.stem}: {conditions}"
        assert "NonStructuralSchema" not in conditions, f"{file.stem}: {conditions}"


def test_good_objects_are_taken(context):
    context.session.install(context.cluster)

    def judge(file, answer):
        if answer.returncode != 0 or answer.stderr:
            return f"{file.name}: should be taken without a warning: {answer.stderr.strip()}"
        return None

    context.note(f"{_for_each(context.cluster, 'good', judge)} cases")


def test_bad_objects_are_refused_in_plain_words(context):
    context.session.install(context.cluster)

    def judge(file, answer):
        first = file.read_text().splitlines()[0]
        if not first.startswith(EXPECT):
            return f"{file.name}: the first line should be '{EXPECT}TEXT'"
        expected = first.removeprefix(EXPECT).strip()
        if answer.returncode == 0:
            return f"{file.name}: should be refused with '{expected}', but was taken"
        if expected not in answer.stderr:
            return f"{file.name}: should say '{expected}', but says: {answer.stderr.strip()}"
        if "evaluat" in answer.stderr or "no such overload" in answer.stderr:
            return f"{file.name}: a rule broke instead of judging: {answer.stderr.strip()}"
        return None

    context.note(f"{_for_each(context.cluster, 'bad', judge)} cases")


def test_the_server_writes_the_defaults(context):
    cluster, name = context.cluster, context.name("defaults")
    context.session.install(cluster)
    context.apply({"apiVersion": "tallyman.dev/v1beta1", "kind": "Queue",
                   "metadata": {"name": name}, "spec": {"namespaceSelector": {}}})
    spec = cluster.get_json(f"{GROUP}/queues/{name}")["spec"]
    assert spec == {
        "namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO", "stopPolicy": "None",
        "fit": "Physical", "undeclaredResources": "RefuseDevices", "minRuntimeProtection": "0s",
        "podsReadyTimeout": "10m", "requeue": {"base": "60s", "max": "1h", "limit": 0},
        "preemption": {"withinQueue": "Never", "reclaimWithinCohort": "Never",
                       "borrowWithinCohort": {"policy": "Never"}},
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
    }, spec


def test_a_quantity_stays_as_its_user_wrote_it(context):
    cluster, name = context.cluster, context.name("text")
    context.session.install(cluster)
    amounts = [("cpu", 4), ("memory", "1E3"), ("pods", "1."), ("example.com/accel", "1u")]
    context.apply({"apiVersion": "tallyman.dev/v1beta1", "kind": "Queue",
                   "metadata": {"name": name},
                   "spec": {"namespaceSelector": {}, "resourceGroups": [{"flavors": [{
                       "name": "default", "resources": [
                           {"name": key, "nominalQuota": value} for key, value in amounts]}]}]}})
    flavor = cluster.get_json(f"{GROUP}/queues/{name}")["spec"]["resourceGroups"][0]["flavors"][0]
    seen = [(item["name"], item["nominalQuota"]) for item in flavor["resources"]]
    assert seen == amounts, seen


def _admission(namespace, name, **status):
    return json.dumps({
        "apiVersion": "tallyman.dev/v1beta1", "kind": "Admission",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"queue": "research", "jobUID": "7c0d7f3e-0000-4000-8000-000000000001"},
        "status": status})


def test_admissions_read_as_a_table(context):
    """One write makes spec and status: there is no status subresource."""
    cluster, namespace = context.cluster, context.namespace
    context.session.install(cluster)
    cluster.service_account_kubeconfig()
    token = cluster.service_account_token("tallyman-system", "tallyman")
    path = f"{GROUP}/namespaces/{namespace}/admissions"
    for body in (
            _admission(namespace, "train-a", state="Running", pods="4/4", flavor="h100",
                       devices="gpu.example.com=4"),
            _admission(namespace, "train-b", state="Pending", position=1, pos="1", pods="0/4",
                       devices="gpu.example.com=4", reason="DevicesExhausted",
                       message="needs 4 gpu.example.com at once, 2 free",
                       summary="DevicesExhausted: needs 4 gpu.example.com at once, 2 free"),
            _admission(namespace, "train-z", state="Pending", pos=">100", pods="0/1",
                       reason="BehindInQueue", summary="BehindInQueue")):
        name = json.loads(body)["metadata"]["name"]
        made = cluster.request("PATCH", f"{path}/{name}?fieldManager=tallyman&force=true", body,
                               "application/apply-patch+yaml", token)
        assert made["status"]["state"], made
    table = cluster.kubectl("-n", namespace, "get", "admissions").stdout.splitlines()
    assert table[0].split() == ["NAME", "QUEUE", "STATE", "POS", "PODS", "DEVICES", "FLAVOR",
                                "REASON", "AGE"], table[0]
    assert table[1].split()[:6] == ["train-a", "research", "Running", "4/4", "gpu.example.com=4",
                                    "h100"], table[1]
    assert "DevicesExhausted: needs 4 gpu.example.com at once, 2 free" in table[2], table[2]
    assert ">100" in table[3], table[3]
    waiting = cluster.kubectl("-n", namespace, "get", "admissions", "-o", "name",
                              "--field-selector=status.state=Pending,spec.queue=research")
    waiting = waiting.stdout.split()
    assert len(waiting) == 2, waiting
    for line in table:
        context.note(line)


def test_queues_read_as_a_table(context):
    cluster, name = context.cluster, context.name("table")
    context.session.install(cluster)
    context.apply({"apiVersion": "tallyman.dev/v1beta1", "kind": "Queue",
                   "metadata": {"name": name}, "spec": {"cohort": "lab", "namespaceSelector": {}}})
    token = cluster.service_account_token("tallyman-system", "tallyman")
    cluster.request("PATCH", f"{GROUP}/queues/{name}/status", {"status": {
        "observedGeneration": 1, "pending": 2, "admitted": 0, "usage": "4/6 gpu.example.com",
        "flavors": [{"name": "h100", "resources": [
            {"name": "gpu.example.com", "nominal": "6", "used": "4"}]}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "works",
                        "lastTransitionTime": "2026-11-29T12:00:00Z"}]}}, token=token)
    table = cluster.kubectl("get", "tq", name).stdout.splitlines()
    assert table[0].split() == ["NAME", "COHORT", "STRATEGY", "PENDING", "ADMITTED", "USAGE",
                                "READY", "AGE"], table[0]
    assert table[1].split()[:-1] == [name, "lab", "BestEffortFIFO", "2", "0", "4/6",
                                     "gpu.example.com", "True"], table[1]
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=5s", f"queues.tallyman.dev/{name}")
    listed = cluster.kubectl("get", "tallyman", "-o", "name").stdout
    assert f"queue.tallyman.dev/{name}" in listed, listed
    for line in table:
        context.note(line)


def test_explain_tells_what_a_field_means(context):
    context.session.install(context.cluster)
    for kind, texts in (
            ("queues.spec", ("namespaceSelector", "every namespace", "starvationBound")),
            ("cohorts.spec", ("parentName", "top of its tree")),
            ("resourceflavors.spec.health", ("quarantine", "after the cause is gone")),
            ("admissions.status", ("explanation", "Reason and message in one line"))):
        answer = context.cluster.kubectl("explain", "--api-version=tallyman.dev/v1beta1", kind)
        answer = " ".join(answer.stdout.split())  # explain breaks lines at its own places
        for text in texts:
            assert text in answer, f"explain {kind} should say '{text}': {answer}"


def _undescribed(schema, path):
    """The paths of fields without a description."""
    for name, item in schema.get("properties", {}).items():
        if not item.get("description") and name != "metadata":
            yield f"{path}.{name}"
        yield from _undescribed(item, f"{path}.{name}")
        if isinstance(item.get("items"), dict):
            yield from _undescribed(item["items"], f"{path}.{name}[]")


def _unbounded(schema, path):
    """The paths of strings, lists and maps without a limit."""
    bound = {"string": "maxLength", "array": "maxItems"}.get(schema.get("type"))
    is_open = bound and bound not in schema and "enum" not in schema and "format" not in schema
    is_open_map = "additionalProperties" in schema and "maxProperties" not in schema
    if is_open or is_open_map:
        yield path
    for name, item in schema.get("properties", {}).items():
        if path or name not in ("apiVersion", "kind", "metadata"):
            yield from _unbounded(item, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _unbounded(schema[key], f"{path}[]")


def test_every_field_has_a_description_and_a_limit(context):
    context.session.install(context.cluster)
    for file in sorted(CRDS.glob("*.yaml")):
        crd = context.cluster.get_json(
            f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{file.stem}")
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert not (bare := list(_undescribed(schema, ""))), f"{file.stem}: no description: {bare}"
        assert not (bare := list(_unbounded(schema, ""))), f"{file.stem}: no limit: {bare}"


def _schema(cluster, plural):
    crd = cluster.get_json(
        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.tallyman.dev")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema["properties"]["spec"]["properties"]


OF_QUEUES_ALONE = "lendingLimit is larger than nominalQuota; lend at most what is owned"


def _rules(value):
    """The schema without its prose, which may differ from kind to kind, and without that rule."""
    if not isinstance(value, dict):
        return [_rules(item) for item in value] if isinstance(value, list) else value
    kept = {}
    for key, item in value.items():
        if key == "x-kubernetes-validations":
            item = [rule for rule in item if rule["message"] != OF_QUEUES_ALONE]
        if key != "description" and item != [] or isinstance(item, dict):
            kept[key] = _rules(item)
    return kept


def test_cohorts_and_queues_have_the_same_rules_for_quota(context):
    """So the cases of Queues speak for Cohorts too. A Cohort may lend more than its own nominalQuota:
    what is below it counts as well."""
    context.session.install(context.cluster)
    queue, cohort = (_schema(context.cluster, plural) for plural in ("queues", "cohorts"))
    assert OF_QUEUES_ALONE in json.dumps(queue) and OF_QUEUES_ALONE not in json.dumps(cohort)
    for field in ("resourceGroups", "fairSharing"):
        assert _rules(queue[field]) == _rules(cohort[field]), f"spec.{field} differs"


def _paths(schema, prefix=""):
    for name, item in schema.get("properties", {}).items():
        yield f"{prefix}{name}"
        yield from _paths(item, f"{prefix}{name}.")
        if isinstance(item.get("items"), dict):
            yield from _paths(item["items"], f"{prefix}{name}[].")


def test_the_reference_names_every_field(context):
    context.session.install(context.cluster)
    for file in sorted(CRDS.glob("*.yaml")):
        crd = context.cluster.get_json(
            f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{file.stem}")["spec"]
        schema = crd["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        page = (REFERENCE / f"{crd['names']['singular']}.md").read_text()
        missing = [path for part in ("spec", "status") for path in _paths(schema[part])
                   if f"| `{path}`" not in page]
        assert not missing, f"docs/reference/{crd['names']['singular']}.md lacks {missing}"


def test_the_largest_queue_is_taken(context):
    """All lists and names at their limits: the rules' cost stays within the server's budget."""
    context.session.install(context.cluster)
    quota = {"nominalQuota": "9223372036854775807", "borrowingLimit": "1000000n",
             "lendingLimit": "1Ei"}
    groups = [{"flavors": [
        {"name": f"flavor-{group}-{flavor}".ljust(63, "x"), "resources": [
            {"name": f"class-{group}-{number}.example.com".ljust(120, "x"), **quota}
            for number in range(16)]} for flavor in range(32)]} for group in range(8)]
    made = context.cluster.request("POST", f"{GROUP}/queues?dryRun=All", {
        "apiVersion": "tallyman.dev/v1beta1", "kind": "Queue",
        "metadata": {"name": context.name("large")[:63]},
        "spec": {"cohort": "lab", "namespaceSelector": {}, "resourceGroups": groups}})
    assert len(made["spec"]["resourceGroups"]) == len(groups)
