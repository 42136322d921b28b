"""Downloads URLs by one of Python's HTTP clients: download.py CLIENT URL...

Prints, for each of them, the status, the name that the answer gives the file, and the SHA-256 of its content.
The API key is in SANDBOX_API_KEY.
"""

import asyncio
import hashlib
import os
import sys

HEADERS = {"Authorization": "Bearer " + os.environ["SANDBOX_API_KEY"]}


def with_requests(urls):
    import requests

    for url in urls:
        answer = requests.get(url, headers=HEADERS)
        yield answer.status_code, answer.headers, answer.content


def with_httpx(urls):
    import httpx

    for url in urls:
        answer = httpx.get(url, headers=HEADERS, follow_redirects=True)
        yield answer.status_code, answer.headers, answer.content


def with_urllib(urls):
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    for url in urls:
        request = Request(url)
        # It would send other headers to wherever it is redirected.
        for name, value in HEADERS.items():
            request.add_unredirected_header(name, value)
        try:
            answer = urlopen(request)
        except HTTPError as error:
            answer = error
        yield answer.status, answer.headers, answer.read()


def with_aiohttp(urls):
    import aiohttp

    async def all_of_them():
        async with aiohttp.ClientSession(headers=HEADERS) as session:
            for url in urls:
                async with session.get(url) as answer:
                    yield answer.status, answer.headers, await answer.read()

    async def collect():
        return [answer async for answer in all_of_them()]

    return asyncio.run(collect())


client, *urls = sys.argv[1:]
for status, headers, content in globals()["with_" + client](urls):
    name = headers.get("Content-Disposition", "none").rpartition("''")[2]
    print(status, name, hashlib.sha256(content).hexdigest())
