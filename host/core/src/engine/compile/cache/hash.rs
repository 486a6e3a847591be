//! Keyed BLAKE3 hash of a compiled component, computed by several threads if it is large.
//!
//! The cache calls [`keyed`] with a key, a reader and an approximate length, when it writes an
//! entry and each time it reads one. The compiled code of a language runtime has tens of megabytes,
//! and its hash takes most of a first call's time. From 8 MiB on, up to four threads share the
//! work, on pieces of 2 MiB. The result equals that of one thread, which is also used if no threads
//! can be started. The threads end with the hash.

use std::io::{self, Read};
use std::thread::available_parallelism;

/// Bytes. A shorter artifact is hashed faster than threads are started.
const LONG: u64 = 8 << 20;
/// Bytes that are read and hashed at once: few enough to stay in the processor's cache.
const CHUNK: usize = 2 << 20;
/// Threads. With more, they wait for memory.
const MOST_THREADS: usize = 4;

/// Computes the keyed hash of the bytes that `code` reads; `length` is approximate.
pub(super) fn keyed(key: &[u8; 32], mut code: impl Read, length: u64) -> io::Result<blake3::Hash> {
    let mut hash = blake3::Hasher::new_keyed(key);
    let threads = available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let pool = (length >= LONG && threads > 1).then(|| pool(threads)).and_then(Result::ok);
    let Some(pool) = pool else {
        return Ok(hash.update_reader(code)?.finalize());
    };
    let mut chunk = Vec::with_capacity(CHUNK);
    while (&mut code).take(CHUNK as u64).read_to_end(&mut chunk)? > 0 {
        pool.install(|| hash.update_rayon(&chunk));
        chunk.clear();
    }
    Ok(hash.finalize())
}

fn pool(threads: usize) -> Result<rayon::ThreadPool, rayon::ThreadPoolBuildError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|_| "toolcell-hash".into())
        .build()
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, LONG, keyed};

    #[test]
    fn parallel_hash_equals_serial_hash() {
        let key = [7; 32];
        let bytes: Vec<u8> = (0..2 * CHUNK + 5).map(|at| (at % 251) as u8).collect();
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, bytes.len()] {
            for told in [0, LONG] {
                let found = keyed(&key, &bytes[..length], told).expect("a slice is read");
                let expected = blake3::keyed_hash(&key, &bytes[..length]);
                assert_eq!(found, expected, "{length} bytes, {told} told");
            }
        }
    }
}
