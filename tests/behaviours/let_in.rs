//! Who waits is let in as long as it may come in: until its key ends, and by the
//! policy that stands.

use swarmvia_locks::governor::command::{
    Acquire, Answer, Command, Effect, Outcome, Reply, Verdict,
};
use swarmvia_locks::governor::ids::{AttemptId, RequestId};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::Millis;
use swarmvia_locks::wire::request::Carrier;

use crate::support::moves::policy;
use crate::support::{START, Shell, call, limit, ms};

const HERE: &str = "192.0.2.1";
const THERE: &str = "198.51.100.1";

/// A waiter whose key ends `life` after the start.
fn until(name: u128, life: u64) -> Acquire {
    Acquire {
        wait: ms(30_000),
        expires: Some(START.plus(ms(life))),
        ..call(name)
    }
}

fn from(name: u128, ip: &str, carrier: Carrier) -> Acquire {
    Acquire {
        wait: ms(30_000),
        ip: Some(ip.into()),
        carrier,
        ..call(name)
    }
}

fn queue(shell: &mut Shell, acquire: Acquire) {
    let reply = shell.acquire(acquire);
    assert!(matches!(reply, Reply::Queued), "not queued: {reply:?}");
}

/// A source whose one slot is held for long.
fn full() -> Shell {
    let mut settings = limit(1);
    settings.lease.term = ms(600_000);
    settings.lease.request_timeout = ms(600_000);
    let mut shell = Shell::new(settings);
    shell.take(call(1));
    shell
}

fn with_access(shell: &Shell, access: &str) -> Settings {
    let mut settings = shell.governor.settings().clone();
    settings.access = policy(access);
    settings
}

/// What each waiter was answered, by its name.
fn heard(shell: &Shell) -> Vec<(u128, &'static str)> {
    let word = |answer: &Answer| match answer.verdict {
        Verdict::Granted(_) => "granted",
        Verdict::TimedOut(_) => "timed out",
        Verdict::Dismissed(_) => "401",
        Verdict::Forbidden => "403",
        Verdict::Refused(_) => "refused",
    };
    let answers = shell.answers.iter();
    answers
        .map(|(request, answer)| (request.0, word(answer)))
        .collect()
}

/// How the attempts of this name are in the log.
fn logged(shell: &Shell, name: u128) -> Vec<Outcome> {
    let rows = shell.storage.rows.values().map(|row| &row.attempt);
    let of_name = rows.filter(|attempt| attempt.request.0 == name);
    of_name.map(|attempt| attempt.outcome).collect()
}

fn wakes_at(shell: &Shell) -> Option<Millis> {
    shell.governor.deadline()
}

#[test]
fn a_place_ends_with_its_key() {
    let mut shell = full();
    queue(&mut shell, until(2, 1_000));
    assert_eq!(wakes_at(&shell), Some(START.plus(ms(1_000))));
    shell.pass(ms(999));
    assert_eq!(heard(&shell), []);
    shell.pass(ms(1));
    assert_eq!(heard(&shell), [(2, "401")]);
    assert_eq!(logged(&shell, 2), [Outcome::Unauthorized]);
}

#[test]
fn a_slot_that_comes_free_at_the_end_of_a_key_goes_to_the_next() {
    let mut settings = limit(1);
    settings.lease.term = ms(1_000);
    settings.lease.request_timeout = ms(1_000);
    let mut shell = Shell::new(settings);
    shell.take(call(1));
    queue(&mut shell, until(2, 1_000));
    queue(&mut shell, until(3, 1_001));
    // The lease, and the first one's key.
    shell.pass(ms(1_000));
    assert_eq!(heard(&shell), [(2, "401"), (3, "granted")]);
}

#[test]
fn a_late_timer_grants_nothing_to_a_key_that_has_ended() {
    let mut settings = limit(1);
    settings.lease.term = ms(500);
    settings.lease.request_timeout = ms(500);
    let mut shell = Shell::new(settings);
    shell.take(call(1));
    queue(&mut shell, until(2, 1_000));
    shell.clock = START.plus(ms(1_000));
    shell.step(Command::Tick);
    assert_eq!(heard(&shell), [(2, "401")]);
    assert_eq!(shell.in_use(), 0);
}

#[test]
fn a_wait_that_ends_before_the_key_is_a_timeout_and_with_it_the_key_counts() {
    let mut shell = full();
    for (name, life) in [(2, 2_000), (3, 1_000)] {
        queue(
            &mut shell,
            Acquire {
                wait: ms(1_000),
                ..until(name, life)
            },
        );
    }
    shell.pass(ms(1_000));
    assert_eq!(heard(&shell), [(3, "401"), (2, "timed out")]);
}

#[test]
fn a_repeat_with_a_fresher_key_waits_on_in_the_same_place() {
    let mut shell = full();
    queue(&mut shell, until(2, 1_000));
    shell.queue(3, ms(30_000));
    let again = Acquire {
        request: RequestId(20),
        ..until(2, 60_000)
    };
    queue(&mut shell, again);
    shell.pass(ms(1_000));
    assert_eq!(heard(&shell), [(2, "401")]);
    shell.configure(Settings {
        concurrency: limit(3).concurrency,
        ..shell.governor.settings().clone()
    });
    let served = [(2, "401"), (20, "granted"), (3, "granted")];
    assert_eq!(heard(&shell), served);
}

#[test]
fn whoever_is_carried_over_keeps_the_end_of_its_key() {
    let mut shell = full();
    queue(&mut shell, until(2, 1_000));
    shell.pass(ms(600));
    shell.reload();
    let carried = Acquire {
        wait: ms(29_400),
        waited: ms(600),
        ..until(2, 1_000)
    };
    queue(&mut shell, carried.clone());
    shell.pass(ms(400));
    assert_eq!(heard(&shell), [(2, "401")]);
    assert_eq!(shell.answers[0].1.queued, ms(1_000));
    // And if its key has ended on the way, that is the reason.
    let late = Acquire {
        request: RequestId(3),
        attempt: AttemptId(3),
        wait: ms(0),
        waited: ms(1_000),
        ..carried
    };
    assert!(matches!(dismissed(&mut shell, late), Verdict::Dismissed(_)));
}

fn dismissed(shell: &mut Shell, acquire: Acquire) -> Verdict {
    match shell.acquire(acquire) {
        Reply::Acquire(answer) => answer.verdict,
        other => panic!("not decided: {other:?}"),
    }
}

#[test]
fn a_key_that_has_ended_takes_no_free_slot_and_repeats_no_grant() {
    let mut shell = Shell::new(limit(2));
    let ended = Acquire {
        wait: ms(0),
        ..until(1, 1_000)
    };
    shell.take(ended.clone());
    shell.pass(ms(1_000));
    let newcomer = Acquire {
        request: RequestId(2),
        attempt: AttemptId(2),
        ..ended.clone()
    };
    let repeat = Acquire {
        request: RequestId(3),
        ..ended.clone()
    };
    for acquire in [newcomer, repeat] {
        let name = acquire.request.0;
        assert!(matches!(
            dismissed(&mut shell, acquire),
            Verdict::Dismissed(_)
        ));
        assert_eq!(logged(&shell, name), [Outcome::Unauthorized]);
    }
    // The very call whose answer was lost has its slot, and one entry.
    assert!(!shell.take(ended).replayed);
    assert_eq!(logged(&shell, 1), [Outcome::Granted]);
    assert_eq!(shell.in_use(), 1);
}

#[test]
fn a_tightened_policy_turns_waiters_away_and_the_others_keep_their_places() {
    let mut shell = full();
    queue(&mut shell, from(2, THERE, Carrier::KeyHeader));
    queue(&mut shell, from(3, HERE, Carrier::KeyHeader));
    queue(&mut shell, from(4, HERE, Carrier::Bearer));
    queue(&mut shell, from(5, THERE, Carrier::Swarmvia));
    // The same attempt from two addresses, in one place.
    let elsewhere = Acquire {
        attempt: AttemptId(3),
        ..from(6, THERE, Carrier::KeyHeader)
    };
    queue(&mut shell, elsewhere);
    queue(&mut shell, from(7, "", Carrier::KeyHeader));
    queue(&mut shell, from(8, HERE, Carrier::KeyHeader));
    let tight = r#"{"ipAllowlist":["192.0.2.0/24"],"bearer":false,"swarmvia":false}"#;
    shell.configure(with_access(&shell, tight));
    let away = [(4, "401"), (5, "401"), (2, "403"), (6, "403"), (7, "403")];
    assert_eq!(heard(&shell), away);
    for (name, word) in away {
        let outcome = match word {
            "401" => Outcome::Unauthorized,
            _ => Outcome::Forbidden,
        };
        assert_eq!(logged(&shell, name), [outcome], "{name}");
    }
    assert_eq!(shell.governor.gauge().depth, 2);
    let mut wide = shell.governor.settings().clone();
    wide.concurrency = limit(3).concurrency;
    shell.configure(wide);
    assert_eq!(shell.served(), [3, 8]);
}

#[test]
fn nobody_is_granted_by_the_change_that_shuts_it_out() {
    let mut shell = full();
    queue(&mut shell, from(2, THERE, Carrier::KeyHeader));
    let mut settings = with_access(&shell, r#"{"ipAllowlist":["192.0.2.0/24"]}"#);
    settings.concurrency = limit(5).concurrency;
    shell.configure(settings);
    assert_eq!(heard(&shell), [(2, "403")]);
    assert_eq!(shell.in_use(), 1);
}

const JWT: &str = r#"{"jwt":{"issuer":"i","audience":"a","jwksUrl":"https://idp.example/keys"}}"#;
const OTHER_JWT: &str =
    r#"{"jwt":{"issuer":"i","audience":"b","jwksUrl":"https://idp.example/keys"}}"#;
const ACCESS: &str =
    r#"{"cloudflareAccess":{"teamDomain":"a.cloudflareaccess.com","audience":"b"}}"#;

/// The changes, and whether those who wait are asked for what they must show.
#[test]
fn where_other_tokens_are_asked_for_waiters_are_asked_and_else_nobody_is_disturbed() {
    for (before, after, are_asked) in [
        ("{}", JWT, true),
        ("{}", ACCESS, true),
        (JWT, OTHER_JWT, true),
        (ACCESS, JWT, true),
        (JWT, "{}", false),
        (ACCESS, "{}", false),
        (JWT, JWT, false),
        (r#"{"ipAllowlist":["192.0.2.0/24"]}"#, "{}", false),
        (r#"{"bearer":false}"#, "{}", false),
        ("{}", r#"{"bearer":false}"#, false),
    ] {
        let mut shell = full();
        shell.configure(with_access(&shell, before));
        for name in [2, 3] {
            queue(&mut shell, from(name, HERE, Carrier::KeyHeader));
        }
        let settings = Box::new(with_access(&shell, after));
        let step = shell.step(Command::Configure(settings));
        let asked = step.effects.iter().filter_map(|effect| match effect {
            Effect::Ask { request } => Some(request.0),
            _ => None,
        });
        let asked: Vec<u128> = asked.collect();
        let all: &[u128] = if are_asked { &[2, 3] } else { &[] };
        assert_eq!(asked, all, "{before} to {after}");
        assert_eq!(heard(&shell), [], "{before} to {after}");
        assert!(logged(&shell, 2).is_empty(), "nothing is written of it");
        let depth = if are_asked { 0 } else { 2 };
        assert_eq!(shell.governor.gauge().depth, depth, "{before} to {after}");
    }
}

#[test]
fn whoever_was_asked_queues_again_by_its_first_arrival() {
    let mut shell = full();
    shell.queue(2, ms(30_000));
    shell.pass(ms(100));
    shell.queue(3, ms(30_000));
    shell.pass(ms(100));
    shell.configure(with_access(&shell, JWT));
    shell.queue(4, ms(30_000));
    for (name, waited) in [(3, 101), (2, 201)] {
        let again = Acquire {
            wait: ms(30_000 - waited),
            waited: ms(waited),
            ..call(name)
        };
        shell.pass(ms(1));
        queue(&mut shell, again);
    }
    let mut wide = shell.governor.settings().clone();
    wide.concurrency = limit(4).concurrency;
    shell.configure(wide);
    assert_eq!(shell.served(), [2, 3, 4]);
    for name in [2, 3, 4] {
        assert_eq!(logged(&shell, name), [Outcome::Granted]);
    }
}
