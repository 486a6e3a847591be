//! Reports missing grants of a failed tool, if its declarations or its error text show them.
//!
//! A tool that lacks access often fails with a text that does not say so. After an error or a trap,
//! `run` calls [`not_granted`]. It prints a note for each need that the tool declares and that is
//! not granted. For a program used with `--as command`, which declares nothing, it looks in the
//! error text for an absolute path that may not be read. If there is any note, a hint with the
//! `learn` command follows. Paths of the system are skipped.

use toolcell::component::ComponentKind;
use toolcell::grants::{Access, Decision, Request, Rights};

use super::{TypedCall, live, resume};
use crate::grants::advice::{self, RequestOrigin};
use crate::grants::gaps::Gap;
use crate::print::{Printer, clean};

/// Parts of error texts about files. The error text of each language's library contains one of
/// them.
const FILE_ERRORS: [&str; 5] = ["open", "no such file", "not found", "bad file", "exist"];

/// Prints the declared needs of a failed tool that are not granted: the tool's error text may not
/// name the cause. A command has no directory for a path that is not granted, and makes no host
/// call: only its text names the path.
pub(super) fn not_granted(printer: &Printer, typed: &TypedCall<'_>, words: &str) {
    let RequestOrigin { config, chosen, definition, rights, .. } = typed.origin;
    let gaps = typed.origin.missing_needs();
    let is_command = matches!(chosen.kind(), ComponentKind::Command(_));
    let is_of_files = FILE_ERRORS.iter().any(|error| words.to_ascii_lowercase().contains(error));
    let named = path(words, rights).filter(|_| is_command && is_of_files);
    let named = named.map(|path| clean::line(&format!("names `{path}`, which is not granted")));
    let gaps = gaps.iter().filter(|gap| gap.is_whole()).map(Gap::text);
    let clauses: Vec<_> = gaps.chain(named).collect();
    for clause in &clauses {
        printer.note(format!("`{}` {clause}", definition.name));
    }
    if !clauses.is_empty() {
        let component = typed.args.call.component.to_string_lossy();
        let arguments = resume::repeated(typed).unwrap_or_else(|| "-".to_owned());
        let options: Vec<_> =
            advice::used_as(chosen).into_iter().flat_map(|word| ["--as", word]).collect();
        let learn =
            config.hint.command("learn", &options, &[&component, &definition.name, &arguments]);
        printer.hint(format!("{learn} shows what this call asks for"));
    }
}

/// Returns the first absolute path in a text that may not be read. System paths are skipped,
/// because language runtimes name them without need.
fn path<'a>(text: &'a str, rights: &Rights) -> Option<&'a str> {
    let is_between = |c: char| c.is_whitespace() || "\"'`()[],;".contains(c);
    let mut words = text.split(is_between).map(|word| word.trim_end_matches([':', '.']));
    words.find(|word| {
        let request = Request::File { access: Access::Read, path: (*word).into() };
        let is_path = word.len() > 1 && word.starts_with('/') && !word.starts_with("//");
        is_path && !live::is_of_system(word) && rights.allows(&request) != Decision::Allowed
    })
}

#[cfg(test)]
mod tests {
    use toolcell::grants::DirectoryQuota;
    use toolcell::{Definition, Grants};

    use super::*;

    #[test]
    fn ungranted_path_is_found_in_error_text() {
        for (words, expected) in [
            ("open /data/a.txt: Bad file number (exit status 1)", Some("/data/a.txt")),
            (
                "No such file or directory @ rb_sysopen - /data/notes.txt (Errno::ENOENT)",
                Some("/data/notes.txt"),
            ),
            ("error: '/a', '/b'", Some("/a")),
            ("https://a.example/x a/b / // and /etc/localtime", None),
            ("", None),
        ] {
            assert_eq!(path(words, &Rights::default()), expected, "{words}");
        }
        let mut grants = Grants::default();
        grants.scratch = Some(DirectoryQuota::default());
        let rights = Rights::new(grants.into(), &Definition::new("a", "").unwrap()).unwrap();
        assert_eq!(path("/scratch/a /tmp/b /data/c", &rights), Some("/data/c"));
    }
}
