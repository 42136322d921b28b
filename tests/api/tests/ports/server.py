"""A server for code in a session: it tells what it was asked, and answers as it is asked to."""

import base64
import hashlib
import http.server
import json
import os
import sys
import time

HOSTILE = [
    ("Content-Type", "text/html"),
    ("Set-Cookie", "session=stolen; Path=/; Domain=127.0.0.1; HttpOnly"),
    ("Set-Cookie", "theirs=1; Path=/api/v1"),
    ("Content-Security-Policy", "sandbox allow-same-origin allow-scripts"),
    ("Strict-Transport-Security", "max-age=99999999; includeSubDomains"),
    ("Clear-Site-Data", '"*"'),
    ("Service-Worker-Allowed", "/"),
    ("Alt-Svc", 'h2="evil.example:443"; ma=99999999'),
    ("WWW-Authenticate", 'Basic realm="your password, please"'),
    ("NEL", '{"report_to":"x","max_age":99999}'),
    ("Report-To", '{"group":"x","max_age":99999,"endpoints":[{"url":"https://evil.example"}]}'),
    ("X-Accel-Redirect", "/etc/passwd"),
    ("X-Accel-Buffering", "yes"),
    ("X-Sendfile", "/etc/passwd"),
    ("X-LIGHTTPD-send-file", "/etc/passwd"),
    ("X-Reproxy-URL", "http://169.254.169.254/"),
    ("X-Request-Id", "req_forged"),
    ("X-Theirs", "kept"),
    ("Connection", "X-Hop"),
    ("X-Hop", "1"),
    ("Location", "/login"),
]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def log_message(self, *_):
        pass

    def pieces(self):
        """The body, as it comes."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            piece = self.rfile.read1(min(left, 1 << 20))
            if not piece:
                return
            left -= len(piece)
            yield piece

    def say(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunk(self, piece):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def answer(self):
        path = self.path.split("?")[0]
        if path.startswith("/status/"):
            status = int(path.split("/")[2])
            for _ in self.pieces():
                pass
            self.say(status, b"<h1>theirs</h1>", [("Content-Type", "text/html")])
        elif path == "/hostile":
            self.say(200, b"<script>1</script>", HOSTILE)
        elif path == "/stream":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.chunk(b"first")
            while not os.path.exists("go"):
                time.sleep(0.01)
            self.chunk(b"second")
            self.chunk(b"")
        elif path == "/endless":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            count = os.open(".count", os.O_WRONLY | os.O_CREAT, 0o644)
            written = 0
            while True:
                self.chunk(b"x" * 65536)
                written += 65536
                os.pwrite(count, b"%012d" % written, 0)
        elif path == "/digest":
            digest, length = hashlib.sha256(), 0
            for piece in self.pieces():
                if not length:
                    with open("began", "w") as began:
                        began.write("x")
                digest.update(piece)
                length += len(piece)
            self.say(200, json.dumps({"digest": digest.hexdigest(), "length": length}).encode())
        elif path == "/large":
            length = int(self.path.split("?")[1])
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            block = bytes(range(251)) * 4096
            while length:
                piece = block[: min(length, len(block))]
                self.wfile.write(piece)
                length -= len(piece)
        elif path == "/websocket":
            self.websocket()
        else:
            body = b"".join(self.pieces())
            told = {
                "method": self.command,
                "path": self.path,
                "headers": [[name.lower(), value] for name, value in self.headers.items()],
                "body": body.decode(),
                "word": sys.argv[2],
            }
            self.say(200, json.dumps(told).encode(), [("Content-Type", "application/json")])

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept)
        self.end_headers()
        self.wfile.flush()
        while True:
            opcode, length = self.rfile.read(2)
            length &= 127
            if length == 126:
                length = int.from_bytes(self.rfile.read(2))
            mask = self.rfile.read(4)
            payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(length)))
            size = bytes([length]) if length < 126 else bytes([126]) + length.to_bytes(2)
            self.wfile.write(bytes([opcode]) + size + payload)
            self.wfile.flush()
            if opcode & 15 == 8:
                self.close_connection = True
                return


port, word = int(sys.argv[1]), sys.argv[2]
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
with open(f"listening-{word}", "w") as listening:
    listening.write("x")
server.serve_forever()
