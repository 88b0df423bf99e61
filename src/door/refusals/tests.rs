#![expect(clippy::arithmetic_side_effects, reason = "a test that panics fails")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::batch::{MOST_ENTRIES, MOST_LIVE_ENTRIES};
use super::*;
use crate::governor::command::Outcome;
use crate::governor::ids::KeyId;

const GATHER_MS: u64 = 500;

fn at(ms: u64) -> Millis {
    Millis::from_epoch(1_710_000_000_000 + ms)
}

fn one(key: Option<u64>, is_live: bool) -> TurnedAway {
    TurnedAway {
        request: RequestId(1),
        key: key.map(KeyId),
        ip: None,
        outcome: Outcome::Unauthorized,
        ago: Span::ZERO,
        is_live,
    }
}

fn stranger() -> TurnedAway {
    one(None, false)
}

/// How many refusals a batch stands for.
fn count(batch: &[TurnedAway]) -> u32 {
    let counts = batch.iter().map(|one| one.outcome.omitted().unwrap_or(1));
    counts.sum()
}

/// An isolate and those who send for it: what became of the refusals, by source.
#[derive(Default)]
struct Isolate {
    refusals: Refusals,
    /// When each of the senders sends next, and what.
    senders: Vec<(u64, String)>,
    logged: BTreeMap<String, u32>,
    /// When the directory was asked.
    asked: Vec<u64>,
}

impl Isolate {
    fn refuse(&mut self, source: &str, ms: u64) {
        if self.refusals.gather(source, stranger(), at(ms)) {
            self.senders.push((ms + GATHER_MS, source.to_owned()));
        }
    }

    /// Lets time pass until `ms`; sources whose name begins with "real" are there.
    fn pass(&mut self, ms: u64) {
        while let Some(due) = self.senders.iter().position(|(due, _)| *due <= ms) {
            let (now, source) = self.senders.remove(due);
            let Some(batch) = self.refusals.take(&source, at(now), || RequestId(0)) else {
                continue;
            };
            if !self.refusals.knows(&source) {
                self.asked.push(now);
            }
            if source.starts_with("real") {
                self.refusals.is_present(&source);
                *self.logged.entry(source.clone()).or_default() += count(&batch);
            } else {
                self.refusals.is_absent(&source, at(now));
            }
            if let Some(next) = self.refusals.next(&source, at(now)) {
                self.senders.push((now + GATHER_MS, next));
            }
        }
    }

    fn busiest_half_second(&self) -> usize {
        let within = |from: u64| {
            self.asked
                .iter()
                .filter(move |ms| (from..from + GATHER_MS).contains(*ms))
        };
        self.asked
            .iter()
            .map(|from| within(*from).count())
            .max()
            .unwrap_or(0)
    }
}

#[test]
fn noise_at_made_up_names_hides_no_refusal_of_a_source_that_is_there() {
    let mut isolate = Isolate::default();
    for ms in 0..2000 {
        // The noise is there first, and there is much more of it.
        isolate.refuse(&format!("made-up-{ms}"), ms);
        isolate.refuse(&format!("made-up-{}", ms % 50), ms);
        if ms >= 100 && ms % 4 == 0 {
            isolate.refuse("real", ms);
        }
        isolate.pass(ms);
    }
    isolate.pass(4000);
    assert_eq!(isolate.logged.get("real"), Some(&475));
    assert!(isolate.busiest_half_second() <= MOST_ASKED);
}

#[test]
fn a_source_that_is_refused_once_amid_noise_has_its_turn() {
    let mut isolate = Isolate::default();
    for ms in 0..20_000 {
        isolate.refuse(&format!("made-up-{}", ms % 97), ms);
        if ms == 200 {
            isolate.refuse("real", ms);
        }
        isolate.pass(ms);
    }
    assert_eq!(isolate.logged.get("real"), Some(&1));
}

#[test]
fn made_up_names_take_a_bounded_memory_and_a_bounded_number_of_questions() {
    let mut isolate = Isolate::default();
    for name in 0..20_000 {
        isolate.refuse(&format!("made-up-{name}"), name / 10);
        isolate.pass(name / 10);
    }
    isolate.pass(10_000);
    assert!(isolate.refusals.waiting.len() <= MOST_WAITING);
    assert!(isolate.refusals.sending.len() <= MOST_ASKED);
    assert!(isolate.busiest_half_second() <= MOST_ASKED);
}

#[test]
fn a_sender_that_was_cut_off_keeps_nobody_out() {
    let mut refusals = Refusals::new();
    for name in 0..MOST_ASKED {
        assert!(refusals.gather(&format!("made-up-{name}"), stranger(), at(0)));
    }
    assert!(!refusals.gather("real", stranger(), at(1999)));
    // Nobody has sent any of them.
    assert!(refusals.gather("real", stranger(), at(2001)));
    let batch = refusals.take("real", at(2001), || RequestId(0)).unwrap();
    assert_eq!(count(&batch), 2);
    // Whose batch wasn't sent has it taken over by the next refusal.
    refusals.is_present("real");
    refusals.next("real", at(2001));
    assert!(refusals.gather("real", stranger(), at(2100)));
    assert!(!refusals.gather("real", stranger(), at(4100)));
    assert!(refusals.gather("real", stranger(), at(4101)));
    assert_eq!(
        count(&refusals.take("real", at(4101), || RequestId(0)).unwrap()),
        3
    );
}

#[test]
fn nobody_is_counted_less_because_the_directory_did_not_answer() {
    let mut refusals = Refusals::new();
    refusals.gather("real", stranger(), at(0));
    refusals.gather("real", one(Some(1), true), at(1));
    let batch = refusals.take("real", at(500), || RequestId(0)).unwrap();
    refusals.put_back("real", &batch, at(501));
    assert!(refusals.gather("real", stranger(), at(600)));
    let batch = refusals.take("real", at(1100), || RequestId(0)).unwrap();
    assert_eq!(count(&batch), 3);
    assert!(
        batch
            .iter()
            .any(|one| one.is_live && one.key == Some(KeyId(1)))
    );
}

#[test]
fn a_name_that_no_source_has_is_asked_about_again_after_a_while() {
    let mut refusals = Refusals::new();
    refusals.is_absent("demo", at(0));
    assert!(!refusals.gather("demo", stranger(), at(1999)));
    assert!(refusals.gather("demo", stranger(), at(2000)));
    refusals.is_absent("demo", at(2000));
    assert_eq!(refusals.next("demo", at(2000)), None);
    refusals.is_present("demo");
    assert!(refusals.gather("demo", stranger(), at(2001)));
}

#[test]
fn callers_of_live_keys_of_dead_ones_and_of_none_have_room_of_their_own() {
    let mut refusals = Refusals::new();
    refusals.is_present("demo");
    for _ in 0..1000 {
        refusals.gather("demo", stranger(), at(0));
        refusals.gather("demo", one(Some(7), false), at(1));
    }
    refusals.gather("demo", one(Some(1), true), at(2));
    let batch = refusals.take("demo", at(500), || RequestId(0)).unwrap();
    assert_eq!(batch.len(), 1 + 2 * (MOST_ENTRIES + 1));
    assert_eq!(
        batch[0],
        TurnedAway {
            ago: Span::from_ms(498),
            ..one(Some(1), true)
        }
    );
    let left_out = Outcome::Omitted(1000 - 16);
    let omitted: Vec<_> = batch.iter().filter(|one| one.outcome == left_out).collect();
    assert_eq!(omitted[0].key, Some(KeyId(7)));
    assert!(omitted[0].is_dead() && omitted[0].ago == Span::from_ms(499));
    assert_eq!(omitted[1].key, None);
}

/// Two hundred at once, a queue that a tightened policy sends away.
#[test]
fn each_call_of_a_live_key_has_an_entry_of_its_own_up_to_a_bound() {
    for refused in [1, 17, 200, MOST_LIVE_ENTRIES, MOST_LIVE_ENTRIES + 5] {
        let mut refusals = Refusals::new();
        refusals.is_present("demo");
        for _ in 0..refused {
            refusals.gather("demo", one(Some(1), true), at(0));
            refusals.gather("demo", stranger(), at(0));
        }
        let batch = refusals.take("demo", at(500), || RequestId(0)).unwrap();
        let has_entry = |one: &&TurnedAway| one.is_live && one.outcome == Outcome::Unauthorized;
        let entries = batch.iter().filter(has_entry).count();
        assert_eq!(entries, refused.min(MOST_LIVE_ENTRIES));
        assert_eq!(count(&batch) as usize, 2 * refused);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever comes in whatever order, of a source that is there no refusal is
    /// lost, and none is counted twice.
    #[test]
    fn every_refusal_of_a_source_is_counted_once(
        steps in prop::collection::vec((0..2_u8, 0..60_u64, 0..40_u64), 1..200),
    ) {
        let mut isolate = Isolate::default();
        let mut expected: BTreeMap<String, u32> = BTreeMap::new();
        let mut ms = 0;
        for (is_real, name, pause) in steps {
            let name = if is_real == 1 {
                let name = format!("real-{}", name % 30);
                *expected.entry(name.clone()).or_default() += 1;
                name
            } else {
                format!("made-up-{name}")
            };
            isolate.refuse(&name, ms);
            ms += pause;
            isolate.pass(ms);
        }
        isolate.pass(ms + 120_000);
        prop_assert!(isolate.busiest_half_second() <= MOST_ASKED);
        prop_assert_eq!(isolate.logged, expected);
    }
}
