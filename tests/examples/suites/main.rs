//! `cargo xtask suites DIR`: public test suites from a folder. `--verbose` prints each case that is
//! not right.

mod schemas;
mod urls;

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("name the folder of the suites")?);
    let is_verbose = arguments.next().is_some_and(|word| word == "--verbose");
    let (below, urls) = (folder.join("json-schema"), folder.join("url"));
    let has_urls = urls.is_dir();
    if has_urls {
        urls::run(&urls, is_verbose)?;
    }
    if below.is_dir() || !has_urls {
        schemas::run(if below.is_dir() { &below } else { &folder }, is_verbose)?;
    }
    Ok(())
}
