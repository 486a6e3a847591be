//! Fetches a page over HTTP.
//!
//! The tool declares no needs: the operator alone decides which hosts it may reach.

mod page;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcell_guest::{Failure, http, secrets, tool, tools};

use page::Page;

/// Name of the secret that an operator may grant. The host puts its value into the request; the
/// tool never sees it.
const TOKEN: &str = "fetch_token";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// An absolute URL, for example `https://example.com/page`.
    #[schemars(length(min = 8, max = 4_000))]
    url: String,
    /// Whether to log in with the token that this tool was given. Only for the host it is meant
    /// for.
    #[serde(default)]
    with_token: bool,
    /// At most so many characters of the page.
    #[serde(default = "default_characters")]
    #[schemars(range(min = 1, max = 200_000))]
    max_characters: u32,
}

fn default_characters() -> u32 {
    20_000
}

/// Fetches the text of a web page or an API with a GET request. Redirects are not followed: fetch
/// `location` if that is where you want to go. Which hosts can be reached is up to the operator.
#[tool(title = "Fetch", read_only, idempotent, open_world, output, max_execution = "60s")]
fn fetch(args: Args) -> Result<Page, Failure> {
    let token = if args.with_token { Some(secrets::get(TOKEN)?) } else { None };
    let mut request =
        http::get(&args.url).header("accept", "text/*, application/json;q=0.9, */*;q=0.1");
    if let Some(token) = &token {
        request = request.secret(token);
    }
    Page::read(&request.send()?, args.max_characters as usize)
}

tools![fetch];

#[cfg(test)]
mod tests {
    use super::*;
    use toolcell_guest::http::{Error, Response};

    fn args(with_token: bool) -> Args {
        Args { url: "https://example.com/a".to_owned(), with_token, max_characters: 3 }
    }

    #[test]
    fn token_is_sent_only_on_request() {
        http::answer_with(|request| {
            let name = request.secret_name().unwrap_or_default();
            Ok(Response::new(200).with_header("content-type", "text/plain").with_body(name))
        });
        assert_eq!(fetch(args(false)).expect("a page").text, "");
        assert!(fetch(args(true)).is_err(), "there is no token yet");
        secrets::set(TOKEN, "s3cret");
        let page = fetch(args(true)).expect("a page");
        assert_eq!((page.text.as_str(), page.truncated), ("fet", true));
    }

    #[test]
    fn denial_message_is_passed_on_unchanged() {
        let sentence = "`GET https://example.com/a` is denied: it was not granted";
        http::answer_with(|_| Err(Error::Denied(sentence.to_owned())));
        assert_eq!(fetch(args(false)).err(), Some(Failure::new(sentence)));
    }
}
