//! What ends a command before its time: Ctrl-C and its like. And what has to be tidied up whenever one ends.
//!
//! Invariants: the process ends as the signal would have ended it, so that a shell sees which it was, and its temporary files
//! go first; calls are asked to end, and are ended by force after [`GRACE`], so that each has its result; a signal that was
//! ignored when the command began stays ignored (`nohup`, jobs in the background of a script).

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tempfile::TempDir;
use toolcell::{AbortSignal, remove_tree};

use crate::files;
use crate::printer::Printer;

/// Time for a call that was asked to end: less than a person or a supervisor waits before something stronger comes.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// Time after that to print what came of the calls that were ended. Then the process ends, whatever it does.
const LAST: Duration = Duration::from_secs(1);
/// Attempts at removing what cells that still run may be adding to.
const ATTEMPTS: usize = 5;

/// One per process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<State>);

struct State {
    printer: Printer,
    /// That the calls that are being made should end.
    wish: AbortSignal,
    /// Somebody listens to it.
    asked: AtomicBool,
    /// Held by whoever ends the process.
    ending: Mutex<Ending>,
}

struct Ending {
    /// Where this process and its children have their temporary files.
    temporary: Option<TempDir>,
    signal: Option<i32>,
}

impl Interrupt {
    /// Listens to signals from here on, and keeps temporary files in a directory of this process's own: neither cells that
    /// still run nor children that are killed tidy up.
    pub(crate) fn begin(printer: &Printer) -> Self {
        let made = tempfile::Builder::new().prefix("toolcell-").permissions(Permissions::from_mode(0o700)).tempdir();
        // Without one, what needs it says so.
        let temporary = made.ok().filter(|made| tempfile::env::override_temp_dir(made.path()).is_ok());
        let (wish, asked) = (AbortSignal::new(), AtomicBool::new(false));
        let ending = Mutex::new(Ending { temporary, signal: None });
        let interrupt = Self(Arc::new(State { printer: printer.clone(), wish, asked, ending }));
        let heard = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !files::ignores(*signal));
        let (heard, listening) = (heard.collect::<Vec<_>>(), interrupt.clone());
        // Signals that no thread hears end the process as ever.
        let hear = move || Signals::new(heard).map(|signals| listening.hear(signals));
        drop(thread::Builder::new().name("toolcell-signals".into()).spawn(hear));
        interrupt
    }

    /// The wish that is uttered by the first signal from here on; the next one ends the process.
    pub(crate) fn wish(&self) -> AbortSignal {
        self.0.asked.store(true, Ordering::SeqCst);
        self.0.wish.clone()
    }

    fn hear(self, mut signals: Signals) {
        for signal in signals.forever() {
            let is_first = self.0.ending.lock().signal.replace(signal).is_none();
            if !(is_first && self.0.asked.load(Ordering::SeqCst)) {
                return self.end();
            }
            self.0.wish.raise();
            let words =
                format!("what runs was asked to end, and has {} seconds; once more ends it now", GRACE.as_secs());
            self.0.printer.note("interrupted", &words);
            let later = self.clone();
            let waits = move || {
                thread::sleep(GRACE + LAST);
                later.end();
            };
            drop(thread::Builder::new().name("toolcell-grace".into()).spawn(waits));
        }
    }

    /// Removes what is temporary, and ends the process where a signal said so.
    pub(crate) fn end(&self) {
        let mut ending = self.0.ending.lock();
        if let Some(temporary) = ending.temporary.take() {
            remove(&temporary.keep());
        }
        if let Some(signal) = ending.signal {
            self.0.printer.clear();
            let _ = emulate_default_handler(signal);
        }
    }
}

fn remove(path: &Path) {
    for _ in 0..ATTEMPTS {
        match remove_tree(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {}
            Ok(()) | Err(_) => return,
        }
    }
    tracing::warn!(path = %path.display(), "temporary files could not be removed");
}
