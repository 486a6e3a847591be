//! What ends a command before its time: Ctrl-C and its like. And what has to be tidied up whenever
//! one ends.
//!
//! Invariants: the process ends as the signal would have ended it, so that a shell sees which it
//! was, and its temporary files go first; calls are asked to end, and are ended by force after
//! [`GRACE`], so that each has its result; a run that is given up has [`FLUSH`] to print what came
//! of its calls; a signal that was ignored when the command began stays ignored (`nohup`, jobs in
//! the background of a script).

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use toolcell::{AbortSignal, TemporaryDirectory, remove_tree};

use crate::files;
use crate::printer::Printer;

/// Time for a call that was asked to end: less than a person or a supervisor waits before something
/// stronger comes.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// Time after that for what came of the calls that were ended by force. Then the run is given up.
const LAST: Duration = Duration::from_secs(1);
/// Time for a run that is given up to print the messages of its calls. A reader who does not read
/// gets what fits a pipe.
const FLUSH: Duration = Duration::from_secs(1);
/// Attempts at removing what cells that still run may be adding to: three seconds, because they
/// have the lowest priority on a machine that is busy.
const ATTEMPTS: usize = 150;
/// Time between two of them.
const BETWEEN: Duration = Duration::from_millis(20);

/// One per process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<State>);

struct State {
    printer: Printer,
    /// That the calls that are being made should end.
    wish: AbortSignal,
    /// A caller listens to it.
    asked: AtomicBool,
    /// Time that a server gives its calls, while there is one.
    drains: Mutex<Option<Duration>>,
    /// That what runs is not waited for any longer.
    given_up: AbortSignal,
    /// A run listens to that, and prints its messages then.
    flushes: AtomicBool,
    /// Held by the thread that ends the process.
    ending: Mutex<Ending>,
}

struct Ending {
    /// Where this process and its children have their temporary files.
    temporary: Option<TemporaryDirectory>,
    signal: Option<i32>,
}

impl Interrupt {
    /// Listens to signals from here on, and keeps temporary files in a directory of this process's
    /// own: neither cells that still run nor children that are killed tidy up.
    pub(crate) fn begin(printer: &Printer) -> Self {
        // What commands have left that were killed.
        TemporaryDirectory::collect();
        // Without one, what needs it says so.
        let temporary = TemporaryDirectory::new()
            .ok()
            .filter(|made| tempfile::env::override_temp_dir(made.path()).is_ok());
        let interrupt = Self(Arc::new(State {
            printer: printer.clone(),
            wish: AbortSignal::new(),
            asked: AtomicBool::new(false),
            drains: Mutex::new(None),
            given_up: AbortSignal::new(),
            flushes: AtomicBool::new(false),
            ending: Mutex::new(Ending { temporary, signal: None }),
        }));
        let heard = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !files::ignores(*signal));
        let (heard, listening) = (heard.collect::<Vec<_>>(), interrupt.clone());
        // Signals that no thread hears end the process as ever.
        let (begun, begins) = mpsc::channel::<()>();
        let hear = move || {
            let signals = Signals::new(heard);
            drop(begun);
            signals.map(|signals| listening.hear(signals))
        };
        drop(thread::Builder::new().name("toolcell-signals".into()).spawn(hear));
        // Until it listens: a signal that comes while a call runs is heard, however busy the
        // machine is.
        let _ = begins.recv();
        interrupt
    }

    /// Raised by the first signal from here on, to end the calls; the next signal ends the process.
    pub(crate) fn wish(&self) -> AbortSignal {
        self.0.asked.store(true, Ordering::SeqCst);
        self.0.wish.clone()
    }

    /// The same for a server, which gives its calls this long by itself. The next signal ends the
    /// process.
    pub(crate) fn drain(&self, time: Duration) -> AbortSignal {
        *self.0.drains.lock() = Some(time);
        self.wish()
    }

    /// Tells that the server has ended in order: the process ends as one that is done, and not by
    /// the signal.
    pub(crate) fn drained(&self) {
        self.0.ending.lock().signal = None;
    }

    /// Tells that no call is being made any more, until the next [`wish`](Self::wish): a signal
    /// ends the process at once.
    pub(crate) fn idle(&self) {
        self.0.asked.store(false, Ordering::SeqCst);
    }

    /// Raised when the run is given up, by the second signal or some time after [`GRACE`]. Who asks
    /// for it prints what there is then, and has [`FLUSH`] for that; without a run that asks, the
    /// process ends instead.
    pub(crate) fn given_up(&self) -> AbortSignal {
        self.0.flushes.store(true, Ordering::SeqCst);
        self.0.given_up.clone()
    }

    fn hear(self, mut signals: Signals) {
        for signal in signals.forever() {
            let is_first = self.0.ending.lock().signal.replace(signal).is_none();
            if !(is_first && self.0.asked.load(Ordering::SeqCst)) {
                if self.0.given_up.is_raised() {
                    return self.end();
                }
                self.give_up();
                continue;
            }
            self.0.wish.raise();
            if let Some(time) = *self.0.drains.lock() {
                let words = format!(
                    "running calls have {} s to finish; a second signal stops now",
                    time.as_secs()
                );
                self.0.printer.note("interrupted", &words);
                continue;
            }
            let words = format!(
                "the call has {} s to finish; press Ctrl-C again to stop now",
                GRACE.as_secs()
            );
            self.0.printer.note("interrupted", &words);
            self.later(GRACE + LAST, Self::give_up);
        }
    }

    /// Ends the process once the run has printed its messages, or at once where no run would.
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

    /// Removes what is temporary, and ends the process where a signal said so.
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
        // A cell, or a child that dies, may write to it meanwhile, or remove what is in it: that is
        // an error too, and the rest is there still.
        if remove_tree(path).is_ok() || !path.exists() {
            return;
        }
        thread::sleep(BETWEEN);
    }
    tracing::warn!(path = %path.display(), "temporary files could not be removed");
}
