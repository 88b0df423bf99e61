// The examples: each verb in four languages, with the source's name and host filled in.

export type Language = "curl" | "javascript" | "python" | "rust";

export interface Snippet {
  title: string;
  code: string;
}

/** `base`: the API host with its scheme. With `wait`, acquire queues for up to 5 s. */
export function snippets(language: Language, base: string, source: string, wait: boolean): Snippet[] {
  const lock = `${base}/pools/${source}/lock`;
  const [acquire, renew, release] = WRITERS[language](lock, wait);
  return [
    { title: wait ? "Acquire, waiting up to 5 s" : "Acquire, or fail at once", code: acquire },
    { title: "Renew, every renewIntervalMs", code: renew },
    { title: "Release, with what came of the call", code: release },
  ];
}

type Writer = (lock: string, wait: boolean) => [acquire: string, renew: string, release: string];

const WRITERS: Record<Language, Writer> = {
  curl: (lock, wait) => [
    `LOCK_API=${lock}
curl -sS -w '\\n' -X POST "$LOCK_API/acquire" -H "X-Swarmvia-Key: $ACCESS_KEY"${wait ? ` \\
  -d '{"waitMs":5000}'` : ""}`,
    `curl -sS -w '\\n' -X POST "$LOCK_API/$SLOT/renew" -H "X-Swarmvia-Key: $ACCESS_KEY"`,
    `curl -sS -w '\\n' -X POST "$LOCK_API/$SLOT/release" -H "X-Swarmvia-Key: $ACCESS_KEY" \\
  -d '{"status":200}'`,
  ],
  javascript: (lock, wait) => [
    `const LOCK_API = "${lock}";
const headers = { "X-Swarmvia-Key": process.env.ACCESS_KEY };
const answer = await fetch(\`\${LOCK_API}/acquire\`, {
  method: "POST",
  headers: { ...headers, "Idempotency-Key": crypto.randomUUID() },${wait ? `
  body: JSON.stringify({ waitMs: 5000 }),` : ""}
});
if (!answer.ok) throw new Error((await answer.json()).message);
const slot = await answer.json(); // slotId, leaseDeadline, renewIntervalMs, …`,
    `await fetch(\`\${LOCK_API}/\${slot.slotId}/renew\`, { method: "POST", headers });
// 404: the slot is lost, stop the work. 409: finish by slot.requestDeadline.`,
    `await fetch(\`\${LOCK_API}/\${slot.slotId}/release\`, {
  method: "POST",
  headers,
  body: JSON.stringify({ status: upstream.status, headers: Object.fromEntries(upstream.headers) }),
});`,
  ],
  python: (lock, wait) => [
    `import json, os, urllib.request, uuid

LOCK_API = "${lock}"

def post(path, body=None, **headers):
    headers = {"X-Swarmvia-Key": os.environ["ACCESS_KEY"], **headers}
    request = urllib.request.Request(f"{LOCK_API}/{path}", json.dumps(body or {}).encode(), headers)
    with urllib.request.urlopen(request, timeout=${wait ? 20 : 15}) as answer:
        return json.load(answer)

slot = post("acquire", ${wait ? `{"waitMs": 5000}, ` : ""}**{"Idempotency-Key": str(uuid.uuid4())})`,
    `post(f"{slot['slotId']}/renew")  # 404: the slot is lost, stop the work`,
    `post(f"{slot['slotId']}/release", {"status": upstream.status, "headers": dict(upstream.headers)})`,
  ],
  rust: (lock, wait) => [
    `// Cargo.toml: ureq = { version = "3", features = ["json"] }, serde_json = "1"
use serde_json::{Value, json};

const LOCK_API: &str = "${lock}";

fn post(path: &str, body: &Value) -> Result<Value, ureq::Error> {
    let key = std::env::var("ACCESS_KEY").unwrap_or_default();
    ureq::post(format!("{LOCK_API}/{path}"))
        .header("X-Swarmvia-Key", key)
        .send_json(body)?
        .body_mut()
        .read_json()
}

let slot = post("acquire", &json!(${wait ? `{"waitMs": 5000}` : "{}"}))?;
let id = slot["slotId"].as_str().unwrap_or_default();`,
    `post(&format!("{id}/renew"), &json!({}))?; // 404: the slot is lost, stop the work`,
    `post(&format!("{id}/release"), &json!({"status": 200}))?;`,
  ],
};
