//! Runs the sessions of `tests/sessions`: commands in Markdown, with all that they print.
//!
//! A `## ` heading begins a case, in a new [`Place`] without a configuration. It also has the
//! examples whose file names occur in its text. Blocks with a name after their language make files:
//! ```` ```toml title=toolcell.toml ```` writes the block, ```` ```toml guest=x.wasm ```` assembles
//! a guest with these fields of [`Hostile`], ```` ```wat module=x.wasm ```` a module. `program.wasm`
//! is a [`command_module`], and `math.wasm` has one function ([`math`]).
//!
//! In a block ```` ```console ````, each `$ command` is run by `sh`; a line that starts with `> `
//! continues it. The lines that follow are standard output, then standard error behind `! `, then
//! `exit code N` if N is not zero. A line `⋯` stands for any lines, and `⋯` in a line for any text;
//! parts that vary are shown as in snapshots ([`VARYING`]). `HERE` is the folder of the case, and
//! `PORT` the port of a server that answers each request with `21.5`; the file `requests` lists the
//! requests that it had. `UPDATE=1` writes what the commands print into the pages.
//!
//! A page of another form is refused: another block, heading or fence, or a case without a command.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use toolcell_test_guests::{
    Answer, COMPONENTS, Hostile, Misdeed, Place as At, asking_guest, command_module, fits, herald,
    module,
};

use crate::approvals::existing::math;
use crate::approvals::path_to_grant::forecast;
use crate::place::Place;
use crate::server::Server;
use crate::typed::VARYING;

macro_rules! sessions {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_session_has_its_test() {
            let mut pages: Vec<_> = fs::read_dir(folder()).expect("sessions").flatten().collect();
            pages.sort_by_key(fs::DirEntry::file_name);
            let pages: Vec<_> = pages.iter().map(|page| page.file_name()).collect();
            assert_eq!(pages, [$(concat!(stringify!($name), ".md")),*]);
        }
    };
}

sessions! {
    advice
    approval
    author
    bad_input
    batch
    build_errors
    built
    calls
    decide
    develop
    existing
    forms
    grants
    hints
    inspect
    learned
    newcomer
    remedies
    resume
    serve
    target
    tenants
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sessions")
}

/// Runs the cases of a page.
fn check(name: &str) {
    let path = folder().join(name).with_extension("md");
    let (updated, complaints) = played(&fs::read_to_string(&path).expect("a session"));
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(&path, updated).expect("a session");
    } else {
        assert!(complaints.is_empty(), "tests/sessions/{name}.md\n\n{}", complaints.join("\n\n"));
    }
}

/// Runs the cases of a page. Returns the page with the lines that the commands printed, and the
/// differences.
fn played(page: &str) -> (String, Vec<String>) {
    let (mut updated, mut complaints) = (String::new(), Vec::new());
    let starts = page.match_indices("\n## ").map(|(at, _)| at + 1);
    let starts: Vec<_> = [0].into_iter().chain(starts).chain([page.len()]).collect();
    for range in starts.windows(2) {
        updated += &Case::new(&page[range[0]..range[1]]).run(&mut complaints);
    }
    (updated, complaints)
}

#[test]
fn session_that_differs_fails() {
    const SESSION: &str = "## A case\n\n```console\n$ echo ou…t; echo err >&2; exit 3\nou…t\n! err\nexit code 3\n```\n";
    assert_eq!(played(SESSION), (SESSION.to_owned(), vec![]));
    let wildcard = SESSION.replace("\nou…t\n", "\nou⋯\n⋯\n");
    assert_eq!(played(&wildcard), (wildcard.clone(), vec![]));
    for (from, to) in [
        ("\nou…t\n", "\nother\n"),
        ("\nou…t\n", "\no…t\n"),
        ("\nou…t\n", "\n! ou…t\n"),
        ("\nou…t\n", "\nou…t\nmore\n"),
        ("! err", "err"),
        ("exit code 3\n", ""),
        ("exit code 3", "exit code 4"),
    ] {
        let (updated, complaints) = played(&SESSION.replacen(from, to, 1));
        assert_eq!((updated.as_str(), complaints.len()), (SESSION, 1), "{from:?} {to:?}");
    }
    for (from, to, message) in [
        ("```console", "```consol", "```consol` begins no block"),
        ("```console", "```toml name=x", "```toml name=x` begins no block"),
        ("```console", " ```console", " ```console` is no line of a session"),
        ("```console", "~~~console", "~~~console` is no line of a session"),
        ("A case", "A case\n\n### Of it", "### Of it` is no line of a session"),
        ("exit code 3\n```", "exit code 3", "```console` has no end"),
        ("$ echo", "echo", "follows no command"),
        (&SESSION[11..], "", "## A case` has no command"),
    ] {
        let page = SESSION.replacen(from, to, 1);
        let refused = std::panic::catch_unwind(|| played(&page)).expect_err(to);
        let told = refused.downcast_ref::<String>().expect("a message");
        assert!(told.contains(message), "{told}");
    }
}

struct Case<'a> {
    text: &'a str,
    place: Place,
    server: Option<Server>,
    varying: Vec<(Regex, &'static str)>,
}

impl<'a> Case<'a> {
    fn new(text: &'a str) -> Self {
        let place = Place::new("");
        fs::remove_file(place.path().join("toolcell.toml")).expect("a place");
        let asks = text.contains(":PORT") || text.contains("forecast.wasm");
        let server = asks.then(|| Server::answering("21.5"));
        for (name, file) in COMPONENTS {
            if text.contains(&format!("{name}.wasm")) {
                let component = match (&server, *name) {
                    (Some(server), "forecast") => forecast(server),
                    _ => fs::read(file).expect("a component"),
                };
                place.replace(&format!("{name}.wasm"), component);
            }
        }
        for (name, component) in
            [("program.wasm", command_module as fn() -> Vec<u8>), ("math.wasm", math)]
        {
            if text.contains(name) {
                place.replace(name, component());
            }
        }
        let varying =
            VARYING.map(|(varies, shown)| (Regex::new(varies).expect("a pattern"), shown)).into();
        Self { text, place, server, varying }
    }

    /// Returns the text of the case with the lines that the commands printed.
    fn run(&self, complaints: &mut Vec<String>) -> String {
        let (mut page, mut has_command) = (Vec::new(), false);
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            page.push(line.to_owned());
            let Some(info) = line.strip_prefix("```") else {
                let beginning = line.trim_start();
                let is_known = !["```", "~~~", "###"].iter().any(|it| beginning.starts_with(it));
                assert!(is_known, "`{line}` is no line of a session");
                continue;
            };
            let mut block = Vec::new();
            loop {
                match lines.next().unwrap_or_else(|| panic!("`{line}` has no end")) {
                    "```" => break,
                    line => block.push(line),
                }
            }
            if info == "console" {
                self.session(&block, &mut page, complaints);
                has_command |= !block.is_empty();
            } else {
                let text = self.filled_in(&(block.join("\n") + "\n"));
                match info.split_once(' ').and_then(|(_, kind)| kind.split_once('=')) {
                    Some(("title", name)) => self.save(name, text.as_bytes()),
                    Some(("guest", name)) => self.save(name, &guest(&text)),
                    Some(("module", name)) => self.save(name, &module(&text)),
                    _ => panic!("`{line}` begins no block of a session"),
                }
                page.extend(block.into_iter().map(str::to_owned));
            }
            page.push("```".to_owned());
        }
        let heading = self.text.lines().next().unwrap_or_default();
        assert!(has_command || !heading.starts_with("## "), "`{heading}` has no command");
        page.join("\n") + "\n"
    }

    fn session(&self, block: &[&str], page: &mut Vec<String>, complaints: &mut Vec<String>) {
        let mut lines = block.iter().copied().peekable();
        while let Some(line) = lines.next() {
            let command = line.strip_prefix("$ ");
            let mut command =
                command.unwrap_or_else(|| panic!("`{line}` follows no command")).to_owned();
            page.push(line.to_owned());
            while let Some(line) = lines.next_if(|line| line.starts_with("> ")) {
                command += &format!("\n{}", &line[2..]);
                page.push(line.to_owned());
            }
            let expected: Vec<_> =
                std::iter::from_fn(|| lines.next_if(|line| !line.starts_with("$ "))).collect();
            let printed = self.printed(&command);
            if is_shown(&expected, &printed) {
                page.extend(expected.into_iter().map(str::to_owned));
            } else {
                page.extend(printed.lines().map(str::to_owned));
                let expected = expected.join("\n");
                complaints
                    .push(format!("$ {command}\n-- expected\n{expected}\n-- printed\n{printed}"));
            }
        }
    }

    /// Runs a command. Returns the lines of a session.
    fn printed(&self, command: &str) -> String {
        if let Some(server) = &self.server {
            let heads: String = server.heads().concat();
            let told = |line: &&str| line.contains(" HTTP/") || line.starts_with("authorization");
            let told: Vec<_> = heads.lines().filter(told).collect();
            self.place.replace("requests", told.join("\n") + "\n");
        }
        let binary = Path::new(env!("CARGO_BIN_EXE_toolcell")).parent().expect("a folder");
        let mut shell = Command::new("/bin/sh");
        shell
            .env_clear()
            .envs(toolcell::controls::inherited())
            .env("PATH", format!("{}:/usr/bin:/bin", binary.display()))
            .env("HOME", self.place.path().join("home"))
            .env("TOKEN", "from-the-environment")
            .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("XDG_STATE_HOME", self.place.state())
            .current_dir(self.place.path())
            .args(["-c", &format!("umask 022\n{}", self.filled_in(command))]);
        let shown = self.place.shown(&mut shell);
        let out = shown.stdout.lines().map(|line| line.trim_end().to_owned());
        // Printed by the first of all tests that needs the code.
        let err = shown.stderr.lines().filter(|line| !line.starts_with("note: compiling "));
        let err = err.map(|line| format!("! {line}").trim_end().to_owned());
        let status = (shown.status != 0).then(|| format!("exit code {}", shown.status));
        let lines: Vec<_> = out.chain(err).chain(status).collect();
        let mut text = lines.join("\n");
        for (actual, shown) in [
            (env!("CARGO_TARGET_TMPDIR").to_owned(), "TMP"),
            (self.place.state().display().to_string(), "STATE"),
            (self.port(), ":PORT"),
        ] {
            text = text.replace(&actual, shown);
        }
        for (varies, shown) in &self.varying {
            text = varies.replace_all(&text, *shown).into_owned();
        }
        text
    }

    fn save(&self, name: &str, contents: &[u8]) {
        let folder = self.place.path().join(name);
        fs::create_dir_all(folder.parent().expect("a folder")).expect("a folder");
        self.place.replace(name, contents);
    }

    fn filled_in(&self, text: &str) -> String {
        let here = self.place.path().to_str().expect("a path");
        text.replace(":PORT", &self.port()).replace("HERE", here)
    }

    fn port(&self) -> String {
        let address = self.server.as_ref().map(Server::address).unwrap_or_default();
        address.rsplit_once(':').map_or(":PORT".to_owned(), |(_, port)| format!(":{port}"))
    }
}

/// Assembles the guest that a block describes: fields of [`Hostile`]; `megabytes`, `halt`, `error`,
/// `ask` or `value` of its answer; `asks = true` for an [`asking_guest`]; `tells` for a [`herald`].
fn guest(text: &str) -> Vec<u8> {
    let fields: toml::Table = text.parse().expect("fields of a guest");
    let mut guest = Hostile::answering(Answer::Echo);
    let (mut asks, mut tells) = (false, None);
    for (name, value) in &fields {
        let text = || leaked(value.as_str().expect("a text"));
        match name.as_str() {
            "name" => guest.name = text(),
            "description" => guest.description = text(),
            "parameters" => guest.parameters = Some(text()),
            "output" => guest.output = Some(text()),
            "problem" => guest.problem = Some(text()),
            "sibling" => guest.sibling = Some(text()),
            "visible" => guest.visible = value.as_bool().expect("a bool"),
            "needs" => guest.needs = texts(value),
            "extensions" => guest.extensions = texts(value),
            "misdeed" => guest.misdeed = named(Misdeed::ALL, text()),
            "place" => guest.place = named(At::ALL, text()),
            "megabytes" => {
                let count = value.as_integer().and_then(|count| u32::try_from(count).ok());
                guest.answer = Answer::Megabytes(count.expect("a number"));
            }
            "value" => guest.answer = Answer::Value(text()),
            "halt" => guest.answer = Answer::Halt(text()),
            "error" => guest.answer = Answer::Error(text()),
            "ask" => guest.answer = Answer::Ask(text()),
            "asks" => asks = true,
            "tells" => tells = Some(text()),
            _ => panic!("a guest has no `{name}`"),
        }
    }
    match tells {
        Some(text) => herald(text, guest, guest.answer),
        None if asks => asking_guest(&guest),
        None => guest.component(),
    }
}

/// Returns true if the output matches the expected lines. Only `⋯` matches other text: `…` is text
/// that commands print.
fn is_shown(expected: &[&str], printed: &str) -> bool {
    let exact = |line: &str| line.replace('…', "\0");
    let expected: Vec<_> = expected.iter().map(|line| exact(line).replace('⋯', "…")).collect();
    let printed: Vec<_> = printed.lines().map(exact).collect();
    let [expected, printed] =
        [&expected, &printed].map(|lines| lines.iter().map(String::as_str).collect::<Vec<_>>());
    fits(&expected, &printed)
}

fn named<T: Copy + Debug>(all: &[T], name: &str) -> T {
    *all.iter().find(|known| format!("{known:?}") == name).unwrap_or_else(|| panic!("{name}"))
}

fn texts<const N: usize>(value: &toml::Value) -> &'static [[&'static str; N]] {
    let text = |list: &toml::Value, at: usize| leaked(list[at].as_str().expect("a text"));
    let lists = value.as_array().expect("a list").iter();
    Vec::leak(lists.map(|list| std::array::from_fn(|at| text(list, at))).collect())
}

/// The fields of [`Hostile`] are static. `LONG` stands for a long text.
fn leaked(text: &str) -> &'static str {
    text.replace("LONG", &"x".repeat(50_000)).leak()
}
