//! Counts the bytes that a store allocates.
#![expect(
    unsafe_code,
    reason = "an allocator that counts is one, and hands everything on as it came"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use toolcell::kv::{KeyStore as _, Namespace, Quota, SqliteStore};

struct Counting;

thread_local! {
    /// Bytes that this thread has allocated.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all calls go to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ASKED.try_with(|asked| asked.set(asked.get() + layout.size()));
        // SAFETY: the arguments are passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the arguments are passed on unchanged.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn asked<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ASKED.get();
    let done = work();
    (done, ASKED.get() - before)
}

/// Listing returns keys only, and a write needs only the sizes of the values. Fails without:
/// avoiding copies of values on the way.
#[test]
fn store_copies_a_value_only_on_get() {
    const VALUE: usize = 1 << 20;
    let store = SqliteStore::in_memory().with_quota(Quota { bytes: 1 << 30, ..Quota::default() });
    let own = Namespace::new(Some("a"), "notes");
    for key in 0..20 {
        store.set(&own, &format!("key {key}"), &[7; VALUE], None).expect("room");
    }
    let (page, bytes) = asked(|| store.list(&own, "", None, 100).expect("a page"));
    assert_eq!(page.keys.len(), 20);
    assert!(bytes < 16 << 10, "a page of 20 keys took {bytes} bytes");
    let (_, bytes) = asked(|| store.set(&own, "key 1", b"", None).expect("room"));
    assert!(bytes < 16 << 10, "a write over a value took {bytes} bytes");
    let (_, bytes) = asked(|| store.delete(&own, "key 2").expect("it is there"));
    assert!(bytes < 16 << 10, "a deletion took {bytes} bytes");
    let (entry, bytes) =
        asked(|| store.get(&own, "key 3").expect("it works").expect("it is there"));
    assert_eq!(entry.data.len(), VALUE);
    assert!((VALUE..VALUE + (16 << 10)).contains(&bytes), "a value took {bytes} bytes");
}
