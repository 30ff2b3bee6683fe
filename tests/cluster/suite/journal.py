"""The journal that `tallyman run --journal FILE` keeps."""

from lib import manifests


def test_a_full_disk_under_the_journal_is_told_and_stops_nothing(context):
    context.session.install(context.cluster)
    controller = context.controller(arguments=["--journal", "/dev/full"])
    context.cluster.wait_for(
        lambda: "the journal can't be written; going on without it" in controller.log_text(), 10,
        "a log line about it")
    queue = context.name("q")
    context.cluster.apply(manifests.queue(queue, {"cpu": "1"}))
    context.defer(lambda: context.cluster.kubectl("delete", "queues.tallyman.dev", queue,
                                                  "--wait=false", check=False))
    context.cluster.create_many(f"/apis/batch/v1/namespaces/{context.namespace}/jobs",
                                [manifests.job("gang", context.namespace, pods=1, queue=queue)])
    context.cluster.wait_for(
        lambda: not context.cluster.job(context.namespace, "gang")["spec"]["suspend"], 20,
        "the gang admitted all the same")
    assert controller.log_text().count("the journal can't be written") == 1, "told once"
