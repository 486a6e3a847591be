//! A short campaign from a known seed: every figure that does not depend on the load of the machine
//! must hold.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

fn attack(arguments: &str) -> Command {
    let mut attack = Command::new(env!("CARGO_BIN_EXE_attack"));
    attack.args(arguments.split(' '));
    attack
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("a report")
}

/// Figures of time are left to long campaigns.
#[test]
fn short_campaign_finds_no_breach() {
    let campaign = attack("--seconds 15 --seed 1 --json").output();
    let report = report(&campaign.expect("the campaign runs"));
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 11, "every theatre is played");
    for row in rows {
        assert!(row["tried"].as_u64() > Some(0), "{row}");
        assert_eq!(row["deaths"], 0, "{row}");
    }
    let broken: Vec<_> =
        report["broken"].as_array().expect("figures").iter().filter_map(Value::as_str).collect();
    assert!(broken.is_empty(), "{broken:?}: {report:#}");
}

/// A command makes the same attempts each time, so a failure can be reproduced.
#[test]
fn attempt_is_reproducible_from_its_arguments() {
    let again = || {
        let output = attack("--seed 7 --only network --case 42 --json").output();
        report(&output.expect("it runs"))["rows"][0]["tried"].clone()
    };
    assert_eq!(again(), again());
}

/// A killed scenario process counts as a death, fails the campaign and is named in the report.
#[test]
fn killed_process_fails_the_campaign() {
    let mut campaign = attack("--only schemas --seconds 5 --seed 1 --json");
    let campaign = campaign.stdout(Stdio::piped()).spawn();
    let mut campaign = campaign.expect("it starts");
    let children = format!("/proc/{0}/task/{0}/children", campaign.id());
    let is_playing = |child: &&str| {
        fs::read_to_string(format!("/proc/{child}/cmdline"))
            .is_ok_and(|words| words.contains("perform"))
    };
    let child = loop {
        assert!(campaign.try_wait().expect("its status").is_none(), "it ended by itself");
        let found = fs::read_to_string(&children).expect("its children");
        if let Some(child) = found.split_whitespace().find(is_playing) {
            break child.to_owned();
        }
        thread::yield_now();
    };
    assert!(Command::new("kill").args(["-9", &child]).status().expect("kill").success());
    let output = campaign.wait_with_output().expect("it ends");
    let report = report(&output);
    let found = (&report["rows"][0]["deaths"], output.status.code());
    assert_eq!(found, (&Value::from(1), Some(1)), "{report:#}");
    let broken = report["broken"][0].as_str().expect("a figure");
    assert!(broken.contains("process deaths"), "{report:#}");
}

#[test]
fn wrong_arguments_exit_with_status_2() {
    for arguments in ["--seconds 0", "--only moon", "--case 1", "extra"] {
        let output = attack(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{arguments}");
    }
}
