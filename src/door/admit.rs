//! Who is let in at the object: the key first, then the policy by which the door
//! decided, then how the key came.

use super::dead::Death;
use crate::access::families::Families;
use crate::access::policy::Policy;
use crate::governor::command::TurnedAway;
use crate::governor::ids::Version;
use crate::governor::time::Millis;
use crate::protocol::lock::Caller;

/// What the object says to a caller before it looks at what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Admitted,
    Dead(Death),
    /// The door decided by another policy than stands.
    Stale,
    /// The key came by a scheme that the source doesn't allow.
    WrongCarrier,
}

/// `version` and `policy` are those that stand.
pub fn admit(families: &Families, version: Version, policy: &Policy, caller: &Caller) -> Standing {
    if let Some(death) = death(families, caller) {
        return Standing::Dead(death);
    }
    let is_decided_by_it = match caller.policy {
        Some(decided_by) => decided_by == version,
        None => policy.is_plain(),
    };
    if !is_decided_by_it {
        return Standing::Stale;
    }
    if policy.carries(caller.carrier) {
        Standing::Admitted
    } else {
        Standing::WrongCarrier
    }
}

fn death(families: &Families, caller: &Caller) -> Option<Death> {
    match families.find(caller.key) {
        None => Some(Death::Unknown),
        Some(_) if families.admits(caller.key) => None,
        Some(_) => Some(Death::Revoked),
    }
}

/// Which of these have a key whose family is alive: the door says which keys have
/// expired, families are known here only.
pub fn mark_live(those: &mut [TurnedAway], families: &Families, now: Millis) {
    for one in those {
        let is_live = |key| families.is_live(key, now);
        one.is_live = one.is_live && one.key.is_some_and(is_live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::families::Family;
    use crate::access::refresh::SecretDigest;
    use crate::governor::command::Outcome;
    use crate::governor::ids::{KeyId, RequestId};
    use crate::governor::time::Span;
    use crate::wire::request::Carrier;

    const STANDS: Version = Version(3);

    fn families() -> Families {
        let span = Span::from_seconds(1);
        let family = Family::minted(None, Millis::EPOCH, span, span, SecretDigest([0; 32]));
        let mut families = Families::default();
        families.insert(KeyId(1), family.clone());
        families.insert(KeyId(2), family);
        families.revoke(KeyId(2), Millis::EPOCH);
        families
    }

    /// By its key, by the policy that it was decided by, by its carrier.
    fn standing(policy: &Policy, key: u64, decided_by: Option<u64>, carrier: Carrier) -> Standing {
        let caller = Caller {
            request: RequestId(1),
            key: KeyId(key),
            carrier,
            policy: decided_by.map(Version),
            expires: None,
        };
        admit(&families(), STANDS, policy, &caller)
    }

    #[test]
    fn the_key_comes_before_the_policy_and_the_policy_before_the_carrier() {
        let policy = Policy {
            bearer: false,
            ..Policy::default()
        };
        for decided_by in [None, Some(2), Some(3)] {
            for carrier in [Carrier::KeyHeader, Carrier::Bearer] {
                let of = |key| standing(&policy, key, decided_by, carrier);
                assert_eq!(of(2), Standing::Dead(Death::Revoked));
                assert_eq!(of(9), Standing::Dead(Death::Unknown));
                let expected = match (decided_by, carrier) {
                    (Some(2), _) => Standing::Stale,
                    (_, Carrier::Bearer) => Standing::WrongCarrier,
                    _ => Standing::Admitted,
                };
                assert_eq!(of(1), expected, "{decided_by:?} {carrier:?}");
            }
        }
    }

    #[test]
    fn only_a_key_that_is_good_at_the_door_and_at_the_source_is_live() {
        let one = |key: Option<u64>, is_live| TurnedAway {
            request: RequestId(1),
            key: key.map(KeyId),
            ip: None,
            outcome: Outcome::Unauthorized,
            ago: Span::ZERO,
            is_live,
        };
        let marked = |ms| {
            let mut those = [
                one(Some(1), true),
                one(Some(1), false),
                one(Some(2), true),
                one(Some(9), true),
                one(None, true),
            ];
            mark_live(&mut those, &families(), Millis::from_epoch(ms));
            those.map(|one| one.is_live)
        };
        assert_eq!(marked(999), [true, false, false, false, false]);
        assert_eq!(marked(1000), [false; 5], "its last key has expired");
    }
}
