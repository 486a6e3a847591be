//! Reads the contents of a component without running it.

use toolcell::Error;
use toolcell::component::Contents;
use toolcell_test_guests::{bytes, example};
use toolcell_tests::binary::{COMPONENT, CUSTOM, MODULE, number, of_component, section};

/// Encodes a text with its length before it.
fn text(text: &str) -> Vec<u8> {
    [&number(text.len()), text.as_bytes()].concat()
}

fn custom(name: &str, data: &[u8]) -> Vec<u8> {
    section(CUSTOM, &[&text(name), data].concat())
}

/// The content of a name section with the name of its module.
fn module_name(name: &str) -> Vec<u8> {
    [&[0][..], &number(text(name).len()), &text(name)].concat()
}

/// A component with one module of these sections.
fn component(sections: &[Vec<u8>]) -> Vec<u8> {
    let module = [MODULE, &sections.concat()].concat();
    [COMPONENT, &section(of_component::CORE_MODULE, &module)].concat()
}

fn sum(contents: &Contents) -> u64 {
    contents.sections.iter().map(|section| section.size).sum()
}

#[test]
fn contents_list_producers_and_modules() {
    for bytes in [bytes("hello"), std::fs::read(example("desk")).expect("a component")] {
        let contents = Contents::of(&bytes).expect("it is a component");
        let by = |name: &str| contents.producers.iter().any(|producer| producer.name == name);
        assert!(by("wit-bindgen-rust") && by("wit-component"), "{:?}", contents.producers);
        assert_eq!(sum(&contents), bytes.len() as u64, "{:?}", contents.sections);
        assert!(contents.size("code") > 10_000, "{:?}", contents.sections);
        // The module names an older patch version than the component.
        for (import, modules) in
            [("wasi:cli/stdin@0.2.6", &[0][..]), ("wasi:cli/stdin@0.3.0", &[]), ("a:b/c", &[])]
        {
            assert_eq!(contents.callers(import).collect::<Vec<_>>(), modules, "{import}");
        }
    }
}

#[test]
fn section_bytes_are_counted_by_kind() {
    let name = module_name("tool");
    let sections: [(&str, &[u8]); 3] =
        [(".debug_info", &[0; 1000]), ("name", &name), ("mine", &[0; 10])];
    let whole = component(&sections.map(|(name, data)| custom(name, data)));
    let contents = Contents::of(&whole).expect("it is a component");
    assert_eq!(contents.modules[0].name, "tool");
    let names = name.len() as u64;
    for (kind, size) in
        [("debug_information", 1000), ("names", names), ("other_custom", 10), ("code", 0)]
    {
        assert_eq!(contents.size(kind), size, "{kind}");
    }
    assert_eq!(sum(&contents), whole.len() as u64);
}

#[test]
fn libpython_module_identifies_python() {
    let named = |module: &str| {
        let name = custom("name", &module_name(module));
        Contents::of(&component(&[name])).expect("it is a component")
    };
    let python = named("libpython3.14.so");
    assert!(python.is_python() && python.producers[0].version == "3.14", "{:?}", python.producers);
    for other in ["libpython3.14", "python.so", "libc.so"] {
        assert!(!named(other).is_python(), "{other}");
    }
}

#[test]
fn untrusted_producers_are_truncated_and_bounded() {
    let values: Vec<u8> = (0..1000)
        .flat_map(|at| [text(&format!("{at}\u{1b}[2J{}", "x".repeat(5000))), text("1")].concat())
        .collect();
    let producers = [number(1), text("language"), number(1000), values].concat();
    let contents =
        Contents::of(&component(&[custom("producers", &producers)])).expect("it is a component");
    assert_eq!(contents.producers.len(), 100);
    let is_short = |name: &str| name.len() < 500 && !name.chars().any(char::is_control);
    let are_short = contents.producers.iter().all(|producer| is_short(&producer.name));
    assert!(are_short, "{:?}", contents.producers[0]);
    let torn = component(&[custom("producers", &[200, 3, 1]), custom("name", &[0, 255])]);
    assert_eq!(Contents::of(&torn).expect("only the claims are malformed").producers, []);
}

#[test]
fn contents_of_a_non_component_are_an_error() {
    for bytes in [&b""[..], MODULE, b"(component)", &bytes("hello")[..1000]] {
        let refused: Error = Contents::of(bytes).expect_err("it is not a component");
        assert!(!refused.hint().is_empty(), "{refused}");
    }
}
