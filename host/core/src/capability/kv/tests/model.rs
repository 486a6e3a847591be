//! Compares random operations on a store with a simple map in memory.

use std::collections::BTreeMap;

use super::*;

const OPERATIONS: usize = 10_000;
const QUOTA: Quota = Quota { bytes: 300, keys: 10, value: 60 };

/// A stored value: data, version, expiry.
type StoredValue = (Vec<u8>, u64, u64);

/// The expected state of one namespace.
#[derive(Default)]
struct Model {
    values: BTreeMap<String, StoredValue>,
    version: u64,
}

impl Model {
    /// Returns the expected answer to a write. `said` is the store's answer: its version is
    /// expected if it is a new one.
    fn put(&mut self, key: &str, data: &[u8], end: u64, said: Option<u64>) -> Option<u64> {
        let others = || self.values.iter().filter(|(other, _)| *other != key);
        let bytes: usize = others().map(|(key, held)| key.len() + held.0.len()).sum();
        let size = (bytes + key.len() + data.len()) as u64;
        if data.len() as u64 > QUOTA.value
            || size > QUOTA.bytes
            || others().count() as u64 + 1 > QUOTA.keys
        {
            return None;
        }
        let version = said.filter(|said| *said > self.version).unwrap_or_default();
        self.version = version;
        self.values.insert(key.into(), (data.into(), version, end));
        Some(version)
    }
}

/// Maps an exceeded quota to `None`.
fn unless_over_quota<T>(result: Result<T, StoreError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(StoreError::OverQuota(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Values contain their owners' names. A namespace that reads a value missing in its own map has
/// read another's.
#[test]
fn namespace_never_reads_a_foreign_value() {
    let spaces: Vec<_> = [Some("acme"), Some("umbrella")]
        .into_iter()
        .flat_map(|tenant| ["notes", "search"].map(|component| Namespace::new(tenant, component)))
        .collect();
    for subject in empty_stores(QUOTA) {
        let mut random = fastrand::Rng::with_seed(55);
        let mut models: Vec<_> = spaces.iter().map(|_| Model::default()).collect();
        let (mut now, mut over) = (0, 0);
        for round in 0..OPERATIONS {
            now += random.u64(..5);
            subject.hand.set(now);
            let at = random.usize(..spaces.len());
            let (store, space, model) = (&subject.store, &spaces[at], &mut models[at]);
            model.values.retain(|_, held| held.2 > now);
            let key = format!("{}{}", random.choice(["a", "a/", "b"]).unwrap(), random.u8(..6));
            let mut data =
                format!("{:?} {} {round}", space.tenant(), space.component()).into_bytes();
            data.resize(random.usize(..65), b'.');
            let ttl = random.bool().then(|| random.u64(..200));
            let (end, ttl) =
                (ttl.map_or(u64::MAX, |ttl| now + ttl), ttl.map(Duration::from_millis));
            let held = model.values.get(&key).cloned();
            match random.u8(..10) {
                0..4 => {
                    let version = unless_over_quota(store.set(space, &key, &data, ttl));
                    over += usize::from(version.is_none());
                    assert_eq!(version, model.put(&key, &data, end, version), "{round}");
                }
                4..6 => {
                    let found =
                        store.get(space, &key).unwrap().map(|entry| (entry.data, entry.version));
                    assert_eq!(found, held.map(|held| (held.0, held.1)), "{round}");
                }
                6 => assert_eq!(
                    store.delete(space, &key).unwrap(),
                    model.values.remove(&key).is_some(),
                    "{round}"
                ),
                7..9 => {
                    let actual = held.map(|held| held.1);
                    let expected =
                        if random.bool() { actual } else { Some(random.u64(..model.version + 2)) };
                    let swapped = unless_over_quota(
                        store.compare_and_swap(space, &key, expected, &data, ttl),
                    );
                    let right = if expected == actual {
                        model.put(&key, &data, end, swapped.flatten()).map(Some)
                    } else {
                        Some(None)
                    };
                    assert_eq!(swapped, right, "{round}");
                }
                _ => {
                    let prefix = random.choice(["", "a", "a/", "b", "c"]).unwrap();
                    let keys = pages(store, space, prefix, random.usize(1..6)).unwrap().concat();
                    let right = model.values.keys().filter(|key| key.starts_with(prefix));
                    assert_eq!(keys, right.cloned().collect::<Vec<_>>(), "{round}");
                }
            }
            if round % 100 == 0 {
                spaces.iter().for_each(|space| audit(&subject.store, space));
            }
        }
        assert!((100..3000).contains(&over), "{over} writes met a quota");
    }
}
