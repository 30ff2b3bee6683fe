"""An HTTP/2 proxy that passes frames on as they are, and says goodbye where a test wants it, as a
real server does that shuts down or sheds connections."""

import asyncio
import contextlib
import ssl
import struct

from .relay import BUFFER_BYTES, proxy_loop

_HEADER_BYTES = 9
_PREFACE_BYTES = 24
_GOAWAY = 7
_HEADERS = 1


class _Link:
    """One connection, both ways."""

    def __init__(self, client, server):
        self.client, self.server = client, server
        self.last_stream, self.goodbye = 0, None

    async def run(self):
        tasks = [asyncio.ensure_future(self._up()), asyncio.ensure_future(self._down())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError, asyncio.IncompleteReadError):
                await task
        self.client[1].transport.abort()
        self.server[1].transport.abort()

    @staticmethod
    async def _frame(reader):
        header = await reader.readexactly(_HEADER_BYTES)
        length = int.from_bytes(header[:3], "big")
        return header, await reader.readexactly(length)

    async def _up(self):
        reader, writer = self.client[0], self.server[1]
        writer.write(await reader.readexactly(_PREFACE_BYTES))
        while True:
            header, body = await self._frame(reader)
            if header[3] == _HEADERS:
                self.last_stream = max(self.last_stream, int.from_bytes(header[5:], "big"))
            writer.write(header + body)
            await writer.drain()

    async def _down(self):
        reader, writer = self.server[0], self.client[1]
        while True:
            header, body = await self._frame(reader)
            writer.write(header + body)
            await writer.drain()

    async def say_goodbye(self, disowns, closes):
        """GOAWAY without an error: streams up to the last one go on; or none of them counts."""
        last = 0 if disowns else self.last_stream
        frame = struct.pack(">I", 8)[1:] + bytes([_GOAWAY, 0, 0, 0, 0, 0]) + \
            struct.pack(">II", last, 0)
        self.client[1].write(frame)
        await self.client[1].drain()
        if closes:
            self.client[1].close()


class GoawayRelay:
    """The proxy."""

    def __init__(self, upstream_port, ca_file, certificate, key):
        self.upstream_port, self.port = upstream_port, 0
        self._upstream_tls = ssl.create_default_context(cafile=str(ca_file))
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(str(certificate), str(key))
        for context in (self._upstream_tls, self._tls):
            context.set_alpn_protocols(["h2"])
        self._loop, self._links, self._server = proxy_loop(), set(), None
        self.connections = 0

    def start(self):
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def stop(self):
        self._loop.call_soon_threadsafe(self._server.close)

    def say_goodbye(self, disowns=False, closes=False):
        """On every connection; how many there were."""
        async def go():
            links = list(self._links)
            for link in links:
                with contextlib.suppress(OSError):
                    await link.say_goodbye(disowns, closes)
            return len(links)
        return asyncio.run_coroutine_threadsafe(go(), self._loop).result(10)

    async def _start(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls,
                                                  limit=BUFFER_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader, writer):
        self.connections += 1
        try:
            server = await asyncio.open_connection("127.0.0.1", self.upstream_port,
                                                   limit=BUFFER_BYTES, ssl=self._upstream_tls)
            link = _Link((reader, writer), server)
            self._links.add(link)
            try:
                await link.run()
            finally:
                self._links.discard(link)
        except OSError:
            writer.transport.abort()
