//! Tests that a suffix rule such as `https://.example.com` allows only hosts below that name, with
//! random host names of confusing pieces: other cases, full-width dots, escapes.

use super::*;

/// Number of seeds for host names.
const HOSTS: u64 = 40_000;

#[test]
fn suffix_rule_never_matches_a_foreign_host() {
    let rule: HttpRule = "https://.example.com".parse().unwrap();
    let rights = rights([rule]);
    let pieces = rows::<&str>("capability/http/rules", "suffix_rule_never_matches_a_foreign_host");
    let mut within = 0;
    for seed in 0..HOSTS {
        let mut random = fastrand::Rng::with_seed(seed);
        let host: String =
            (0..random.usize(1..6)).map(|_| pieces[random.usize(..pieces.len())]).collect();
        // The code that connects uses the same parser as the rules.
        let Ok(target) = Target::parse(&format!("https://{host}/")) else { continue };
        let labels: Vec<_> = target.authority().split('.').collect();
        let is_below = labels.ends_with(&["example", "com"]) && labels.len() > 2;
        assert_eq!(allowed(&rights, Method::Get, &target).is_ok(), is_below, "{host}");
        within += u32::from(is_below);
    }
    assert!(within > 100, "{within} of them are below it");
}
