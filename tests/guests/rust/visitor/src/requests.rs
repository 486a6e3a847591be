//! The part of a visit that uses `wasi:http`.

use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    OutgoingResponse, RequestOptions, Scheme, http_error_code,
};
use wasip2::io::error::Error;

pub fn visit(url: &str, error: &Error) {
    http_error_code(error);
    unsent();
    let authority =
        url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("a server");
    let request = request(authority);
    let body = request.body().unwrap();
    let response = handle(request, Some(options())).unwrap();
    let stream = body.write().unwrap();
    stream.blocking_write_and_flush(b"a visit").unwrap();
    drop(stream);
    OutgoingBody::finish(body, None).unwrap();
    response.subscribe().block();
    received(
        &response.get().expect("it is ready").expect("for the first time").expect("an answer"),
    );
}

fn fields() -> Fields {
    let fields = Fields::from_list(&[("x-a".to_owned(), b"1".to_vec())]).unwrap();
    assert!(fields.has("x-a") && !fields.get("x-a").is_empty());
    fields.set("x-b", &[b"2".to_vec()]).unwrap();
    fields.append("x-b", b"3").unwrap();
    fields.delete("x-a").unwrap();
    assert_eq!(fields.entries().len(), 2);
    fields.clone()
}

fn request(authority: &str) -> OutgoingRequest {
    let request = OutgoingRequest::new(fields());
    request.set_method(&Method::Post).unwrap();
    request.set_scheme(Some(&Scheme::Http)).unwrap();
    request.set_authority(Some(authority)).unwrap();
    request.set_path_with_query(Some("/")).unwrap();
    request.method();
    request.scheme();
    request.authority();
    request.path_with_query();
    request.headers();
    request
}

fn options() -> RequestOptions {
    let (options, second) = (RequestOptions::new(), Some(30_000_000_000));
    options.set_connect_timeout(second).unwrap();
    options.set_first_byte_timeout(second).unwrap();
    options.set_between_bytes_timeout(second).unwrap();
    options.connect_timeout();
    options.first_byte_timeout();
    options.between_bytes_timeout();
    options
}

/// Uses a response that answers no request.
fn unsent() {
    let response = OutgoingResponse::new(Fields::new());
    response.set_status_code(204).unwrap();
    response.status_code();
    response.headers();
    response.body().unwrap();
}

fn received(response: &IncomingResponse) {
    assert_eq!(response.status(), 200);
    response.headers();
    let body = response.consume().unwrap();
    let stream = body.stream().unwrap();
    while stream.blocking_read(1024).is_ok() {}
    drop(stream);
    let trailers = IncomingBody::finish(body);
    trailers.subscribe().block();
    trailers.get();
}
