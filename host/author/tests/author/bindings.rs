//! The bindings of the SDK for C match the WIT. `UPDATE=1` writes them.

use std::fs;
use std::path::Path;

use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;

#[test]
fn c_bindings_match_the_wit() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(own.join("wit")).expect("the WIT");
    let world = resolve.select_world(&[package], Some("toolbox-with-grants")).expect("a world");
    // `toolcell build` adds the type of the component itself.
    let options = wit_bindgen_c::Opts { no_object_file: true, ..Default::default() };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).expect("bindings");
    assert_eq!(files.iter().count(), 2);
    for (name, text) in files.iter() {
        let kept = own.join("c/generated").join(name);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&kept, text).expect("written");
        }
        let is_same = fs::read(&kept).is_ok_and(|kept| kept == text);
        assert!(is_same, "{name} is not what wit-bindgen-c writes: run this test with UPDATE=1");
    }
}
