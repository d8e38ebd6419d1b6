"""An adapter for Argosy in eighty lines: told by webhook, reports over REST. Python 3.9 or newer, no packages.

    ARGOSY_URL=http://127.0.0.1:8080 ADAPTER=billing SECRET_FILE=./secret python3 adapter.py

PORT (9000) is where it listens; ARGOSY_TOKEN is sent where the server wants to know who reports.
"""

import base64, hashlib, hmac, json, os, threading, time, urllib.error, urllib.request
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

URL = os.environ["ARGOSY_URL"].rstrip("/")
NAME = os.environ["ADAPTER"]
SECRET = open(os.environ["SECRET_FILE"], "rb").read().rstrip(b"\r\n")
TOKEN = os.environ.get("ARGOSY_TOKEN")
AGE_MAX_S = 300  # What is older may be somebody else's copy of a request of ours.


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
    # Here an account would be opened, or closed. Doing it twice must be the same as doing it once.
    if "deleted_time" in resource:
        word = ("AccountClosed", "The billing account is closed")
        conditions = [condition("Available", False, *word), condition("Applied", False, *word),
                      condition("Finalized", True, *word)]
    else:
        word = ("AccountOpen", "The billing account is open")
        conditions = [condition("Available", True, *word), condition("Applied", True, *word)]
    call("PUT", f"{href}/statuses", {
        "adapter": NAME,
        "observed_generation": resource["generation"],
        "observed_time": datetime.now(timezone.utc).isoformat(),
        "conditions": conditions + [condition("Health", True, "NoErrors", "The adapter ran without errors")],
        "data": {"account": "A-" + resource["name"]},
    })


class Webhook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        genuine = self.genuine(body)
        self.send_response(204 if genuine else 401)  # Answer at once, work afterwards.
        self.end_headers()
        if genuine:
            threading.Thread(target=work, args=[json.loads(body)["data"]["href"]]).start()

    def genuine(self, body):
        """Whether the headers of Standard Webhooks say that this came from who has the secret, and just now."""
        event, at = self.headers.get("webhook-id", ""), self.headers.get("webhook-timestamp", "")
        if not at.isdigit() or AGE_MAX_S < abs(time.time() - int(at)):
            return False
        signed = hmac.new(SECRET, f"{event}.{at}.".encode() + body, hashlib.sha256).digest()
        expected = "v1," + base64.b64encode(signed).decode()
        sent = self.headers.get("webhook-signature", "").split()
        return any(hmac.compare_digest(one.encode(), expected.encode()) for one in sent)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Webhook).serve_forever()
