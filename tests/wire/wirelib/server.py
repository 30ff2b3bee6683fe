"""A server that does exactly what a test tells it to, byte by byte, on a free loopback port."""
import asyncio
import json
import socket
import struct
import urllib.parse

from . import patience

REASONS = {200: "OK", 201: "Created", 302: "Found", 400: "Bad Request", 401: "Unauthorized",
           403: "Forbidden", 404: "Not Found", 409: "Conflict", 410: "Gone",
           422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error",
           503: "Service Unavailable", 504: "Gateway Timeout"}


class Exchange:
    """One request, and the hand that answers it."""

    def __init__(self, connection, method, target, headers, body):
        self.connection = connection
        self.method = method
        self.target = target
        self.path, _, query = target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.headers = headers
        self.body = body

    @property
    def is_watch(self):
        return self.query.get("watch") == "1"

    @property
    def is_watch_list(self):
        return self.query.get("sendInitialEvents") == "true"

    async def raw(self, data):
        self.connection.writer.write(data)
        await self.connection.writer.drain()

    async def head(self, code=200, headers=()):
        lines = [f"HTTP/1.1 {code} {REASONS.get(code, 'Odd')}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in headers]
        await self.raw(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def start(self, code=200, headers=()):
        """Begins a chunked answer."""
        await self.head(code, [("Transfer-Encoding", "chunked"), *headers])

    async def chunk(self, data):
        if isinstance(data, str):
            data = data.encode()
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def finish(self):
        """Ends a chunked answer; the connection stays."""
        await self.raw(b"0\r\n\r\n")

    async def answer(self, code, body, headers=()):
        if not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        await self.head(code, [("Content-Length", str(len(body))), *headers])
        await self.raw(body)

    async def refuse(self, code, reason, message="no", headers=(), details=None):
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                  "message": message, "reason": reason, "code": code}
        if details is not None:
            status["details"] = details
        await self.answer(code, status, headers)

    async def close(self):
        self.connection.writer.close()

    async def reset(self):
        self.connection.reset()

    async def gone(self, timeout=5):
        """Waits until the client has closed the connection."""
        await asyncio.wait_for(self.connection.is_over.wait(), patience.of(timeout))


class Connection:
    def __init__(self, server, reader, writer):
        self.server = server
        self.reader = reader
        self.writer = writer
        self.is_over = asyncio.Event()

    def reset(self):
        """RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def serve(self):
        try:
            while True:
                exchange = await self.read_request()
                if exchange is None:
                    break
                self.server.queue.put_nowait(exchange)
        except (ConnectionError, asyncio.IncompleteReadError, OSError, ValueError):
            pass  # gone, or not HTTP
        finally:
            self.is_over.set()
            self.writer.close()

    async def read_request(self):
        line = await self.reader.readline()
        if not line:
            return None
        method, target, _ = line.decode().split()
        headers = {}
        while True:
            line = (await self.reader.readline()).decode().rstrip("\r\n")
            if not line:
                break
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Exchange(self, method, target, headers, body)


class Server:
    def __init__(self, ssl_context=None, port=0):
        self.ssl_context = ssl_context
        self.port = port
        self.queue = asyncio.Queue()
        self.connections = []
        self.listener = None

    async def start(self):
        self.listener = await asyncio.start_server(self.on_connection, "127.0.0.1", self.port,
                                                   ssl=self.ssl_context, limit=1 << 20)
        self.port = self.listener.sockets[0].getsockname()[1]
        return self

    async def on_connection(self, reader, writer):
        connection = Connection(self, reader, writer)
        self.connections.append(connection)
        await connection.serve()

    async def next(self, path=None, timeout=5):
        """The next request, whichever connection it came by."""
        exchange = await asyncio.wait_for(self.queue.get(), patience.of(timeout))
        if path is not None:
            assert exchange.path == path, f"request for {exchange.path}, not {path}"
        return exchange

    async def nothing(self, seconds):
        """No request comes for that long."""
        try:
            exchange = await asyncio.wait_for(self.queue.get(), seconds)
        except asyncio.TimeoutError:
            return
        raise AssertionError(f"unexpected {exchange.method} {exchange.target}")

    def open_connections(self):
        return sum(not connection.is_over.is_set() for connection in self.connections)

    async def stop(self):
        if self.listener is not None:
            self.listener.close()
            self.listener = None
        for connection in self.connections:
            if not connection.is_over.is_set():
                connection.writer.transport.abort()

    @property
    def url(self):
        return f"{'https' if self.ssl_context else 'http'}://127.0.0.1:{self.port}"
