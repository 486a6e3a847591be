//! Tests of JSON: the forms of results and events, the pages that describe them, and the forms of
//! providers.

mod forms;
mod providers;
mod written;
