//! Sets that come, go, fail to come, and come back, in virtual time.

use super::*;

const URL: &str = "https://idp.example/keys";
const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519",
    "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
const LIFETIME: Span = Span::from_seconds(600);

fn at(seconds: u64) -> Millis {
    Millis::from_epoch(1_710_000_000_000).plus(Span::from_seconds(seconds))
}

fn arrive(sets: &mut KeySets, body: u8, now: Millis) -> Option<u64> {
    arrive_at(sets, URL, body, now)
}

fn arrive_at(sets: &mut KeySets, url: &str, body: u8, now: Millis) -> Option<u64> {
    let arrival = Arrival {
        set: KeySet::parse(KEYS).unwrap(),
        digest: [body; 32],
        lifetime: LIFETIME,
    };
    sets.settle(url, Fetched::Set(arrival), now)
}

fn fail(sets: &mut KeySets, now: Millis) {
    assert_eq!(sets.settle(URL, Fetched::Failed("it is down"), now), None);
}

fn withdraw(sets: &mut KeySets, now: Millis) -> Option<u64> {
    sets.settle(URL, Fetched::Withdrawn("it is gone"), now)
}

fn just_before(seconds: u64) -> Millis {
    Millis::from_epoch(at(seconds).epoch_ms().saturating_sub(1))
}

fn used(look: Look) -> u64 {
    match look {
        Look::Use(held) => held.generation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_set_is_fetched_once_and_used_while_it_is_fresh() {
    let mut sets = KeySets::default();
    assert!(matches!(sets.look(URL, at(0)), Look::Fetch));
    assert_eq!(arrive(&mut sets, 1, at(1)), None);
    let generation = used(sets.look(URL, at(600)));
    assert!(matches!(sets.look(URL, at(601)), Look::Fetch));
    // The same body is the same set.
    assert_eq!(arrive(&mut sets, 1, at(601)), None);
    assert_eq!(used(sets.look(URL, at(602))), generation);
    // Another is not, and replaces it.
    assert!(matches!(sets.look(URL, at(1201)), Look::Fetch));
    assert_eq!(arrive(&mut sets, 2, at(1201)), Some(generation));
    assert_ne!(used(sets.look(URL, at(1202))), generation);
}

#[test]
fn one_fetches_and_the_others_wait_or_use_the_old_set() {
    let mut sets = KeySets::default();
    assert!(matches!(sets.look(URL, at(0)), Look::Fetch));
    assert!(matches!(sets.look(URL, at(4)), Look::Wait));
    // Whoever fetched has left without a word.
    assert!(matches!(sets.look(URL, at(5)), Look::Fetch));
    arrive(&mut sets, 1, at(5));
    assert!(matches!(sets.look(URL, at(605)), Look::Fetch));
    used(sets.look(URL, at(606)));
}

#[test]
fn the_old_set_bridges_ten_minutes_in_which_fetches_fail() {
    let mut sets = KeySets::default();
    assert!(matches!(sets.look(URL, at(0)), Look::Fetch));
    fail(&mut sets, at(0));
    assert!(matches!(sets.look(URL, at(1)), Look::Unavailable));
    assert!(matches!(sets.look(URL, at(2)), Look::Fetch));
    arrive(&mut sets, 1, at(2));
    let generation = used(sets.look(URL, at(3)));
    let end = 2 + 600 + 600;
    for later in (602..end).step_by(100) {
        assert!(matches!(sets.look(URL, at(later)), Look::Fetch));
        // While it is fetched, and in the pause after it.
        assert_eq!(used(sets.look(URL, at(later))), generation);
        fail(&mut sets, at(later));
        assert_eq!(used(sets.look(URL, at(later + 1))), generation);
        assert!(sets.held(URL, at(later)).is_some());
    }
    fail(&mut sets, at(end - 1));
    assert_eq!(used(sets.look(URL, just_before(end))), generation);
    assert!(matches!(sets.look(URL, at(end)), Look::Unavailable));
    assert!(sets.held(URL, at(end)).is_none());
    assert!(matches!(sets.look(URL, at(end + 1)), Look::Fetch));
    assert!(matches!(sets.look(URL, at(end + 2)), Look::Wait));
    // It is back: the same body is the same set.
    arrive(&mut sets, 1, at(end + 3));
    assert_eq!(used(sets.look(URL, at(end + 3))), generation);
}

#[test]
fn a_fetch_that_nobody_ends_bridges_no_longer_than_one_that_fails() {
    let mut sets = KeySets::default();
    arrive(&mut sets, 1, at(0));
    for later in (600..1200).step_by(5) {
        assert!(matches!(sets.look(URL, at(later)), Look::Fetch));
        used(sets.look(URL, at(later + 1)));
    }
    assert!(matches!(sets.look(URL, at(1199)), Look::Use(_)));
    assert!(matches!(sets.look(URL, at(1200)), Look::Fetch));
    for later in 1200..1205 {
        assert!(matches!(sets.look(URL, at(later)), Look::Wait));
    }
}

#[test]
fn a_set_that_is_withdrawn_lets_nobody_in_and_is_asked_for_again_soon() {
    let mut sets = KeySets::default();
    arrive(&mut sets, 1, at(0));
    let generation = used(sets.look(URL, at(0)));
    assert!(matches!(sets.look(URL, at(600)), Look::Fetch));
    assert_eq!(withdraw(&mut sets, at(600)), Some(generation));
    assert_eq!(withdraw(&mut sets, at(600)), None);
    assert!(sets.held(URL, at(600)).is_none());
    for soon in [600, 601] {
        assert!(matches!(sets.look(URL, at(soon)), Look::Unavailable));
        let beyond = sets.look_beyond(URL, generation, at(soon));
        assert!(matches!(beyond, Look::Unavailable));
    }
    assert!(matches!(sets.look(URL, at(602)), Look::Fetch));
    // A failure now brings nothing back.
    fail(&mut sets, at(602));
    assert!(matches!(sets.look(URL, at(603)), Look::Unavailable));
    // Back with the same keys it is another set: what was found good is not.
    assert!(matches!(sets.look(URL, at(604)), Look::Fetch));
    assert_eq!(arrive(&mut sets, 1, at(604)), None);
    assert_ne!(used(sets.look(URL, at(604))), generation);
}

#[test]
fn a_set_found_withdrawn_because_of_an_unknown_key_is_gone_before_its_time() {
    let mut sets = KeySets::default();
    arrive(&mut sets, 1, at(0));
    let seen = used(sets.look(URL, at(0)));
    assert!(matches!(sets.look_beyond(URL, seen, at(1)), Look::Fetch));
    assert_eq!(withdraw(&mut sets, at(1)), Some(seen));
    assert!(matches!(sets.look(URL, at(2)), Look::Unavailable));
}

#[test]
fn a_set_past_its_bridge_is_no_other_set_for_an_unknown_key() {
    let mut sets = KeySets::default();
    arrive(&mut sets, 1, at(0));
    let (seen, end) = (used(sets.look(URL, at(0))), at(1200));
    let beyond = sets.look_beyond(URL, seen.wrapping_add(1), end);
    assert!(matches!(beyond, Look::Fetch));
}

#[test]
fn an_unknown_key_fetches_at_most_once_a_minute() {
    let mut sets = KeySets::default();
    sets.look(URL, at(0));
    arrive(&mut sets, 1, at(0));
    let seen = used(sets.look(URL, at(0)));
    assert!(matches!(sets.look_beyond(URL, seen, at(1)), Look::Fetch));
    assert!(matches!(sets.look_beyond(URL, seen, at(1)), Look::Wait));
    arrive(&mut sets, 1, at(2));
    for soon in [2, 30, 60] {
        let look = sets.look_beyond(URL, seen, at(soon));
        assert!(matches!(look, Look::Unavailable), "{soon}");
    }
    assert!(matches!(sets.look_beyond(URL, seen, at(61)), Look::Fetch));
    arrive(&mut sets, 2, at(61));
    assert_ne!(used(sets.look_beyond(URL, seen, at(61))), seen);
}

#[test]
fn a_clock_that_steps_back_blocks_nothing() {
    let mut sets = KeySets::default();
    assert!(matches!(sets.look(URL, at(1000)), Look::Fetch));
    assert!(matches!(sets.look(URL, at(0)), Look::Fetch));
    fail(&mut sets, at(1000));
    assert!(matches!(sets.look(URL, at(0)), Look::Fetch));
}

#[test]
fn the_least_used_set_makes_room() {
    let mut sets = KeySets::default();
    for number in 0..MOST_SETS {
        let url = format!("https://{number}.example/");
        arrive_at(&mut sets, &url, 1, at(number as u64));
    }
    sets.look("https://0.example/", at(500));
    sets.look("https://more.example/", at(501));
    assert_eq!(sets.known.len(), MOST_SETS);
    assert!(sets.held("https://0.example/", at(501)).is_some());
    assert!(sets.held("https://1.example/", at(501)).is_none());
}
