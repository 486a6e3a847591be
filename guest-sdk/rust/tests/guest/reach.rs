//! HTTP, secrets, key-value storage and other tools in native tests of a tool.

use std::collections::BTreeMap;
use std::time::Duration;

use toolcell_guest::{Failure, http, invoke, json, kv, secrets};

#[test]
fn requests_are_built_and_answered() {
    secrets::set("token", "s3cret");
    let token = secrets::get("token").expect("kept a line above");
    http::answer_with(|request| {
        assert_eq!(request.method(), "POST");
        assert_eq!(request.url(), "https://a.example/x?a=1&b%20c=%C3%A9%26%23");
        assert_eq!(request.sent_header("Content-Type"), Some("application/json"));
        assert_eq!(request.sent_body(), Some(&b"[1]"[..]));
        assert_eq!(request.secret_name().as_deref(), Some("token"));
        Ok(http::Response::new(201).with_header("etag", "e").with_json(json!({ "id": 7 })))
    });
    let request =
        http::post("https://a.example/x?a=1#top").query("b c", "é&#").json([1]).secret(&token);
    let response = request
        .timeout(Duration::from_secs(1))
        .send()
        .and_then(http::Response::success)
        .expect("201");
    assert_eq!((response.status(), response.header("ETag")), (201, Some("e")));
    assert_eq!(response.bytes(), b"{\"id\":7}");
    assert_eq!(response.json(), Ok(BTreeMap::from([("id".to_owned(), 7)])));
    assert!(matches!(response.json::<u8>(), Err(http::Error::Unexpected(_))));
}

#[test]
fn every_http_error_becomes_a_readable_failure() {
    fn failing(url: &str) -> Result<String, Failure> {
        Ok(http::get(url).send()?.success()?.text().into_owned())
    }
    let message = |url: &str| failing(url).expect_err("an error").message().to_owned();
    assert!(message("https://a.example").contains("`http::answer_with(…)`"));
    let denied = "`GET https://a.example/` is denied: it was not granted";
    http::answer_with(move |request| match request.url() {
        "denied" => Err(http::Error::Denied(denied.into())),
        "late" => Err(http::Error::Timeout),
        _ => Ok(http::Response::new(404)),
    });
    assert_eq!(message("denied"), denied);
    assert_eq!(message("late"), "the server did not answer in time");
    assert_eq!(message("gone"), "the server answered with status 404");
    let unwritable = BTreeMap::from([(vec![1_u8], 1)]);
    assert!(matches!(http::put("x").json(unwritable).send(), Err(http::Error::Invalid(_))));
}

#[test]
fn secrets_are_provided_by_the_test() {
    assert!(matches!(secrets::get("token"), Err(secrets::Error::Unavailable(_))));
    secrets::set("token", "s3cret");
    assert_eq!(secrets::get("token").map(|secret| secret.name()), Ok("token".to_owned()));
    assert_eq!(secrets::reveal("token").as_deref(), Ok("s3cret"));
    assert!(!format!("{:?}", secrets::get("token")).contains("s3cret"));
}

#[test]
fn kv_store_supports_get_set_swap_and_delete() {
    assert_eq!(kv::get("a"), Ok(None));
    let first = kv::set("a", "1").expect("set");
    assert_eq!(kv::compare_and_swap("a", None, "2"), Ok(None));
    let second = kv::compare_and_swap("a", Some(first), "2")
        .expect("swapped")
        .expect("the key has that version");
    assert!(second > first);
    let entry = kv::get("a").expect("got").expect("an entry");
    assert_eq!((entry.text(), entry.json(), entry.version()), (Ok("2"), Ok(2), second));
    assert!(matches!(entry.json::<bool>(), Err(kv::Error::Unexpected(_))));
    assert_eq!((kv::delete("a"), kv::delete("a")), (Ok(true), Ok(false)));
    assert!(kv::set_for(Duration::from_secs(1), "a", [0xff]).expect("set") > second);
    assert!(kv::get("a").expect("got").expect("an entry").text().is_err());
    for key in ["", &"k".repeat(1025)] {
        assert!(matches!(kv::set(key, ""), Err(kv::Error::InvalidKey(_))));
    }
}

#[test]
fn kv_list_spans_pages() {
    let keys: Vec<String> = (100..450).map(|number| format!("n/{number}")).collect();
    for key in keys.iter().rev() {
        kv::set(key, "").expect("set");
    }
    kv::set("m", "").expect("set");
    kv::set("o", "").expect("set");
    assert_eq!(kv::list("n/").collect::<Result<Vec<_>, _>>(), Ok(keys));
    assert_eq!(kv::list("n/4").count(), 50);
    assert_eq!(kv::list("x").next(), None);
}

/// A tool in Rust that returns a double writes `5.0`.
#[test]
fn whole_double_of_another_tool_is_an_integer() {
    invoke::answer_with(|_, arguments| Ok(arguments.clone()));
    assert_eq!(invoke::call::<[u32; 1]>("echo", [5.0]), Ok([5]));
    assert!(invoke::call::<[u32; 1]>("echo", [5.5]).is_err());
}
