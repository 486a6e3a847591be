//! Tests of several threads that use one namespace of a store.

use std::sync::atomic::AtomicBool;

use super::*;

#[test]
fn concurrent_swaps_lose_no_update() {
    const THREADS: u64 = 8;
    const EACH: u64 = 200;
    for subject in empty_stores(Quota::default()) {
        let (store, space) = (&subject.store, notes());
        let add = || {
            loop {
                let found = store.get(&space, "count").unwrap();
                let count = found
                    .as_ref()
                    .map_or(0, |found| std::str::from_utf8(&found.data).unwrap().parse().unwrap());
                let next: u64 = count + 1;
                let version = found.map(|found| found.version);
                let data = next.to_string();
                let swapped =
                    store.compare_and_swap(&space, "count", version, data.as_bytes(), None);
                if swapped.unwrap().is_some() {
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..EACH).for_each(|_| add()));
            }
        });
        let found = store.get(&space, "count").unwrap().unwrap();
        assert_eq!(found.data, (THREADS * EACH).to_string().into_bytes());
        assert_eq!(found.version, THREADS * EACH);
    }
}

/// Keys that exist all the time are on exactly one page, while others are added and removed.
#[test]
fn list_pages_are_stable_during_writes() {
    for subject in empty_stores(Quota::default()) {
        let (store, space, is_over) = (&subject.store, notes(), AtomicBool::new(false));
        let stays: Vec<_> = (0..50).map(|key| format!("{key:02}")).collect();
        for key in &stays {
            store.set(&space, key, b"", None).unwrap();
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let key = format!("{:02}x", fastrand::u8(..50));
                    store.set(&space, &key, b"", None).unwrap();
                    store.delete(&space, &key).unwrap();
                }
            });
            for most in 1..20 {
                let mut keys = pages(store, &space, "", most).unwrap().concat();
                keys.retain(|key| !key.ends_with('x'));
                assert_eq!(keys, stays);
            }
            is_over.store(true, Ordering::SeqCst);
        });
        audit(&subject.store, &space);
    }
}
