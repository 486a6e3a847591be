//! A server, and commands beside it, that are killed at any moment: acknowledged data exists
//! afterwards, no file is half-written, and the next start works.
//!
//! Source: docs/threat-model.md, row 81.

use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::Place;
use crate::serving::serve::Served;

/// Number of times that the server is killed, unless the variable [`CAMPAIGN`] gives another one.
const KILLS: usize = 24;
/// The variable of a longer campaign: `TOOLCELL_TEST_KILLS=200 cargo test -p toolcell-cli --test
/// command killed`.
const CAMPAIGN: &str = "TOOLCELL_TEST_KILLS";
const CONFIG: &str = "[components.notes]\npath = \"notes.wasm\"\n[components.notes.grants]\nkv = [\"write notes/*\"]\n\
                      [tenants.acme]\n";

/// Data that a server has acknowledged.
enum Acknowledged {
    /// The id of an artifact, and its content.
    Artifact(String, String),
    Note(String),
}

/// Uploads artifacts and writes notes until the server is gone.
fn keep_writing(
    server: &Served,
    key: &str,
    round: usize,
    told: &mpsc::Sender<Acknowledged>,
) -> Option<()> {
    for number in 0.. {
        let name = format!("n{round}-{number}");
        let content = name.repeat(1 + number % 7 * 1000);
        let kept = server
            .tried("POST /v1/artifacts", key, &content)
            .filter(|(status, _)| *status == 201)?
            .1;
        told.send(Acknowledged::Artifact(kept["id"].as_str()?.to_owned(), content)).ok()?;
        let call =
            json!({"name": "notes", "arguments": {"action": "add", "title": name, "text": "x"}});
        let noted = server.tried("POST /v1/calls", key, &call.to_string())?.1;
        noted["outcome"]["ok"].as_object()?;
        told.send(Acknowledged::Note(name)).ok()?;
    }
    Some(())
}

/// Returns the ids of the keys.
fn keys(place: &Place) -> Vec<Value> {
    let listed = place.typed(&["tenant", "list", "--json"]);
    assert_eq!(listed.status, 0, "{listed}");
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let keys = listed["keys"].as_array().expect("keys").iter();
    keys.map(|key| key["id"].clone()).collect()
}

#[test]
fn acknowledged_data_survives_kill_and_restart() {
    let kills = std::env::var(CAMPAIGN).map_or(KILLS, |kills| kills.parse().expect("a number"));
    let place = Place::new(CONFIG).approved();
    let made = |words: &[&str]| -> Value {
        let shown = place.typed(words);
        assert_eq!(shown.status, 0, "{shown}");
        serde_json::from_str(&shown.stdout).expect("JSON")
    };
    let artifacts = place.path().join("artifacts").display().to_string();
    let (mut told, mut made_keys) = (Vec::new(), Vec::new());
    let first = made(&["tenant", "add-key", "acme", "--json"]);
    let key = first["key"].as_str().expect("a key").to_owned();
    made_keys.push(first["id"].clone());
    for round in 0..=kills {
        let server = Served::start(&place, &["--artifact-dir", &artifacts]);
        // All data that was acknowledged before is there, whole.
        let list = json!({"name": "notes", "arguments": {"action": "list"}});
        let (status, listed) = server.asked("POST", "/v1/calls", Some(&key), Some(&list));
        assert_eq!(status, 200, "after {round} kills: {listed}");
        let listed = listed.to_string();
        for told in &told {
            match told {
                Acknowledged::Artifact(id, content) => {
                    let answer =
                        server.answer("GET", &format!("/v1/artifacts/{id}"), &bearer(&key), None);
                    assert!(
                        answer.ends_with(&format!("\r\n\r\n{content}")),
                        "after {round} kills: {answer:.300}"
                    );
                }
                Acknowledged::Note(name) => assert!(
                    listed.contains(&format!("\"{name}\"")),
                    "after {round} kills: {listed}"
                ),
            }
        }
        let known = keys(&place);
        assert!(made_keys.iter().all(|key| known.contains(key)), "after {round} kills: {known:?}");
        if round == kills {
            break;
        }

        // One command that makes a key is killed too; another one is not.
        let mut killed = place.command();
        killed
            .args(["tenant", "add-key", "acme"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut killed = killed.spawn().expect("the binary runs");
        let (sender, receiver) = mpsc::channel();
        thread::scope(|threads| {
            let (server, key) = (&server, &key);
            threads.spawn(move || keep_writing(server, key, round, &sender));
            told.extend(receiver.iter().take(1 + round * 5 % 7));
            killed.kill().expect("it was started");
            server.signal(Signal::KILL);
        });
        told.extend(receiver.try_iter());
        killed.wait().expect("it ends");
        if round % 6 == 0 {
            made_keys.push(made(&["tenant", "add-key", "acme", "--json"])["id"].clone());
        }
    }
    assert!(told.len() >= 2 * kills, "only {} things were written", told.len());
}

fn bearer(key: &str) -> String {
    format!("Authorization: Bearer {key}\r\n")
}
