"""A worker that holds a slot around each call of an upstream. Python 3.9 or later, standard library only.

    LOCK_API=... ACCESS_KEY=... UPSTREAM=https://upstream.example/v1/things python3 worker.py [calls]

`npm start` prints LOCK_API and ACCESS_KEY. A worker that outlives its key has KEY_FILE=key.json in place of ACCESS_KEY:
a file of its own with what minting answered. It is refreshed in time, and kept for the next start.
Take all down to `Slot` over as it is; the lines at the end are its use.
"""

import http.client
import json
import os
import re
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor

API, UPSTREAM, KEY_FILE = os.environ["LOCK_API"], os.environ["UPSTREAM"], os.environ.get("KEY_FILE")
if KEY_FILE:
    with open(KEY_FILE) as file:
        pair = json.load(file)
else:
    pair = {"accessKey": os.environ["ACCESS_KEY"], "expiresAt": float("inf")}
refreshing = threading.Lock()  # one at a time: a refresh token is good for one use


def key():
    with refreshing:
        if pair["expiresAt"] / 1000 - time.time() < 60:
            refresh()
        return pair["accessKey"]


def refresh():
    # Again at once where no answer came: for 10 s the same token gets the same answer, and later it counts as stolen.
    for _ in range(3):
        url = API.rsplit("/", 1)[0] + "/keys/refresh"
        status, _, fresh = call(url, {"refreshToken": pair["refreshToken"]}, 2.0, {})
        if status == 200:
            # Kept before it is used, so that a crash loses nothing.
            with open(os.open(f"{KEY_FILE}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(fresh, file)
            os.replace(f"{KEY_FILE}.new", KEY_FILE)
            pair.update(fresh)
            return
        print(f"refresh: {status}", file=sys.stderr)
        if status == 401:  # not good: have a new key minted
            return
        time.sleep(0.5)


def post(path, body=None, patience=15.0, headers={}):
    return call(f"{API}/{path}", body or {}, patience, {"X-Swarmvia-Key": key(), **headers})


def call(url, body, patience, headers):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"User-Agent": "my-worker/1", **headers})
    try:
        with urllib.request.urlopen(request, timeout=max(0.001, patience)) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.headers, reading(error)
    except (OSError, ValueError, http.client.HTTPException) as error:
        print(f"no answer: {error}", file=sys.stderr)  # and so again, soon
        return 0, {}, {}


def reading(error):
    try:
        return json.load(error)
    except (OSError, ValueError, http.client.HTTPException):
        return {}


class Slot:
    def __init__(self, wait_ms):
        self.wait_ms, self.over, self.report = wait_ms, threading.Event(), {}

    def __enter__(self):
        name, first = {"Idempotency-Key": str(uuid.uuid4())}, time.monotonic()
        while True:
            sent = time.monotonic()
            status, headers, self.lease = post("acquire", {"waitMs": self.wait_ms}, self.wait_ms / 1000 + 15, name)
            if status == 200:
                break
            if status not in (0, 429, 503, 504):
                raise RuntimeError(f"acquire: {status} {self.lease.get('message', '')}")
            time.sleep(int(headers.get("Retry-After", 0 if status == 504 else 1)))
            if status in (429, 504):  # nothing is held; else a grant may have been lost
                first = time.monotonic()
        since = first if "x-swarmvia-replayed" in headers else sent  # the grant is no older than this
        self.until = since + (int(headers["x-swarmvia-queued-ms"]) + self.lease["termMs"]) / 1000
        threading.Thread(target=self.keep, daemon=True).start()
        return self

    def left(self):  # seconds for which the slot is still ours, by our own clock
        return max(0.0, self.until - time.monotonic())

    def keep(self):
        pause = interval = self.lease["renewIntervalMs"] / 1000
        while not self.over.wait(min(pause, self.left())) and self.left() > 0:
            status, _, body = post(f"{self.lease['slotId']}/renew", patience=self.left())
            if status == 200:
                self.until += (body["leaseDeadline"] - self.lease["leaseDeadline"]) / 1000
                self.lease.update(body)
            elif status == 404:
                self.until = 0.0  # lost
            # 409: it can't be extended, so stop at `until`. Anything else: the renewal failed, try again soon.
            pause = {200: interval, 409: float("inf")}.get(status, min(1.0, interval))

    def __exit__(self, *_):
        self.over.set()
        for _ in range(3):
            if post(f"{self.lease['slotId']}/release", self.report)[0] not in (0, 503):
                break
            time.sleep(1)


def call_upstream(_=None):
    """One upstream call under a slot. What the upstream said goes into the release, so that the limits are learned."""
    with Slot(wait_ms=10_000) as slot:
        try:
            answer = urllib.request.urlopen(UPSTREAM, timeout=slot.left())
        except urllib.error.HTTPError as error:
            answer = error
        about_limits = re.compile("limit|retry-after|quota|^date$", re.IGNORECASE)
        slot.report["status"] = answer.status  # in longer work, go on only while slot.left() > 0
        slot.report["headers"] = {name: value for name, value in answer.headers.items() if about_limits.search(name)}
        return answer.status, answer.read().decode()


if __name__ == "__main__":
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    with ThreadPoolExecutor(max_workers=calls) as crowd:
        for status, text in crowd.map(call_upstream, range(calls)):
            print(status, text[:100])
