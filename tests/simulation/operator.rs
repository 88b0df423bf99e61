//! The operators: they change settings under load, revoke, end and make anew.

use std::collections::BTreeMap;

use swarmvia_locks::access::families::Families;
use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::command::{Command, Outcome, Reply, TurnedAway};
use swarmvia_locks::governor::ids::{KeyId, Ref, RequestId};
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::snapshot::Snapshot;

use crate::coverage::Seen;
use crate::disk::Write;
use crate::gate::{Fact, Written};
use crate::object::{Memory, Source};
use crate::said::Said;
use crate::support::ms;
use crate::world::{Event, World};

impl World {
    pub fn operate(&mut self) {
        if self.quiet {
            return;
        }
        let delay = self.rng.below(2 * self.plan.operate);
        self.schedule(delay, Event::Operate);
        self.read();
        let Memory::Present(source) = &self.object.memory else {
            self.create();
            return;
        };
        if alive(&source.families).len() < 2 {
            self.mint();
            return;
        }
        match self.rng.below(20) {
            0..9 => self.configure(),
            9..12 => self.revoke(),
            12..14 => self.delete(),
            14..16 => self.force(),
            16..18 => self.turned_away(),
            18 if self.plan.adaptive => {
                let done = self.operator(Command::Reset, Vec::new());
                self.coverage.saw(Seen::Reset);
                self.note_failure(done.is_none());
            }
            _ => drop(self.operator(Command::Tick, Vec::new())),
        }
    }

    fn note_failure(&mut self, failed: bool) {
        if failed {
            self.coverage.saw(Seen::OperationFailed);
        }
    }

    /// A new source with two families.
    pub fn create(&mut self) {
        let settings = self.plan.settings(&mut self.rng);
        let clock = self.clock();
        let mut families = Families::default();
        let mut stored = BTreeMap::new();
        for _ in 0..2 {
            let (key, family) = self.mint_family();
            families.insert(key, family.clone());
            stored.insert(key, family);
        }
        let snapshot = Snapshot {
            seen: clock,
            ..Snapshot::default()
        };
        let governor = Governor::load(settings.clone(), snapshot).expect("a new governor");
        let source = Source::new(governor, families);
        self.object.memory = Memory::Present(Box::new(source));
        let settings = Box::new(settings);
        self.written(Written {
            writes: vec![Write::Create(settings.clone(), stored)],
            fact: Some(Fact::Created(clock, settings)),
            ..Written::default()
        });
        self.coverage.saw(Seen::Recreated);
    }

    fn mint(&mut self) {
        let (key, family) = self.mint_family();
        if let Memory::Present(source) = &mut self.object.memory {
            source.families.insert(key, family.clone());
            self.operator(Command::Tick, vec![Write::Family(key, Box::new(family))]);
        }
    }

    fn configure(&mut self) {
        let settings = self.plan.settings(&mut self.rng);
        let failed = self.put(settings).is_none();
        self.note_failure(failed);
    }

    /// The same settings again change nothing.
    pub fn put(&mut self, settings: Settings) -> Option<Reply> {
        self.read();
        let Memory::Present(source) = &self.object.memory else {
            return None;
        };
        if *source.governor.settings() == settings {
            return Some(Reply::Done);
        }
        self.coverage.saw(Seen::Configured);
        let gauge = source.governor.gauge();
        if gauge.in_use > settings.concurrency.limit {
            self.coverage.saw(Seen::LimitBelowUse);
        }
        if gauge.depth > 0 {
            self.coverage.saw(Seen::ConfiguredBesideWaiters);
        }
        let settings = Box::new(settings);
        let writes = vec![Write::Settings(settings.clone())];
        self.operator(Command::Configure(settings), writes)
    }

    fn revoke(&mut self) {
        let clock = self.clock();
        let Memory::Present(source) = &mut self.object.memory else {
            return;
        };
        let key = self.rng.pick(&alive(&source.families));
        source.families.revoke(key, clock);
        let family = source.families.find(key).expect("it is known").clone();
        self.coverage.saw(Seen::Revoked);
        let waits = self.object.waiting.values();
        if waits
            .into_iter()
            .any(|(call, _)| self.calls[*call].key == key)
        {
            self.coverage.saw(Seen::RevokedWaiters);
        }
        let writes = vec![Write::Family(key, Box::new(family))];
        let failed = self.operator(Command::Dismiss { key }, writes).is_none();
        self.note_failure(failed);
    }

    fn force(&mut self) {
        // What is shown and done is as of now.
        self.operator(Command::Tick, Vec::new());
        self.read();
        let Memory::Present(source) = &self.object.memory else {
            return;
        };
        let held: Vec<Ref> = source
            .governor
            .slots()
            .iter()
            .map(|it| it.reference)
            .collect();
        if !held.is_empty() {
            let reference = self.rng.pick(&held);
            self.coverage.saw(Seen::Forced);
            let failed = self
                .operator(Command::Force { reference }, Vec::new())
                .is_none();
            self.note_failure(failed);
        }
    }

    /// Some who were refused at the door.
    pub fn turned_away(&mut self) {
        let those = (0..4).map(|_| TurnedAway {
            request: RequestId(self.rng.wide()),
            key: Some(KeyId(1)),
            ip: None,
            outcome: Outcome::Unauthorized,
            ago: ms(self.rng.below(500)),
            is_live: self.rng.one_in(2),
        });
        let those = those.collect();
        self.coverage.saw(Seen::AtTheDoor);
        self.operator(Command::TurnedAway(those), Vec::new());
    }

    /// Ends the source: its waiters are answered, nothing of it stays.
    fn delete(&mut self) {
        let Memory::Present(mut source) = std::mem::take(&mut self.object.memory) else {
            return;
        };
        self.coverage.saw(Seen::Deleted);
        if source.governor.has_waiters() {
            self.coverage.saw(Seen::DeletedWaiters);
        }
        if source.governor.gauge().in_use > 0 {
            self.coverage.saw(Seen::DeletedHolders);
        }
        if self.rng.one_in(self.plan.write_fails) {
            let outs = self.forget(None);
            self.written(Written {
                outs,
                ..Written::default()
            });
            self.note_failure(true);
            return;
        }
        let clock = self.clock();
        let step = source.governor.apply(clock, Command::Close);
        source.governor.audit().expect("a sound governor");
        assert!(!source.governor.has_waiters(), "someone waits for nothing");
        self.object.memory = Memory::Absent;
        let mut outs = self.answers(&step, &Command::Close, None);
        // Whoever the governor didn't know of would wait for ever.
        assert!(self.object.waiting.is_empty(), "nobody answers them");
        outs.extend(self.forget(None));
        for effect in &step.effects {
            use swarmvia_locks::governor::command::Effect;
            let grants = matches!(effect, Effect::Record(it) if it.slot.is_some());
            assert!(!grants, "granted a slot of what is about to end");
        }
        for (_, said) in &outs {
            assert!(matches!(said, Said::Unauthorized | Said::TimedOut));
        }
        self.coverage.saw(Seen::Dismissed);
        self.written(Written {
            writes: vec![Write::DeleteAll],
            outs,
            fact: Some(Fact::Deleted),
            after: None,
        });
    }
}

fn alive(families: &Families) -> Vec<KeyId> {
    let (all, _) = families.page(None, usize::MAX);
    let alive = all.into_iter().filter(|(_, it)| it.revoked_at.is_none());
    alive.map(|(key, _)| key).collect()
}
