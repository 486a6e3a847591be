//! Matches names with wildcards: `*` is any characters, `?` is any one.

/// Returns true if the name matches the pattern. Takes at most as many steps as the product of both
/// lengths.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Position of the last star, and the position in the name up to which it matches.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, n));
            p += 1;
        } else if pattern.get(p).is_some_and(|c| *c == '?' || *c == name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            (p, n) = (at + 1, taken + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn only_fitting_names_are_accepted() {
        for (pattern, name, expected) in [
            ("*.md", "read.md", true),
            ("*.md", "read.mdx", false),
            ("*.md", ".md", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("?", "ä", true),
            ("*", "", true),
            ("", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("**x", "x", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        assert!(!matches(&"*a".repeat(90), &"a".repeat(80)));
    }
}
