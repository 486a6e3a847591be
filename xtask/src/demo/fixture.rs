//! The resources that the tour's tools may reach: a directory, a server on loopback, a key-value
//! store.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, Result};

/// The environment variable that holds the tour's secret.
pub(super) const TOKEN_VARIABLE: &str = "TOUR_TOKEN";
/// The secret, which no tool sees.
pub(super) const TOKEN: &str = "a-secret-of-the-tour";

/// The configuration, with placeholders for the components' files and the server.
const CONFIG: &str = r#"
[components.notes]
path = "NOTES"
[components.notes.grants]
kv = ["write notes/*"]

[components.file_search]
path = "FILE_SEARCH"
[components.file_search.grants]
directories = [{ name = "/data", path = "data", access = "read" }]

[components.fetch]
path = "FETCH"
[components.fetch.grants]
http = [{ rule = "GET http://SERVER/menu", private_networks = ["127.0.0.0/8"] }]
secrets = { fetch_token = { destination = "http://SERVER/menu", injection = "bearer", source = { env = "TOUR_TOKEN" } } }
"#;

/// The resources that the tour's tools may reach.
pub(super) struct Fixture {
    pub(super) config: PathBuf,
    pub(super) state: PathBuf,
    /// The server's address.
    pub(super) server: String,
}

impl Fixture {
    /// Creates the resources in this directory, after removing those of an earlier tour.
    pub(super) fn new(
        directory: &Path,
        component: impl Fn(&str) -> Result<PathBuf>,
    ) -> Result<Self> {
        if directory.exists() {
            fs::remove_dir_all(directory).context("the world of an earlier tour")?;
        }
        let data = directory.join("data");
        fs::create_dir_all(&data)?;
        fs::write(data.join("plan.md"), "# Afternoon\n\n- boil water\n- make tea\n")?;
        let server = serve()?;
        let mut text = CONFIG.replace("SERVER", &server);
        for (place, name) in
            [("NOTES", "notes"), ("FILE_SEARCH", "file_search"), ("FETCH", "fetch")]
        {
            text = text.replace(
                &format!("\"{place}\""),
                &format!("{:?}", component(name)?.display().to_string()),
            );
        }
        let config = directory.join("toolcell.toml");
        fs::write(&config, text)?;
        // Independent of the umask: a configuration that a group can write would not be used.
        fs::set_permissions(&config, fs::Permissions::from_mode(0o600))?;
        Ok(Self { config, state: directory.join("state"), server })
    }
}

/// Starts a server that answers with the headers of the request, for as long as the tour runs.
/// Returns its address.
fn serve() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no port on loopback")?;
    let address = listener.local_addr()?.to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A connection that fails does not matter to the server.
            let _ = answer(stream);
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    let body = format!("tea, and what you sent:\n{}", String::from_utf8_lossy(&head));
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
