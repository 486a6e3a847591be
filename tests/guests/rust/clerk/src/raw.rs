//! Steps for which the standard library has no function: they call WASI directly, with paths as
//! given.

use wasip2::clocks::wall_clock::Datetime;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};
use wasip2::io::streams::{OutputStream, StreamError};

/// Returns the result of a step or the name of its error. `None` for a step of another kind.
pub(crate) fn take(words: &[&str], held: &mut Vec<OutputStream>) -> Option<String> {
    taken(words, held).map(|answer| answer.unwrap_or_else(|code| code.name().to_owned()))
}

fn taken(words: &[&str], held: &mut Vec<OutputStream>) -> Option<Result<String, ErrorCode>> {
    let done = |()| "done".to_owned();
    Some(match *words {
        ["stat", how, at] => on(at, |dir, path| {
            let found = dir.stat_at(flags(how), path)?;
            Ok(format!("{} {}", found.size, found.link_count))
        }),
        ["hash", how, at] => on(at, |dir, path| {
            let hash = dir.metadata_hash_at(flags(how), path)?;
            Ok(format!("{:016x}", hash.lower))
        }),
        // Nanoseconds of the last access, the last modification, and the last status change.
        ["stamps", how, at] => on(at, |dir, path| {
            let found = dir.stat_at(flags(how), path)?;
            Ok(stamps([
                found.data_access_timestamp,
                found.data_modification_timestamp,
                found.status_change_timestamp,
            ]))
        }),
        ["own-stamps", at] => on(at, |dir, path| {
            let found = opened(dir, path, OpenFlags::empty(), DescriptorFlags::READ)?.stat()?;
            Ok(stamps([
                found.data_access_timestamp,
                found.data_modification_timestamp,
                found.status_change_timestamp,
            ]))
        }),
        ["stamp", how, at, seconds, nanoseconds] => on(at, |dir, path| {
            dir.set_times_at(
                flags(how),
                path,
                time(seconds, nanoseconds),
                time(seconds, nanoseconds),
            )
        })
        .map(done),
        ["own-stamp", at, seconds, nanoseconds] => on(at, |dir, path| {
            let file = opened(
                dir,
                path,
                OpenFlags::empty(),
                DescriptorFlags::READ | DescriptorFlags::WRITE,
            )?;
            file.set_times(time(seconds, nanoseconds), time(seconds, nanoseconds))
        })
        .map(done),
        ["target", at] => on(at, |dir, path| dir.readlink_at(path)),
        ["truncate", at] => on(at, |dir, path| {
            opened(dir, path, OpenFlags::TRUNCATE, DescriptorFlags::READ).map(drop)
        })
        .map(done),
        // Nests directories without a growing path.
        ["deepen", at, levels] => on(at, |dir, path| {
            let mut here = opened(dir, path, OpenFlags::DIRECTORY, DescriptorFlags::READ)?;
            for _ in 0..levels.parse::<u32>().unwrap() {
                here.create_directory_at("d")?;
                here = opened(&here, "d", OpenFlags::DIRECTORY, DescriptorFlags::READ)?;
            }
            Ok("done".to_owned())
        }),
        // Opens many streams of one file, and starts one write in each without waiting for it.
        ["flood", at, streams, bytes] => on(at, |dir, path| {
            let file = opened(dir, path, OpenFlags::CREATE, DescriptorFlags::WRITE)?;
            let bytes = vec![b'x'; bytes.parse().unwrap()];
            for _ in 0..streams.parse::<u32>().unwrap() {
                let stream = file.write_via_stream(0)?;
                stream.write(&bytes).unwrap();
                held.push(stream);
            }
            Ok("done".to_owned())
        }),
        // Returns the host's text for the error of a write.
        ["failure", at, bytes] => on(at, |dir, path| {
            let file = opened(dir, path, OpenFlags::CREATE, DescriptorFlags::WRITE)?;
            let written =
                file.write_via_stream(0)?
                    .blocking_write_and_flush(&vec![b'x'; bytes.parse().unwrap()]);
            let Err(StreamError::LastOperationFailed(error)) = written else {
                return Ok("done".to_owned());
            };
            Ok(error.to_debug_string())
        }),
        // Reads one stream while the file is written and truncated, with and without waiting.
        ["stream", at, ref then @ ..] => on(at, |dir, path| {
            let file = opened(
                dir,
                path,
                OpenFlags::empty(),
                DescriptorFlags::READ | DescriptorFlags::WRITE,
            )?;
            let stream = file.read_via_stream(0)?;
            let ready = stream.subscribe();
            let mut seen = Vec::new();
            for word in then {
                let count = |prefix| {
                    word.strip_prefix(prefix).and_then(|count: &str| count.parse::<u64>().ok())
                };
                if let Some(count) = count("blocking-") {
                    seen.push(text(stream.blocking_read(count)));
                } else if let Some(count) = count("read-") {
                    seen.push(text(stream.read(count)));
                } else if let Some(size) = count("cut-") {
                    file.set_size(size)?;
                } else if *word == "poll" {
                    ready.block();
                } else {
                    file.write(word.as_bytes(), 0)?;
                }
            }
            Ok(seen.join(" "))
        }),
        _ => return None,
    })
}

fn text(read: Result<Vec<u8>, StreamError>) -> String {
    match read {
        Ok(bytes) => format!("[{}]", String::from_utf8_lossy(&bytes)),
        Err(StreamError::Closed) => "closed".to_owned(),
        Err(StreamError::LastOperationFailed(error)) => error.to_debug_string(),
    }
}

/// Runs a step with the preopened directory of a path and the path below it.
fn on<T>(
    at: &str,
    step: impl FnOnce(&Descriptor, &str) -> Result<T, ErrorCode>,
) -> Result<T, ErrorCode> {
    for (dir, name) in get_directories() {
        if let Some(path) = at.strip_prefix(name.as_str()) {
            return step(&dir, path.strip_prefix('/').unwrap_or(path));
        }
    }
    Err(ErrorCode::NoEntry)
}

fn flags(how: &str) -> PathFlags {
    match how {
        "follow" => PathFlags::SYMLINK_FOLLOW,
        "stay" => PathFlags::empty(),
        other => panic!("neither `follow` nor `stay`: {other}"),
    }
}

fn opened(
    dir: &Descriptor,
    path: &str,
    open: OpenFlags,
    mode: DescriptorFlags,
) -> Result<Descriptor, ErrorCode> {
    dir.open_at(PathFlags::SYMLINK_FOLLOW, if path.is_empty() { "." } else { path }, open, mode)
}

fn time(seconds: &str, nanoseconds: &str) -> NewTimestamp {
    let (seconds, nanoseconds) = (seconds.parse().unwrap(), nanoseconds.parse().unwrap());
    NewTimestamp::Timestamp(Datetime { seconds, nanoseconds })
}

fn stamps(times: [Option<Datetime>; 3]) -> String {
    let nanoseconds =
        |time: Datetime| u128::from(time.seconds) * 1_000_000_000 + u128::from(time.nanoseconds);
    times.map(|time| time.map_or("none".to_owned(), |time| nanoseconds(time).to_string())).join(" ")
}
