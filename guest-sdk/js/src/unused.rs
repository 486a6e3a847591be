//! Clears memory that is free, so that the snapshot has nothing of what was in it: sources, texts
//! of the builder, garbage.
//!
//! In: heaps that cannot grow, which the builder sees to. Out: the same heaps, with zeros in their
//! free places.

#![allow(unsafe_code, reason = "allocates blocks without a type")]

use std::alloc::{Layout, alloc, dealloc};
use std::ptr;

/// Bytes of the largest block that is asked for at first.
const LARGEST: usize = 1 << 20;
/// The stack grows down from 1 MiB to here.
const STACK_END: usize = 16;
/// Bytes of the stack that the functions of this module may use.
const OWN_STACK: usize = 1024;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut u8;
    fn free(block: *mut u8);
}

/// The head of a block while it is held.
struct Head {
    before: *mut Head,
    size: usize,
}

/// Clears the heap of Rust, and that of QuickJS.
pub(crate) fn clear() {
    let layout = |size| Layout::from_size_align(size, align_of::<Head>());
    // SAFETY: no block has the size zero, and each is given back with the size that it was asked
    // for.
    clear_heap(
        |size| layout(size).map_or(ptr::null_mut(), |layout| unsafe { alloc(layout) }),
        |block, size| layout(size).into_iter().for_each(|layout| unsafe { dealloc(block, layout) }),
    );
    // SAFETY: each block is given back once.
    clear_heap(|size| unsafe { malloc(size) }, |block, _| unsafe { free(block) });
    clear_stack();
}

/// Clears what earlier calls left on the stack.
fn clear_stack() {
    let here = 0_u8;
    let bytes = (&raw const here).addr().saturating_sub(OWN_STACK + STACK_END);
    // SAFETY: the linker puts the stack first in memory, and what is below the frames of this
    // module is not in use.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(STACK_END).write_bytes(0, bytes) };
}

/// Holds every block that can be had, cleared, and gives all of them back.
fn clear_heap(take: impl Fn(usize) -> *mut u8, give_back: impl Fn(*mut u8, usize)) {
    let mut last: *mut Head = ptr::null_mut();
    let mut size = LARGEST;
    while size >= size_of::<Head>() {
        let block = take(size);
        if block.is_null() {
            size /= 2;
            continue;
        }
        // SAFETY: the block has this size, which is that of a head at least, and is aligned for
        // one.
        unsafe {
            block.write_bytes(0, size);
            block.cast::<Head>().write(Head { before: last, size });
        }
        last = block.cast();
    }
    while !last.is_null() {
        // SAFETY: the head was written above.
        let Head { before, size } = unsafe { last.read() };
        // SAFETY: as above.
        unsafe { last.cast::<u8>().write_bytes(0, size_of::<Head>()) };
        give_back(last.cast(), size);
        last = before;
    }
}
