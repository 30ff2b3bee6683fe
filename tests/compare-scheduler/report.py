"""What is said at the end, and the files in which the differences can be seen again."""

import collections
import random
import re

import shrink
from lib import manifests

SHRINK_MAX = 2   # failures that are made small; the others are written as they were


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
        if number < SHRINK_MAX and not arguments.as_it_was:
            case = shrink.make_case(failure.world, failure.state, failure.jobs)
            _made_small(case, path, lines, lanes, arguments.bin, say)
        else:
            write(path, lines, failure.world, failure.state, failure.jobs)
            say(f"  see {path}")


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
    say(f"  to {tally.exact} of these there is one right answer")
    sentences = collections.Counter((item.reason, _sentence(item.message, item.world))
                                    for item in tally.careful)
    for (reason, sentence), count in sentences.most_common():
        say(f"    {count} x {reason}: {sentence}")
    plain = [item for item in tally.careful if item.is_exact]
    rest = [item for item in tally.careful if not item.is_exact]
    for item in plain + rest[:arguments.show]:
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
