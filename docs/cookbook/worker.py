"""A worker that holds a slot around each call of an upstream. Python 3.9 or later, standard library only.

    LOCK_API=... ACCESS_KEY=... UPSTREAM=https://upstream.example/v1/things python3 worker.py [calls]

`npm start` prints LOCK_API and ACCESS_KEY. A worker that outlives its key has KEY_FILE=key.json in place of ACCESS_KEY:
what minting answered, in a file for this process alone, since two that share a refresh token lose it. It is refreshed in
time, and kept for the next start. Take all down to `Slot` over as it is; the lines at the end are its use. Nothing here
handles signals but those lines.
"""

import http.client
import json
import logging
import os
import random
import re
import signal
import socket
import struct
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor

API, KEY_FILE = os.environ["LOCK_API"].rstrip("/"), os.environ.get("KEY_FILE")
if not (KEY_FILE or os.environ.get("ACCESS_KEY")):
    raise SystemExit("ACCESS_KEY is not set")
log = logging.getLogger("slots")  # warnings go to stderr, unless the program says otherwise


def now():
    """Our own clock, in seconds: nobody sets it back, and it goes on while the machine sleeps, as time.monotonic doesn't."""
    if not hasattr(time, "clock_gettime"):  # Windows, where it does
        return time.monotonic()
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Line(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """HTTP exchanges, which any other thread can cut off."""

    def __init__(self):
        super().__init__()
        self.error, self.sockets, self.patience = None, [], None

    def open(self, request, patience=None):
        """As urlopen, but for answers of any status. 10 s to connect; then `patience` for each read, None: until it is cut."""
        self.patience = patience
        try:
            answer = urllib.request.build_opener(self).open(request, timeout=min(10.0, patience or 10.0))
        except urllib.error.HTTPError as error:
            answer = error
        for sock in self.sockets:
            linger(sock, False)
        return answer

    def do_open(self, kind, request, **options):  # as urllib does it, but we keep the socket
        def watched(host, **more):
            connection = kind(host, **more)
            connect = connection.connect

            def connect_and_watch():
                connect()
                connection.sock.settimeout(self.patience)
                linger(connection.sock, True)
                self.sockets.append(connection.sock)
                if self.error:
                    raise ConnectionAbortedError(str(self.error))

            connection.connect = connect_and_watch
            return connection

        return super().do_open(watched, request, **options)

    def cut(self, error):
        self.error = self.error or error
        for sock in list(self.sockets):
            linger(sock, True)
            try:
                socket.socket.shutdown(sock, socket.SHUT_RD)  # wakes who reads; closing would not
            except OSError:
                pass


def linger(sock, is_reset):
    """Closed, it is reset: that is noticed everywhere; a waiter who leaves quietly may keep its place."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("hh" if os.name == "nt" else "ii", is_reset, 0))
    except OSError:
        pass  # closed already


def post(url, body, headers, patience, line=None):
    """One call; status 0 where no answer came."""
    line = line or Line()
    request = urllib.request.Request(url, json.dumps(body or {}).encode(), {"User-Agent": "my-worker/1", **headers})
    try:
        with line.open(request, max(0.001, patience)) as answer:
            status, said, text = answer.status, answer.headers, answer.read()
    except (OSError, http.client.HTTPException) as error:
        if not line.error:
            log.warning("no answer: %s", error)
        return 0, {}, {}
    try:
        return status, said, json.loads(text)
    except ValueError:
        return 0 if status == 200 else status, said, {}


class Key:
    def __init__(self):
        self.turn = threading.Lock()  # one at a time: a refresh token is good for one use
        self.owner, self.spent, self.forced = os.getpid(), None, float("-inf")
        self.pair, self.due = {"accessKey": os.environ.get("ACCESS_KEY"), "expiresAt": float("inf")}, float("inf")
        if KEY_FILE:
            self.take(self.kept())
            self.due = self.pair["expiresAt"] / 1000 - 60  # how old it is, nobody says

    def kept(self):
        with open(KEY_FILE) as file:
            return json.load(file)

    def take(self, pair):
        ends = pair["expiresAt"] / 1000
        life = ends - time.time()
        self.pair, self.due = pair, ends - min(max(60.0, life / 10), life / 2)

    def now(self):
        if KEY_FILE and self.owner != os.getpid():
            raise RuntimeError("a forked process needs a key of its own: two that share a refresh token lose it")
        shown = self.pair
        if time.time() >= self.due:
            self.due = time.time() + 5  # if this fails
            thread = threading.Thread(target=self.refresh, args=(shown,))  # no daemon: it ends before the process does
            thread.start()
            if time.time() >= shown["expiresAt"] / 1000:  # until then the old one is good
                thread.join()
        return self.pair["accessKey"]

    def other(self, shown):
        """After a 401: whether there is another key to try. It asks for one at most once a minute."""
        if KEY_FILE and self.pair["accessKey"] == shown and now() - self.forced > 60:
            self.forced = now()
            self.refresh(self.pair)
        with self.turn:  # or one is on its way already
            return self.pair["accessKey"] != shown

    def refresh(self, shown):
        with self.turn:
            try:
                if self.pair is shown:
                    self.trade()
            except (OSError, ValueError, KeyError) as error:
                log.warning("refresh: %s", error)

    def trade(self):
        file = self.kept()
        if file["accessKey"] != self.pair["accessKey"] and file["expiresAt"] > self.pair["expiresAt"]:
            return self.take(file)  # put there meanwhile
        token = self.pair["refreshToken"]
        for _ in range(3):  # no answer: the same token again, which gets the same answer until the new pair was used
            if token == self.spent:
                return None
            status, _, fresh = post(API.rsplit("/", 1)[0] + "/keys/refresh", {"refreshToken": token}, {}, 2.0)
            if status == 200:
                return self.keep(fresh)
            if status == 401:
                self.spent = token
                log.warning("%s. Have a new key minted into %s", fresh.get("message"), KEY_FILE)
            else:
                time.sleep(0.5)
        return None

    def keep(self, fresh):
        """On the disk before it is used, so that a crash loses nothing."""
        try:
            with open(os.open(f"{KEY_FILE}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(fresh, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(f"{KEY_FILE}.new", KEY_FILE)
        except OSError as error:
            log.warning("the new key can't be kept: %s", error)
            if self.pair["expiresAt"] / 1000 - time.time() > 20:
                return  # there is time to try again
        self.take(fresh)


key = Key()


def lock(path, body=None, headers=None, patience=15.0, line=None):
    """A lock call; on 401 once more, with a fresh key."""
    for again in (False, True):
        shown = key.now()
        answer = post(f"{API}/{path}", body, {"X-Swarmvia-Key": shown, **(headers or {})}, patience, line)
        if answer[0] != 401 or again or not key.other(shown):
            return answer


def unheard(status, body):
    """No answer of the service itself, so that it may have done what was asked."""
    return status in (0, 408) or (status >= 500 and body.get("error") != "queue_timeout")


class SlotLost(Exception):
    """The work went on without its slot, or was about to."""


class Stopped(Exception):
    """This worker is being ended."""


class NoSlot(Exception):
    """None within the wait. Its second argument: after how many seconds to come again."""


slots, stopping = set(), threading.Event()


def stop():
    """Ends all slots of this process: none is queued for any more, work is cut off, what is held is released."""
    stopping.set()
    for slot in list(slots):
        slot.line.cut(Stopped("this worker is being ended"))


class Slot:
    def __init__(self, wait_ms):
        self.wait, self.owner = wait_ms / 1000, os.getpid()
        self.over, self.line, self.report_body = threading.Event(), Line(), {}

    def __enter__(self):
        slots.add(self)
        try:
            self.acquire()
            self.check()
        except BaseException:
            slots.discard(self)
            if hasattr(self, "lease"):
                self.__exit__(None, None, None)
            raise
        return self

    def acquire(self):
        end, name, unsure, failures = now() + self.wait, None, False, 0
        try:
            while True:
                sent = now()
                if not unsure:
                    name, first = {"Idempotency-Key": str(uuid.uuid4())}, sent
                if stopping.is_set():
                    raise Stopped("this worker is being ended")
                left, unsure = max(0.0, end - sent), True
                status, headers, body = lock("acquire", {"waitMs": round(left * 1000)}, name, left + 15, self.line)
                if status == 200:
                    break
                unsure = unheard(status, body)  # then a grant may have been lost: the same name brings it back
                if not unsure and status not in (429, 504):
                    raise RuntimeError(f"acquire: {status} {body.get('message', '')}")
                failures += unsure
                pause = max(float(headers.get("Retry-After") or 0), random.uniform(0, min(8, 0.5 * 2**failures)) if unsure else 0)
                if now() + pause >= end and not stopping.is_set():  # in full or not at all
                    raise NoSlot(f"none within {self.wait} s: {status} {body.get('message', 'no answer')}", pause)
                stopping.wait(pause)
            # The grant is no older than this: a repeat may bring one of an earlier try, unless it waited for it itself.
            since = first if "x-swarmvia-replayed" in headers and headers["x-swarmvia-queued-ms"] == "0" else sent
            term = body["termMs"] / 1000
            margin = min(2.0, max(0.25, term / 20))  # for the work to stop in
            self.until, self.lease = since + int(headers["x-swarmvia-queued-ms"]) / 1000 + term - margin, body
        except BaseException:  # also a signal's, in the main thread
            if unsure:  # what it got, if anything, goes back
                status, _, body = lock("acquire", {"waitMs": 0}, name, 5.0)
                if status == 200:
                    release(body["slotId"], {})
            raise
        for duty in (self.watch, self.renew):  # in threads of their own, so that no work starves them
            threading.Thread(target=duty, daemon=True).start()

    def left(self):
        """Seconds for which the slot is still ours, if it isn't renewed."""
        return max(0.0, self.until - now())

    def is_lost(self):
        if self.left() <= 0:
            self.line.cut(SlotLost("the slot was lost: its lease has ended"))
        return isinstance(self.line.error, SlotLost)

    def check(self):
        """Before each step that must not be done without the slot."""
        if self.is_lost() or self.line.error:
            raise self.line.error

    def tick(self):  # often, since no timer runs while the machine sleeps
        return self.over.wait(min(0.25, self.lease["renewIntervalMs"] / 4000))

    def watch(self):
        while not (self.tick() or self.is_lost()):
            pass

    def renew(self):
        interval = self.lease["renewIntervalMs"] / 1000
        at = now() + interval
        while not (self.tick() or self.is_lost()):
            if now() < at:
                continue
            status, _, body = lock(f"{self.lease['slotId']}/renew", patience=self.left())
            if self.over.is_set() or status == 409:  # 409: it can't be extended, so the work must end before `until`
                return
            if status == 404:
                return self.line.cut(SlotLost("the slot was lost: the service has taken it back"))
            if status == 200:
                self.until += (body["leaseDeadline"] - self.lease["leaseDeadline"]) / 1000
                self.lease.update(body)
            else:
                log.warning("a renewal failed, again soon: %s %s", status, body.get("message", ""))
            at = now() + (interval if status == 200 else min(1.0, interval))

    def open(self, url, timeout=None):
        """As urlopen, for as long as the slot is renewed: it is cut off when the slot is lost. Answers of any status."""
        answer = self.line.open(url, timeout)
        self.check()
        return answer

    def report(self, answer):
        """What the upstream said of its limits goes into the release, so that they are learned."""
        about = re.compile("limit|retry-after|quota|remaining|reset|^date$", re.IGNORECASE)
        headers = {name: value for name, value in answer.headers.items() if about.search(name)}
        self.report_body = {"status": answer.status, "headers": headers}

    def __exit__(self, kind, error, trace):
        if self.owner != os.getpid():
            return  # a forked process: the slot is its parent's
        slots.discard(self)
        self.over.set()
        if not self.is_lost():
            release(self.lease["slotId"], self.report_body)
        if isinstance(error, Exception) and self.line.error and error is not self.line.error:
            raise self.line.error from error  # why it failed


def release(slot_id, report):
    end = now() + 10
    while True:
        status, _, body = lock(f"{slot_id}/release", report, patience=end - now())
        if status == 200:
            return
        again = unheard(status, body) or (status == 400 and report)
        if not again or now() + 1 >= end:
            said = f"{status or 'no answer'} {body.get('message', '')}"
            return log.warning("a slot was not released (…%s), it ends with its lease: %s", slot_id[-4:], said)
        if status == 400:
            report = {}  # it is what can't be read
        else:
            time.sleep(1)


def call_upstream(_=None):
    """One upstream call under a slot, for as long as it is renewed."""
    with Slot(wait_ms=60_000) as slot:
        with slot.open(os.environ["UPSTREAM"]) as answer:
            slot.report(answer)
            text = answer.read().decode()
        slot.check()  # else what was read may be half of it
        return answer.status, text


def ended(number, _):
    signal.signal(number, signal.SIG_DFL)  # the second one ends it at once
    raise SystemExit(128 + number)


if __name__ == "__main__":
    if "UPSTREAM" not in os.environ:
        raise SystemExit("UPSTREAM is not set")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ended)
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    crowd, code = ThreadPoolExecutor(max_workers=calls), 0
    try:
        # All of them, so that each has released its slot before this ends.
        for call in [crowd.submit(call_upstream) for _ in range(calls)]:
            try:
                status, text = call.result()
                print(status, text[:100])
            except Exception as error:
                print(repr(error), file=sys.stderr)
                code = 1
    except SystemExit:
        stop()
        raise
    finally:
        crowd.shutdown()
    sys.exit(code)
