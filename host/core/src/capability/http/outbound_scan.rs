//! Searches a tool's request for secret values before it is sent.
//!
//! [`OutboundScan`] has the values that must not reach the destination: those that the tool was not
//! granted, and the tool's own, which may go only to the requests that they are bound to. `prepare`
//! copies the tool's text (URL, headers, body) before the host adds anything. [`RequestScan::run`]
//! searches all of it, also percent-decoded and inflated, and returns a denial if a value is found.
//! A body that inflates to too much is refused as well.
//! Text that looks like a token of a known service is only reported to observers, and the request
//! is sent.
//! Invariants: a request is sent only after all of it was searched. No text names or shows the
//! secret that was found.
//! Not here: the forms of a value that are recognised (`secrets/redact`), and values that a tool
//! changed beyond recognition.

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use tokio::task::yield_now;
use toolcell_contract::controls::enforced;
use toolcell_contract::grants::rights::{Denial, Layer};
use toolcell_contract::grants::{HttpRule, Method, Target};

use super::SendError;
use super::outgoing::Outgoing;
use super::send_error::invalid;
use crate::secrets::redact::{Inflated, Inflation, Redactor};
use crate::secrets::secret::Secret;
use crate::secrets::token_patterns::kinds;

/// Bytes of a body that are inflated before the task yields: they may inflate to a thousand times
/// as many.
const PIECE: usize = 4 << 10;

/// Called with the kind of secret that a request seems to contain.
pub(crate) type OnSuspect = Box<dyn Fn(&'static str) + Send + Sync>;

/// The values that an outbound scan searches for.
pub(crate) struct OutboundScan {
    /// Values that the tool was not granted: no request may contain them. Only whole values match,
    /// because each answer reveals something to the tool.
    pub(crate) others: Redactor,
    /// The tool's own values: only requests that they are bound to may contain them.
    pub(crate) own: Option<Redactor>,
    /// The tool's own values and the requests that they are bound to.
    pub(crate) bound: Vec<(HttpRule, Secret)>,
    /// Called for text that looks like a secret. The value is the tool's or its user's, so the
    /// request is sent.
    pub(crate) on_suspect: OnSuspect,
}

/// The text of one request, before its scan.
pub(super) struct RequestScan {
    scan: OutboundScan,
    texts: Vec<Bytes>,
    body: Bytes,
}

impl OutboundScan {
    pub(super) fn prepare(self, outgoing: &Outgoing) -> RequestScan {
        let Outgoing { method: _, target, headers, body, timeout: _, times: _ } = outgoing;
        let url = target.as_str();
        // All headers are searched as one text, since a value may be split over them, and once more
        // without the names, since each header may hold one character.
        let values: Vec<_> = headers.iter().map(|(_, value)| value.as_slice()).collect();
        let values = values.join(&b'\n');
        let headers = headers
            .iter()
            .flat_map(|(name, value)| [name.as_bytes(), b": ", value, b"\n"].concat());
        let mut texts =
            vec![Bytes::from(url.to_owned()), headers.collect(), values.into(), body.clone()];
        let decoded: Vec<u8> = percent_decode_str(url).collect();
        if decoded != url.as_bytes() {
            // The tool may have escaped any character itself.
            texts.push(decoded.into());
        }
        RequestScan { scan: self, texts, body: body.clone() }
    }
}

impl RequestScan {
    /// Searches all of the request, yielding to other requests in between.
    ///
    /// # Errors
    /// [`SendError::Denied`]; [`SendError::Invalid`] for a compressed body that is too large to be
    /// searched.
    pub(super) async fn run(self, method: Method, target: &Target) -> Result<(), SendError> {
        let Self { scan: OutboundScan { others, own, bound, on_suspect }, texts, body } = self;
        let is_unbound = |value: &Secret| {
            let mut same = bound.iter().filter(|(_, own)| own.expose() == value.expose());
            !same.any(|(rule, _)| rule.covers(method, target))
        };
        // Each redactor, with the values of it that are sought.
        let mut searches = vec![(&others, vec![true; others.values().len()])];
        if let Some(own) = &own {
            searches.push((own, own.values().iter().map(is_unbound).collect()));
        }
        let denied = || SendError::Denied(denial(&searches, method, target));
        let mut seen = Vec::new();
        for text in texts {
            let mut is_found = false;
            for (redactor, is_sought) in &searches {
                is_found |= redactor.finds_any(&text, is_sought).await;
            }
            if is_found && enforced!(LeavingSecrets) {
                return Err(denied());
            }
            for kind in kinds(&text) {
                if !seen.contains(&kind) && enforced!(TokenShapes) {
                    seen.push(kind);
                }
            }
            yield_now().await;
        }
        for (redactor, is_sought) in &searches {
            let mut search = Inflation::of(Redactor::clone(redactor), is_sought.clone());
            for mut piece in body.chunks(PIECE) {
                while !piece.is_empty() {
                    match search.push(&mut piece) {
                        Inflated::Clean => {}
                        Inflated::Secret => return Err(denied()),
                        Inflated::TooLarge => {
                            let problem =
                                "its decompressed body is too large to search for secrets";
                            return Err(invalid(problem));
                        }
                    }
                    yield_now().await;
                }
            }
        }
        seen.into_iter().for_each(on_suspect);
        Ok(())
    }
}

/// Returns a denial that names the destination, with secrets in it redacted.
fn denial(searches: &[(&Redactor, Vec<bool>)], method: Method, target: &Target) -> Denial {
    let origin = format!("{} {}", method.as_str(), target.origin()).into_bytes();
    let origin = searches.iter().fold(origin, |origin, (redactor, _)| redactor.redact(&origin));
    let request = String::from_utf8_lossy(&origin).into_owned();
    Denial::new(Layer::Secrets, request, None)
}
