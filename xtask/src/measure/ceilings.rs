//! Checks the exactly counted numbers against their ceilings: a number may shrink, and then its
//! ceiling must be lowered.

use super::exact::{CYCLES, ENTRIES, Exact, ROOT, exact};
use super::repository::Repository;

/// The numbers above their goals, as `kind: place`. A number that is not listed must stay within
/// its goal.
const CEILINGS: &[(&str, usize)] = &[];

/// Returns a message with the remedy for each number that differs from the table.
fn violations(numbers: &[Exact], ceilings: &[(&str, usize)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for number in numbers {
        let (name, now) = (format!("{}: {}", number.kind, number.place), number.now);
        let ceiling =
            ceilings.iter().find(|(listed, _)| *listed == name).map(|(_, ceiling)| *ceiling);
        let most = ceiling.unwrap_or(number.goal);
        if now > most {
            complaints.push(format!(
                "{name} grew to {now}, and {most} is the most: {}",
                remedy(number.kind)
            ));
        } else if ceiling.is_some() && now <= number.goal {
            complaints
                .push(format!("{name} reached its goal with {now}: remove its line from CEILINGS"));
        } else if ceiling.is_some() && now < most {
            complaints.push(format!("{name} shrank: write `(\"{name}\", {now}),` in CEILINGS"));
        }
    }
    let counted = |name: &str| {
        numbers.iter().any(|number| format!("{}: {}", number.kind, number.place) == name)
    };
    let gone = ceilings.iter().filter(|(name, _)| !counted(name));
    complaints.extend(
        gone.map(|(name, _)| format!("{name} is no longer there: remove its line from CEILINGS")),
    );
    complaints
}

/// Returns the change that brings a number of this kind down.
fn remedy(kind: &str) -> &'static str {
    match kind {
        CYCLES => {
            "move what both sides need into a module above them; `cargo xtask measure` lists the members"
        }
        ENTRIES => "give what belongs together a folder of its own",
        ROOT => "export it from a public module, not from the root",
        _ => "use the better word that `cargo xtask measure` prints beside it",
    }
}

#[test]
fn numbers_stay_at_their_ceilings() {
    let repository = Repository::read(crate::shell::root()).expect("the repository is readable");
    let exact = exact(&repository).expect("the lists of public names");
    let complaints = violations(&exact, CEILINGS);
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn each_complaint_says_its_remedy() {
    let numbers = |now| [Exact::new("entries of a source folder", "a/src", now, 14)];
    let listed = [("entries of a source folder: a/src", 20)];
    for (now, ceilings, expected) in [
        (14, &[][..], None),
        (20, &listed[..], None),
        (15, &[][..], Some("grew to 15, and 14 is the most: give")),
        (21, &listed[..], Some("grew to 21, and 20 is the most: give")),
        (19, &listed[..], Some("write `(\"entries of a source folder: a/src\", 19),` in CEILINGS")),
        (14, &listed[..], Some("reached its goal with 14: remove its line")),
    ] {
        let found = violations(&numbers(now), ceilings);
        let right =
            expected.map_or(found.is_empty(), |text| found.len() == 1 && found[0].contains(text));
        assert!(right, "{now}: {found:?}");
    }
    assert!(violations(&[], &listed)[0].contains("is no longer there: remove its line"));
}
