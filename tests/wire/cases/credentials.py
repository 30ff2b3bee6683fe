"""Who the client says it is, and what it does when the server doesn't believe it."""
import asyncio
import json
import os
import re
import sys
import time

from wirelib.objects import JOBS, added, bookmark, seen

JOB = "/apis/batch/v1/namespaces/ns/jobs/a"
V1 = "client.authentication.k8s.io/v1"


def plugin(bench, body, **more):
    """A credential plugin in Python; `body` has json, os, sys, time and show(status)."""
    text = (f"#!{sys.executable}\nimport json, os, sys, time\n"
            f"def show(status, version={V1!r}):\n"
            "    print(json.dumps({'apiVersion': version, 'kind': 'ExecCredential',\n"
            "                      'status': status}))\n" + body)
    bench.write("plugin", text, 0o700)
    # A path that begins with "./" is relative to the kubeconfig.
    return {"exec": {"apiVersion": V1, "command": "./plugin", "interactiveMode": "IfAvailable",
                     **more}}


async def asked(bench, user, *arguments):
    server = await bench.server()
    client = await bench.client(server, *arguments, user=user)
    client.tell("get Job ns a")
    return server, client


async def test_token(bench):
    server, client = await asked(bench, {"token": "abc"})
    request = await server.next(JOB)
    assert request.headers["authorization"] == "Bearer abc"
    await request.answer(200, "{}")
    await client.expect(re.compile("^get done"))
    await client.quit()


async def test_basic(bench):
    server, client = await asked(bench, {"username": "Aladdin", "password": "open sesame"})
    request = await server.next(JOB)
    assert request.headers["authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    await client.quit()


async def test_nobody(bench):
    server, client = await asked(bench, {})
    assert "authorization" not in (await server.next(JOB)).headers
    await client.quit()


async def test_a_fixed_token_that_is_refused(bench):
    server, client = await asked(bench, {"token": "abc"})
    await (await server.next(JOB)).refuse(401, "Unauthorized")
    await client.expect(re.compile("^get forbidden code=401"))
    await server.nothing(0.1)
    await client.quit()


async def test_a_token_with_a_line_break_adds_no_header(bench):
    client = await bench.run("--kubeconfig", bench.kubeconfig(
        "http://127.0.0.1:1", {"token": "abc\r\nX-Evil: 1"}))
    await client.expect(re.compile("^error invalid: .*token is not a bearer token"))
    assert await client.ended() == 1


async def test_token_file_is_read_anew_after_a_401(bench):
    path = bench.write("token", "old\n")
    server, client = await asked(bench, {"tokenFile": path})
    request = await server.next(JOB)
    assert request.headers["authorization"] == "Bearer old"
    bench.write("token", "new\n")
    await request.refuse(401, "Unauthorized")
    request = await server.next(JOB)
    assert request.headers["authorization"] == "Bearer new"
    await request.answer(200, "{}")
    await client.expect(re.compile("^get done code=200"))
    await client.quit()


async def test_token_file_is_read_anew_in_time(bench):
    path = bench.write("token", "old\n")
    server, client = await asked(bench, {"tokenFile": path}, "--reread-ms", "400")
    request = await server.next(JOB)
    bench.write("token", "new\n")
    await request.answer(200, "{}")
    await client.expect(re.compile("^get done"))
    await asyncio.sleep(0.5)
    client.tell("get Job ns a")
    request = await server.next(JOB)
    assert request.headers["authorization"] == "Bearer new"
    await request.answer(200, "{}")
    await client.expect(re.compile("^get done"))
    os.remove(path)
    await asyncio.sleep(0.5)
    client.tell("get Job ns a")
    request = await server.next(JOB)
    assert request.headers["authorization"] == "Bearer new", "the last one stays in use"
    await client.quit()


async def test_a_401_with_the_same_token_is_the_end(bench):
    path = bench.write("token", "old\n")
    server, client = await asked(bench, {"tokenFile": path})
    await (await server.next(JOB)).refuse(401, "Unauthorized")
    await client.expect(re.compile("^get forbidden code=401"))
    await server.nothing(0.1)
    await client.quit()


async def test_only_one_more_try_after_a_401(bench):
    path = bench.write("token", "one\n")
    server, client = await asked(bench, {"tokenFile": path})
    request = await server.next(JOB)
    bench.write("token", "two\n")
    await request.refuse(401, "Unauthorized")
    request = await server.next(JOB)
    bench.write("token", "three\n")
    await request.refuse(401, "Unauthorized")
    await client.expect(re.compile("^get forbidden code=401"))
    await client.quit()


async def test_a_watch_gets_the_new_token_too(bench):
    path = bench.write("token", "old\n")
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job", user={"tokenFile": path})
    stream = await server.next(JOBS)
    bench.write("token", "new\n")
    await stream.refuse(401, "Unauthorized")
    stream = await server.next(JOBS)
    assert stream.headers["authorization"] == "Bearer new"
    await stream.start()
    await stream.chunk(added("a", 5) + bookmark(6, is_end=True))
    await client.expect("sync_start Job", seen("ADDED", "a", 5), "synced Job")
    await client.quit()


async def test_a_token_file_that_is_missing(bench):
    client = await bench.run("--kubeconfig", bench.kubeconfig(
        "http://127.0.0.1:1", {"tokenFile": bench.path("nothing")}))
    await client.expect(re.compile("^error .*nothing: No such file"))
    assert await client.ended() == 1


async def test_the_account_of_a_pod(bench):
    server = await bench.server(bench.certificates.context())
    os.mkdir(bench.path("account"))
    bench.write("account/token", "pod-token\n")
    bench.write("account/namespace", "tallyman-system")
    with open(bench.certificates.path("ca.crt"), encoding="ascii") as file:
        bench.write("account/ca.crt", file.read())
    client = await bench.run("--account", bench.path("account"), "127.0.0.1", str(server.port))
    client.tell("get Job ns a")
    request = await server.next(JOB)
    assert request.headers["authorization"] == "Bearer pod-token"
    await request.answer(200, "{}")
    await client.expect(re.compile("^get done"))
    await client.quit()


async def test_plugin(bench):
    user = plugin(bench, "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
                  "assert info['kind'] == 'ExecCredential' and not info['spec']['interactive']\n"
                  "assert info['spec']['cluster']['server'].startswith('http://127')\n"
                  "assert os.environ['EXTRA'] == 'x=y' and sys.argv[1:] == ['--a', 'b c']\n"
                  "assert 'PATH' in os.environ\n"
                  "show({'token': 'from-plugin'})\n", args=["--a", "b c"], provideClusterInfo=True,
                  env=[{"name": "EXTRA", "value": "x=y"}])
    server, client = await asked(bench, user)
    request = await server.next(JOB)
    assert request.headers["authorization"] == "Bearer from-plugin"
    await request.answer(200, "{}")
    await client.expect(re.compile("^get done"))
    client.tell("get Job ns a")
    await (await server.next(JOB)).answer(200, "{}")
    await client.expect(re.compile("^get done"))
    assert await client.metric("client", "credentials") == 1, "what has no end is kept"
    await client.quit()


async def test_plugin_is_run_anew_after_a_401(bench):
    user = plugin(bench, "path = os.path.join(os.path.dirname(__file__), 'count')\n"
                  "open(path, 'a').write('x')\n"
                  "show({'token': 'n%d' % os.path.getsize(path)})\n")
    server, client = await asked(bench, user)
    request = await server.next(JOB)
    assert request.headers["authorization"] == "Bearer n1"
    await request.refuse(401, "Unauthorized")
    request = await server.next(JOB)
    assert request.headers["authorization"] == "Bearer n2"
    await request.answer(200, "{}")
    await client.expect(re.compile("^get done"))
    await client.quit()


async def test_plugin_whose_token_has_ended_is_not_run_in_a_loop(bench):
    user = plugin(bench, "path = os.path.join(os.path.dirname(__file__), 'count')\n"
                  "open(path, 'a').write('x')\n"
                  "show({'token': 't', 'expirationTimestamp': '2020-01-01T00:00:00Z'})\n")
    server, client = await asked(bench, user)
    for _ in range(5):
        await (await server.next(JOB)).answer(200, "{}")
        await client.expect(re.compile("^get done"))
        client.tell("get Job ns a")
    await server.next(JOB)
    assert os.path.getsize(bench.path("count")) == 1
    await client.quit()


async def test_plugin_is_run_anew_before_its_token_ends(bench):
    user = plugin(bench, "path = os.path.join(os.path.dirname(__file__), 'count')\n"
                  "open(path, 'a').write('x')\n"
                  "soon = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 5))\n"
                  "show({'token': 'n%d' % os.path.getsize(path), 'expirationTimestamp': soon})\n")
    server, client = await asked(bench, user, "--reread-ms", "300")
    for number in (1, 2):
        request = await server.next(JOB)
        assert request.headers["authorization"] == f"Bearer n{number}"
        await request.answer(200, "{}")
        await client.expect(re.compile("^get done"))
        await asyncio.sleep(0.4)
        client.tell("get Job ns a")
    await client.quit()


async def test_plugin_that_fails_is_quoted(bench):
    user = plugin(bench, "sys.stderr.write('please log in'); sys.exit(3)\n")
    _, client = await asked(bench, user)
    await client.expect(re.compile(r'^get retry code=0 maybe=0 .*context "wire" of .*kubeconfig: '
                                   r'exec plugin ".*/plugin": ended with status 3: please log in$'))
    await client.quit()


async def test_plugin_that_is_not_there(bench):
    user = plugin(bench, "", installHint="get it from example.com")
    os.remove(bench.path("plugin"))
    _, client = await asked(bench, user)
    await client.expect(re.compile("^get retry .*can't be run: no such file.*; "
                                   "get it from example.com$"))
    await client.quit()


async def test_plugin_that_hangs_is_killed(bench):
    user = plugin(bench, "time.sleep(60)\n")
    _, client = await asked(bench, user, "--exec-ms", "300")
    started = time.monotonic()
    await client.expect(re.compile("^get retry .*no credentials within 300 ms and was killed$"))
    assert time.monotonic() - started < 3
    await client.quit()


async def test_plugin_whose_child_keeps_the_pipe(bench):
    user = plugin(bench, "import subprocess\n"
                  "subprocess.Popen(['sleep', '5'])\nshow({'token': 'x'})\n")
    _, client = await asked(bench, user, "--exec-ms", "300")
    await client.expect(re.compile("^get (retry|done)"), timeout=3)
    await client.quit()


async def test_plugin_that_prints_without_end(bench):
    user = plugin(bench, "while True: print('y' * 10000)\n")
    _, client = await asked(bench, user)
    await client.expect(re.compile("^get retry .*printed more than 1048576 bytes$"), timeout=10)
    await client.quit()


async def test_plugin_that_prints_something_else(bench):
    for body, wanted in (("print('hello')\n", "^get retry .*exec plugin"),
                         ("show({}, 'client.authentication.k8s.io/v1beta1')\n",
                          "^get retry .*apiVersion"),
                         ("show({})\n", "^get retry .*neither token nor"),
                         ("show({'clientCertificateData': 'x'})\n", "^get retry .*together"),
                         ("show({'token': 'a b'})\n", "^get retry .*not a bearer token")):
        _, client = await asked(bench, plugin(bench, body))
        await client.expect(re.compile(wanted))
        await client.quit()


async def test_closing_while_a_plugin_runs(bench):
    user = plugin(bench, "time.sleep(60)\n")
    _, client = await asked(bench, user)
    await asyncio.sleep(0.2)
    client.tell("quit")
    await client.expect(re.compile("^get cancelled"))
    await client.quit()


async def test_a_bad_kubeconfig_is_named(bench):
    path = bench.write("kubeconfig", json.dumps({"current-context": "x", "contexts": []}))
    client = await bench.run("--kubeconfig", path)
    await client.expect(f'error not found: {path}: there is no context "x"')
    assert await client.ended() == 1
