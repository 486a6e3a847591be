//! Tells the linker to pack the relocations of the program.
//!
//! A position-independent program of this size has 40,000 relocations, which the loader applies at
//! each start. Packed, they take tens of kilobytes; otherwise each process reads a megabyte of
//! them. The C library that the program is built against has to support the format (glibc 2.36). A
//! linker without support for it ignores the option.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
