//! Bounds of the host's own: a component just within a bound is not refused for it, one beyond is,
//! with the bound's name.

use toolcell::runtime::Placement;
use toolcell::{Component, Error, Limits};
use toolcell_test_guests::Hostile;
use toolcell_tests::binary::{self, list, module, number, of_component, of_module, section};
use toolcell_tests::{PLACEMENTS, ending, engine, load, load_ending};

use super::{ENGINE, Kind, answers, echo};
use crate::call_guest;

/// A component with this many functions, which have no bodies.
fn functions(count: usize) -> Vec<u8> {
    binary::functions(count, b"")
}

fn body(bytes: usize) -> Vec<u8> {
    binary::function(&vec![1; bytes])
}

/// A function with this many locals; seven are of a second type, because the sum counts.
fn locals(count: usize) -> Vec<u8> {
    let groups = [number(count - 7), vec![0x7f], number(7), vec![0x7e]].concat();
    binary::function(&[list(2, &groups), vec![0x0b]].concat())
}

/// A component with this many parts, itself included.
fn parts(count: usize) -> Vec<u8> {
    binary::component(&section(of_component::CORE_MODULE, binary::MODULE).repeat(count - 1))
}

fn nested(levels: usize) -> Vec<u8> {
    (1..levels).fold(binary::COMPONENT.to_vec(), |inner, _| {
        binary::component(&section(of_component::COMPONENT, &inner))
    })
}

/// A component with a module of these sections.
fn with_module(sections: &[u8]) -> Vec<u8> {
    binary::component(&section(of_component::CORE_MODULE, &module(sections)))
}

/// A section with this many globals: each is a constant i32 of 0.
fn globals(count: usize) -> Vec<u8> {
    section(of_module::GLOBALS, &list(count, &[0x7f, 0, 0x41, 0, 0x0b].repeat(count)))
}

/// A component with one passive segment of this many table elements.
fn elements(count: usize) -> Vec<u8> {
    let segment = [&[1, 0], list(count, &vec![0; count]).as_slice()].concat();
    with_module(&section(of_module::ELEMENTS, &list(1, &segment)))
}

/// A component of fifty thousand globals, in `count - 1` instances (the component's own count is
/// one).
fn instances(count: usize) -> Vec<u8> {
    [with_module(&globals(50_000)), core_instances(0, count - 1)].concat()
}

/// An instance section with this many instances of a module without imports.
fn core_instances(module: u8, count: usize) -> Vec<u8> {
    section(of_component::CORE_INSTANCES, &list(count, &[0, module, 0].repeat(count)))
}

/// An instance section with this many instances of a component without imports.
fn component_instances(component: u8, count: usize) -> Vec<u8> {
    section(of_component::INSTANCES, &list(count, &[0, component, 0].repeat(count)))
}

/// A component with this many different types in a module.
fn types(count: usize) -> Vec<u8> {
    let distinct = (0..count).flat_map(|number| {
        let parameters: Vec<u8> =
            (0..15).map(|bit| if number >> bit & 1 == 0 { 0x7f } else { 0x7e }).collect();
        [&[0x60], list(15, &parameters).as_slice(), &[0]].concat()
    });
    with_module(&section(of_module::TYPES, &list(count, &distinct.collect::<Vec<_>>())))
}

/// A component with one type that takes this many bytes: an instance type with types inside.
fn type_bytes(bytes: usize) -> Vec<u8> {
    // The section's count takes one byte, the type's head one, its length three, and a declaration
    // inside takes two.
    let (inside, odd) = ((bytes - 5) / 2, (bytes - 5) % 2);
    let declared = [[1, 0x7f].repeat(inside - odd), [1, 0x6b, 0x7f].repeat(odd)].concat();
    let declared = [vec![0x42], list(inside, &declared)].concat();
    binary::component(&section(of_component::TYPES, &list(1, &declared)))
}

/// Components that would cost the compiler or the parser too much are refused before they cost
/// anything.
#[test]
fn oversized_components_are_refused() {
    type Make = fn(usize) -> Vec<u8>;
    let table: [(&str, usize, Make); 10] = [
        ("types of the component", 20_000, types),
        ("bytes of the component's types", 1 << 20, type_bytes),
        ("globals, exports and table items of the component", 200_000, |count| {
            with_module(&globals(count))
        }),
        ("globals, exports and table items of the component", 200_000, elements),
        ("bytes of the component", 64 << 20, |bytes| {
            binary::component(&vec![0; bytes - binary::COMPONENT.len()])
        }),
        ("functions of the component", 200_000, functions),
        ("bytes of one function", 512 << 10, body),
        ("local variables of one function", 10_000, locals),
        ("modules and components inside of the component", 256, parts),
        ("nesting of components", 8, nested),
    ];
    for (what, limit, make) in table {
        let within = load(&ENGINE, make(limit)).expect_err("it has no tools");
        assert!(!within.to_string().contains(what), "{within}");
        let beyond = load(&ENGINE, make(limit + 1)).expect_err(what);
        let expected = format!("{what}: {} is over the limit of {limit}", limit + 1);
        assert_eq!(beyond.to_string(), expected);
        assert!(beyond.is_component() && !beyond.hint().is_empty(), "{beyond:?}");
    }
    let within = load(&ENGINE, instances(60)).expect_err("it has no tools");
    assert!(!within.to_string().contains("times its instances"), "{within}");
    let copies = load(&ENGINE, instances(61)).expect_err("a copy of each for each instance");
    assert!(
        copies.to_string().ends_with("times its instances: 3050000 is over the limit of 3000000"),
        "{copies}"
    );
    // Refused at the ninth level, not at the last.
    let deep = load(&ENGINE, nested(5000)).expect_err("five thousand levels");
    assert!(deep.to_string().starts_with("nesting of components: 9 is over"), "{deep}");
}

fn text(bytes: usize) -> &'static str {
    "x".repeat(bytes).leak()
}

fn parameters(schema: String) -> Hostile {
    Hostile { parameters: Some(schema.leak()), ..echo() }
}

/// A schema of `count` equal alternatives.
fn any_of(count: usize, schema: &str) -> Hostile {
    parameters(format!(r#"{{"anyOf":[{}]}}"#, vec![schema; count].join(",")))
}

/// A schema of references: each refers to the next, the root to the first.
fn chain(count: usize) -> Hostile {
    let links: Vec<_> =
        (1..count).map(|n| format!(r##""{n}":{{"$ref":"#/$defs/{}"}}"##, n + 1)).collect();
    parameters(format!(
        r##"{{"$ref":"#/$defs/1","$defs":{{{},"{count}":{{}}}}}}"##,
        links.join(",")
    ))
}

/// Bounds on parts of definitions that go to a model with every request, or are processed at every
/// call.
#[test]
fn oversized_definitions_are_refused() {
    type Make = fn(usize) -> Hostile;
    let nested = |levels: usize| {
        parameters(format!("{}{{}}{}", r#"{"x":"#.repeat(levels - 1), "}".repeat(levels - 1)))
    };
    let tools = |listed: usize| Hostile { listed: listed as u32, ..echo() };
    let described = |bytes: usize| Hostile { description: text(bytes), ..echo() };
    let titled = |bytes: usize| {
        parameters(format!(r#"{{"title":"{}"}}"#, text(bytes - r#"{"title":""}"#.len())))
    };
    let definition: Kind = Error::is_definition;
    let table: [(&str, usize, Make, Kind); 7] = [
        ("nested deeper than 119 levels", 119, nested, definition),
        ("tools of the component: 257", 256, tools, Error::is_component),
        ("over 4096 bytes", 4096, described, definition),
        ("65537 bytes; at most 65536", 65_536, titled, definition),
        ("more than 2000 subschemas", 2000, |count| any_of(count - 1, "true"), definition),
        ("more than 400 subschemas", 400, chain, definition),
        ("201 patterns; at most 200", 200, |n| any_of(n, r#"{"pattern":"a"}"#), definition),
    ];
    let keeping = engine(Placement::Cells, env!("CARGO_TARGET_TMPDIR"));
    for (what, limit, make, is) in table {
        let within = load(&keeping, make(limit).component());
        // A second load takes the kept code.
        let again = load(&keeping, make(limit).component());
        assert!(again.map_or(true, |component| component.is_cached()), "{what}");
        // A tool that is listed twice is refused as well, with its own message.
        assert!(
            within.err().is_none_or(|error| error.to_string().contains("two tools of this name")),
            "{what}"
        );
        let beyond = load(&ENGINE, make(limit + 1).component()).expect_err(what);
        assert!(is(&beyond) && beyond.to_string().contains(what), "{what}: {beyond:?}");
    }
}

/// A valid tool, with core instances beside its own, each with these tables.
fn beside(instances: usize, tables: usize) -> Vec<u8> {
    let tables = list(tables, &[0x70, 0, 1].repeat(tables));
    instantiated(instances, &section(of_module::TABLES, &tables))
}

/// A valid tool, with instances of a module of these sections beside its own.
fn instantiated(instances: usize, sections: &[u8]) -> Vec<u8> {
    let module = section(of_component::CORE_MODULE, &module(sections));
    // Instances of module 1; module 0 is the guest's own.
    [echo().component(), module, core_instances(1, instances)].concat()
}

/// A valid tool, with `count` copies of a component that has four instances of this many globals.
fn copies(globals_of_each: usize, count: usize) -> Vec<u8> {
    let inner = [with_module(&globals(globals_of_each)), core_instances(0, 4)].concat();
    let inner = section(of_component::COMPONENT, &inner);
    // Instances of component 1; component 0 is the guest's own interface.
    [echo().component(), inner, component_instances(1, count)].concat()
}

/// Each copy of a component multiplies the instances inside of it.
#[test]
fn items_are_counted_per_instance() {
    for (bytes, loads) in [
        (instantiated(1, &globals(60_000)), true),
        (instantiated(63, &globals(60_000)), false),
        (copies(60_000, 0), true),
        (copies(60_000, 12), false),
        (copies(1000, 12), true),
    ] {
        let loaded = load(&ENGINE, bytes);
        if loads {
            assert!(answers(&loaded.expect("it fits")));
        } else {
            let error = loaded.expect_err("too many");
            let is_counted = error.to_string().contains("times its instances");
            assert!(error.is_component() && is_counted, "{error}");
        }
    }
}

/// A component that makes `of_each` instances of the next one on each level, down to an empty one.
fn multiplied(of_each: usize, levels: usize) -> Vec<u8> {
    (1..levels).fold(binary::COMPONENT.to_vec(), |inner, _| {
        let inner = section(of_component::COMPONENT, &inner);
        binary::component(&[inner, component_instances(0, of_each)].concat())
    })
}

/// Like `multiplied`, side by side: each component instantiates the one before it through an alias
/// of the enclosing component.
fn multiplied_beside(of_each: usize, count: u8) -> Vec<u8> {
    let parts = (1..count).map(|index| {
        // An alias of the component with this index in the enclosing component.
        let alias = section(of_component::ALIASES, &list(1, &[4, 2, 1, index - 1]));
        let content = [alias, component_instances(0, of_each)].concat();
        section(of_component::COMPONENT, &binary::component(&content))
    });
    let parts: Vec<u8> = parts.flatten().collect();
    let first = section(of_component::COMPONENT, binary::COMPONENT);
    binary::component(&[first, parts, component_instances(count - 1, 1)].concat())
}

/// Fails without: multiplying the counts of nested instances.
#[test]
fn nested_instance_counts_are_multiplied() {
    const WHAT: &str = "instances of the component: ";
    for within in [multiplied(3, 8), multiplied_beside(3, 8)] {
        let within = load(&ENGINE, within).expect_err("it has no tools");
        assert!(!within.to_string().contains(WHAT), "{within}");
    }
    for beyond in [
        multiplied(4, 8),
        multiplied_beside(4, 8),
        multiplied(1000, 8),
        multiplied_beside(1000, 100),
    ] {
        let beyond = load(&ENGINE, beyond).expect_err("too many");
        assert!(beyond.is_component() && beyond.to_string().starts_with(WHAT), "{beyond}");
    }
}

/// A cell has room for 64 core instances and 64 tables, a slot of the pool for 64 and 16; the guest
/// has one of each.
#[test]
fn component_over_cell_limits_ends_at_start() {
    let long = section(of_module::TABLES, &list(1, &[vec![0x70, 0], number(100_001)].concat()));
    let large = section(of_module::MEMORIES, &list(1, &[vec![0], number(64 << 4)].concat()));
    let table = [
        (beside(63, 0), "ok", true),
        (beside(64, 0), "handler_raised/limit_at_start", false),
        (beside(3, 5), "ok", true),
        (beside(4, 4), "ok", false),
        (beside(9, 7), "ok", false),
        (beside(8, 8), "handler_raised/limit_at_start", false),
        (instantiated(1, &long), "handler_raised/limit_at_start+table_elements", false),
        (instantiated(1, &large), "handler_raised/limit_at_start+memory", false),
    ];
    for placement in PLACEMENTS {
        let engine = engine(placement, env!("CARGO_TARGET_TMPDIR"));
        for (index, (bytes, expected, pooled)) in table.iter().enumerate() {
            let loaded = load(&engine, bytes.clone());
            assert_eq!(load_ending(&loaded), *expected, "{index}, {placement:?}");
            if let Ok(component) = loaded {
                assert_eq!(component.is_pooled(), *pooled, "{index}, {placement:?}");
                assert!(answers(&component), "{index}, {placement:?}");
            }
        }
    }
}

/// A component that fits the host's limits but not the caller's ends the call.
#[test]
fn component_over_call_limits_ends_the_call() {
    for placement in PLACEMENTS {
        let engine = engine(placement, env!("CARGO_TARGET_TMPDIR"));
        let large = section(of_module::MEMORIES, &list(1, &[vec![0], number(32 << 4)].concat()));
        let component: Component = load(&engine, instantiated(1, &large)).expect("it fits");
        for (mebibytes, expected) in [(40, "ok"), (32, "handler_raised/limit_at_start+memory")] {
            let completion =
                call_guest(&component, Limits { memory: mebibytes << 20, ..Limits::default() });
            assert_eq!(ending(&completion.result), expected, "{placement:?}");
        }
    }
}
