"""That the harness starts, kills, stops and measures the program under test: shown with a stand-in
that answers on the same paths, so that it holds without a build too."""

import pathlib
import signal
import sys
import tempfile
import textwrap

from lib.controller import Controller

STAND_IN = """\
    #!{python}
    import http.server, os, pathlib, signal, sys
    options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
    print("arguments", sys.argv[1], *sorted(options), flush=True)
    starts = pathlib.Path(options["--store"], "starts")
    starts.write_text(starts.read_text() + "x" if starts.exists() else "x")
    if "--refuse" in options:
        sys.exit("cannot start: " + options["--refuse"])
    if "--crash" in options:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    elif "--deaf" in options:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            known = {{"/readyz": "ok", "/metrics": '# HELP a b\\na{{q="x y"}} 3\\nb 1.5\\n'}}
            self.send_response(200 if self.path in known else 404)
            self.end_headers()
            self.wfile.write(known.get(self.path, "").encode())
        def log_message(self, *_):
            pass
    host, port = options["--http"].split(":")
    http.server.HTTPServer((host, int(port)), Handler).serve_forever()
"""


def _controller(context, *arguments):
    directory = pathlib.Path(tempfile.mkdtemp(dir=context.session.scratch))
    program = directory / "stand-in"
    program.write_text(textwrap.dedent(STAND_IN).format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    controller = Controller(program, "no-kubeconfig", directory / "store", directory / "log",
                            arguments)
    context.defer(controller.kill9)
    return controller


def test_the_controller_is_started_killed_and_restarted(context):
    controller = _controller(context).start()
    first = controller.process.pid
    assert "arguments run --http --identity --kubeconfig --store" in controller.log_text()
    assert controller.metrics() == {'a{q="x y"}': 3.0, "b": 1.5}
    assert controller.http("/nowhere")[0] == 404
    assert controller.memory_bytes() > 1_000_000 and controller.cpu_seconds() > 0
    controller.kill9()
    assert controller.process.returncode == -signal.SIGKILL and not controller.is_alive()
    controller.restart()
    assert controller.process.pid != first and controller.is_ready()
    assert controller.stop() == 0, "ended by itself on SIGTERM"
    assert (controller.store / "starts").read_text() == "xx", "the store outlives a restart"
    assert controller.log_text().count("---- start") == 2, "and so does the log"


def test_a_controller_that_cannot_start_shows_its_log(context):
    controller = _controller(context, "--refuse", "the store is foreign")
    try:
        controller.start()
    except AssertionError as error:
        assert "ended with status 1" in str(error) and "the store is foreign" in str(error), error
    else:
        raise AssertionError("a program that ended was taken for ready")


def test_a_controller_that_does_not_stop_is_reported_and_killed(context):
    controller = _controller(context, "--deaf", "yes").start()
    try:
        controller.stop(timeout_s=1)
    except AssertionError as error:
        assert "didn't end within 1 s of SIGTERM" in str(error), error
    else:
        raise AssertionError("it was said to have ended")
    assert not controller.is_alive()


def test_a_controller_that_crashes_fails_its_test(context):
    well, killed = _controller(context).start(), _controller(context).start()
    well.finish()
    killed.kill9()
    killed.finish()  # that was our own doing
    for crashing, moment in ((_controller(context, "--crash", "yes"), "on SIGTERM"),
                             (_controller(context), "on its own")):
        crashing.start()
        if moment == "on its own":
            crashing.process.kill()
            crashing.process.wait()
        try:
            crashing.finish()
        except AssertionError as error:
            assert f"ended {moment} with status" in str(error), error
        else:
            raise AssertionError(f"an end {moment} went unseen")
