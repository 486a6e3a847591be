#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::tool;

/// Needs what there is not.
#[tool(needs = [htp("GET https://a.example", "r"), files("read /data", "r"), sockets("1.2.3.4:22", "r")])]
fn kinds() {}

/// Says it in another form.
#[tool(needs(http = "GET https://a.example"))]
fn form() {}

/// Says too little.
#[tool(needs = [kv, secret("token"), http("GET https://a.example", "why", "else"), "kv"])]
fn little() {}

/// Says what no host can read.
#[tool(needs = [
    http("a.example", "r"),
    http("FETCH https://a.example", "r"),
    filesystem("/data", "r"),
    filesystem("read data", "r"),
    kv("notes/*", "r"),
    kv("read **", "r"),
    secret("my token", "r"),
    environment("LANG", " ")
])]
fn unreadable() {}

/// Forgets a comma.
#[tool(needs = [kv("read *", "r") secret("token", "r")])]
fn comma() {}

fn main() {}
