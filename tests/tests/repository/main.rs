//! Checks of the repository itself: its rules, its pages, its examples, and the tests of its controls.

mod cases;
mod causes;
mod controls;
mod docs;
mod examples;
mod tidy;
