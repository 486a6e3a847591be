//! Calls every function of the host that a tool can call at least once, and checks little more than
//! that it returns.

mod requests;

use toolcell_guest::bindings::toolcell::tool::http as raw;
use toolcell_guest::{abort, budget, http, invoke, json, kv, log, progress, secrets, tool, tools};
use wasip2::cli::{
    environment, exit, stderr, stdin, stdout, terminal_stderr, terminal_stdin, terminal_stdout,
};
use wasip2::clocks::{monotonic_clock, wall_clock};
use wasip2::filesystem::preopens;
use wasip2::filesystem::types::{
    Advice, Descriptor, DescriptorFlags, NewTimestamp, OpenFlags, PathFlags, filesystem_error_code,
};
use wasip2::io::poll::poll;
use wasip2::io::streams::{InputStream, OutputStream, StreamError};
use wasip2::random::{insecure, insecure_seed, random};

/// Visits the host. `url` is a server that answers; `door` a function that ends the visit, if it is
/// to end in one.
#[tool]
fn visit(url: String, door: Option<String>) -> bool {
    services();
    keys();
    credentials(&url);
    assert!(invoke::call::<bool>("nothing", &json!({})).is_err());
    surroundings();
    let (directory, _) = preopens::get_directories().into_iter().next().expect("a directory");
    files(&directory);
    directories(&directory);
    requests::visit(&url, &broken_stream(&directory));
    match door.as_deref() {
        Some("exit") => exit::exit(Ok(())),
        Some("exit-with-code") => exit::exit_with_code(0),
        _ => {}
    }
    true
}

fn services() {
    log::info!("a visit");
    progress::report(1, 2, "a visit");
    assert!(!abort::requested());
    let _ = abort::wait();
    assert!(budget::remaining().memory > 0);
}

fn keys() {
    kv::set("a", "1").unwrap();
    assert!(kv::get("a").unwrap().is_some());
    kv::compare_and_swap("a", None, "2").unwrap();
    assert!(kv::list("").count() > 0);
    kv::delete("a").unwrap();
}

fn credentials(url: &str) {
    let secret = secrets::get("token").unwrap();
    assert_eq!(secret.name(), "token");
    assert!(!secrets::reveal("token").unwrap().is_empty());
    assert_eq!(http::get(url).secret(&secret).send().unwrap().status(), 200);
    let (headers, body) = (Vec::new(), None);
    let request = raw::Request {
        method: "GET".to_owned(),
        url: url.to_owned(),
        headers,
        body,
        timeout_ms: None,
    };
    let pending = raw::start(&request, None).unwrap();
    pending.subscribe().block();
    assert_eq!(pending.finish().unwrap().status, 200);
}

fn surroundings() {
    environment::get_environment();
    environment::get_arguments();
    environment::initial_cwd();
    terminal_stdin::get_terminal_stdin();
    terminal_stdout::get_terminal_stdout();
    terminal_stderr::get_terminal_stderr();
    wall_clock::now();
    wall_clock::resolution();
    monotonic_clock::resolution();
    let now = monotonic_clock::now();
    let (one, other) =
        (monotonic_clock::subscribe_instant(now), monotonic_clock::subscribe_duration(1));
    poll(&[&one, &other]);
    one.block();
    one.ready();
    random::get_random_bytes(8);
    random::get_random_u64();
    insecure::get_insecure_random_bytes(8);
    insecure::get_insecure_random_u64();
    insecure_seed::insecure_seed();
    drop((stdin::get_stdin(), stderr::get_stderr()));
}

/// Creates a file in the directory.
fn create(directory: &Descriptor, name: &str) -> Descriptor {
    let (open, flags) = (OpenFlags::CREATE, DescriptorFlags::READ | DescriptorFlags::WRITE);
    directory.open_at(PathFlags::empty(), name, open, flags).unwrap()
}

fn files(directory: &Descriptor) {
    let file = create(directory, "a");
    file.write(&[b'x'; 100], 0).unwrap();
    file.read(10, 0).unwrap();
    file.advise(0, 10, Advice::Normal).unwrap();
    file.get_flags().unwrap();
    file.get_type().unwrap();
    file.stat().unwrap();
    file.metadata_hash().unwrap();
    file.set_size(80).unwrap();
    file.set_times(NewTimestamp::Now, NewTimestamp::NoChange).unwrap();
    file.sync().unwrap();
    file.sync_data().unwrap();
    assert!(file.is_same_object(&file));
    reads(&file.read_via_stream(0).unwrap());
    let out = stdout::get_stdout();
    writes(&out, &file.read_via_stream(0).unwrap());
    drop((file.write_via_stream(0).unwrap(), file.append_via_stream().unwrap()));
}

fn reads(stream: &InputStream) {
    stream.blocking_read(1).unwrap();
    stream.blocking_skip(1).unwrap();
    stream.subscribe().block();
    stream.read(1).unwrap();
    stream.subscribe().block();
    stream.skip(1).unwrap();
}

fn writes(stream: &OutputStream, source: &InputStream) {
    stream.check_write().unwrap();
    stream.write(b"a visit\n").unwrap();
    stream.flush().unwrap();
    stream.blocking_flush().unwrap();
    stream.blocking_write_and_flush(b"a visit\n").unwrap();
    stream.check_write().unwrap();
    stream.write_zeroes(1).unwrap();
    // More than the 4096 bytes that wasmtime's own function takes.
    stream.blocking_write_zeroes_and_flush(4097).unwrap();
    stream.subscribe().block();
    stream.blocking_splice(source, 1).unwrap();
    stream.check_write().unwrap();
    stream.splice(source, 1).unwrap();
}

fn directories(directory: &Descriptor) {
    let none = PathFlags::empty();
    directory.create_directory_at("b").unwrap();
    directory.stat_at(none, "b").unwrap();
    directory.metadata_hash_at(none, "b").unwrap();
    directory.set_times_at(none, "b", NewTimestamp::Now, NewTimestamp::Now).unwrap();
    directory.remove_directory_at("b").unwrap();
    drop(create(directory, "c"));
    directory.symlink_at("c", "d").unwrap();
    directory.readlink_at("d").unwrap();
    directory.link_at(none, "c", directory, "e").unwrap();
    directory.rename_at("e", directory, "f").unwrap();
    for name in ["f", "d", "c"] {
        directory.unlink_file_at(name).unwrap();
    }
    let entries = directory.read_directory().unwrap();
    assert!(entries.read_directory_entry().unwrap().is_some());
}

/// Returns the error of a stream that writes more than there is space for.
fn broken_stream(directory: &Descriptor) -> wasip2::io::error::Error {
    let stream = create(directory, "g").write_via_stream(0).unwrap();
    let error = loop {
        match stream.blocking_write_and_flush(&[b'x'; 4096]) {
            Ok(()) => {}
            Err(StreamError::LastOperationFailed(error)) => break error,
            Err(StreamError::Closed) => panic!("closed without a word"),
        }
    };
    assert!(!error.to_debug_string().is_empty());
    filesystem_error_code(&error);
    error
}

tools![visit];
