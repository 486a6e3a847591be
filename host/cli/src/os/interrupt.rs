//! Handles Ctrl-C, SIGTERM and SIGHUP, and removes temporary files whenever a command ends.
//!
//! `main` creates one [`Interrupt`]; a thread of it waits for signals. A command that makes calls
//! takes an abort signal from it. At the first signal of the system the calls are asked to end, and
//! are ended by force after [`GRACE`], so that each has its result; a second one ends the command.
//! A run that is given up has [`FLUSH`] to print the messages of its calls. A server gives its
//! calls a time of its own.
//!
//! The process ends by the default action of the signal, so that a shell sees which one it was; its
//! temporary files are removed first. A signal that was ignored when the command began stays
//! ignored (`nohup`, background jobs of a script).

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use toolcell::AbortSignal;
use toolcell::files::{TemporaryDirectory, remove_tree};

use super::files;
use crate::print::Printer;

/// Grace period of a call that was asked to end: less than a person or a supervisor waits before a
/// stronger signal.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// Time after the grace period for the results of calls that were ended by force. Then the run is
/// given up.
const LAST: Duration = Duration::from_secs(1);
/// Time in which a run that is given up prints the messages of its calls. A reader that does not
/// read gets as much as fits a pipe.
const FLUSH: Duration = Duration::from_secs(1);
/// Attempts to remove a directory to which running cells may still write: three seconds in all,
/// because the cells have the lowest priority on a busy machine.
const ATTEMPTS: usize = 150;
/// Time between two attempts.
const BETWEEN: Duration = Duration::from_millis(20);

/// The signal handling of this process; one instance. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<State>);

struct State {
    printer: Printer,
    /// Raised when running calls should end.
    abort: AbortSignal,
    /// True while a caller listens to `abort`.
    is_listening: AtomicBool,
    /// Time that a server gives its calls, while there is one.
    drains: Mutex<Option<Duration>>,
    /// Raised when the run is no longer waited for.
    given_up: AbortSignal,
    /// True if a run listens to `given_up` and then prints its messages.
    flushes: AtomicBool,
    /// Reservation by the thread that ends the process.
    ending: Mutex<Ending>,
}

struct Ending {
    /// Directory of the temporary files of this process and its children.
    temporary: Option<TemporaryDirectory>,
    signal: Option<i32>,
}

impl Interrupt {
    /// Starts to listen for signals. Moves temporary files to a directory of this process's own,
    /// because neither running cells nor killed children remove theirs.
    pub(crate) fn begin(printer: &Printer) -> Self {
        // Removes directories that killed commands left behind.
        TemporaryDirectory::collect();
        // If the directory cannot be created, the code that needs it reports the error.
        let temporary = TemporaryDirectory::new()
            .ok()
            .filter(|made| tempfile::env::override_temp_dir(made.path()).is_ok());
        let interrupt = Self(Arc::new(State {
            printer: printer.clone(),
            abort: AbortSignal::new(),
            is_listening: AtomicBool::new(false),
            drains: Mutex::new(None),
            given_up: AbortSignal::new(),
            flushes: AtomicBool::new(false),
            ending: Mutex::new(Ending { temporary, signal: None }),
        }));
        let heard = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !files::ignores(*signal));
        let (heard, listening) = (heard.collect::<Vec<_>>(), interrupt.clone());
        // If the thread does not start, signals have their default action.
        let (begun, begins) = mpsc::channel::<()>();
        let hear = move || {
            let signals = Signals::new(heard);
            drop(begun);
            signals.map(|signals| listening.handle_signals(signals))
        };
        drop(thread::Builder::new().name("toolcell-signals".into()).spawn(hear));
        // Waits until the thread listens, so that a signal during a call is handled, however busy
        // the machine is.
        let _ = begins.recv();
        interrupt
    }

    /// Returns a signal for the running calls. The first process signal from here on raises it; the
    /// next one ends the process.
    pub(crate) fn abort_signal(&self) -> AbortSignal {
        self.0.is_listening.store(true, Ordering::SeqCst);
        self.0.abort.clone()
    }

    /// Returns the signal for a server, which itself gives its calls this long. The next process
    /// signal ends the process.
    pub(crate) fn drain(&self, time: Duration) -> AbortSignal {
        *self.0.drains.lock() = Some(time);
        self.abort_signal()
    }

    /// Records that the server has shut down in order: the process ends normally, and not by the
    /// signal.
    pub(crate) fn drained(&self) {
        self.0.ending.lock().signal = None;
    }

    /// Records that no call runs until the next [`abort_signal`](Self::abort_signal): a signal ends
    /// the process at once.
    pub(crate) fn stop_listening(&self) {
        self.0.is_listening.store(false, Ordering::SeqCst);
    }

    /// Returns a signal that is raised when the run is given up: by the second process signal, or
    /// some time after [`GRACE`]. The run then has [`FLUSH`] to print its messages. If no run asked
    /// for this signal, the process ends instead.
    pub(crate) fn give_up_signal(&self) -> AbortSignal {
        self.0.flushes.store(true, Ordering::SeqCst);
        self.0.given_up.clone()
    }

    fn handle_signals(self, mut signals: Signals) {
        for signal in signals.forever() {
            let is_first = self.0.ending.lock().signal.replace(signal).is_none();
            if !(is_first && self.0.is_listening.load(Ordering::SeqCst)) {
                if self.0.given_up.is_raised() {
                    return self.end();
                }
                self.give_up();
                continue;
            }
            self.0.abort.raise();
            if let Some(time) = *self.0.drains.lock() {
                let time = time.as_secs();
                let words =
                    format!("running calls have {time} s to finish; a second signal stops now");
                self.0.printer.labelled("interrupted", &words);
                continue;
            }
            let time = GRACE.as_secs();
            let words = format!("the call has {time} s to finish; press Ctrl-C again to stop now");
            self.0.printer.labelled("interrupted", &words);
            self.later(GRACE + LAST, Self::give_up);
        }
    }

    /// Ends the process once the run has printed its messages, or at once if no run listens.
    fn give_up(&self) {
        if !self.0.flushes.load(Ordering::SeqCst) {
            return self.end();
        }
        if !self.0.given_up.is_raised() {
            self.0.given_up.raise();
            self.later(FLUSH, Self::end);
        }
    }

    fn later(&self, after: Duration, act: impl FnOnce(&Self) + Send + 'static) {
        let interrupt = self.clone();
        let waits = move || {
            thread::sleep(after);
            act(&interrupt);
        };
        drop(thread::Builder::new().name("toolcell-grace".into()).spawn(waits));
    }

    /// Removes temporary files, and ends the process if a signal was received.
    pub(crate) fn end(&self) {
        let mut ending = self.0.ending.lock();
        if let Some(temporary) = ending.temporary.take() {
            remove(temporary.path());
        }
        if let Some(signal) = ending.signal {
            self.0.printer.clear();
            let _ = emulate_default_handler(signal);
        }
    }
}

fn remove(path: &Path) {
    for _ in 0..ATTEMPTS {
        // A cell or a dying child may write to the directory or remove entries at the same time.
        // That is an error too, and the rest is still there.
        if remove_tree(path).is_ok() || !path.exists() {
            return;
        }
        thread::sleep(BETWEEN);
    }
    tracing::warn!(path = %path.display(), "temporary files could not be removed");
}
