"""An HTTP/1.1 proxy with TLS on both sides, whose rules decide about each request, answer and event
of a watch. It runs on a loop in a thread of its own; tests change the rules from theirs."""

import asyncio
import contextlib
import json
import logging
import ssl
import threading

from .requests import Request

logging.getLogger("asyncio").setLevel(logging.CRITICAL)   # connections end here in every way
BUFFER_BYTES = 32 << 20
CONNECT_ATTEMPTS = 2


class Cut(Exception):
    """Raised by a rule: the connection is closed without an answer."""


class Answer:
    """An answer of a server, or a rule's own."""

    def __init__(self, status, body=b"", headers=()):
        self.status, self.headers = status, list(headers)
        self.is_torn = False    # only half of it is sent, and the connection reset
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()

    @classmethod
    def refusal(cls, status, reason, message):
        return cls(status, {"kind": "Status", "apiVersion": "v1", "metadata": {},
                            "status": "Failure", "reason": reason, "message": message,
                            "code": status}, [("Content-Type", "application/json")])

    def to_bytes(self):
        lines = [f"HTTP/1.1 {self.status} .", *(f"{key}: {value}" for key, value in self.headers),
                 f"Content-Length: {len(self.body)}", "", ""]
        return "\r\n".join(lines).encode("latin-1") + self.body


class Rules:
    """What the relay asks. These let everything through unchanged."""

    async def before(self, request):
        """Before it is passed on: None, or an Answer that the server is not asked for; or Cut."""

    async def after(self, request, answer):
        """What the client is to get of the server's answer; or Cut."""
        return answer

    async def event(self, stream, line):
        """An event of a watch: what is sent for it, as a list of chunks. It may wait, and the
        stream waits with it."""
        return [line]

    def opened(self, stream):
        """A watch that the server has accepted."""

    def closed(self, stream):
        """It has ended."""


class Stream:
    """A watch on its way through."""

    def __init__(self, request, writer):
        self.request, self.plural, self._writer = request, request.plural, writer
        self.is_initial = request.is_watch_list   # its end mark hasn't come yet
        self.events = 0

    async def send(self, chunk):
        self._writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        await self._writer.drain()

    def cut(self):
        """Resets the connection, wherever it is."""
        self._writer.transport.abort()

    def end(self):
        """Ends it in order, as a server does."""
        self._writer.write(b"0\r\n\r\n")
        self._writer.close()


async def _read_head(reader):
    """First line and headers; None at the end of the stream."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    return first, [tuple(part.strip() for part in line.split(":", 1)) for line in lines]


def _header(headers, name):
    return next((value for key, value in headers if key.lower() == name), None)


async def _chunks(reader):
    while True:
        size = int((await reader.readline()).split(b";")[0], 16)
        if size == 0:
            await reader.readline()
            return
        yield await reader.readexactly(size)
        await reader.readexactly(2)


async def _read_body(reader, headers):
    if (_header(headers, "transfer-encoding") or "").lower() == "chunked":
        return b"".join([chunk async for chunk in _chunks(reader)])
    return await reader.readexactly(int(_header(headers, "content-length") or 0))


async def _lines(reader, headers):
    """The events of a watch, each with its line break; what is left at the end without one, too."""
    rest = b""
    if (_header(headers, "transfer-encoding") or "").lower() != "chunked":
        yield await _read_body(reader, headers)
        return
    async for chunk in _chunks(reader):
        rest += chunk
        *whole, rest = rest.split(b"\n")
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest


class _Link:
    """One connection of the client, and the one to the server that serves it."""

    def __init__(self, relay, reader, writer):
        self.relay, self.reader, self.writer = relay, reader, writer
        self.upstream = None
        self.request = None

    async def serve(self):
        with contextlib.suppress(Cut, OSError, ValueError, asyncio.IncompleteReadError):
            while await self._serve_one():
                pass
        self.writer.transport.abort()
        if self.upstream:
            self.upstream[1].transport.abort()

    async def _serve_one(self):
        head = await _read_head(self.reader)
        if head is None:
            return False
        (method, target, _), headers = head[0].split(" ", 2), head[1]
        body = await _read_body(self.reader, headers)
        headers = [(key, value) for key, value in headers if key.lower() not in
                   ("accept-encoding", "content-length", "transfer-encoding", "expect")]
        request = self.request = Request(method, target, headers, body)
        rules = self.relay.rules
        answer = await rules.before(request)
        if answer is None and request.is_watch:
            return await self._watch(request)
        if answer is None:
            answer = await self._ask(request)
            answer = await rules.after(request, answer)
        message = answer.to_bytes()
        self.writer.write(message[:-(len(answer.body) // 2 + 1)] if answer.is_torn else message)
        await self.writer.drain()
        return not answer.is_torn

    async def _send_upstream(self, request):
        """(status, headers, reader) of the server's answer. A kept connection that has died is
        opened anew, once."""
        lines = [f"{request.method} {request.target} HTTP/1.1",
                 *(f"{key}: {value}" for key, value in request.headers),
                 f"Content-Length: {len(request.body)}", "", ""]
        message = "\r\n".join(lines).encode("latin-1") + request.body
        for attempt in range(CONNECT_ATTEMPTS):
            is_kept = self.upstream is not None
            if not is_kept:
                self.upstream = await self.relay.connect()
            reader, writer = self.upstream
            try:
                writer.write(message)
                await writer.drain()
                head = await _read_head(reader)
            except OSError:
                head = None
            if head is not None:
                return int(head[0].split(" ")[1]), head[1], reader
            writer.transport.abort()
            self.upstream = None
            if not is_kept or attempt + 1 == CONNECT_ATTEMPTS:
                raise Cut("the server closed the connection")
        raise AssertionError("unreachable")

    async def _ask(self, request):
        status, headers, reader = await self._send_upstream(request)
        body = await _read_body(reader, headers)
        kept = [(key, value) for key, value in headers if key.lower() not in
                ("transfer-encoding", "content-length", "connection")]
        return Answer(status, body, kept)

    async def _watch(self, request):
        rules = self.relay.rules
        stream = Stream(request, self.writer)
        gone = asyncio.ensure_future(self.reader.read(1))   # the client says nothing more
        pump = asyncio.ensure_future(self._pump(stream))
        try:
            await asyncio.wait({gone, pump}, return_when=asyncio.FIRST_COMPLETED)
            if pump.done():
                return pump.result() and False   # a watch has its connection for itself
            return False
        finally:
            pump.cancel()
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await pump
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await gone
            rules.closed(stream)

    async def _begin(self, stream):
        self.writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                          b"Transfer-Encoding: chunked\r\n\r\n")
        await self.writer.drain()

    async def _pump(self, stream):
        request, rules = stream.request, self.relay.rules
        is_begun = False
        if request.prologue:
            lines, wait_s = request.prologue
            await self._begin(stream)
            is_begun = True
            for line in lines:
                await stream.send(line)
            stream.is_initial = False
            await asyncio.sleep(wait_s)
        status, headers, reader = await self._send_upstream(request)
        if status != 200:
            body = await _read_body(reader, headers)
            if not is_begun:
                self.writer.write(Answer(status, body,
                                         [("Content-Type", "application/json")]).to_bytes())
                await self.writer.drain()
            return True
        rules.opened(stream)
        if not is_begun:
            await self._begin(stream)
        async for line in _lines(reader, headers):
            for chunk in await rules.event(stream, line):
                await stream.send(chunk)
            stream.events += 1
            if stream.is_initial and b'"k8s.io/initial-events-end":"true"' in line:
                stream.is_initial = False
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()
        return True


class Relay:
    """The proxy. `rules` may be exchanged at any time; what is on its way ends under the new."""

    def __init__(self, upstream_port, ca_file, certificate, key, rules=None):
        self.upstream_port, self.rules = upstream_port, rules or Rules()
        self._upstream_tls = ssl.create_default_context(cafile=str(ca_file))
        self._certificate = (str(certificate), str(key))
        self._loop = proxy_loop()
        self._links, self._server, self.port = set(), None, 0

    def start(self, port=0):
        asyncio.run_coroutine_threadsafe(self._start(port), self._loop).result(10)
        return self

    def stop(self):
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)

    def cut_all(self):
        """Resets every connection that there is."""
        asyncio.run_coroutine_threadsafe(self._cut_all(), self._loop).result(10)

    def use_certificate(self, certificate, key):
        """For connections from now on."""
        self._certificate = (str(certificate), str(key))
        port = self.port
        self.stop()
        self.start(port)

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.upstream_port, limit=BUFFER_BYTES,
                                             ssl=self._upstream_tls)

    async def _start(self, port):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*self._certificate)
        tls.set_alpn_protocols(["http/1.1"])
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, ssl=tls,
                                                  limit=BUFFER_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader, writer):
        task = asyncio.current_task()
        self._links.add(task)
        try:
            await _Link(self, reader, writer).serve()
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._links.discard(task)

    async def _cut_all(self):
        for task in list(self._links):
            task.cancel()
        await asyncio.sleep(0)

    async def _stop(self):
        self._server.close()
        await self._cut_all()


_shared = {}
_lock = threading.Lock()


def proxy_loop():
    """The loop that all proxies of this process share."""
    with _lock:
        if "loop" not in _shared:
            _shared["loop"] = asyncio.new_event_loop()
            threading.Thread(target=_shared["loop"].run_forever, name="proxy", daemon=True).start()
        return _shared["loop"]
