"""What API fuzzing can't make up: an admin token, a live key, a refresh token that is good, a slot that is held.

Never touches what a case is there to try: only cases that are meant to be good get these, and only in the place of a
name or token that could not have been guessed. Every other time they don't, so that unknown ones are tried too.
"""

import itertools
import os
import re

import requests
import schemathesis

BASE = os.environ["FUZZ_BASE"]
ADMIN = {"Authorization": f"Bearer {os.environ['FUZZ_ADMIN_TOKEN']}"}
SOURCE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

# Few slots, short leases, short waits: grants, refusals and time-outs all happen, and none takes long.
SETTINGS = {
    "concurrency": {"limit": 5},
    "lease": {"termMs": 1000},
    "queue": {"maxDepth": 5, "timeoutMs": 100},
}

# Key pairs of sources that surely take them.
pairs: dict[str, dict] = {}
turns = itertools.count()


def admin(method: str, path: str, body=None) -> dict:
    return requests.request(method, f"{BASE}/pools/{path}", json=body, headers=ADMIN, timeout=10).json()


def pair_of(source) -> dict:
    """A key pair of that source, which is made if it is not there. A name that can't exist is 404 before any key counts."""
    if not isinstance(source, str) or not SOURCE.fullmatch(source):
        return {}
    if source not in pairs:
        admin("PUT", source, SETTINGS)
        pairs[source] = admin("POST", f"{source}/keys", {})
    return pairs[source]


@schemathesis.auth(refresh_interval=None).apply_to(path_regex=r"/lock/")
class AccessKey:
    def get(self, case, context):
        return pair_of((case.path_parameters or {}).get("source")).get("accessKey", "sv_at_none")

    def set(self, case, data, context):
        case.headers = {**(case.headers or {}), "X-Swarmvia-Key": data}


@schemathesis.auth(refresh_interval=None).apply_to(path_regex=r"^/(audit|metrics|pools(?!.*(/lock/|/keys/refresh)))")
class AdminToken:
    def get(self, case, context):
        return ADMIN

    def set(self, case, data, context):
        case.headers = {**(case.headers or {}), **data}


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    operation = case.operation.definition.raw.get("operationId")
    source = (case.path_parameters or {}).get("source")
    if operation == "refreshKey" and isinstance(case.body, dict) and next(turns) % 2:
        # Good for one use, so a new one each time.
        pair_of(source)
        case.body = {**case.body, "refreshToken": admin("POST", f"{source}/keys", {}).get("refreshToken", "none")}
    if operation in ("putSource", "deleteSource") and next(turns) % 2:
        # With a condition that was made up nearly every call is 412, and nothing is learned of the rest of it.
        case.headers = {k: v for k, v in (case.headers or {}).items() if k.lower() not in ("if-match", "if-none-match")}
    if operation == "forceReleaseSlot" and next(turns) % 2:
        key = pair_of(source).get("accessKey", "")
        requests.post(f"{BASE}/pools/{source}/lock/acquire", headers={"X-Swarmvia-Key": key}, timeout=10)
        slots = admin("GET", f"{source}/slots").get("slots", [])
        if slots:
            case.path_parameters["ref"] = slots[0]["ref"]


@schemathesis.hook
def after_call(context, case, response):
    # These may end a source or its keys, or shut their callers out: the next lock call makes things good again.
    if case.method.upper() in ("PUT", "DELETE"):
        pairs.clear()
