"""Just enough HTTP/2 to script a server: frames by hand, headers without compression.

What the client's headers say isn't decoded; tests know which request comes."""
import asyncio
import struct

from . import patience
from .server import Server

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def literal(name, value):
    """A header field that isn't indexed and isn't Huffman coded; both below 127 bytes."""
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


class Http2Connection:
    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.requests = asyncio.Queue()  # stream numbers
        self.is_over = asyncio.Event()

    async def frame(self, kind, flags, stream, payload=b""):
        self.writer.write(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) +
                          struct.pack(">I", stream) + payload)
        await self.writer.drain()

    async def serve(self):
        try:
            if await self.reader.readexactly(len(PREFACE)) != PREFACE:
                return
            await self.frame(SETTINGS, 0, 0)
            while True:
                head = await self.reader.readexactly(9)
                length = int.from_bytes(head[:3], "big")
                kind, flags = head[3], head[4]
                stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
                payload = await self.reader.readexactly(length)
                if kind == SETTINGS and not flags & ACK:
                    await self.frame(SETTINGS, ACK, 0)
                elif kind == PING and not flags & ACK:
                    await self.frame(PING, ACK, 0, payload)
                elif kind == HEADERS:
                    self.requests.put_nowait(stream)
        except (asyncio.IncompleteReadError, ConnectionError, OSError):
            pass
        finally:
            self.is_over.set()
            self.writer.close()

    async def request(self, timeout=5):
        return await asyncio.wait_for(self.requests.get(), patience.of(timeout))

    async def head(self, stream, code=200):
        await self.frame(HEADERS, END_HEADERS, stream, literal(":status", str(code)) +
                         literal("content-type", "application/json"))

    async def data(self, stream, payload, is_end=False):
        await self.frame(DATA, END_STREAM if is_end else 0, stream, payload)

    async def goaway(self, last_stream, code=0):
        await self.frame(GOAWAY, 0, 0, struct.pack(">II", last_stream, code))

    async def rst(self, stream, code):
        await self.frame(RST_STREAM, 0, stream, struct.pack(">I", code))

    async def close(self):
        self.writer.close()


class Http2Server(Server):
    async def on_connection(self, reader, writer):
        connection = Http2Connection(reader, writer)
        self.connections.append(connection)
        self.queue.put_nowait(connection)
        await connection.serve()

    async def next_connection(self, timeout=5):
        return await asyncio.wait_for(self.queue.get(), patience.of(timeout))
