//! Tests that no part of a tool's result, error or event shows a secret.

use toolcell_contract::outcome::Output;
use toolcell_test_guests::rows;

use super::*;
use crate::secrets::secret::Secret;

const VALUE: &str = "canary-4711-of-the-test";

fn redactor() -> SecretRedactor {
    let values = [VALUE, "1234567890123"].map(|value| Secret::new(value).unwrap());
    SecretRedactor(Redactor::new(values.into()).unwrap())
}

fn json(text: &str) -> String {
    let mut json = Json::parse(text.into()).unwrap();
    redactor().json(&mut json);
    assert!(Json::parse(json.to_string()).is_ok(), "{json}");
    json.to_string()
}

#[test]
fn redacted_json_stays_valid_json() {
    for (text, expected) in rows::<(&str, &str)>("secrets/secret_redactor", "texts") {
        let shown = json(&text.replace("VALUE", VALUE));
        assert_eq!(shown.replace(' ', ""), expected.replace(' ', ""), "{text}");
    }
}

#[test]
fn tool_outcomes_and_errors_contain_no_secret() {
    for row in rows::<Value>("secrets/secret_redactor", "outcomes") {
        let text = row.to_string().replace("VALUE", VALUE);
        let mut outcome: Outcome = serde_json::from_str(&text).unwrap();
        let kept = serde_json::to_string(&outcome).unwrap();
        assert_eq!(kept.matches(VALUE).count(), text.matches(VALUE).count(), "{text}");
        redactor().outcome(&mut outcome);
        let shown = serde_json::to_string(&outcome).unwrap();
        // The bytes of media are base64 here.
        let hidden = serde_json::to_string(&Outcome::from(Value::from(shown.clone()))).unwrap();
        assert!(!hidden.contains("canary"), "{shown}");
        assert!(!redactor().0.contains_value(shown.as_bytes()), "{shown}");
    }
    let mut deflated = miniz_oxide::deflate::compress_to_vec_zlib(VALUE.repeat(9).as_bytes(), 6);
    redactor().bytes(&mut deflated, &mut InflationWork::default());
    assert_eq!(deflated, REPLACEMENT);
    for row in rows::<Value>("secrets/secret_redactor", "errors") {
        let text = row.to_string().replace("VALUE", VALUE);
        let mut error: ToolError = serde_json::from_str(&text).unwrap();
        let kept = format!("{error:?}");
        assert_eq!(kept.matches(VALUE).count(), text.matches(VALUE).count(), "{text}");
        redactor().error(&mut error);
        let shown = format!("{} {error:?}", serde_json::to_string(&error).unwrap());
        assert!(!shown.contains("canary") && shown.contains("[redacted]"), "{shown}");
    }
}

/// Parts that inflate to 40 MiB each. Fails without: one bound for all parts.
#[test]
fn parts_of_a_result_share_the_bound_on_inflated_bytes() {
    let deflated = miniz_oxide::deflate::compress_to_vec_zlib(&vec![b'x'; 40 << 20], 1);
    let image = || Part::Image(Media { mime_type: "image/png".into(), data: deflated.clone() });
    let output = Output::from_message("done").with_part(image()).with_part(image());
    let result = CallResult::Outcome(Outcome::Ok(output));
    assert!(SecretRedactor::is_slow(&result));
    let CallResult::Outcome(Outcome::Ok(shown)) = redactor().result(result) else {
        panic!("another result")
    };
    let [Part::Image(first), Part::Image(second)] = shown.parts.as_slice() else {
        panic!("other parts")
    };
    assert!(first.data == deflated && second.data == REPLACEMENT);
    assert!(!SecretRedactor::is_slow(&CallResult::Outcome(Outcome::ok(Value::Null))));
}
