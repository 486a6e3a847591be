//! The web platform of the JavaScript runtime, in a cell.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use serde_json::{Value, json};
use toolcell::component::LoadOptions;
use toolcell::grants::HttpRule;
use toolcell::{Component, Engine, Executor, Grants, ToolCall};
use toolcell_author::build;
use toolcell_test_guests::rows;

use crate::case_run::project;

/// Expressions, each followed by a line with `= ` and the answer of Node 22, which `cargo xtask
/// platform` checks.
const EXPRESSIONS: &str = include_str!("../../../../tests/platform/web.txt");
/// As above, for `Intl`.
const INTL: &str = include_str!("../../../../tests/platform/intl.txt");

/// Builds this source and returns the outcome of one call of its tool.
fn called(source: &str, grants: Grants, arguments: &str) -> Value {
    let place = project(&[("tool.js", source)]);
    let built = build(place.path(), None).expect("it builds");
    answer_of(&built.component, grants, arguments)
}

/// Returns the outcome of one call of this component's tool.
fn answer_of(component: &Path, grants: Grants, arguments: &str) -> Value {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let answer = runtime.block_on(async {
        let engine =
            Engine::builder().cache(env!("CARGO_TARGET_TMPDIR")).build().expect("an engine");
        let bytes = fs::read(component).expect("a component");
        let options = LoadOptions { grants, ..LoadOptions::default() };
        let component = Component::load_with(&engine, bytes, options).await.expect("it loads");
        let tool = component.tool("probe").expect("the tool");
        Executor::new()
            .call(tool, ToolCall::new("1", "probe", arguments), toolcell::CallOptions::default())
            .await
    });
    serde_json::to_value(answer.result).expect("JSON")
}

/// Evaluates the lines, and returns their values as texts.
const EVALUATOR: &str = r#"import { tool } from "toolcell";
const AsyncFunction = (async () => {}).constructor;
const value = async (line) => {
  try { return String(await new AsyncFunction(`return (${line})`)()); } catch (error) { return `throws ${error?.name}`; }
};
export default tool({ name: "probe", description: "Evaluates.", handler: async ({ lines }) => {
  const values = [];
  for (const line of lines) values.push(await value(line));
  return values;
} });
"#;

/// Compares the values in a cell with the expected ones in `text`.
fn compare(source: &str, text: &str) {
    let lines: Vec<_> =
        text.lines().filter(|line| !line.starts_with("= ") && !line.is_empty()).collect();
    let expected: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("= ")).collect();
    let answer = called(source, Grants::default(), &json!({ "lines": lines }).to_string());
    let values = answer["ok"]["value"].as_array().unwrap_or_else(|| panic!("no values: {answer}"));
    assert_eq!(values.len(), expected.len());
    for ((line, value), expected) in lines.iter().zip(values).zip(expected) {
        assert_eq!(value, expected, "{line}");
    }
}

#[test]
fn expressions_have_the_same_values_as_in_node() {
    compare(EVALUATOR, EXPRESSIONS);
}

#[test]
fn intl_has_the_same_values_as_in_node() {
    compare(&EVALUATOR.replace("const AsyncFunction", "void Intl;\nconst AsyncFunction"), INTL);
}

/// Other languages, calendars and forms, each with the expected part of the error.
#[test]
fn intl_error_names_missing_locale_or_option() {
    let cases =
        rows::<(&str, &str)>("author/platform", "intl_error_names_missing_locale_or_option");
    let guarded = |code: &str| {
        format!("try {{ return String(({code})) }} catch (error) {{ return `${{error}}` }}")
    };
    let lines: Vec<_> =
        cases.iter().map(|(code, _)| format!("(() => {{ {} }})()", guarded(code))).collect();
    let source = EVALUATOR.replace("const AsyncFunction", "void Intl;\nconst AsyncFunction");
    let answer = called(&source, Grants::default(), &json!({ "lines": lines }).to_string());
    for ((code, named), value) in
        cases.iter().zip(answer["ok"]["value"].as_array().expect("values"))
    {
        let value = value.as_str().expect("a text");
        assert!(
            value.starts_with("RangeError: ")
                && value.contains(named)
                && value.contains("is not here"),
            "{code}: {value}"
        );
    }
}

#[test]
fn only_modules_using_intl_get_the_intl_runtime() {
    for (handler, has_intl) in
        rows::<(&str, bool)>("author/platform", "only_modules_using_intl_get_the_intl_runtime")
    {
        let place = project(&[("tool.js", &*with_handler(handler))]);
        let built = build(place.path(), None).expect("it builds");
        let component = fs::read(Path::new(&built.component)).expect("a component");
        let names_zones = component.windows(12).any(|bytes| bytes == b"Pacific/Apia");
        assert_eq!((names_zones, built.warnings.as_str()), (has_intl, ""), "{handler}");
    }
}

/// Returns the warnings of this source's build.
fn warned(source: &str) -> String {
    build(project(&[("tool.js", source)]).path(), None).expect("it builds").warnings
}

/// Returns the source of a tool with this handler.
fn with_handler(handler: &str) -> String {
    format!(
        "import {{ tool }} from \"toolcell\";\ntool({{ name: \"probe\", description: \"Probes.\", handler: {handler} }});\n"
    )
}

#[test]
fn build_warns_of_names_missing_in_the_runtime() {
    let names = called(
        &with_handler("() => Object.getOwnPropertyNames(globalThis)"),
        Grants::default(),
        "{}",
    );
    let names: Vec<_> =
        names["ok"]["value"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    assert!(names.len() > 90, "{names:?}");
    assert_eq!(warned(&with_handler(&format!("() => [{}].length", names.join(", ")))), "");
    // A name that the module tests for with `typeof` is not reported.
    let handler = "() => [typeof window, window, Buffer.from(\"\"),\n  nowhere]";
    assert_eq!(
        warned(&with_handler(handler)),
        "tool.js:2: `Buffer` is not there in a component: use Uint8Array, TextEncoder, TextDecoder, btoa and atob\n\
         tool.js:3: `nowhere` is not there in a component: nothing defines it"
    );
}

#[test]
fn build_warns_of_unsupported_locales() {
    let handler = "() => [new Date(0).toLocaleDateString(\"de-CH\"),\n  new Intl.NumberFormat(\"fr\"), (5).toLocaleString(\"en-u-nu-latn\")]";
    assert_eq!(
        warned(&with_handler(handler)),
        "tool.js:2: `locale de-CH` is not there in a component: use `en-US`, a call with another one throws\n\
         tool.js:3: `locale fr` is not there in a component: use `en-US`, a call with another one throws"
    );
    let source = format!("import {{ at }} from \"p\";\n{}", with_handler("at"));
    let files = [
        ("tool.js", source.as_str()),
        (
            "node_modules/p/index.js",
            "export const at = () => [new Date(0).toLocaleString(\"sv-SE\"), (1).toLocaleString(\"en\")];",
        ),
    ];
    assert_eq!(
        build(project(&files).path(), None).expect("it builds").warnings,
        "node_modules/p/index.js:1: `locale sv-SE` is not there in a component: use `en-US`, a call with another one throws"
    );
}

/// Arguments with the expected result: the types of the members, and the members themselves.
#[test]
fn integers_keep_their_digits() {
    let schema = r##"{ type: "object", properties: { wide: { type: "integer", format: "int64" }, list: { type: "array",
      items: { $ref: "#/$defs/wide" } }, plain: { type: "integer" }, child: { $ref: "#" }, named: { $ref: "#wide" },
      spaced: { $ref: "#/$defs/two%20words" } }, patternProperties: { "^x": { type: "integer", format: "int64" } },
      $defs: { wide: { $anchor: "wide", type: "integer", format: "uint64" }, "two words": { type: "integer", format: "int64" } } }"##;
    let source =
        with_handler("(args) => [Object.values(args).flat().map((value) => typeof value), args]")
            .replace("handler:", &format!("parameters: {schema}, handler:"));
    for (arguments, expected) in
        rows::<(&str, &str)>("author/platform", "integers_keep_their_digits")
    {
        let answer = called(&source, Grants::default(), arguments).to_string();
        assert!(answer.contains(expected), "{arguments}: {answer}");
    }
}

/// Answers each request with its path, once `count` requests have arrived.
fn together(count: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        let arrived: Vec<_> =
            (0..count).map(|_| read(listener.accept().expect("a connection").0)).collect();
        for (mut connection, path) in arrived {
            let length = path.len();
            let status = if path == "/moved" { "302 Found" } else { "200 OK" };
            let _ = write!(
                connection,
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{path}"
            );
        }
    });
    port
}

/// Reads a request; returns the connection and the path.
fn read(mut connection: TcpStream) -> (TcpStream, String) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        connection.read_exact(&mut byte).expect("a request");
        head.push(byte[0]);
    }
    let path = String::from_utf8_lossy(&head).split(' ').nth(1).expect("a path").to_owned();
    (connection, path)
}

/// A module that is imported by a call, in files beside `tool.js`.
#[test]
fn dynamic_import_finds_modules_by_literal_name() {
    let source = with_handler(
        "async () => [(await import(\"./late.js\")).drawn() < 1, (await import('words')).default.word,\n  \
         await import(`./absent.js`).catch((error) => error.name), (await import(\"toolcell\")).tool.name]",
    );
    let place = project(&[
        ("tool.js", &*source),
        ("late.js", "import { first } from \"./deep.js\";\nexport const drawn = () => first;\n"),
        ("deep.js", "export const first = Math.random();\n"),
        ("node_modules/words/package.json", r#"{"main": "words.js"}"#),
        ("node_modules/words/words.js", "module.exports = { word: \"late\" };\n"),
    ]);
    let built = build(place.path(), None).expect("it builds");
    assert_eq!(
        built.warnings,
        "tool.js:3: cannot import `./absent.js`: there is no file `absent.js`; correct the path, or write the file"
    );
    let answer = answer_of(&built.component, Grants::default(), "{}");
    assert_eq!(answer["ok"]["value"], json!([true, "late", "ReferenceError", "tool"]), "{answer}");
    let computed = warned(&with_handler("(words) => import(words.name)"));
    assert_eq!(computed, "tool.js:2: `import()` finds a module only by a name in quotes");
}

/// Imports of native code, each with the expected part of the error.
#[test]
fn error_names_native_code_of_a_package() {
    for (import, manifest, words) in
        rows::<(&str, &str, &str)>("author/platform", "error_names_native_code_of_a_package")
    {
        let place = project(&[
            ("node_modules/bcrypt/package.json", manifest),
            ("node_modules/bcrypt/index.js", ""),
            ("tool.js", &*format!("{import};\n{}", with_handler("() => bcrypt"))),
        ]);
        let error = build(place.path(), None).expect_err("it is refused");
        assert!(error.to_string().contains("native code for Node.js"), "{error}");
        assert!(error.hint().contains(words), "{}", error.hint());
    }
}

/// The server answers only when all requests have arrived.
#[test]
fn requests_run_concurrently() {
    let port = together(5);
    let rule: HttpRule = format!("GET http://127.0.0.1:{port}").parse().expect("a rule");
    let mut grants = Grants::default();
    grants.http = vec![rule.with_private(["127.0.0.0/8".parse().expect("a network")])];
    let source = format!(
        r#"import {{ fetch, tool }} from "toolcell";
const server = "http://127.0.0.1:{port}";
const needs = [{{ kind: "http", pattern: `GET ${{server}}`, reason: "to ask it" }}];
export default tool({{ name: "probe", description: "Asks.", needs, handler: async () => {{
  const given = await fetch(`${{server}}/never`, {{ signal: AbortSignal.abort() }}).catch((error) => error.name);
  const all = [..."abcd"].map((path) => fetch(`${{server}}/${{path}}`).then((response) => response.text()));
  all.push(fetch(`${{server}}/moved`, {{ redirect: "error" }}).catch((error) => error.message.slice(-12)));
  return [given, ...await Promise.all(all)];
}} }});
"#
    );
    let answer = called(&source, grants, "{}");
    assert_eq!(
        answer["ok"]["value"],
        json!(["AbortError", "/a", "/b", "/c", "/d", "(status 302)"]),
        "{answer}"
    );
}
