//! Compares what the commands print with `--json` with the tables below `docs/json`: each member
//! must have a row, and each row a member.
//!
//! A row has a path, a type and a meaning. `a[].b` is the member `b` of each object in the list
//! `a`; a name in capitals is any name; `?` after the path says that the member may be absent. A
//! type that links to a section of these pages is checked by the table there; a type that links to
//! another page is not checked here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use toolcell_test_guests::{Hostile, Misdeed, Place, command_module, rows};

use super::{EXAMPLES, root, shell, write_private};

const PAGES: [&str; 2] = ["docs/json/commands.md", "docs/json/grants.md"];

struct Row {
    path: String,
    is_optional: bool,
    types: String,
}

/// The tables, by the name that a link to their section uses.
type Tables = BTreeMap<String, Vec<Row>>;

/// The complaints, and the rows that were seen.
#[derive(Default)]
struct Check {
    complaints: BTreeSet<String>,
    seen: BTreeSet<(String, String)>,
}

fn slug(title: &str) -> String {
    let kept =
        title.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric() && !" -".contains(c), "");
    kept.replace(' ', "-")
}

fn tables(text: &str) -> Tables {
    let mut tables = Tables::new();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = slug(title);
        }
        let cells: Vec<_> = line.split(" | ").collect();
        let [path, types, _] = cells.as_slice() else { continue };
        let Some(path) = path.strip_prefix("| `").and_then(|path| path.strip_suffix('`')) else {
            continue;
        };
        let (path, is_optional) = path.strip_suffix('?').map_or((path, false), |path| (path, true));
        let row = Row { path: path.to_owned(), is_optional, types: (*types).to_owned() };
        tables.entry(section.clone()).or_default().push(row);
    }
    tables
}

/// Returns the section that a type links to, if it is on one of these pages.
fn linked(types: &str) -> Option<&str> {
    let (_, target) = types.split_once("](")?;
    let (target, _) = target.split_once(')')?;
    let (page, section) = target.split_once('#')?;
    ["", "commands.md", "grants.md"].contains(&page).then_some(section)
}

/// Returns true if a value has one of these types.
fn has_type(value: &Value, types: &str) -> bool {
    types.split(" or ").any(|name| match name {
        "any value" => true,
        "text" | "texts" => value.is_string(),
        "number" | "numbers" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "object" | "objects" => value.is_object(),
        _ if name.starts_with('[') => value.is_object(),
        _ => {
            let items = name.strip_prefix("list of ").or_else(|| name.strip_prefix("lists of "));
            let items = items.unwrap_or_else(|| panic!("`{name}` is not a type"));
            value.as_array().is_some_and(|values| values.iter().all(|value| has_type(value, items)))
        }
    })
}

impl Check {
    /// Compares an object at a path of a section with its rows.
    fn object(&mut self, tables: &Tables, section: &str, path: &str, value: &Value) {
        let Some(rows) = tables.get(section) else {
            self.complaints.insert(format!("no `{section}`"));
            return;
        };
        let Some(members) = value.as_object() else { return };
        let inside = |row: &&Row| match row.path.rsplit_once('.') {
            Some((parent, _)) => parent == path,
            None => path.is_empty(),
        };
        let rows: Vec<_> = rows.iter().filter(inside).collect();
        let last = |row: &Row| row.path.rsplit('.').next().unwrap_or_default().to_owned();
        let any = rows.iter().find(|row| last(row).bytes().all(|byte| byte.is_ascii_uppercase()));
        for (name, value) in members {
            let Some(row) = any.or_else(|| rows.iter().find(|row| last(row) == *name)) else {
                self.complaints
                    .insert(format!("{section}: `{path}` has `{name}`, which has no row"));
                continue;
            };
            self.seen.insert((section.to_owned(), row.path.clone()));
            if !has_type(value, &row.types) {
                self.complaints
                    .insert(format!("{section}: `{}` is not {}: {value}", row.path, row.types));
            }
            let (at, values) = match value.as_array() {
                Some(items) => (format!("{}[]", row.path), items.iter().collect()),
                None => (row.path.clone(), vec![value]),
            };
            for value in values {
                match linked(&row.types) {
                    Some(section) => self.object(tables, section, "", value),
                    None if row.types.contains("](") || row.types.contains("any value") => {}
                    None => self.object(tables, section, &at, value),
                }
            }
        }
        for row in rows
            .iter()
            .filter(|row| any.is_none() && !row.is_optional && !members.contains_key(&last(row)))
        {
            self.complaints
                .insert(format!("{section}: `{}` is absent: mark it with `?`", row.path));
        }
    }

    /// Adds a complaint for each row that no object had.
    fn finish(mut self, tables: &Tables) -> BTreeSet<String> {
        self.seen.extend(rows::<(String, String)>("repository/json_forms", "unseen"));
        for (section, row) in
            tables.iter().flat_map(|(section, rows)| rows.iter().map(move |row| (section, row)))
        {
            if !self.seen.contains(&(section.clone(), row.path.clone())) {
                self.complaints
                    .insert(format!("{section}: nothing was printed that has `{}`", row.path));
            }
        }
        self.complaints
    }
}

/// A folder with the example tools, in which commands are run, and a folder for their state.
struct Folder(TempDir, TempDir);

impl Folder {
    fn new(config: &str) -> Self {
        let folder =
            Self(tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        for name in ["hello", "calculator", "notes", "fetch", "desk"] {
            folder.copy(name, name);
        }
        if !config.is_empty() {
            folder.write("toolcell.toml", config);
        }
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Copies an example tool into the folder under a name.
    fn copy(&self, example: &str, name: &str) {
        let from = root().join(EXAMPLES).join(format!("{example}.wasm"));
        fs::copy(from, self.path().join(format!("{name}.wasm"))).expect("a copy");
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        write_private(self.path(), name, content);
    }

    /// Runs a command, and returns the object that it prints.
    fn typed(&self, words: &str) -> Value {
        let output = self.run(words);
        let stdout = String::from_utf8(output.stdout).expect("text");
        let errors = String::from_utf8_lossy(&output.stderr);
        serde_json::from_str(&stdout)
            .unwrap_or_else(|error| panic!("toolcell {words}: {error}: {stdout}{errors}"))
    }

    /// Runs a command, which must succeed, and drops its output.
    fn quietly(&self, words: &str) {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "toolcell {words}: {errors}");
    }

    fn run(&self, words: &str) -> Output {
        let mut command = shell(&format!("toolcell {words}"), self.path(), self.1.path());
        command.output().expect("a shell")
    }

    /// Starts a server, returns the first line that it prints, and kills it.
    fn served(&self, words: &str) -> Value {
        let mut command =
            shell(&format!("exec toolcell serve {words}"), self.path(), self.1.path());
        let mut server =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a server");
        let mut line = String::new();
        let read = BufReader::new(server.stdout.take().expect("piped")).read_line(&mut line);
        server.kill().expect("it runs");
        server.wait().expect("it ends");
        read.expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

/// Returns the text of a file that the commands read.
fn text(name: &str) -> &'static str {
    let mut files = rows::<(&str, &str)>("repository/json_forms", "files").into_iter();
    files.find(|(known, _)| *known == name).expect(name).1
}

/// Returns objects of every kind, each with the section that describes it.
fn printed() -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    let bare = Folder::new("");
    bare.write("odd/src/tool.js", text("odd"));
    bare.write("odd/cases.yaml", text("odd cases"));
    bare.write("program.wasm", command_module());
    bare.write("chatter.wasm", Hostile::new(Place::Execute, Misdeed::Chatter).component());
    bare.write("calls", r#"[{"name": "hostile"}]"#);
    bare.write("bad/toolcell.toml", "[components.a]\npath = 1\n");
    let others = ["configured", "ungranted", "narrowed"];
    let folders: Vec<_> = [("bare", bare)]
        .into_iter()
        .chain(others.map(|name| (name, Folder::new(text(name)))))
        .collect();
    for (folder, section, words) in rows::<(&str, &str, &str)>("repository/json_forms", "printed") {
        let (_, folder) = folders.iter().find(|(name, _)| *name == folder).expect(folder);
        let printed = folder.typed(&format!("{words} --json"));
        all.push((section, if section == "an-error" { printed["error"].clone() } else { printed }));
    }
    let mut add = |section, value| all.push((section, value));

    let first = text("approved");
    let approved = Folder::new(first);
    let odd = fs::read(folders[0].1.path().join("odd/odd.wasm")).expect("a component");
    approved.write("odd/odd.wasm", odd);
    approved.write("program.wasm", command_module());
    approved.copy("calculator", "one");
    add("toolcell-approve", approved.typed("approve --json"));
    approved.quietly("approve --yes");
    add("toolcell-check", approved.typed("check --json"));
    approved.copy("hello", "one");
    let changed = first.replace("odd", "other").replace("\"a\"", "\"b\"");
    approved.write("toolcell.toml", changed.replace("other/other", "odd/odd"));
    add("toolcell-approve", approved.typed("approve --json"));
    approved.quietly("approve --yes");
    add("toolcell-rollback", approved.typed("rollback one --json"));

    let tenants = Folder::new("[components.hello]\npath = \"hello.wasm\"\n");
    tenants.quietly("approve --yes");
    add("toolcell-serve", tenants.served("--listen 127.0.0.1:0 --metrics 127.0.0.1:0 --json"));
    let key = tenants.typed("tenant add acme --json");
    let id = key["id"].as_str().expect("an id").to_owned();
    add("toolcell-tenant-add", key);
    add("toolcell-tenant-add", tenants.typed("tenant add-key acme --json"));
    add("toolcell-tenant-list", tenants.typed("tenant list --json"));
    add("toolcell-tenant-revoke-key", tenants.typed(&format!("tenant revoke-key {id} --json")));
    all
}

#[test]
fn every_printed_json_member_is_documented() {
    let pages = PAGES.map(|page| fs::read_to_string(root().join(page)).expect("a page"));
    let tables = tables(&pages.concat());
    let mut check = Check::default();
    for (section, value) in printed() {
        check.object(&tables, section, "", &value);
    }
    let complaints: Vec<_> = check.finish(&tables).into_iter().collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn wrong_json_table_is_detected() {
    let page = "## `a`\n| `b` | list of objects | |\n| `b[].c?` | text | |\n| `d.NAME` | [e](#e) | |\n| `d` | object | |\n\
                ## e\n| `f` | number or null | |\n";
    let table = rows::<(Value, &str)>("repository/json_forms", "wrong_json_table_is_detected");
    for (value, complaint) in table {
        let tables = tables(page);
        let mut check = Check::default();
        check.object(&tables, "a", "", &value);
        let complaints: Vec<_> = check.finish(&tables).into_iter().collect();
        let is_told = complaints.iter().any(|told| told == complaint);
        assert_ne!(is_told, complaint.is_empty(), "{value}: {complaints:?}");
        assert!(!complaint.is_empty() || complaints.is_empty(), "{value}: {complaints:?}");
    }
}
