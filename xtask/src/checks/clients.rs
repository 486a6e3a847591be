//! Checks `toolcell serve` with clients of other projects: the agents of `tests/clients/`, in
//! Python and TypeScript, over HTTP and over MCP with the official SDKs, and the MCP Inspector with
//! the settings that `docs/clients.md` tells users to copy.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::build::registries::{Packages, path_with};
use crate::checks::served::Served;
use crate::checks::{self, Checks};
use crate::shell::root;

/// MCP with sessions, and without.
const MODES: [&str; 2] = ["legacy", "2026-07-28"];
const LANGUAGES: [&str; 2] = ["python", "typescript"];
/// The page whose settings the Inspector uses.
const PAGE: &str = "docs/clients.md";
const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// Runs all clients.
pub(crate) fn run() -> Result<()> {
    let packages = Packages::install()?;
    let programs: Vec<(&str, Option<(&str, bool)>)> = LANGUAGES
        .iter()
        .flat_map(|language| {
            let mcp = MODES
                .iter()
                .flat_map(move |mode| [true, false].map(|http| (*language, Some((*mode, http)))));
            std::iter::once((*language, None)).chain(mcp)
        })
        .collect();
    // One tenant for each program, so that a tenant's usage is that of one program.
    let tenants: Vec<String> =
        (0..=programs.len()).map(|number| format!("client-{number}")).collect();
    let served = Served::start("clients", &tenants.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut checks = Checks::default();

    let mut types = packages.node_program("typescript/bin/tsc");
    let judged = checks::run(types.args(["--project", "."]))?;
    checks.note("typescript: types", (!judged.success).then(|| judged.all_output()).as_deref());

    for (at, (language, mcp)) in programs.iter().enumerate() {
        let mut command = match *language {
            "python" => Command::new(&packages.python),
            _ => {
                let mut node = Command::new(&packages.node);
                node.arg("--disable-warning=ExperimentalWarning");
                node
            }
        };
        let (folder, kind) = match *language {
            "python" => (root().join("tests/clients/python"), "py"),
            _ => (packages.typescript.clone(), "ts"),
        };
        let name = if mcp.is_some() { "agent_mcp" } else { "agent_http" };
        command.arg(folder.join(format!("{name}.{kind}"))).env("TOOLCELL_KEY", &served.keys[at]);
        // Keeps Python from writing bytecode beside the sources.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let title = match mcp {
            None => {
                command.arg(&served.url);
                format!("{language} http")
            }
            Some((mode, true)) => {
                command.args([mode, &*served.url]);
                format!("{language} mcp {mode} http")
            }
            Some((mode, false)) => {
                command.arg(mode).args(served.stdio(&tenants[at]));
                format!("{language} mcp {mode} stdio")
            }
        };
        checks.program(&title, served.environment(&mut command))?;
    }
    let last = programs.len();
    inspector(&mut checks, &packages, &served, &tenants[last], &served.keys[last])?;
    checks.finish()
}

/// Makes the Inspector list tools and call one, with each block of settings on the page and with
/// its URL.
fn inspector(
    checks: &mut Checks,
    packages: &Packages,
    served: &Served,
    tenant: &str,
    key: &str,
) -> Result<()> {
    let page = fs::read_to_string(root().join(PAGE))?;
    let folder = served.toolcell.parent().context("the command has no folder")?;
    let mut blocks = 0;
    for section in page.split("\n## ").skip(1) {
        let title = section.lines().next().unwrap_or_default();
        let mut target = Vec::new();
        if let Some((_, rest)) = section.split_once("```json\n") {
            let settings = rest.split("```").next().unwrap_or_default();
            // Fills in the absolute path and the tenant, as the page says. The Inspector reads one
            // of the two names of the member.
            let settings = settings
                .replace("/path/to/toolcell.toml", &served.config.display().to_string())
                .replace(".toml\"]", &format!(".toml\", \"--tenant\", \"{tenant}\"]"))
                .replace("\"servers\"", "\"mcpServers\"");
            let file = served.folder.join(format!("settings-{blocks}.json"));
            fs::write(&file, settings)?;
            target.extend([
                "--config".into(),
                file.display().to_string(),
                "--server".into(),
                "toolcell".into(),
            ]);
            blocks += 1;
        } else if section.contains("http://127.0.0.1:8700/mcp") {
            target.extend([
                format!("{}/mcp", served.url),
                "--header".into(),
                format!("Authorization: Bearer {key}"),
            ]);
            blocks += 1;
        } else {
            continue;
        }
        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            "calculator",
            "--tool-arg",
            "expression=6 * 7",
        ];
        for (words, expected) in
            [(&["--method", "tools/list"][..], "book_table"), (&call[..], "\"42\"")]
        {
            let mut command = packages.node_program(INSPECTOR);
            command.arg("--cli").args(&target).args(words).env("PATH", path_with(folder));
            let seen = checks::run(served.environment(&mut command))?;
            let name = format!("inspector, {title}: {}", words[1]);
            let told = seen.all_output();
            checks
                .note(&name, (!seen.success || !seen.stdout.contains(expected)).then_some(&*told));
        }
    }
    ensure!(blocks > 2, "{PAGE} has no settings any more");
    Ok(())
}
