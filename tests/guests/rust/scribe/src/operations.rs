//! File operations as lines of text, by the standard library alone. Compiled into a guest, and into
//! the native test that compares the two.
//!
//! Each line is one operation, and each result is one line. Open files have names. An error is
//! shown by its name, which is the same on every platform; its number is not.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Names of error numbers, with the number on Linux and the one in WASI.
const ERRORS: [(&str, i32, i32); 25] = [
    ("EPERM", 1, 63),
    ("ENOENT", 2, 44),
    ("EIO", 5, 29),
    ("ENXIO", 6, 60),
    ("EBADF", 9, 8),
    ("ENOMEM", 12, 48),
    ("EACCES", 13, 2),
    ("EBUSY", 16, 10),
    ("EEXIST", 17, 20),
    ("EXDEV", 18, 75),
    ("ENOTDIR", 20, 54),
    ("EISDIR", 21, 31),
    ("EINVAL", 22, 28),
    ("EFBIG", 27, 22),
    ("ENOSPC", 28, 51),
    ("ESPIPE", 29, 70),
    ("EROFS", 30, 69),
    ("EMLINK", 31, 34),
    ("ENAMETOOLONG", 36, 37),
    ("ENOSYS", 38, 52),
    ("ENOTEMPTY", 39, 55),
    ("ELOOP", 40, 32),
    ("EOVERFLOW", 75, 61),
    ("EILSEQ", 84, 25),
    ("ENOTSUP", 95, 58),
];

/// Runs a script in a directory. Returns one result for each line.
pub(crate) fn run(root: &Path, script: &[String]) -> Vec<String> {
    let mut place = Place { root: root.to_owned(), open: BTreeMap::new() };
    script.iter().map(|line| place.take(line).unwrap_or_else(|error| name(&error))).collect()
}

fn name(error: &io::Error) -> String {
    let number = |linux, wasi| if cfg!(target_family = "wasm") { wasi } else { linux };
    let known = |raw| ERRORS.iter().find(|(_, linux, wasi)| number(*linux, *wasi) == raw);
    match error.raw_os_error() {
        Some(raw) => {
            known(raw).map_or_else(|| format!("error {raw}"), |(name, ..)| (*name).to_owned())
        }
        None => format!("{:?}", error.kind()),
    }
}

struct Place {
    root: PathBuf,
    open: BTreeMap<String, File>,
}

impl Place {
    /// Joins a path as it is written, including trailing slashes.
    fn at(&self, path: &str) -> PathBuf {
        if path.starts_with('/') {
            return path.into();
        }
        let mut whole = self.root.clone().into_os_string();
        whole.push("/");
        whole.push(path);
        whole.into()
    }

    fn file(&mut self, name: &str) -> io::Result<&mut File> {
        self.open.get_mut(name).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn take(&mut self, line: &str) -> io::Result<String> {
        let words: Vec<_> = line.split(' ').collect();
        let number = |text: &str| text.parse::<u64>().expect("a number");
        match *words {
            ["open", name, flags, path] => {
                let file = options(flags).open(self.at(path))?;
                self.open.insert(name.to_owned(), file);
                done(())
            }
            ["close", name] => {
                self.open.remove(name);
                done(())
            }
            ["read", name, most] => {
                let mut bytes = vec![0; number(most) as usize];
                let read = self.file(name)?.read(&mut bytes)?;
                Ok(shown(&bytes[..read]))
            }
            ["rest", name] => {
                let mut bytes = Vec::new();
                self.file(name)?.read_to_end(&mut bytes)?;
                Ok(shown(&bytes))
            }
            ["write", name, text] => {
                self.file(name)?.write(&bytes(text)).map(|count| count.to_string())
            }
            ["seek", name, from, by] => {
                let by = by.parse::<i64>().expect("a number");
                let to = match from {
                    "start" => SeekFrom::Start(by.unsigned_abs()),
                    "end" => SeekFrom::End(by),
                    _ => SeekFrom::Current(by),
                };
                self.file(name)?.seek(to).map(|at| at.to_string())
            }
            ["where", name] => self.file(name)?.stream_position().map(|at| at.to_string()),
            ["resize", name, size] => self.file(name)?.set_len(number(size)).and_then(done),
            ["sync", name] => self.file(name)?.sync_all().and_then(done),
            ["sync-data", name] => self.file(name)?.sync_data().and_then(done),
            ["look", name] => self.file(name)?.metadata().map(|found| look(&found)),
            ["stamp", name, accessed, modified] => {
                let at = |seconds| UNIX_EPOCH + Duration::from_secs(number(seconds));
                let times = FileTimes::new().set_accessed(at(accessed)).set_modified(at(modified));
                self.file(name)?.set_times(times).and_then(done)
            }
            ["stamps", path] => {
                let found = fs::metadata(self.at(path))?;
                let since = |time: io::Result<std::time::SystemTime>| {
                    time.map(|time| {
                        time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
                    })
                };
                Ok(format!("{} {}", since(found.accessed())?, since(found.modified())?))
            }
            ["put", path, text] => fs::write(self.at(path), bytes(text)).and_then(done),
            ["get", path] => fs::read(self.at(path)).map(|read| shown(&read)),
            ["stat", path] => fs::metadata(self.at(path)).map(|found| look(&found)),
            ["lstat", path] => fs::symlink_metadata(self.at(path)).map(|found| look(&found)),
            ["exists", path] => fs::exists(self.at(path)).map(|is| is.to_string()),
            ["mkdir", path] => fs::create_dir(self.at(path)).and_then(done),
            ["mkdirs", path] => fs::create_dir_all(self.at(path)).and_then(done),
            ["rmdir", path] => fs::remove_dir(self.at(path)).and_then(done),
            ["rmdirs", path] => fs::remove_dir_all(self.at(path)).and_then(done),
            ["rm", path] => fs::remove_file(self.at(path)).and_then(done),
            ["mv", from, to] => fs::rename(self.at(from), self.at(to)).and_then(done),
            ["cp", from, to] => fs::copy(self.at(from), self.at(to)).map(|bytes| bytes.to_string()),
            ["ln", from, to] => fs::hard_link(self.at(from), self.at(to)).and_then(done),
            #[allow(
                deprecated,
                reason = "the one way to make a symbolic link that is stable on every platform"
            )]
            ["link", target, path] => fs::soft_link(target, self.at(path)).and_then(done),
            ["follow", path] => {
                fs::read_link(self.at(path)).map(|target| target.display().to_string())
            }
            ["ls", path] => {
                let entry = |entry: io::Result<fs::DirEntry>| {
                    let entry = entry?;
                    let kind = kind(&entry.file_type()?);
                    Ok(format!("{}:{kind}", entry.file_name().to_string_lossy()))
                };
                let mut names =
                    fs::read_dir(self.at(path))?.map(entry).collect::<io::Result<Vec<_>>>()?;
                names.sort();
                Ok(names.join(" "))
            }
            _ => panic!("no such operation: {line}"),
        }
    }
}

fn done((): ()) -> io::Result<String> {
    Ok("done".to_owned())
}

/// Options for opening: `r`, `w` and `a` are the modes, `t` truncates, `c` creates, `x` creates and
/// fails if the file exists.
fn options(flags: &str) -> OpenOptions {
    let has = |flag| flags.contains(flag);
    let mut options = OpenOptions::new();
    options.read(has('r')).write(has('w')).append(has('a'));
    options.truncate(has('t')).create(has('c')).create_new(has('x'));
    options
}

/// Returns the bytes of a text, or a repeated byte: `x*100`.
fn bytes(text: &str) -> Vec<u8> {
    match text.split_once('*') {
        Some((byte, count)) => byte.repeat(count.parse().expect("a number")).into_bytes(),
        None => text.as_bytes().to_vec(),
    }
}

/// Shows bytes; runs of 8 or more equal bytes are counted.
fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for run in bytes.chunk_by(|one, next| one == next) {
        let byte = run[0].escape_ascii();
        match run.len() {
            1..=7 => text.extend(std::iter::repeat_n(byte.to_string(), run.len())),
            count => text.push_str(&format!("({byte}*{count})")),
        }
    }
    format!("[{text}]")
}

fn kind(kind: &fs::FileType) -> &'static str {
    if kind.is_dir() {
        "directory"
    } else if kind.is_symlink() {
        "link"
    } else if kind.is_file() {
        "file"
    } else {
        "other"
    }
}

/// Describes a file; without the size for a directory, because it depends on the file system.
fn look(found: &fs::Metadata) -> String {
    let kind = kind(&found.file_type());
    if found.is_dir() { kind.to_owned() } else { format!("{kind} {}", found.len()) }
}
