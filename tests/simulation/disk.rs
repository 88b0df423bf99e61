//! What outlives the object: the source, its families, its rows, its alarm.

use std::collections::BTreeSet;

use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::command::Effect;
use swarmvia_locks::governor::ids::KeyId;
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::Millis;

use crate::support::storage::Storage;

#[derive(Clone, Debug)]
pub struct Kept {
    pub settings: Settings,
    /// Key families that are alive.
    pub families: BTreeSet<KeyId>,
    pub rows: Storage,
}

#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub source: Option<Kept>,
    /// The alarm that stands, by its number.
    pub alarm: Option<u64>,
}

/// One thing to write.
#[derive(Clone, Debug)]
pub enum Write {
    Create(Box<Settings>, BTreeSet<KeyId>),
    Settings(Box<Settings>),
    Family(KeyId, bool),
    Effect(Effect),
    DeleteAll,
    /// The alarm of this number rings at this moment.
    Alarm(u64, Millis),
}

impl Disk {
    pub fn apply(&mut self, write: &Write) {
        match write {
            Write::Create(settings, families) => {
                self.source = Some(Kept {
                    settings: (**settings).clone(),
                    families: families.clone(),
                    rows: Storage::default(),
                });
            }
            Write::DeleteAll => *self = Self::default(),
            Write::Alarm(number, _) => self.alarm = Some(*number),
            Write::Settings(_) | Write::Family(..) | Write::Effect(_) => {
                let Some(kept) = &mut self.source else {
                    panic!("{write:?} where there is no source");
                };
                kept.apply(write);
            }
        }
    }

    /// Reads memory back, as the clock shows `clock`; and the latest moment that
    /// the rows speak of.
    pub fn load(&self, clock: Millis) -> Option<(Governor, BTreeSet<KeyId>, Millis)> {
        let kept = self.source.as_ref()?;
        let snapshot = kept.rows.snapshot(clock);
        match Governor::load(kept.settings.clone(), snapshot) {
            Ok(governor) => Some((governor, kept.families.clone(), kept.rows.seen())),
            Err(broken) => panic!("the stored state is broken: {broken}"),
        }
    }
}

impl Kept {
    fn apply(&mut self, write: &Write) {
        match write {
            Write::Settings(settings) => self.settings = (**settings).clone(),
            Write::Family(key, true) => drop(self.families.insert(*key)),
            Write::Family(key, false) => drop(self.families.remove(key)),
            Write::Effect(effect) => self.rows.apply(effect),
            Write::Create(..) | Write::DeleteAll | Write::Alarm(..) => {}
        }
    }
}
