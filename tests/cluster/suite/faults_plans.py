"""The controller killed at exact writes, shown an older state, or kept from seeing changes one by one,
by the proxy before the real API server. A sample; `make test-faults` plays all plans."""

from proxy import plans, worlds

SLOTS = 10
SAMPLE = 40
SEED = 20261130


def test_each_story_ends_alike_whatever_happens_at_its_writes(context):
    if context.session.binary is None:
        context.skip("needs the tallyman binary: give its path with --bin")
    cluster = context.own_cluster(nodes=SLOTS * worlds.NODES)
    context.session.install(cluster)
    worlds.prepare(cluster, SLOTS)
    teller = plans.Teller(cluster, cluster.service_account_token("tallyman-system", "tallyman"),
                          context.session.binary, context.session.scratch / context.suffix, SLOTS,
                          context.note)
    teller.tell_references()
    every = teller.plans()
    chosen = plans.sample(every, SAMPLE, SEED)
    outcomes = list(teller.tell_all([(plan.story, plan) for plan in chosen]))
    fired = sum(outcome.is_fired for outcome in outcomes)
    context.note(f"{len(chosen)} of {len(every)} plans; {fired} came to their write")
    failed = [f"{outcome.plan}:\n" + "\n".join(outcome.problems) + f"\n{outcome.log}"
              for outcome in outcomes if outcome.problems]
    assert not failed, "\n\n".join(failed)
    assert fired >= SAMPLE * 3 // 4, f"only {fired} of {SAMPLE} plans came to their write"
