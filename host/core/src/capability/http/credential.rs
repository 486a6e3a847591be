//! Prepares one secret for its place in a request: a header or a query parameter.
//!
//! When a tool names a secret in a request, the engine calls [`Credential::new`] with the grant of
//! the secret (the place, and the requests that it is bound to) and its value. It fails for a value
//! that is longer than 4 KiB or that its place cannot hold. `outgoing` then adds the credential to
//! the request, or refuses the request if the grant does not cover it.
//! The value is kept, so that the response can be searched for it. `Debug` never shows it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};
use toolcell_contract::grants::{HttpRule, Injection, SecretGrant};
use zeroize::Zeroizing;

use super::SendError;
use super::send_error::invalid;
use crate::secrets::secret::Secret;

/// Bytes. The longest secret: servers read no header with a longer value.
const MAX_SECRET: usize = 4 << 10;

/// A secret to be added to requests.
#[derive(Debug, Clone)]
pub(crate) struct Credential {
    /// The secret's name.
    pub(super) name: String,
    pub(super) bound_to: HttpRule,
    pub(super) placing: InjectionPoint,
    /// The value that a response must not show.
    pub(super) secret: Secret,
}

/// The place in the request.
#[derive(Debug, Clone)]
pub(super) enum InjectionPoint {
    Header(HeaderName, HeaderValue),
    Query(String, Secret),
}

impl Credential {
    /// Creates a credential from a secret and its grant.
    ///
    /// # Errors
    /// [`SendError::Invalid`] for a value that is too long or that its place cannot hold.
    pub(crate) fn new(name: &str, used: &SecretGrant, secret: Secret) -> Result<Self, SendError> {
        let value = secret.expose();
        if value.len() > MAX_SECRET {
            return Err(invalid(format!("the secret `{name}` is longer than {MAX_SECRET} bytes")));
        }
        let authorization = |text: String| header(name, "authorization", &Zeroizing::new(text));
        let placing = match &used.injection {
            Injection::Bearer => authorization(format!("Bearer {value}"))?,
            Injection::Basic { user } => {
                let pair = Zeroizing::new(format!("{user}:{value}"));
                authorization(format!("Basic {}", STANDARD.encode(pair.as_bytes())))?
            }
            Injection::Header { name: header_name } => header(name, header_name, value)?,
            Injection::Query { name } => InjectionPoint::Query(name.clone(), secret.clone()),
            _ => return Err(invalid(format!("the secret `{name}` has an unknown injection"))),
        };
        Ok(Self { name: name.to_owned(), bound_to: used.destination.clone(), placing, secret })
    }
}

fn header(secret: &str, name: &str, value: &str) -> Result<InjectionPoint, SendError> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        invalid(format!("the grant names an invalid header for the secret `{secret}`"))
    })?;
    let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
        invalid(format!("the secret `{secret}` has a control character, which no header can hold"))
    })?;
    value.set_sensitive(true);
    Ok(InjectionPoint::Header(name, value))
}
