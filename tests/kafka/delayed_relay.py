"""Relays connections from one port to another, each byte DELAY ms later: delayed_relay.py FROM TO DELAY."""

import asyncio
import sys

listen, target, delay = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000


async def copy(reader, writer):
    loop = asyncio.get_running_loop()
    chunks = asyncio.Queue()

    async def write():
        while chunk := await chunks.get():
            at, data = chunk
            await asyncio.sleep(at - loop.time())
            writer.write(data)
            await writer.drain()
        writer.close()

    writing = asyncio.create_task(write())
    try:
        while data := await reader.read(65536):
            chunks.put_nowait((loop.time() + delay, data))
    except ConnectionError:
        pass
    chunks.put_nowait(None)
    await asyncio.gather(writing, return_exceptions=True)


async def relay(reader, writer):
    reader_of_target, writer_of_target = await asyncio.open_connection("127.0.0.1", target)
    await asyncio.gather(copy(reader, writer_of_target), copy(reader_of_target, writer))


async def main():
    async with await asyncio.start_server(relay, "127.0.0.1", listen) as server:
        await server.serve_forever()


asyncio.run(main())
