//! Sends requests with `wasi:http` directly, both as the HTTP libraries of guests do and as none of
//! them does.

use toolcell_guest::{Failure, tool, tools};
use wasip2::cli::stdout;
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    Fields, FutureIncomingResponse, IncomingBody, Method, OutgoingBody, OutgoingRequest, Scheme,
    http_error_code,
};
use wasip2::io::streams::StreamError;

fn fault(what: &str) -> Failure {
    Failure::new(what.to_owned())
}

/// Sends a body to a server with POST and gives back its status and its body.
#[tool]
fn caller(authority: String, path: String, body: String) -> Result<String, Failure> {
    let headers = fields(&[["x-own".to_owned(), "1".to_owned()]])?;
    sent(&Method::Post, headers, [&authority, &path, &body], None)
}

/// The same with any method, any headers and any trailers.
#[tool]
fn sender(
    authority: String,
    method: String,
    headers: Vec<[String; 2]>,
    body: String,
    trailers: Vec<[String; 2]>,
) -> Result<String, Failure> {
    let method = match method.as_str() {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "CONNECT" => Method::Connect,
        "TRACE" => Method::Trace,
        // Any other method by name; the prefix `other ` does this for the methods above.
        other => Method::Other(other.trim_start_matches("other ").to_owned()),
    };
    let trailers = if trailers.is_empty() { None } else { Some(fields(&trailers)?) };
    sent(&method, fields(&headers)?, [&authority, "/", &body], trailers)
}

fn fields(pairs: &[[String; 2]]) -> Result<Fields, Failure> {
    let fields = Fields::new();
    for [name, value] in pairs {
        let appended = fields.append(name, value.as_bytes());
        appended.map_err(|error| Failure::new(format!("no header: {error:?}")))?;
    }
    Ok(fields)
}

fn sent(
    method: &Method,
    headers: Fields,
    [authority, path, body]: [&str; 3],
    trailers: Option<Fields>,
) -> Result<String, Failure> {
    let request = OutgoingRequest::new(headers);
    request.set_method(method).map_err(|()| fault("no method"))?;
    request.set_scheme(Some(&Scheme::Http)).map_err(|()| fault("no scheme"))?;
    request.set_authority(Some(authority)).map_err(|()| fault("no authority"))?;
    request.set_path_with_query(Some(path)).map_err(|()| fault("no path"))?;
    let outgoing = request.body().map_err(|()| fault("no body"))?;
    let pending = handle(request, None).map_err(|code| Failure::new(format!("{code:?}")))?;
    // A refused request takes no body; `answer` returns the reason.
    if let Ok(stream) = outgoing.write() {
        let _ = stream.blocking_write_and_flush(body.as_bytes());
    }
    let _ = OutgoingBody::finish(outgoing, trailers);
    answer(&pending)
}

/// Returns the status and the body of the response to a request.
fn answer(pending: &FutureIncomingResponse) -> Result<String, Failure> {
    pending.subscribe().block();
    let answered = pending.get().ok_or_else(|| fault("no answer"))?.map_err(|()| fault("taken"))?;
    let response = answered.map_err(|code| Failure::new(format!("{code:?}")))?;
    let incoming = response.consume().map_err(|()| fault("no body came"))?;
    let mut whole = Vec::new();
    {
        let stream = incoming.stream().map_err(|()| fault("no stream came"))?;
        while let Ok(piece) = stream.blocking_read(4096) {
            whole.extend(piece);
        }
    }
    drop(IncomingBody::finish(incoming));
    Ok(format!("{} {}", response.status(), String::from_utf8_lossy(&whole)))
}

/// Writes a body of so many bytes before it hands the request over, in blocking writes that are
/// larger than WASI promises.
#[tool]
fn uploader(authority: String, bytes: usize) -> Result<String, Failure> {
    const PIECE: [u8; 10_000] = [b'x'; 10_000];
    stdout::get_stdout().blocking_write_and_flush(&PIECE).map_err(|_| fault("no output"))?;
    let request = OutgoingRequest::new(Fields::new());
    request.set_method(&Method::Post).map_err(|()| fault("no method"))?;
    request.set_scheme(Some(&Scheme::Http)).map_err(|()| fault("no scheme"))?;
    request.set_authority(Some(&authority)).map_err(|()| fault("no authority"))?;
    request.set_path_with_query(Some("/")).map_err(|()| fault("no path"))?;
    let outgoing = request.body().map_err(|()| fault("no body"))?;
    {
        let stream = outgoing.write().map_err(|()| fault("no stream"))?;
        for at in (0..bytes).step_by(PIECE.len()) {
            let piece = &PIECE[..PIECE.len().min(bytes - at)];
            stream.blocking_write_and_flush(piece).map_err(|error| match error {
                StreamError::LastOperationFailed(error) => {
                    Failure::new(format!("{:?}", http_error_code(&error)))
                }
                StreamError::Closed => fault("closed"),
            })?;
        }
    }
    let pending = handle(request, None).map_err(|code| Failure::new(format!("{code:?}")))?;
    OutgoingBody::finish(outgoing, None).map_err(|code| Failure::new(format!("{code:?}")))?;
    answer(&pending)
}

/// Has the host keep so many requests, each with a method of a megabyte, and then runs on as long
/// as it is told: how many it has.
#[tool]
fn hoarder(requests: u32, rounds: u64) -> usize {
    let method = Method::Other("m".repeat(1 << 20));
    let request = |_| {
        let request = OutgoingRequest::new(Fields::new());
        request.set_method(&method).expect("a method");
        request
    };
    let kept: Vec<_> = (0..requests).map(request).collect();
    for round in 0..rounds {
        std::hint::black_box(round);
    }
    kept.len()
}

/// Appends headers without end; where a collection takes no more, to the next.
#[tool]
fn appender() -> u64 {
    loop {
        let headers = Fields::new();
        while headers.append("x-own", &[b'1'; 1000]).is_ok() {}
    }
}

tools![caller, hoarder, sender, appender, uploader];
