"""An adapter for Argosy in sixty lines: told by webhook, reports over REST. Python 3.9 or newer, no packages.

    ARGOSY_URL=http://127.0.0.1:8080 ADAPTER=billing SECRET_FILE=./secret python3 adapter.py
"""

import hashlib, hmac, json, os, threading, urllib.error, urllib.request
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

URL = os.environ["ARGOSY_URL"].rstrip("/")
NAME = os.environ["ADAPTER"]
SECRET = open(os.environ["SECRET_FILE"], "rb").read().strip()
TOKEN = os.environ.get("ARGOSY_TOKEN")


def call(method, path, body=None):
    headers = {"Content-Type": "application/json"}
    if TOKEN:
        headers["Authorization"] = f"Bearer {TOKEN}"
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(URL + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read() or "null")


def condition(kind, status, reason, message):
    return {"type": kind, "status": "True" if status else "False", "reason": reason, "message": message}


def work(href):
    """The event says only "look again": read what is wanted now, make it so, and say what came of it."""
    try:
        resource = call("GET", href)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return  # Gone: nothing left to do.
        raise
    deleting = "deleted_time" in resource
    # Here an account would be opened, or closed. Doing it twice must be the same as doing it once.
    call("PUT", f"{href}/statuses", {
        "adapter": NAME,
        "observed_generation": resource["generation"],
        "observed_time": datetime.now(timezone.utc).isoformat(),
        "conditions": [
            condition("Available", not deleting, "AccountOpen", "The billing account is open"),
            condition("Applied", not deleting, "AccountCreated", "The billing account exists"),
            condition("Health", True, "NoErrors", "The adapter ran without errors"),
        ] + ([condition("Finalized", True, "AccountClosed", "The billing account is closed")] if deleting else []),
    })


class Webhook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        expected = "sha256=" + hmac.new(SECRET, body, hashlib.sha256).hexdigest()
        genuine = hmac.compare_digest(self.headers.get("X-Argosy-Signature", ""), expected)
        self.send_response(204 if genuine else 401)  # Answer at once, work afterwards.
        self.end_headers()
        if genuine:
            threading.Thread(target=work, args=[json.loads(body)["data"]["href"]]).start()


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Webhook).serve_forever()
