//! Encrypts and authenticates the state of a question, so that it can travel through an untrusted
//! client.
//!
//! A tool that asks a person ends its call with a question and a state; the answer comes with a
//! later call. The executor calls [`Sealer::seal`] when a question leaves, and [`Sealer::open`]
//! with the state and the answer that come back. A state opens only with the same key, before it
//! expires, for the same tenant and principal (the authenticated sender: a key or user of the
//! tenant), tool, code and arguments, and the answer must fit the schema that was sealed; otherwise
//! the call is refused. The text is authenticated before anything in it is used. A question without
//! a state is sealed as well, because the seal proves that it was asked. Errors and `Debug` contain
//! no state.
//!
//! Form: `tc2.` and base64url of a nonce and the ciphertext (XChaCha20-Poly1305, the prefix
//! authenticated too) of four fingerprints (tenant and principal, tool, digest of the code,
//! arguments), the time of expiry, the length of the answer schema, the schema and the state.
//!
//! Not here: protection against replay. There is no list of answers: within its lifetime a question
//! can be answered more than once, each time in a cell (a fresh WebAssembly instance for one call)
//! of its own.
//!
//! Source: docs/contract.md, section 7.

mod bytes;
mod key;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{Key, KeyInit as _, XChaCha20Poly1305, XNonce};
use serde_json::Value;
use toolcell_contract::call::Resume;
use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::error::Error;
use toolcell_contract::json::{Json, canonical};
use toolcell_contract::outcome::Question;
use toolcell_contract::outcome::refusal::{Refusal, ResumeFault};
use toolcell_contract::outcome::tool_error::{Exit, ReturnRule, ToolError};

use crate::os::clock::{Clock, SystemClock};
use crate::tool::Tool;

/// The version of the form. It changes with the form.
const PREFIX: &str = "tc2.";
const KEY_BYTES: usize = 32;
/// Long enough that random nonces never collide, however many questions one key seals.
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
const FINGERPRINT_BYTES: usize = 32;
type Fingerprint = [u8; FINGERPRINT_BYTES];
/// Four fingerprints, the time of expiry, and the length of the answer schema.
const HEAD_BYTES: usize = 4 * FINGERPRINT_BYTES + size_of::<u64>() + size_of::<u32>();
/// The longest sealed text, in its quotes. A longer one is not decoded.
const MAX_SEALED: usize = PREFIX.len()
    + ((NONCE_BYTES + HEAD_BYTES + Sealer::MAX_STATE as usize + TAG_BYTES) * 4).div_ceil(3)
    + 2;

/// Seals the state that a tool leaves with a question, so that a client can neither read nor change
/// it. Use one unless every client is trusted. Cheap to clone. Hosts with the same key can open
/// each other's states.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use serde_json::{Value, json};
/// use toolcell::call::Resume;
/// use toolcell::tool::Invocation;
/// use toolcell::{
///     CallContext, CallOptions, CallResult, Definition, Executor, Outcome, Question, Sealer, Tool,
///     ToolCall,
/// };
///
/// let tool = Tool::native(Definition::new("delete", "Deletes a note.")?, async |_: Value, call: Arc<Invocation>| {
///     match &call.context.resume {
///         None => Outcome::AskUser(Question::new("Delete it?").with_state(json!({"note": 7}))),
///         Some(resume) => Outcome::ok(resume.state.as_ref().map_or(Value::Null, |state| state.to_value())),
///     }
/// })?;
/// let executor = Executor::new().with_sealer(Sealer::generate()?);
/// let call = ToolCall::new("call-1", "delete", "{}");
/// let asked = executor.call(&tool, call.clone(), CallOptions::default()).await;
/// let CallResult::Outcome(Outcome::AskUser(Question { state: Some(state), .. })) = asked.result else { panic!("no question") };
/// assert!(!state.as_str().contains("note"));
///
/// let answer = |state| {
///     let mut context = CallContext::default();
///     context.resume = Some(Resume { answer: json!(true).into(), state: Some(state) });
///     CallOptions { context: context.into(), ..CallOptions::default() }
/// };
/// let done = executor.call(&tool, call.clone(), answer(state)).await;
/// assert_eq!(done.result.value().map(|value| value.to_value()), Some(json!({"note": 7})));
/// // A state that the client made up is refused.
/// let forged = executor.call(&tool, call, answer(json!({"note": 8}).into())).await;
/// assert!(matches!(forged.result, CallResult::Refusal(_)));
/// # Ok(()) }
/// ```
///
/// # Defaults
/// [`Sealer::DEFAULT_LIFETIME`], the system's clock.
#[derive(Clone)]
#[must_use]
pub struct Sealer {
    cipher: XChaCha20Poly1305,
    /// The principal, within a tenant, whose questions it seals.
    principal: Option<Fingerprint>,
    lifetime: Duration,
    clock: Arc<dyn Clock>,
}

impl Sealer {
    /// Lifetime of a question: a day (24 h), so that a person can answer the next morning.
    pub const DEFAULT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
    /// 64 KiB, in bytes: the largest state of a question with its answer schema. A client sends it
    /// with each answer; sealed, it still fits into one argument of a command line (128 KiB).
    pub const MAX_STATE: u64 = 64 << 10;

    /// Creates a sealer with this key: 32 random bytes that are kept secret.
    pub fn new(key: [u8; KEY_BYTES]) -> Self {
        let cipher = XChaCha20Poly1305::new(&Key::from(key));
        Self {
            cipher,
            principal: None,
            lifetime: Self::DEFAULT_LIFETIME,
            clock: Arc::new(SystemClock),
        }
    }

    /// Creates a sealer with a new random key, which is not stored: after the last clone is
    /// dropped, its questions can no longer be answered.
    ///
    /// # Errors
    /// [`Error::is_environment`] if the system has no randomness.
    pub fn generate() -> Result<Self, Error> {
        key::random_key().map(Self::new)
    }

    /// Creates a sealer with the key in this directory. The key is created at the first use, and
    /// only this user can read it. Processes can share the directory.
    ///
    /// # Errors
    /// [`Error::is_environment`] if there is no key and none can be stored, or if other users could
    /// have read the key. Such a key is not replaced: an operator should look at it first.
    pub fn from_directory(dir: impl AsRef<Path>) -> Result<Self, Error> {
        key::load_or_create(dir.as_ref()).map(Self::new)
    }

    /// Sets the lifetime of the questions that are sealed from now on.
    pub fn with_lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Sets the clock whose time of day counts for the lifetime. All hosts with this key must agree
    /// on it.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Returns a sealer with the same key for the questions of one principal: only a sealer that is
    /// bound to the same principal can open them. A tenant's principals are its keys or users, with
    /// names that the embedder chooses. The refusal is [`ResumeFault::Foreign`].
    pub fn for_principal(&self, principal: &str) -> Self {
        Self { principal: Some(of_text(Some(principal))), ..self.clone() }
    }

    /// Returns the principal that the sealer is bound to.
    fn principal(&self) -> Option<&Fingerprint> {
        self.principal.as_ref().filter(|_| enforced!(SealedPrincipal))
    }

    /// Seals the state of a question, for an answer to the same call.
    ///
    /// # Errors
    /// [`ToolError::InvalidReturn`] if state and answer schema together exceed
    /// [`Sealer::MAX_STATE`].
    pub(crate) fn seal(&self, origin: &Origin<'_>, question: &Question) -> Result<Json, ToolError> {
        let [schema, state] = [&question.answer_schema, &question.state]
            .map(|json| json.as_ref().map_or("", Json::as_str));
        let got = (schema.len() + state.len()) as u64;
        if got > bound!(SealedBytes, Self::MAX_STATE) {
            return Err(ToolError::InvalidReturn(ReturnRule::StateTooLarge {
                limit: Self::MAX_STATE,
                actual: got,
            }));
        }
        let mut plain = Vec::with_capacity(HEAD_BYTES + schema.len() + state.len());
        for (_, fingerprint) in origin.fingerprints(self.principal()) {
            plain.extend(fingerprint);
        }
        plain.extend(self.now().saturating_add(millis(self.lifetime)).to_le_bytes());
        // A result, and so its schema, is smaller than 4 GiB.
        plain.extend(u32::try_from(schema.len()).unwrap_or(u32::MAX).to_le_bytes());
        plain.extend(schema.as_bytes());
        plain.extend(state.as_bytes());
        // Fails only if the system has no randomness.
        let sealed =
            self.encrypt(PREFIX, &plain).ok_or(ToolError::HandlerExit(Exit::ProcessEnded))?;
        Ok(Json::from(Value::String(sealed)))
    }

    /// Opens the sealed state of an answer. Returns the answer with the question's state.
    ///
    /// # Errors
    /// [`Refusal::Resume`], and [`Refusal::InvalidAnswer`] for an answer that does not fit the
    /// question.
    pub(crate) fn open(&self, origin: &Origin<'_>, resume: &Resume) -> Result<Resume, Refusal> {
        let (answer_schema, state) =
            self.open_sealed(origin, resume.state.as_ref()).map_err(Refusal::Resume)?;
        let mut asked = Question::new("");
        asked.answer_schema = answer_schema;
        asked.check_answer(&resume.answer).map_err(Refusal::InvalidAnswer)?;
        Ok(Resume { answer: resume.answer.clone(), state })
    }

    /// Returns the answer schema and the state of the question.
    fn open_sealed(
        &self,
        origin: &Origin<'_>,
        state: Option<&Json>,
    ) -> Result<(Option<Json>, Option<Json>), ResumeFault> {
        let state = state.ok_or(ResumeFault::Missing)?.as_str();
        let sealed: Option<String> =
            (state.len() <= MAX_SEALED).then(|| serde_json::from_str(state).ok()).flatten();
        let plain =
            sealed.and_then(|sealed| self.decrypt(PREFIX, &sealed)).ok_or(ResumeFault::Tampered)?;
        let mut rest = plain.as_slice();
        for (fault, expected) in origin.fingerprints(self.principal()) {
            let (found, after) = rest.split_first_chunk().ok_or(ResumeFault::Tampered)?;
            if *found != expected && enforced!(SealedOrigin) {
                return Err(fault);
            }
            rest = after;
        }
        let (expires, rest) = rest.split_first_chunk().ok_or(ResumeFault::Tampered)?;
        if self.now() >= bound!(SealedTime, u64::from_le_bytes(*expires)) {
            return Err(ResumeFault::Expired);
        }
        let (schema, rest) = rest.split_first_chunk().ok_or(ResumeFault::Tampered)?;
        let schema = usize::try_from(u32::from_le_bytes(*schema)).ok();
        let (schema, state) =
            schema.and_then(|length| rest.split_at_checked(length)).ok_or(ResumeFault::Tampered)?;
        Ok((json(schema)?, json(state)?))
    }

    /// Encrypts bytes. The text begins with `prefix`, which identifies the form of the content.
    fn encrypt(&self, prefix: &str, plain: &[u8]) -> Option<String> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let payload = Payload { msg: plain, aad: prefix.as_bytes() };
        let ciphertext = self.cipher.encrypt(&XNonce::from(nonce), payload).ok()?;
        Some(prefix.to_owned() + &URL_SAFE_NO_PAD.encode([nonce.as_slice(), &ciphertext].concat()))
    }

    fn decrypt(&self, prefix: &str, sealed: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed.strip_prefix(prefix)?).ok()?;
        let (nonce, ciphertext) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        self.cipher
            .decrypt(&XNonce::from(*nonce), Payload { msg: ciphertext, aad: prefix.as_bytes() })
            .ok()
    }

    /// Returns milliseconds since 1970, or 0 for an earlier time.
    fn now(&self) -> u64 {
        self.clock.wall().duration_since(UNIX_EPOCH).map_or(0, millis)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

/// Parses sealed JSON. `None`: no JSON was sealed.
fn json(bytes: &[u8]) -> Result<Option<Json>, ResumeFault> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8(bytes.to_vec()).ok();
    text.and_then(|text| Json::parse(text).ok()).map(Some).ok_or(ResumeFault::Tampered)
}

/// Saturates: the maximum is later than any clock's time.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Identifies the call that a question belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    tenant: Option<&'a str>,
    tool: &'a str,
    digest: Option<&'a str>,
    arguments: Fingerprint,
}

impl<'a> Origin<'a> {
    pub(crate) fn of(tool: &'a Tool, tenant: Option<&'a str>, arguments: Fingerprint) -> Self {
        Self { tenant, tool: &tool.definition().name, digest: tool.code(), arguments }
    }

    /// Returns the properties that must be equal when the answer comes, each with the fault if it
    /// differs. The owner comes first, so that another owner learns nothing else.
    fn fingerprints(&self, principal: Option<&Fingerprint>) -> [(ResumeFault, Fingerprint); 4] {
        let tenant = of_text(self.tenant);
        let owner = principal
            .map_or(tenant, |principal| *blake3::keyed_hash(principal, &tenant).as_bytes());
        [
            (ResumeFault::Foreign, owner),
            (ResumeFault::OtherTool, of_text(Some(self.tool))),
            (ResumeFault::Upgraded, of_text(self.digest)),
            (ResumeFault::OtherArguments, self.arguments),
        ]
    }
}

/// Hashes a text. `None` and the empty text differ.
fn of_text(text: Option<&str>) -> Fingerprint {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[u8::from(text.is_some())]).update(text.unwrap_or_default().as_bytes());
    *hasher.finalize().as_bytes()
}

/// Returns the fingerprint of a JSON value, equal for equal values in any notation. It is kept of a
/// call's arguments while the call runs.
pub(crate) fn fingerprint(value: &Value) -> Fingerprint {
    *blake3::hash(&canonical::bytes(value)).as_bytes()
}

#[cfg(test)]
mod tests;
