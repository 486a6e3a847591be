//! Calls servers with `wasi:http` alone, as the HTTP libraries of guests do.

use toolcell_guest::{Failure, tool, tools};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, IncomingBody, Method, OutgoingBody, OutgoingRequest, Scheme};

/// Sends a body to a server with POST and gives back its status and its body.
#[tool]
fn caller(authority: String, path: String, body: String) -> Result<String, Failure> {
    let fault = |what: &str| Failure::new(what.to_owned());
    let headers = Fields::new();
    headers.append("x-own", b"1").map_err(|_| fault("no header"))?;
    let request = OutgoingRequest::new(headers);
    request.set_method(&Method::Post).map_err(|()| fault("no method"))?;
    request.set_scheme(Some(&Scheme::Http)).map_err(|()| fault("no scheme"))?;
    request.set_authority(Some(&authority)).map_err(|()| fault("no authority"))?;
    request.set_path_with_query(Some(&path)).map_err(|()| fault("no path"))?;
    let outgoing = request.body().map_err(|()| fault("no body"))?;
    let pending = handle(request, None).map_err(|code| Failure::new(format!("{code:?}")))?;
    // A request that is refused takes no body: why, the answer tells.
    if let Ok(stream) = outgoing.write() {
        let _ = stream.blocking_write_and_flush(body.as_bytes());
    }
    let _ = OutgoingBody::finish(outgoing, None);
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

/// Has the host keep so many requests, each with a method of a megabyte, and then runs on as long as it is told: how many
/// it has.
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

tools![caller, hoarder, appender];
