//! Overwrites free memory with zeros, so that the snapshot does not contain its former content:
//! sources, texts of the builder, garbage.
//!
//! In: heaps that cannot grow; the builder ensures this. Out: the same heaps, with zeros in free
//! memory.

#![allow(unsafe_code, reason = "allocates blocks without a type")]

use std::alloc::{Layout, alloc, dealloc};
use std::ptr;

/// Bytes of the first and largest block that is requested.
const LARGEST: usize = 1 << 20;
/// Address at which the stack ends; the linker's option says where it begins.
const STACK_END: usize = 16;
/// Bytes of the stack that the functions of this module may use.
const OWN_STACK: usize = 1024;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut u8;
    fn free(block: *mut u8);
}

/// Header of a block while it is held.
struct Head {
    before: *mut Head,
    size: usize,
}

/// Clears the heap of Rust, the heap of QuickJS, and the unused stack.
pub(crate) fn clear() {
    let layout = |size| Layout::from_size_align(size, align_of::<Head>());
    // SAFETY: no block has the size zero, and each is freed with the size of its allocation.
    clear_heap(
        |size| layout(size).map_or(ptr::null_mut(), |layout| unsafe { alloc(layout) }),
        |block, size| layout(size).into_iter().for_each(|layout| unsafe { dealloc(block, layout) }),
    );
    // SAFETY: each block is freed once.
    clear_heap(|size| unsafe { malloc(size) }, |block, _| unsafe { free(block) });
    clear_stack();
}

/// Clears the part of the stack that earlier calls used.
fn clear_stack() {
    let here = 0_u8;
    let bytes = (&raw const here).addr().saturating_sub(OWN_STACK + STACK_END);
    // SAFETY: the linker puts the stack first in memory, and the memory below the frames of this
    // module is not in use.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(STACK_END).write_bytes(0, bytes) };
}

/// Allocates and clears every block that is available, then frees all of them.
fn clear_heap(take: impl Fn(usize) -> *mut u8, give_back: impl Fn(*mut u8, usize)) {
    let mut last: *mut Head = ptr::null_mut();
    let mut size = LARGEST;
    while size >= size_of::<Head>() {
        let block = take(size);
        if block.is_null() {
            size /= 2;
            continue;
        }
        // SAFETY: the block has this size, which is at least that of a header, and is aligned for
        // one.
        unsafe {
            block.write_bytes(0, size);
            block.cast::<Head>().write(Head { before: last, size });
        }
        last = block.cast();
    }
    while !last.is_null() {
        // SAFETY: the header was written above.
        let Head { before, size } = unsafe { last.read() };
        // SAFETY: as above.
        unsafe { last.cast::<u8>().write_bytes(0, size_of::<Head>()) };
        give_back(last.cast(), size);
        last = before;
    }
}
