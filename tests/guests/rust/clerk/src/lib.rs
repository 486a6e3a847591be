//! A tool that runs steps on files, environment, clocks and randomness, as its arguments say.

mod raw;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use toolcell_guest::{abort, tool, tools};

/// Each step is a word and what it is about; each answer is what came of it, or the kind of its
/// error.
#[tool]
fn clerk(steps: Vec<Vec<String>>) -> Vec<String> {
    let (mut held, mut streams) = (Vec::new(), Vec::new());
    let step = |step: &Vec<String>| {
        let words: Vec<&str> = step.iter().map(String::as_str).collect();
        let by_name = |held| take(&words, held).unwrap_or_else(|error| kind(&error));
        raw::take(&words, &mut streams).unwrap_or_else(|| by_name(&mut held))
    };
    steps.iter().map(step).collect()
}

tools![clerk];

unsafe extern "C" {
    fn getentropy(bytes: *mut u8, len: usize) -> i32;
}

/// Names an error, also one for which the standard library has no kind on this platform.
/// Source: WASI, `errno`.
fn kind(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(51) => "StorageFull".into(),
        Some(code) if format!("{:?}", error.kind()) == "Uncategorized" => format!("error {code}"),
        _ => format!("{:?}", error.kind()),
    }
}

/// Converts a text to a path, with a byte that is not UTF-8 for each replacement character.
fn path(text: &str) -> PathBuf {
    let mut raw = Vec::new();
    for (index, part) in text.split('\u{fffd}').enumerate() {
        raw.extend((index > 0).then_some(0xff));
        raw.extend_from_slice(part.as_bytes());
    }
    // SAFETY: on this platform a path can be any bytes.
    Path::new(unsafe { OsStr::from_encoded_bytes_unchecked(&raw) }).to_owned()
}

fn bytes(count: &str) -> Vec<u8> {
    vec![b'x'; count.parse().unwrap()]
}

fn take(words: &[&str], held: &mut Vec<File>) -> io::Result<String> {
    let done = |()| "done".to_owned();
    match *words {
        ["read", at] => fs::read(path(at)).map(|read| String::from_utf8_lossy(&read).into_owned()),
        // Reads repeatedly and returns each different result once.
        ["again", at, times] => {
            let reading = || fs::read_to_string(path(at)).unwrap_or_else(|error| kind(&error));
            let seen: BTreeSet<_> = (0..times.parse().unwrap()).map(|_: u32| reading()).collect();
            Ok(seen.into_iter().collect::<Vec<_>>().join(" "))
        }
        ["write", at, count] => fs::write(path(at), bytes(count)).map(done),
        ["append", at, count] => OpenOptions::new()
            .append(true)
            .create(true)
            .open(path(at))?
            .write_all(&bytes(count))
            .map(done),
        ["resize", at, size] => {
            OpenOptions::new().write(true).open(path(at))?.set_len(size.parse().unwrap()).map(done)
        }
        ["hold", at, count] => {
            let mut file = File::create(path(at))?;
            file.write_all(&bytes(count))?;
            held.push(file);
            Ok("done".into())
        }
        ["look", at] => {
            held.push(File::open(path(at))?);
            Ok("done".into())
        }
        ["release"] => {
            held.clear();
            Ok("done".into())
        }
        ["size", at] => fs::symlink_metadata(path(at)).map(|found| found.len().to_string()),
        ["make", at] => fs::create_dir(path(at)).map(done),
        ["unmake", at] => fs::remove_dir(path(at)).map(done),
        ["remove", at] => fs::remove_file(path(at)).map(done),
        ["rename", from, to] => fs::rename(path(from), path(to)).map(done),
        ["link", from, to] => fs::hard_link(path(from), path(to)).map(done),
        #[expect(
            deprecated,
            reason = "the one way to make a symbolic link that is stable on this platform"
        )]
        ["symlink", target, at] => fs::soft_link(target, path(at)).map(done),
        ["follow", at] => fs::read_link(path(at)).map(|target| target.display().to_string()),
        ["list", at] => {
            let names = fs::read_dir(path(at))?
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            let mut names = names.collect::<io::Result<Vec<_>>>()?;
            names.sort();
            Ok(names.join(" "))
        }
        ["times", at, seconds] => {
            let seconds: i64 = seconds.parse().unwrap();
            let since = Duration::from_secs(seconds.unsigned_abs());
            let time = if seconds < 0 {
                UNIX_EPOCH.checked_sub(since)
            } else {
                UNIX_EPOCH.checked_add(since)
            };
            let Some(time) = time else { return Ok("no time".into()) };
            OpenOptions::new().write(true).open(path(at))?.set_modified(time).map(done)
        }
        ["environment"] => {
            let mut all: Vec<_> =
                std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
            all.sort();
            Ok(all.join(" "))
        }
        ["chance"] => {
            let mut bytes = [0_u8; 16];
            // SAFETY: the buffer has this many bytes.
            assert_eq!(unsafe { getentropy(bytes.as_mut_ptr(), bytes.len()) }, 0);
            Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        }
        ["random"] => {
            let mut bytes = [0_u8; 16];
            File::open("/dev/urandom")?.read_exact(&mut bytes)?;
            Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        }
        ["date"] => {
            Ok(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos().to_string())
        }
        ["waits"] => {
            let (date, began) = (SystemTime::now(), Instant::now());
            (0..3_000_000_u64).map(black_box).sum::<u64>();
            let moved = SystemTime::now() != date || began.elapsed() > Duration::ZERO;
            Ok(if moved { "moved" } else { "still" }.into())
        }
        ["listen"] => {
            abort::wait().block();
            Ok("stopped".into())
        }
        ["panic"] => panic!("as told"),
        ["spin"] => loop {
            black_box(0);
        },
        _ => Ok("no such step".into()),
    }
}
