//! A closure that cannot be a handler is a compile error that says what to write instead.
//!
//! The test calls the compiler with the library that was built for these tests: it builds nothing
//! else.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use serde_json::Value;
use toolcell_test_guests::rows;

/// Returns the folder of the test's executable, which has the libraries of this and of earlier
/// builds.
fn folder() -> PathBuf {
    std::env::current_exe().expect("this test").parent().expect("its folder").to_owned()
}

/// Returns all builds of a library, the newest first.
fn builds(library: &str) -> Vec<PathBuf> {
    let files =
        fs::read_dir(folder()).expect("its folder").map(|file| file.expect("a file").path());
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_prefix(library).is_some_and(|rest| rest.starts_with('-'))
            && name.ends_with(".rlib")
    };
    let mut libraries: Vec<_> = files.filter(is_library).collect();
    let age = |path: &PathBuf| {
        fs::metadata(path).and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    libraries.sort_by_key(|path| std::cmp::Reverse(age(path)));
    libraries
}

/// Compiles a tool with this handler. Returns the compiler's messages as JSON; none if it compiles.
fn said([toolcell, serde_json]: &[PathBuf; 2], make: &str, handler: &str) -> Vec<Value> {
    let scratch = tempfile::tempdir().expect("a directory");
    let source = scratch.path().join("misuse.rs");
    let text = format!(
        "use std::sync::{{Arc, Mutex}}; use serde_json::{{Value, json}};
        use toolcell::{{Definition, Outcome, Tool, tool::Invocation}};
        pub struct Client;
        impl Client {{ pub async fn get(&self) -> Value {{ Value::Null }} }}
        pub fn tool(definition: Definition, client: Arc<Client>, name: String, count: Mutex<u32>) {{
            let _ = Tool::{make}(definition, {handler});
        }}"
    );
    fs::write(&source, text).expect("a file");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition=2024", "--crate-type=lib", "--emit=metadata"]);
    rustc.args(["--cap-lints=allow", "--error-format=json"]);
    for (name, file) in [("toolcell", toolcell), ("serde_json", serde_json)] {
        rustc.arg("--extern").arg(format!("{name}={}", file.display()));
    }
    rustc.arg("-L").arg(format!("dependency={}", folder().display()));
    rustc.arg("--out-dir").arg(scratch.path()).arg(source).stdout(Stdio::null());
    let output = rustc.output().expect("a compiler");
    let lines = String::from_utf8(output.stderr).expect("JSON");
    let messages: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(output.status.success(), messages.is_empty(), "{lines}");
    messages
}

/// Returns the library that these tests were linked with, and its `serde_json`.
fn libraries() -> [PathBuf; 2] {
    let right = "async |_: Value| Value::Null";
    // Libraries of an earlier compiler, or not built for each other, compile nothing.
    let toolcells = builds("libtoolcell").into_iter();
    let mut pairs = toolcells.flat_map(|toolcell| {
        builds("libserde_json").into_iter().map(move |json| [toolcell.clone(), json])
    });
    let libraries = pairs.find(|libraries| said(libraries, "native", right).is_empty());
    libraries.expect("the library as these tests know it: run `cargo test --workspace`")
}

/// Most closures capture something: a client, a name.
#[test]
fn capturing_closures_are_valid_handlers() {
    let libraries = libraries();
    for (make, right) in
        rows::<(&str, &str)>("contract/calls/misuse", "capturing_closures_are_valid_handlers")
    {
        assert_eq!(said(&libraries, make, right), [Value::Null; 0], "{make}: {right}");
    }
}

#[test]
fn wrong_closure_error_shows_the_right_form() {
    let libraries = libraries();
    for (make, [message, one, elsewhere], wrong, why) in rows::<(&str, [&str; 3], &str, &str)>(
        "contract/calls/misuse",
        "wrong_closure_error_shows_the_right_form",
    ) {
        let said = said(&libraries, make, wrong);
        let [error, ..] = said.as_slice() else { panic!("{why}: it compiles") };
        let all = error.to_string();
        let told = [&error["code"]["code"], &error["level"], &error["message"]];
        assert_eq!(told, ["E0277", "error", message], "{why}: {all}");
        assert!(all.contains(elsewhere), "{why}: {all}");
        // The label stands at the closure, the note below.
        let spans = error["spans"].as_array().expect("spans");
        let at = spans.iter().find(|span| span["is_primary"] == true).expect("a place");
        let text = at["text"][0]["text"].as_str().expect("the line");
        let columns = ["column_start", "column_end"]
            .map(|column| at[column].as_u64().expect("a column") as usize - 1);
        assert_eq!(&text[columns[0]..columns[1]], wrong, "{why}");
        let label = at["label"].as_str().expect("a label");
        let two = "invocation: Arc<toolcell::tool::Invocation>| …";
        let has_forms = label.contains(one) && label.contains(two);
        assert!(label.starts_with("expected `") && has_forms, "{why}: {label}");
        let returns =
            "it must return an `Outcome`, an `Output`, a `serde_json::Value`, or `Result<";
        assert!(all.contains(returns), "{why}: {all}");
        let errors = said.iter().filter(|message| message["code"].is_object());
        assert_eq!(errors.count(), 1, "{why}: one error: {said:?}");
    }
}

/// Each call runs a clone of the closure: captured state has to be shared with an `Arc`.
#[test]
fn uncloneable_closure_error_names_the_cause() {
    let wrong = "async move |_: Value| { *count.lock().unwrap() += 1; Value::Null }";
    let said = said(&libraries(), "native", wrong);
    let error = said.first().expect("it does not compile").to_string();
    let causes = ["Mutex<u32>: Clone` is not satisfied", "NativeFn"];
    assert!(causes.iter().all(|cause| error.contains(cause)), "{error}");
}
