//! Checks of the repository itself: its rules, its pages, its examples, and the proof that each
//! control matters.

mod cases;
mod causes;
mod controls;
mod docs;
mod examples;
mod tidy;
