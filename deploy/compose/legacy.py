"""Stands for a service that knows nothing of duplicates: each POST is a new receipt."""
import http.server
import itertools
import json
import os

receipts = itertools.count(1)


class Legacy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = json.dumps({"receipt": next(receipts), "bytes": len(body)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


http.server.ThreadingHTTPServer((os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8081"))), Legacy).serve_forever()
