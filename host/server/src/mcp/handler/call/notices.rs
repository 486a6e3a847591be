//! Notifies a client of the progress and the log of a running call.
//!
//! A call passes its events to a [`Notices`], which sends `notifications/progress` and
//! `notifications/message` to the client. Progress is sent only if the request has a progress
//! token, and log lines only from the level on that the session or the request sets. Progress that
//! does not increase is dropped. Sending never waits: a client that does not read delays neither
//! the call nor its end.
#![expect(deprecated, reason = "clients of the session era use the log of the protocol")]

use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::{
    LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam,
    ProgressNotification, ProgressNotificationParam, ProgressToken,
};
use toolcell::Event;
use toolcell::call::LogLevel;

use crate::mcp::{request::Request, session::client::Client};

/// Sends notifications about one call to one client.
pub(super) struct Notices {
    client: Client,
    progress: Option<ProgressToken>,
    /// The least progress that is sent next.
    next: AtomicU64,
    /// The least severe log level that the client gets.
    level: Option<LoggingLevel>,
    tool: String,
}

impl Notices {
    /// Creates the notices of a call that answers the request.
    pub(super) fn new(request: &Request, tool: &str) -> Self {
        let level = match request.client.session() {
            Some(session) => Some(*session.level.lock()),
            // Without a session the request itself sets the level.
            None => request.meta.level,
        };
        let (client, progress) = (request.client.clone(), request.meta.progress.clone());
        Self { client, progress, next: AtomicU64::new(0), level, tool: tool.to_owned() }
    }

    /// Returns true if the client asked for any event.
    pub(super) fn is_wanted(&self) -> bool {
        self.progress.is_some() || self.level.is_some()
    }

    /// Sends the event, if the client asked for it.
    pub(super) fn notify(&self, event: Event) {
        match event {
            Event::Progress { done, total, message, .. } => {
                let Some(token) = &self.progress else { return };
                if self.next.fetch_max(done.saturating_add(1), Ordering::Relaxed) > done {
                    return;
                }
                let mut params = ProgressNotificationParam::new(token.clone(), done as f64);
                params.total = total.map(|total| total as f64);
                params.message = message;
                self.client.send_notification(&ProgressNotification::new(params));
            }
            Event::Log { level, message, .. } => {
                let level = severity(level);
                if self.level.is_none_or(|least| (level as u8) < least as u8) {
                    return;
                }
                let mut params = LoggingMessageNotificationParam::new(level, message.into());
                params.logger = Some(self.tool.clone());
                self.client.send_notification(&LoggingMessageNotification::new(params));
            }
            Event::Started { .. } | Event::Denied { .. } | Event::Completed { .. } | _ => {}
        }
    }
}

fn severity(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Trace | LogLevel::Debug => LoggingLevel::Debug,
        LogLevel::Info => LoggingLevel::Info,
        LogLevel::Warn => LoggingLevel::Warning,
        LogLevel::Error => LoggingLevel::Error,
    }
}
