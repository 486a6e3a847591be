//! Tests of the space that a store uses, and a check of its tables for all tests of `kv`: a
//! namespace has a version row exactly if it has keys.

use rusqlite::TransactionBehavior::Deferred;

use super::*;

/// Checks the invariants of a namespace's tables.
pub(super) fn audit(store: &SqliteStore, namespace: &Namespace) {
    let (highest, last) = store
        .database
        .transaction(Deferred, |rows| {
            let version = |query| {
                rows.query_row(query, [namespace.name()], |row| row.get::<_, Option<i64>>(0))
            };
            let highest = version("SELECT max(version) FROM entry WHERE namespace = ?1")?;
            Ok((highest, version("SELECT max(version) FROM last WHERE namespace = ?1")?))
        })
        .unwrap();
    assert_eq!(last.is_some(), highest.is_some(), "a namespace without keys has no row");
    assert!(last >= highest, "{last:?} {highest:?}");
}

/// Returns the names of namespaces with a row. The empty name is that of the kept versions.
fn rows(store: &SqliteStore) -> Vec<Vec<u8>> {
    let all = "SELECT namespace FROM entry UNION SELECT namespace FROM last";
    let seen = store.database.transaction(Deferred, |rows| {
        let mut query = rows.prepare(all)?;
        let names = query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(names)
    });
    seen.unwrap()
}

/// Namespaces disappear by deletion and by the expiry of their keys. Fails without: the removal of
/// a namespace's usage.
#[test]
fn empty_namespace_uses_no_space() {
    for Subject { _dir, name, store, hand } in empty_stores(Quota::default()) {
        for at in 0..100 {
            hand.set(at);
            let space = Namespace::new(Some(&format!("tenant {at}")), "notes");
            store.set(&space, "a", b"1", None).unwrap();
            store.set(&space, "b", b"2", Some(Duration::from_millis(1))).unwrap();
            assert!(store.delete(&space, "a").unwrap());
            hand.set(at + 1);
            assert_eq!(store.get(&space, "b").unwrap(), None);
            assert_eq!(rows(&store), [b""], "{name}: {at}");
            audit(&store, &space);
        }
    }
}

/// All keys of the namespace have expired. One write removes them.
#[test]
fn expired_keys_do_not_count_against_the_quota() {
    for subject in empty_stores(Quota { keys: 200, ..Quota::default() }) {
        let (store, space) = (&subject.store, notes());
        for key in 0..200 {
            store.set(&space, &key.to_string(), b"", Some(Duration::from_millis(1))).unwrap();
        }
        assert!(matches!(store.set(&space, "new", b"", None), Err(StoreError::OverQuota(_))));
        subject.hand.set(1);
        store.set(&space, "new", b"", None).unwrap();
        audit(&subject.store, &space);
        for key in 0..199 {
            store.set(&space, &format!("more {key}"), b"", None).unwrap();
        }
        assert!(matches!(store.set(&space, "one more", b"", None), Err(StoreError::OverQuota(_))));
        audit(&subject.store, &space);
    }
}

/// Existing values stay and may shrink; a value that grows has to fit.
#[test]
fn shrunk_quota_keeps_existing_values() {
    let space = notes();
    let store = SqliteStore::in_memory();
    for key in ["a", "b"] {
        store.set(&space, key, b"12345", None).unwrap();
    }
    let store = store.with_quota(Quota { bytes: 6, keys: 1, value: 9 });
    store.set(&space, "a", b"1234", None).unwrap();
    assert!(store.set(&space, "a", b"12345", None).is_err());
    assert!(store.set(&space, "c", b"", None).is_err());
    assert_eq!(store.get(&space, "b").unwrap().unwrap().data, b"12345");
    audit(&store, &space);
}
