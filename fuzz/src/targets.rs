//! One function for each kind of text that comes from outside: whatever the
//! bytes, it must not panic, and what was accepted must survive being written
//! down and read again.
//!
//! Shared by the fuzz targets and by `tests/fuzz_regressions.rs`, which runs
//! every seed and every regression through them on a stable compiler. Never
//! here: a clock, randomness, anything that needs nightly.

use std::str::from_utf8;
use std::sync::{LazyLock, OnceLock};

use base64ct::{Base64UrlUnpadded, Encoding as _};
use jwt_compact::alg::{Ed25519, SigningKey};
use jwt_compact::jwk::JsonWebKey;
use jwt_compact::{Algorithm, AlgorithmSignature as _};
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use swarmvia_locks::access::admin::AdminTokens;
use swarmvia_locks::access::ip::{self, IpAllowlist};
use swarmvia_locks::access::jwt::lifetime::lifetime;
use swarmvia_locks::access::jwt::{Expectation, KeySet, verify};
use swarmvia_locks::access::keys::{KeyGrant, SigningKeys};
use swarmvia_locks::access::policy::Loopback;
use swarmvia_locks::access::refresh::RefreshSecret;
use swarmvia_locks::fields::Fields;
use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::command::{Command, Reply, Verdict};
use swarmvia_locks::governor::ids::{KeyId, Ref, RequestId, SlotId, Version};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::snapshot::Snapshot;
use swarmvia_locks::governor::time::{MAX_SAFE, Millis, Span};
use swarmvia_locks::outcome::Report;
use swarmvia_locks::outcome::dialects::Headers;
use swarmvia_locks::outcome::rate::Rate;
use swarmvia_locks::protocol::control::{Condition, ControlCall};
use swarmvia_locks::protocol::directory::DirectoryCall;
use swarmvia_locks::protocol::lock::{Caller, LockCall, Verb};
use swarmvia_locks::protocol::log::Batch;
use swarmvia_locks::wire::paging::{backwards, forwards};
use swarmvia_locks::wire::request::{self, AcquireHeaders, Carrier};
use swarmvia_locks::wire::route::{
    Control, Hosts, Route, SourceName, Target, is_source_name, route,
};

use crate::support::moves::{Move, moves, settings};
use crate::support::world::World;
use crate::support::{START, call};

type Run = fn(&[u8]);

/// Every target by its name, which is also that of its folders.
pub const ALL: [(&str, Run); 14] = [
    ("settings", settings_body),
    ("acquire", acquire_call),
    ("report", report_body),
    ("rate_headers", rate_headers),
    ("access_keys", access_keys),
    ("refresh_tokens", refresh_tokens),
    ("jwt", jwt),
    ("key_sets", key_sets),
    ("addresses", addresses),
    ("routes", routes),
    ("queries", queries),
    ("internal", internal),
    ("learned", learned),
    ("governor", governor),
];

const NOW: Millis = Millis::from_epoch(1_796_014_170_790);

pub fn settings_body(data: &[u8]) {
    let Ok(settings) = Settings::parse(data, Loopback::Refused) else {
        return;
    };
    let text = settings.to_json().to_string();
    let back = Settings::parse(text.as_bytes(), Loopback::Refused).unwrap();
    assert_eq!(settings, back, "{text}");
    let concurrency = &settings.concurrency;
    assert!(concurrency.min <= concurrency.limit && concurrency.limit <= concurrency.max);
    let governor = Governor::load(settings, Snapshot::default()).unwrap();
    governor.audit().unwrap();
}

/// Four lines: the three headers, and the body.
pub fn acquire_call(data: &[u8]) {
    let mut lines = data.splitn(4, |byte| *byte == b'\n');
    let mut header = || lines.next().and_then(|line| from_utf8(line).ok());
    let headers = AcquireHeaders {
        queue_timeout: header().filter(|text| !text.is_empty()),
        no_queue: header().filter(|text| !text.is_empty()),
        idempotency_key: header().filter(|text| !text.is_empty()),
    };
    let shown = headers.idempotency_key;
    let body = lines.next().unwrap_or_default();
    if let Ok(wanted) = request::acquire(body, headers, KeyId(7)) {
        assert_eq!(wanted.attempt.is_some(), shown.is_some());
        assert!(wanted.wait.ms() <= MAX_SAFE);
    }
    let [first, second] = [shown, from_utf8(body).ok()];
    let _ = request::presented(first, second);
    let _ = request::bearer(first);
    if let Ok(tokens) = AdminTokens::parse(shown.unwrap_or_default()) {
        let _ = tokens.admits(second.unwrap_or_default());
    }
    let _ = Condition::parse(first, second);
}

pub fn report_body(data: &[u8]) {
    let Ok(report) = Report::parse(data, NOW) else {
        return;
    };
    within_bounds(&report.rate);
    let _ = report.closes_gate_for();
    let caller = Caller {
        request: RequestId(1),
        key: KeyId(2),
        expires: Some(NOW),
        carrier: Carrier::KeyHeader,
        policy: Some(Version(3)),
    };
    let verb = Verb::Release { slot: None, report };
    let back = LockCall::from_url(&LockCall { caller, verb }.to_url()).unwrap();
    let Verb::Release { report: back, .. } = back.verb else {
        panic!("a release became something else");
    };
    assert_eq!(report, back);
}

fn within_bounds(rate: &Rate) {
    let counts = [
        rate.limit,
        rate.remaining,
        rate.token_limit,
        rate.token_remaining,
        rate.concurrency_limit,
    ];
    let spans = [rate.reset, rate.token_reset, rate.retry_after, rate.window];
    let spans = spans.map(|span| span.map(Span::ms));
    for value in counts.into_iter().chain(spans).flatten() {
        assert!(value <= MAX_SAFE, "{rate:?}");
    }
}

/// Lines of `name: value`, as an upstream sends them.
pub fn rate_headers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut headers = Headers::default();
    for line in text.lines().take(256) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        headers.add(name, value);
    }
    for now in [NOW, Millis::EPOCH, Millis::from_epoch(MAX_SAFE)] {
        within_bounds(&Rate::of_headers(&headers, now));
    }
    let mut lines = text.lines();
    let _ = lifetime(lines.next(), lines.next());
}

static SIGNING: LazyLock<SigningKeys> = LazyLock::new(|| {
    let keys = "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    SigningKeys::parse(keys).unwrap()
});

/// One line: a key. It is only good if we signed it.
pub fn access_keys(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = SigningKeys::parse(&text);
    if let Some(key) = SIGNING.verify(&text, "demo", Millis::EPOCH) {
        assert_eq!(key, KeyId(1), "a forged key");
    }
    // One that is ours but for a change; and a claim that is as long as a name may be.
    let source: String = text.chars().take(63).collect();
    let grant = KeyGrant {
        source: source.clone(),
        key: KeyId(1),
        expires_at: NOW,
    };
    let Some(signed) = SIGNING.sign(&grant) else {
        return;
    };
    assert_eq!(SIGNING.verify(&signed, &source, NOW), None);
    let just_before = NOW.minus(Span::from_ms(1));
    if signed.len() <= 1024 {
        assert_eq!(
            SIGNING.verify(&signed, &source, just_before),
            Some(KeyId(1))
        );
    }
    assert_eq!(
        SIGNING.verify(&signed, &format!("{source}!"), just_before),
        None
    );
}

pub fn refresh_tokens(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(shown) = SIGNING.read_refresh(&text, "demo") {
        assert_eq!(shown.key, KeyId(1), "a forged token");
    }
    let mut secret = [0; 32];
    for (to, from) in secret.iter_mut().zip(data) {
        *to = *from;
    }
    let token = SIGNING.write_refresh("demo", KeyId(1), RefreshSecret(secret));
    let token = token.unwrap();
    assert!(SIGNING.read_refresh(&token, "demo").is_some());
    assert!(SIGNING.read_refresh(&token, "dem0").is_none());
}

type Private = <Ed25519 as Algorithm>::SigningKey;

/// A key that signs what the fuzzer makes up, and the set that has it.
static ISSUER: LazyLock<(Private, KeySet)> = LazyLock::new(|| {
    let private = <Private as SigningKey<Ed25519>>::from_slice(&[7; 32]).unwrap();
    let mut one = serde_json::to_value(JsonWebKey::from(&private.verifying_key())).unwrap();
    let nameless = one.clone();
    one["kid"] = "one".into();
    let set = json!({"keys": [one, nameless]}).to_string();
    (private, KeySet::parse(&set).unwrap())
});

/// Either a token as it is, or two lines, header and claims, which are signed.
pub fn jwt(data: &[u8]) {
    let (private, keys) = &*ISSUER;
    let token = match data.iter().position(|byte| *byte == b'\n') {
        None => String::from_utf8_lossy(data).into_owned(),
        Some(at) => {
            let (header, claims) = data.split_at(at);
            let encode = Base64UrlUnpadded::encode_string;
            let text = format!("{}.{}", encode(header), encode(&claims[1..]));
            let signature = Ed25519.sign(private, text.as_bytes());
            format!("{text}.{}", encode(&signature.as_bytes()))
        }
    };
    for is_access in [false, true] {
        let expected = Expectation {
            issuer: "https://ci.example".into(),
            audience: "locks".into(),
            is_access,
        };
        if let Ok(until) = verify(&token, keys, &expected, NOW) {
            assert!(until > NOW);
            assert!(!is_access, "Access signs with RSA only");
            assert!(data.contains(&b'\n'), "a forged token");
        }
    }
}

pub fn key_sets(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = KeySet::parse(&text);
    let _ = swarmvia_locks::access::jwt::keys::private_member(&text);
    let _ = swarmvia_locks::access::jwt::url::is_key_set_url(&text, Loopback::Refused);
    let _ = swarmvia_locks::access::jwt::url::is_key_set_url(&text, Loopback::Allowed);
}

/// Lines: each a range, each also an address that comes.
pub fn addresses(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines: Vec<&str> = text.lines().collect();
    let list = |ranges: &[&str]| {
        let body = json!({ "list": ranges }).to_string();
        let fields = Fields::of_body(body.as_bytes()).unwrap();
        IpAllowlist::parse(&fields, "list")
    };
    for line in &lines {
        let Some(address) = ip::address(line) else {
            continue;
        };
        assert_eq!(ip::address(&address.to_string()), Some(address));
        let alone = list(&[line.trim()]).unwrap();
        assert!(alone.admits(Some(address)), "{line}");
    }
    if let Ok(all) = list(&lines) {
        let texts = all.texts();
        let again = list(&texts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert_eq!(again.texts(), texts);
        for address in lines.iter().filter_map(|line| ip::address(line)) {
            assert_eq!(all.admits(Some(address)), again.admits(Some(address)));
        }
    }
    // As it comes, not as a list of texts.
    if let Ok(fields) = Fields::of_body(data) {
        let _ = IpAllowlist::parse(&fields, "list");
    }
}

/// Two lines: method, URL.
pub fn routes(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (method, url) = text.split_once('\n').unwrap_or(("POST", &text));
    let hosts = Hosts::parse("api.swarmvia.cloud,localhost", "swarmvia.cloud");
    let Ok(found) = route(&hosts, &Target::of_url(url), method) else {
        return;
    };
    let source = match found {
        Route::Lock { source, verb } => {
            use swarmvia_locks::wire::route::Verb::{Acquire, Release, Renew};
            match verb {
                Acquire => {}
                Renew(slot) | Release(slot) => {
                    if let Ok(id) = slot.parse::<SlotId>() {
                        // One id has one text: else a slot would have several.
                        assert_eq!(id.to_string(), slot);
                    }
                }
            }
            source
        }
        Route::Refresh { source }
        | Route::Control(Control::PutSource(source) | Control::DeleteSource(source)) => source,
        _ => return,
    };
    assert!(is_source_name(source), "{source}");
}

pub fn queries(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok((limit, _)) = backwards(&text) {
        assert!((1..=1000).contains(&limit));
    }
    if let Ok((_, Some(name))) = forwards::<SourceName>(&text) {
        assert!(is_source_name(&name.0));
    }
    let _ = forwards::<Ref>(&text);
    let _ = forwards::<KeyId>(&text);
    let _ = Hosts::parse(&text, &text);
}

/// A URL between Worker and object. What one reads, the other may write.
pub fn internal(data: &[u8]) {
    let url = String::from_utf8_lossy(data);
    if let Some(call) = LockCall::from_url(&url) {
        let back = LockCall::from_url(&call.to_url()).map(|call| format!("{call:?}"));
        assert_eq!(back, Some(format!("{call:?}")));
    }
    if let Some(call) = ControlCall::from_url(&url) {
        assert_eq!(ControlCall::from_url(&call.to_url()), Some(call));
    }
    if let Some(call) = DirectoryCall::from_url(&url) {
        assert_eq!(DirectoryCall::from_url(&call.to_url()), Some(call));
    }
    if let Some(batch) = Batch::from_url(&url) {
        assert_eq!(Batch::from_url(&batch.to_url()), Some(batch));
    }
}

/// What was learned, as it was kept. Nothing in it may keep a source from being
/// loaded, nor take a limit out of its bounds.
pub fn learned(data: &[u8]) {
    let adaptive = br#"{"concurrency":{"limit":10,"min":2,"max":20,"adaptive":true},
        "rpm":{"limit":600,"adaptive":true}}"#;
    let settings = Settings::parse(adaptive, Loopback::Refused).unwrap();
    let snapshot = Snapshot {
        seen: NOW,
        learned: Some(String::from_utf8_lossy(data).into_owned()),
        ..Snapshot::default()
    };
    let mut governor = Governor::load(settings, snapshot).unwrap();
    let mut now = NOW;
    for name in 1..6 {
        let step = governor.apply(now, Command::Acquire(call(name)));
        governor.audit().unwrap();
        let gauge = governor.gauge();
        assert!((2..=20).contains(&gauge.limit), "{gauge:?}");
        if let Reply::Acquire(answer) = step.reply
            && let Verdict::Granted(grant) = answer.verdict
        {
            now = now.plus(Span::from_ms(700));
            let report = Report {
                status: Some(if name == 3 { 429 } else { 200 }),
                ..Report::default()
            };
            let slot = grant.slot;
            governor.apply(now, Command::Release { slot, report });
            governor.audit().unwrap();
        }
        now = now.plus(Span::from_seconds(40));
    }
}

/// The bytes decide what happens in a world that is watched: two for the
/// settings, then three for each move. So a change of a byte changes one move
/// and leaves the others as they were.
///
/// An observer and the audit look at every turn. What a copy would do is asked
/// where the third byte says so, and at the end: a sequence that is cut off
/// anywhere is asked there.
pub fn governor(data: &[u8]) {
    const MOST_MOVES: usize = 16;
    /// A burst costs by its square; a few of these fill a block of rows too.
    const MOST_CALLS: u16 = 12;
    let (first, rest) = data.split_at(data.len().min(2));
    let mut world = World::new(SETTINGS.chosen(first, settings));
    let mut choices = rest.chunks(3).take(MOST_MOVES).peekable();
    while let Some(choice) = choices.next() {
        world.probes = choice.get(2).is_none_or(|byte| byte % 32 == 0) || choices.peek().is_none();
        world.play(match MOVES.chosen(choice, moves) {
            Move::Burst(calls) => Move::Burst(calls.min(MOST_CALLS)),
            other => other,
        });
    }
    assert!(world.observer.now >= START);
}

static SETTINGS: Drawn<Settings> = Drawn(LazyLock::new(unknown));
static MOVES: Drawn<Move> = Drawn(LazyLock::new(unknown));

/// What two bytes stand for, always the same, once it was drawn: to draw it
/// takes longer than to play it.
struct Drawn<T>(LazyLock<Box<[OnceLock<T>]>>);

fn unknown<T>() -> Box<[OnceLock<T>]> {
    (0..=u16::MAX).map(|_| OnceLock::new()).collect()
}

impl<T: Clone> Drawn<T> {
    fn chosen<S: Strategy<Value = T>>(&self, by: &[u8], from: fn() -> S) -> T {
        let byte = |at: usize| by.get(at).copied().unwrap_or_default();
        let seed = [byte(0), byte(1)];
        let draw = || {
            let mut whole = [0; 32];
            whole[..2].copy_from_slice(&seed);
            let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &whole);
            let mut runner = TestRunner::new_with_rng(Config::default(), rng);
            from().new_tree(&mut runner).unwrap().current()
        };
        let known = &self.0[usize::from(u16::from_le_bytes(seed))];
        known.get_or_init(draw).clone()
    }
}
