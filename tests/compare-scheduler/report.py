"""What is said at the end, and the files in which the differences can be seen again."""

import collections
import random
import re

import shrink
from lib import manifests

SHRINK_MAX = 3   # failures that are made small; the others are written as they were


def write(path, lines, world, objects, jobs):
    """Manifests for `tallyman plan -f`, below what they show."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"# {line}\n" for line in lines) +
                    manifests.to_yaml(*world.config(), *objects, *jobs), encoding="utf-8")


def write_case(path, lines, case, lanes):
    world = case.in_lane(case.lane, lanes.namespace)
    objects = world.nodes + world.slices + world.classes + world.named + world.foreign
    for item in objects:
        if item["kind"] == "Node":
            item["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    write(path, lines, world, objects, world.jobs)


def _made_small(case, path, lines, lanes, binary, say):
    shrinker = shrink.Shrinker(lanes, binary, random.Random(case.lane))
    small = shrinker.shrink(case, say)
    if small is None:
        lines.append("(It couldn't be seen again: the state is as it was.)")
        small = case
    write_case(path, lines, small, lanes)
    say(f"  see {path}")


def report_failures(tally, arguments, lanes, say):
    for number, failure in enumerate(tally.failures):
        lane = failure.world.lane
        lines = [f"seed {arguments.seed}, world {lane}: admitted, and not placed whole.",
                 f"Pods in the order of their creation: {' '.join(failure.order)}"]
        lines += [f"{pod}: {text}" for pod, text in sorted(failure.unplaced.items())]
        lines += [f"{pod} on {node}" for pod, node in sorted(failure.where.items()) if node]
        for line in lines:
            say("  " + line)
        say(f"  again: --seed {arguments.seed} --first {lane[1:]} --worlds 1")
        path = arguments.out / f"{arguments.seed}-{lane}.yaml"
        if number < SHRINK_MAX:
            case = shrink.make_case(failure.world, failure.state, failure.jobs)
            _made_small(case, path, lines, lanes, arguments.bin, say)
        else:
            write(path, lines, failure.world, failure.state, failure.jobs)
            say(f"  see {path}")


def _has_its_devices(job, state):
    """All claims that its pods name have been allocated: nothing is left to choose."""
    allocated = {item["metadata"]["name"] for item in state if item["kind"] == "ResourceClaim"
                 and "allocation" in item.get("status", {})}
    return all(use.get("resourceClaimName") in allocated
               for use in job["spec"]["template"]["spec"].get("resourceClaims", []))


def is_plain(item):
    """Nothing that makes the answer depend on the scheduler's choice among devices or nodes."""
    spec = item.job["spec"]["template"]["spec"]
    together = {"podAntiAffinity", "podAffinity"} & set(spec.get("affinity", {}))
    has_ports = any("ports" in container for container in spec["containers"])
    return _has_its_devices(item.job, item.state) and not (
        together or has_ports or "topologySpreadConstraints" in spec)


def _sentence(message, world):
    """The message as all its like read."""
    return re.sub(r"\d+[a-zA-Z]*", "N", re.sub(rf"[\w.-]*\b{world.lane}\b[\w./-]*", "X", message))


def report_careful(tally, arguments, lanes, say):
    """How often it waits where the scheduler, left alone, happens to place it whole. Those for which
    there is no excuse."""
    by_reason = collections.Counter(item.reason for item in tally.careful)
    for reason, tried in sorted(tally.judged.items()):
        say(f"  {reason}: {tally.waiting[reason]} waited, {tried} of them tried alone, "
            f"{by_reason[reason]} placed whole")
    sentences = collections.Counter((item.reason, _sentence(item.message, item.world))
                                    for item in tally.careful)
    for (reason, sentence), count in sentences.most_common():
        say(f"    {count} x {reason}: {sentence}")
    plain = [item for item in tally.careful if is_plain(item)]
    for item in plain + [item for item in tally.careful if item not in plain][:arguments.show]:
        name = item.job["metadata"]["name"]
        say(f"    {name}: {item.reason}: {item.message}")
        path = arguments.out / f"careful-{arguments.seed}-{name}.yaml"
        lines = [f"{name} waits, and was placed whole.", f"{item.reason}: {item.message}"]
        case = shrink.make_case(item.world, item.state, [item.job], name)
        if arguments.shrink_careful:
            _made_small(case, path, lines, lanes, arguments.bin, say)
        else:
            write_case(path, lines, case, lanes)
            say(f"    see {path}")
    return plain
