//! What outlives the object: the source, its families, its rows, its alarm.

use std::collections::BTreeMap;

use swarmvia_locks::access::families::{Families, Family};
use swarmvia_locks::governor::Governor;
use swarmvia_locks::governor::command::Effect;
use swarmvia_locks::governor::ids::KeyId;
use swarmvia_locks::governor::settings::Settings;
use swarmvia_locks::governor::time::Millis;

use crate::support::storage::Storage;

#[derive(Clone, Debug)]
pub struct Kept {
    pub settings: Settings,
    pub families: BTreeMap<KeyId, Family>,
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
    Create(Box<Settings>, BTreeMap<KeyId, Family>),
    Settings(Box<Settings>),
    Family(KeyId, Box<Family>),
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
    pub fn load(&self, clock: Millis) -> Option<(Governor, Families, Millis)> {
        let kept = self.source.as_ref()?;
        let snapshot = kept.rows.snapshot(clock);
        match Governor::load(kept.settings.clone(), snapshot) {
            Ok(governor) => Some((governor, kept.families(), kept.rows.seen())),
            Err(broken) => panic!("the stored state is broken: {broken}"),
        }
    }
}

impl Kept {
    fn families(&self) -> Families {
        let mut families = Families::default();
        for (key, family) in &self.families {
            families.insert(*key, family.clone());
        }
        families
    }

    /// Those that are alive.
    pub fn alive(&self) -> Vec<KeyId> {
        let all = self.families.iter();
        let alive = all.filter(|(_, family)| family.revoked_at.is_none());
        alive.map(|(key, _)| *key).collect()
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Settings(settings) => self.settings = (**settings).clone(),
            Write::Family(key, family) => {
                self.families.insert(*key, (**family).clone());
            }
            Write::Effect(effect) => self.rows.apply(effect),
            Write::Create(..) | Write::DeleteAll | Write::Alarm(..) => {}
        }
    }
}
