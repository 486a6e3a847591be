//! Runs `toolcell serve` with some approved tools and a tenant for each client.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use xtask::guests::{COMPONENT_TARGET, build, ensure_target};

use crate::shell::{cargo, guest_workspaces, root};

/// The served components, of the examples or of the tests, with further lines of configuration.
const COMPONENTS: [(&str, &str); 3] = [
    ("calculator", ""),
    ("desk", ""),
    // Its endless loop ends only when it is cancelled.
    ("mischief", "[components.mischief.limits]\ntimeout = \"60m\"\nfuel = \"1000000G\"\n"),
];

/// A running server, which is stopped on drop.
pub(crate) struct Served {
    pub(crate) toolcell: PathBuf,
    pub(crate) config: PathBuf,
    /// The folder with the configuration and the state.
    pub(crate) folder: PathBuf,
    pub(crate) url: String,
    /// A key for each tenant, in the order in which they were named.
    pub(crate) keys: Vec<String>,
    child: Child,
}

impl Served {
    /// Builds the command and the guests, makes the configuration anew, approves it, and starts the
    /// server.
    pub(crate) fn start(name: &str, tenants: &[&str]) -> Result<Self> {
        ensure_target(COMPONENT_TARGET)?;
        for workspace in guest_workspaces() {
            build(&workspace, &[], COMPONENT_TARGET)?;
        }
        cargo(root(), &["build", "--workspace", "--locked"])?;
        let own = std::env::current_exe().context("the path of this program is unknown")?;
        let toolcell = own.with_file_name("toolcell");
        let folder = root().join("target/clients").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).context("the folder of an earlier run")?;
        }
        fs::create_dir_all(&folder)?;
        let config = folder.join("toolcell.toml");
        let mut text = String::new();
        for (name, section) in COMPONENTS {
            let path = component(name)?;
            text.push_str(&format!(
                "[components.{name}]\npath = {:?}\n{section}\n",
                path.display().to_string()
            ));
        }
        fs::write(&config, text)?;
        // Independent of the umask: a file that a group can write is not used.
        fs::set_permissions(&config, fs::Permissions::from_mode(0o600))?;
        let mut keys = Vec::new();
        for tenant in tenants {
            let made = run_command(&toolcell, &folder, &["tenant", "add", tenant, "--json"])?;
            keys.push(member(&made, "key").context("no key was printed")?.to_owned());
        }
        run_command(&toolcell, &folder, &["approve", "--yes"])?;
        let mut command = command(&toolcell, &folder);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        // Warnings about hostile calls would only be noise here.
        command.env("TOOLCELL_LOG", "error");
        let mut child = command.spawn().context("the server does not start")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let url =
            member(&line, "url").context("the server does not say where it listens")?.to_owned();
        Ok(Self { toolcell, config, folder, url, keys, child })
    }

    /// Returns the command line that serves one client on standard input and output.
    pub(crate) fn stdio(&self, tenant: &str) -> [String; 7] {
        let (toolcell, config) =
            (self.toolcell.display().to_string(), self.config.display().to_string());
        [&*toolcell, "serve", "--stdio", "--config", &*config, "--tenant", tenant]
            .map(str::to_owned)
    }

    /// Gives a program the home and the state of the server's user.
    pub(crate) fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        environment(command, &self.toolcell, &self.folder)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn environment<'a>(command: &'a mut Command, toolcell: &Path, folder: &Path) -> &'a mut Command {
    let cache = toolcell.with_file_name("demo-cache");
    command
        .env("HOME", folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .env("XDG_CACHE_HOME", cache)
}

fn command(toolcell: &Path, folder: &Path) -> Command {
    let mut command = Command::new(toolcell);
    environment(&mut command, toolcell, folder).current_dir(folder);
    command
}

/// Runs the command to its end, and returns its output.
fn run_command(toolcell: &Path, folder: &Path, words: &[&str]) -> Result<String> {
    let output = command(toolcell, folder).args(words).output()?;
    let (printed, told) =
        (String::from_utf8(output.stdout)?, String::from_utf8_lossy(&output.stderr));
    ensure!(
        output.status.success(),
        "`toolcell {}` ended with {}: {printed}{told}",
        words.join(" "),
        output.status
    );
    Ok(printed)
}

/// Returns the text of a member, in JSON of the command where it occurs once and without an escape.
fn member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = json.split_once(&format!("\"{name}\":"))?;
    after.trim_start().strip_prefix('"')?.split('"').next()
}

fn component(name: &str) -> Result<PathBuf> {
    let released = |workspace: &PathBuf| {
        workspace.join(format!("target/{COMPONENT_TARGET}/release/{name}.wasm"))
    };
    guest_workspaces()
        .iter()
        .map(released)
        .find(|path| path.is_file())
        .with_context(|| format!("no {name}.wasm"))
}
