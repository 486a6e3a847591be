//! Guests that misbehave in one exact place.
//!
//! Each is a small core module in text, with the contract's exports written by hand: the runtime of
//! a guest language would interfere (it has its own allocator, and its own handling of panics).

use crate::answer::Answer;
use crate::assemble;
use crate::memory::{DATA, Memory, escaped};
use crate::misdeed::Misdeed;

listed! {
    /// The place where the misdeed's code runs.
    pub enum Place {
        /// The core module's start function.
        Start,
        /// `cabi_realloc`, when the host writes the arguments.
        Realloc,
        /// `describe`.
        Describe,
        /// `validate`.
        Validate,
        /// `visible`.
        Visible,
        /// `execute`.
        Execute,
        /// The destructor of the guest's own resource, when `execute` drops the handle.
        Destructor,
        /// `cabi_post_…#execute`, after the host has read the answer.
        PostReturn,
    }
}

/// Bytes of a page of memory.
const PAGE: u32 = 65_536;
const KEEP: &str = r#"(import "[export]test:hostile/keeper" "[resource-new]thing" (func $keep (param i32) (result i32)))"#;
const DROP: &str =
    r#"(import "[export]test:hostile/keeper" "[resource-drop]thing" (func $drop (param i32)))"#;
/// Functions that tail-call themselves, one of them through a table.
const TAIL: &str = "(elem declare func $chain)
  (func $tail (return_call $tail))
  (func $chain (return_call_indirect $t (type $none) (i32.const 1)))";
const RANDOM: &str =
    r#"(import "wasi:random/random@0.2.6" "get-random-u64" (func $random (result i64)))"#;

/// A guest that misbehaves in one place.
#[derive(Debug, Clone, Copy)]
pub struct Hostile {
    /// The place of the misdeed.
    pub place: Place,
    /// The misdeed.
    pub misdeed: Misdeed,
    /// The answer of `execute`.
    pub answer: Answer,
    /// The problem that `validate` returns, if any.
    pub problem: Option<&'static str>,
    /// The result of `visible`.
    pub visible: bool,
    /// The JSON Schema of the tool's arguments.
    pub parameters: Option<&'static str>,
    /// The JSON Schema of the tool's output.
    pub output: Option<&'static str>,
    /// The tool's name.
    pub name: &'static str,
    /// The tool's description.
    pub description: &'static str,
    /// The declared needs of the tool: kind, pattern and reason.
    pub needs: &'static [[&'static str; 3]],
    /// Extensions of the tool's definition: a name and a JSON text.
    pub extensions: &'static [[&'static str; 2]],
    /// The name of a second tool, which does the same and declares no needs and no extensions.
    pub sibling: Option<&'static str>,
    /// Number of times that `describe` lists the tool.
    pub listed: u32,
    /// True if the first eight letters of the tool's name are random at each `describe`.
    pub unsteady: bool,
    /// The name of the recursive function in the module's name section.
    pub symbol: &'static str,
    /// Memories beside the guest's own: the pool has room for three.
    pub more_memories: usize,
    /// Pages by which `LeaveMarks` first grows its memory.
    pub pages: u32,
    /// Custom sections of the module: names and contents.
    pub sections: &'static [(&'static str, &'static [u8])],
}

impl Hostile {
    /// Returns a guest that echoes its arguments and commits this misdeed at this place.
    pub fn new(place: Place, misdeed: Misdeed) -> Self {
        Self {
            place,
            misdeed,
            answer: Answer::Echo,
            problem: None,
            visible: true,
            parameters: None,
            output: None,
            name: "hostile",
            description: "Does what its test says.",
            needs: &[],
            extensions: &[],
            sibling: None,
            listed: 1,
            unsteady: false,
            symbol: "recurse",
            more_memories: 0,
            pages: 256,
            sections: &[],
        }
    }

    /// Returns a guest without a misdeed that gives this answer.
    pub fn answering(answer: Answer) -> Self {
        Self { answer, ..Self::new(Place::Execute, Misdeed::None) }
    }

    /// Assembles the component.
    pub fn component(&self) -> Vec<u8> {
        let exports = if self.has_resource() { "export keeper;" } else { "" };
        assemble::component(&self.text(), exports, self.sections)
    }

    fn has_resource(&self) -> bool {
        self.place == Place::Destructor || self.misdeed.keeps_handles()
    }

    fn imports(&self) -> String {
        let mut imports = self.misdeed.imports();
        if self.unsteady {
            imports.push(RANDOM);
        }
        if self.has_resource() {
            imports.extend([KEEP, DROP]);
        }
        imports.join("\n  ")
    }

    /// Returns the misdeed's code if `place` is its place, otherwise nothing.
    fn at(&self, place: Place) -> String {
        if self.place == place { self.misdeed.code() } else { String::new() }
    }

    /// Returns the module: `wat/hostile.wat`, with the parts that its names in braces stand for.
    pub(crate) fn text(&self) -> String {
        let mut memory = Memory::default();
        let line = memory.put(b"chatter!");
        assert_eq!(line, DATA, "the misdeed `Chatter` counts on it");
        let (definitions, rename) = self.definitions(&mut memory);
        let problems = match self.problem {
            Some(problem) => {
                let problem = memory.text(problem);
                let list = memory.words(&problem);
                memory.words(&[list, 1])
            }
            None => memory.words(&[0, 0]),
        };
        let (answer, fill) = self.answer.area(&mut memory);
        let heap = memory.end().next_multiple_of(PAGE).max(PAGE);
        let (destroy, destructor) = if self.place == Place::Destructor {
            let code = self.at(Place::Destructor);
            let exported =
                format!(r#"(func (export "test:hostile/keeper#[dtor]thing") (param i32) {code})"#);
            ("(call $drop (call $keep (i32.const 0)))", exported)
        } else {
            ("", String::new())
        };
        let tail_calls = matches!(self.misdeed, Misdeed::TailCall | Misdeed::TailCallIndirect);
        let parts = [
            ("imports", self.imports()),
            ("tool", "toolcell:tool/tool@0.1.0".to_owned()),
            ("heap", heap.to_string()),
            ("end", memory.end().next_multiple_of(64).to_string()),
            ("grown", self.pages.to_string()),
            ("more_memories", "(memory 1)".repeat(self.more_memories)),
            ("pages", (heap / PAGE + 1).to_string()),
            ("start", DATA.to_string()),
            ("tail", if tail_calls { TAIL.to_owned() } else { String::new() }),
            ("definitions", definitions.to_string()),
            ("rename", rename),
            ("problems", problems.to_string()),
            ("visible", u32::from(self.visible).to_string()),
            ("answer", answer.to_string()),
            ("fill", fill),
            ("destroy", destroy.to_owned()),
            ("destructor", destructor),
            ("symbol", escaped(self.symbol.as_bytes())),
            ("data", memory.escaped()),
        ];
        let mut text = include_str!("wat/hostile.wat").to_owned();
        for (name, part) in parts {
            text = text.replace(&format!("{{{name}}}"), &part);
        }
        for place in Place::ALL {
            text = text.replace(&format!("{{{place:?}}}"), &self.at(*place));
        }
        text
    }

    /// Returns the address of the list of definitions, and code that changes the tool's name.
    /// Offsets are those of `record definition` in the canonical ABI.
    fn definitions(&self, memory: &mut Memory) -> (u32, String) {
        let name = memory.text(self.name);
        let description = memory.text(self.description);
        let schemas =
            [self.parameters, self.output].map(|schema| schema.map(|schema| memory.text(schema)));
        let needs: Vec<_> =
            self.needs.iter().flatten().flat_map(|text| memory.text(text)).collect();
        let needs = memory.words(&needs);
        let extensions: Vec<_> =
            self.extensions.iter().flatten().flat_map(|text| memory.text(text)).collect();
        let extensions = memory.words(&extensions);
        let sibling = self.sibling.map(|name| memory.text(name));
        let checks = u8::from(self.place == Place::Validate || self.problem.is_some())
            | u8::from(self.place == Place::Visible || !self.visible) << 1;
        let mut record = [0_u8; 88];
        let mut word =
            |at: usize, value: u32| record[at..at + 4].copy_from_slice(&value.to_le_bytes());
        word(0, name[0]);
        word(4, name[1]);
        word(8, description[0]);
        word(12, description[1]);
        word(72, needs);
        word(76, u32::try_from(self.needs.len()).expect("a short list"));
        word(80, extensions);
        word(84, u32::try_from(self.extensions.len()).expect("a short list"));
        for (at, schema) in [16, 28].into_iter().zip(schemas) {
            if let Some([text, bytes]) = schema {
                word(at, 1);
                word(at + 4, text);
                word(at + 8, bytes);
            }
        }
        record[49] = checks;
        let mut records = record.repeat(self.listed as usize);
        if let Some([name, bytes]) = sibling {
            let name = [name.to_le_bytes(), bytes.to_le_bytes()].concat();
            records.extend([&name[..], &record[8..72], &[0; 16]].concat());
        }
        let listed = u32::try_from(records.len() / record.len()).expect("a short list");
        let list = memory.put(&records);
        let rename = if self.unsteady {
            // The low half of each byte, as one of the letters A to P.
            let letters = "(i64.and (call $random) (i64.const 0x0f0f0f0f0f0f0f0f))";
            format!(
                "(i64.store (i32.const {}) (i64.add {letters} (i64.const 0x4141414141414141)))",
                name[0]
            )
        } else {
            String::new()
        };
        (memory.words(&[list, listed]), rename)
    }
}

/// Returns a valid tool that takes an optimiser minutes, and any compiler a second for each
/// function: functions of thirty thousand nested blocks, each of which can be left early on its own
/// condition.
pub fn compile_bomb(functions: usize) -> Vec<u8> {
    const DEPTH: usize = 30_000;
    let body = "block local.get 0 br_if 0 local.get 1 i32.const 1 i32.add local.set 1 "
        .repeat(DEPTH)
        + &"end ".repeat(DEPTH);
    with_text(&format!("(func (param i32 i32) {body})").repeat(functions))
}

/// Returns a valid tool with more text in its module.
pub fn with_text(more: &str) -> Vec<u8> {
    extended(more, "")
}

/// Returns a valid tool that also exports a function from and to a record of this many fields.
pub fn with_record(fields: usize) -> Vec<u8> {
    let fields: String = (0..fields).map(|field| format!("x{field}: u32,")).collect();
    let export = format!(
        "export wide: interface {{ record row {{ {fields} }} turn: func(row: row) -> row; }}"
    );
    extended(r#"(func (export "wide#turn") (param i32) (result i32) (local.get 0))"#, &export)
}

/// Returns a valid tool that imports an empty instance of this name.
pub fn importing(name: &str) -> Vec<u8> {
    let name = [&[u8::try_from(name.len()).expect("a short name")], name.as_bytes()].concat();
    let mut bytes = Hostile::answering(Answer::Echo).component();
    // An instance type and an import. The name is refused before the type is looked at.
    let imports =
        [&[0x07, 0x03, 0x01, 0x42, 0x00, 0x0a, name.len() as u8 + 4, 1, 0], &name[..], &[5, 0]]
            .concat();
    bytes.extend(imports);
    bytes
}

fn extended(more: &str, exports: &str) -> Vec<u8> {
    let good = Hostile::answering(Answer::Echo).text();
    let open = good.trim_end().strip_suffix(')').expect("a module ends with a parenthesis");
    assemble::component(&format!("{open} {more})"), exports, &[])
}

/// Returns a component that asks for a handle to the secret `token`, then for the value of `key`,
/// ignores both results, and echoes its arguments. Its tool is called `asks`.
pub fn asker(needs: &'static [[&'static str; 3]]) -> Vec<u8> {
    asking_guest(&Hostile { name: "asks", needs, ..Hostile::answering(Answer::Echo) })
}

/// Like [`asker`], with the tools of this guest.
pub fn asking_guest(asks: &Hostile) -> Vec<u8> {
    let imports = r#"
  (import "toolcell:tool/secrets@0.1.0" "get" (func $get (param i32 i32 i32)))
  (import "toolcell:tool/reveal@0.1.0" "value" (func $value (param i32 i32 i32)))
  (data (i32.const 512) "tokenkey")"#;
    let code = "(call $get (i32.const 512) (i32.const 5) (i32.const 0))
    (call $value (i32.const 517) (i32.const 3) (i32.const 0))";
    let world = "import toolcell:tool/secrets@0.1.0; import toolcell:tool/reveal@0.1.0;";
    spliced(asks, imports, code, world)
}

/// Returns this guest with more text in its module, code before that of `execute`, and imports in
/// its world.
pub(crate) fn spliced(guest: &Hostile, more: &str, code: &str, world: &str) -> Vec<u8> {
    let execute = r#"#execute") (param i32) (result i32)"#;
    let text = guest.text().replacen(execute, &format!("{execute} {code}"), 1);
    let text = text.replacen("(module", &format!("(module{more}"), 1);
    assemble::component(&text, world, &[])
}
