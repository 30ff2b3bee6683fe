"""S4: a device that several pods share by one claim is one device until the last of them leaves."""

from lib import manifests
from lib.cluster import stays
from lib.gangs import Gangs

CLASS = "gpu.example.com"
NODE = {"kubernetes.io/hostname": "worker-1"}


class OneCard:
    """One node with one card, a queue with room for several, and a claim `mps` to share."""

    def __init__(self, context):
        self.cluster = context.own_cluster(nodes=1, devices=1)
        self.namespace = context.namespace_in(self.cluster)
        self.gangs = Gangs(self.cluster, self.namespace)
        self.controller = context.controller(cluster=self.cluster)
        self.cluster.apply(manifests.queue("cards", {CLASS: "8", "cpu": "8"}),
                           manifests.claim("mps", self.namespace),
                           manifests.claim_template("exclusive", self.namespace))

    def job(self, name, **more):
        more.setdefault("pods", 1)
        self.gangs.create(manifests.job(name, self.namespace, queue="cards", **more))

    def is_complete(self, name):
        return self.cluster.has_condition(self.namespace, name, "Complete")

    def reserved_for(self, namespace=None):
        claim = self.cluster.get_json(f"/apis/resource.k8s.io/v1/namespaces/"
                                      f"{namespace or self.namespace}/resourceclaims/mps")
        return claim.get("status", {}).get("reservedFor", [])

    def wait_sharers(self, count):
        self.cluster.wait_for(lambda: len(self.reserved_for()) == count, 10,
                              f"the claim reserved for {count} pods")

    def says_used_up(self, name):
        """The sentence of a Job that wants the card for itself."""
        message = self.gangs.wait_reason(name, "DevicesExhausted")
        assert f"needs 1 {CLASS} at once, 0 of 1 " in message, message
        return message


def test_a_card_shared_by_two_pods_is_used_once(context):
    card = OneCard(context)
    gangs = card.gangs
    card.job("early", claims=["mps"], run_for="8s")
    gangs.wait_ready("early", 1)
    card.job("late", claims=["mps"], run_for="14s")
    gangs.wait_ready("late", 1)
    assert len(card.reserved_for()) == 2, card.reserved_for()
    gangs.wait_used("cards", CLASS, "1")
    card.job("wants-it-alone", claim_templates=["exclusive"])
    message = card.says_used_up("wants-it-alone")
    context.note(f"two pods share it; a third that wants it alone: {message}")

    card.job("cpu-only", node_selector=NODE)
    gangs.wait_ready("cpu-only", 1, 10)
    gangs.wait_used("cards", CLASS, "1")

    gangs.wait_complete("early")
    card.wait_sharers(1)
    stays(lambda: not gangs.is_started("wants-it-alone") and gangs.used("cards", CLASS) == "1", 1.5,
          "the card stays used while the second pod has it")
    assert "0 of 1 " in gangs.summary("wants-it-alone")
    assert not card.is_complete("late"), "the test's second pod has ended too early"

    gangs.wait_complete("late")
    gangs.wait_ready("wants-it-alone", 1)
    gangs.wait_used("cards", CLASS, "1")


def test_a_gang_that_shares_one_claim_is_charged_one_device(context):
    card = OneCard(context)
    gangs = card.gangs
    card.job("many", pods=16, claims=["mps"], run_for="12s")
    gangs.wait_ready("many", 16)
    assert len(card.reserved_for()) == 16
    gangs.wait_used("cards", CLASS, "1")
    assert gangs.status("many")["devices"] == f"{CLASS}=1", gangs.status("many")
    gangs.wait_complete("many")
    gangs.wait_used("cards", CLASS, "0")
    card.wait_sharers(0)


def test_a_claim_of_the_same_name_elsewhere_is_another_claim(context):
    card = OneCard(context)
    other = f"{card.namespace}-b"
    card.cluster.apply(manifests.namespace(other), manifests.claim("mps", other))
    elsewhere = Gangs(card.cluster, other)
    card.job("here", claims=["mps"], run_for="6s")
    card.gangs.wait_ready("here", 1)
    elsewhere.create(manifests.job("there", other, pods=1, queue="cards", claims=["mps"]))
    message = elsewhere.wait_reason("there", "DevicesExhausted")
    assert "0 of 1 " in message, message
    assert not card.reserved_for(other), "the other namespace's claim has got a device"
    card.gangs.wait_complete("here")
    elsewhere.wait_ready("there", 1)
    card.gangs.wait_used("cards", CLASS, "1")


def test_foreign_pods_that_share_a_card_use_it_once(context):
    """The pods of plain Jobs count as the queued ones do, and come off once."""
    card = OneCard(context)
    card.gangs.create(manifests.job("foreign", card.namespace, pods=2, claims=["mps"],
                                    run_for="6s"))
    card.gangs.wait_ready("foreign", 2)
    card.job("wants-it-alone", claim_templates=["exclusive"])
    card.says_used_up("wants-it-alone")
    card.job("cpu-only", node_selector=NODE)
    card.gangs.wait_ready("cpu-only", 1, 10)
    card.gangs.wait_used("cards", CLASS, "0")
    card.gangs.wait_complete("foreign")
    card.gangs.wait_ready("wants-it-alone", 1)
