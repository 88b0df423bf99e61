//! Owners of key families, who refresh and crash, and thieves who have seen one of
//! their tokens.
//!
//! What is demanded here: a token is always answered with the same pair; never
//! again once something of that pair got an answer, whatever was lost or crashed
//! since; and an owner who writes a pair down before it uses it is never taken for
//! a thief.

use std::collections::{BTreeMap, BTreeSet};

use swarmvia_locks::access::families::{Family, Refresh, Trade};
use swarmvia_locks::access::refresh::SecretDigest;
use swarmvia_locks::governor::command::Command;
use swarmvia_locks::governor::ids::{KeyId, RequestId};
use swarmvia_locks::governor::time::{Millis, Span};

use crate::coverage::Seen;
use crate::disk::Write;
use crate::object::{Memory, Try};
use crate::said::Said;
use crate::support::ms;
use crate::worker::{Call, Verb};
use crate::world::{Event, World};

const TEN_SECONDS: Span = Span::from_seconds(10);
/// Sessions of the calls made here.
const OF_OWNER: u32 = 0;
const OF_THIEF: u32 = 1;

pub struct Owner {
    key: KeyId,
    ttl: u64,
    /// What it has written down: its token, and when its access key ends.
    token: u64,
    end: Millis,
    /// What came of each token that was answered.
    answered: BTreeMap<u64, Millis>,
    /// Tokens that got an answer, themselves or by the key that came with them.
    seen: BTreeSet<u64>,
    /// Until when the token before the last pair may be shown again.
    again_until: Millis,
    stolen: bool,
    dead: bool,
}

fn digest(key: KeyId, token: u64) -> SecretDigest {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&key.0.to_be_bytes());
    bytes[8..16].copy_from_slice(&token.to_be_bytes());
    SecretDigest(bytes)
}

impl World {
    /// A new family, whose owner has its first pair.
    pub fn mint_family(&mut self) -> (KeyId, Family) {
        let key = KeyId(self.rng.next());
        let ttl = self.rng.pick(&[4_000, 30_000, 1_000_000, 1_000_000]);
        let refresh_ttl = self.rng.pick(&[40_000, 10_000_000]);
        let now = self.clock();
        let family = Family::minted(None, now, ms(ttl), ms(refresh_ttl), digest(key, 1));
        self.owners.push(Owner {
            key,
            ttl,
            token: 1,
            end: family.expires_at,
            answered: BTreeMap::new(),
            seen: BTreeSet::new(),
            again_until: Millis::EPOCH,
            stolen: false,
            dead: false,
        });
        self.work_until_refresh(self.owners.len() - 1);
        (key, family)
    }

    fn work_until_refresh(&mut self, owner: usize) {
        let most = self.owners[owner].ttl.min(20_000);
        let delay = self.rng.between(most / 4, most);
        self.schedule(delay, Event::Refresh(owner));
    }

    /// The end of the access key that callers of a family show: its owner's last.
    pub fn end_of(&self, key: KeyId) -> Option<Millis> {
        let owner = self.owners.iter().find(|owner| owner.key == key);
        owner.map(|owner| owner.end)
    }

    /// An owner trades in what it has written down.
    pub fn refresh(&mut self, owner: usize) {
        if self.quiet || self.owners[owner].dead {
            return;
        }
        let token = self.owners[owner].token;
        if self.rng.one_in(self.plan.stolen) {
            self.owners[owner].stolen = true;
            let delay = self.rng.below(8_000);
            self.schedule(delay, Event::Spend(owner, token));
        }
        self.show(owner, OF_OWNER, token);
    }

    /// A thief trades in what it has found.
    pub fn spend(&mut self, owner: usize, token: u64) {
        if !self.quiet {
            self.show(owner, OF_THIEF, token);
        }
    }

    fn show(&mut self, owner: usize, session: u32, token: u64) {
        let key = self.owners[owner].key;
        let request = RequestId(self.rng.wide());
        self.begin(owner, session, key, request, Verb::Refresh { token }, 0);
    }

    /// A token has come to the object.
    pub fn trade(&mut self, by: Try, key: KeyId, token: u64) {
        self.read();
        let clock = self.clock();
        let Memory::Present(source) = &mut self.object.memory else {
            self.say(by, Said::Unauthorized);
            return;
        };
        let traded = Trade {
            shown: digest(key, token),
            successor: digest(key, token + 1),
            is_admitted: true,
        };
        let before = source.families.find(key).cloned();
        let comes_to = source.families.refresh(key, &traded, clock);
        let after = source.families.find(key).cloned();
        let written = || vec![Write::Family(key, Box::new(after.clone().expect("known")))];
        let (said, done) = match comes_to {
            Refresh::Rotated => {
                let end = after.as_ref().expect("known").expires_at;
                let old = before.expect("known").expires_at;
                let owner = self.owner_of(key);
                owner.again_until = old.max(clock.plus(TEN_SECONDS));
                let done = self.operator(Command::Tick, written());
                (Said::Refreshed(end), done)
            }
            Refresh::Again => {
                let end = after.as_ref().expect("known").expires_at;
                (
                    Said::Refreshed(end),
                    self.operator(Command::Tick, Vec::new()),
                )
            }
            Refresh::Reused => {
                let owner = self.owner_of(key);
                let over = clock > owner.again_until;
                assert!(owner.stolen || over, "an owner is taken for a thief");
                if owner.stolen {
                    self.coverage.saw(Seen::ThiefNoticed);
                }
                let done = self.operator(Command::Dismiss { key }, written());
                (Said::Unauthorized, done)
            }
            Refresh::Refused(_) => {
                self.say(by, Said::Unauthorized);
                return;
            }
            Refresh::Forbidden => panic!("from everywhere"),
        };
        self.coverage.saw(match comes_to {
            Refresh::Again => Seen::RefreshedAgain,
            _ => Seen::Refreshed,
        });
        self.say(by, done.map_or(Said::Again, |_| said));
    }

    fn owner_of(&mut self, key: KeyId) -> &mut Owner {
        let mut owners = self.owners.iter_mut();
        owners
            .find(|owner| owner.key == key)
            .expect("every family has one")
    }

    /// An answer has left the object, and with it what it depends on is on disk.
    pub fn has_answered(&mut self, (call, _): Try, said: Said) {
        let Call { key, verb, end, .. } = self.calls[call];
        let Some(owner) = self.owners.iter_mut().find(|owner| owner.key == key) else {
            return;
        };
        match (verb, said) {
            (Verb::Refresh { token }, Said::Refreshed(end)) => {
                let same = *owner.answered.entry(token).or_insert(end);
                assert_eq!(same, end, "another answer to the same token");
                let next = token + 1;
                assert!(!owner.seen.contains(&next), "answered though it was seen");
                owner.seen.insert(token);
            }
            (_, Said::Again | Said::DeadKey) | (Verb::Refresh { .. }, _) => {}
            _ => {
                let mut answered = owner.answered.iter();
                let shown = answered.find(|(_, its)| Some(**its) == end);
                owner.seen.extend(shown.map(|(token, _)| token + 1));
            }
        }
    }

    /// What the Worker said to a refresh.
    pub fn refreshed(&mut self, call: &Call, token: u64, said: Said) {
        let owner = call.caller;
        let is_owner = call.session == OF_OWNER;
        match said {
            Said::Refreshed(end) if is_owner => {
                if self.rng.one_in(self.plan.crashes) {
                    self.coverage.saw(Seen::OwnerCrashed);
                    let delay = self.rng.below(3_000);
                    self.schedule(delay, Event::Refresh(owner));
                    return;
                }
                let it = &mut self.owners[owner];
                (it.token, it.end) = (token + 1, end);
                self.work_until_refresh(owner);
            }
            Said::Refreshed(_) => {
                if self.owners[owner].token == token {
                    self.coverage.saw(Seen::ThiefFirst);
                }
                if self.rng.one_in(2) {
                    let delay = self.rng.below(8_000);
                    self.schedule(delay, Event::Spend(owner, token + 1));
                }
            }
            Said::Failed | Said::Broken if is_owner => {
                let delay = self.rng.below(2_000);
                self.schedule(delay, Event::Refresh(owner));
            }
            _ if is_owner => self.owners[owner].dead = true,
            _ => {}
        }
    }
}
