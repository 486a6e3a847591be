//! Encodings in which a secret may leave, and a search for all of them.

mod forms;

use std::sync::LazyLock;

pub(crate) use forms::disguised;

/// The encodings.
pub(crate) static DISGUISES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let disguises = "plain upper base64 base64_shifted base64_url hex hex_upper percent component \
                     escaped reversed halves";
    disguises.split(' ').collect()
});

/// Finds a value in all its encodings.
pub(crate) struct Finder(Vec<(&'static str, String)>);

impl Finder {
    pub(crate) fn of(value: &str) -> Self {
        let all = |disguise| needles(value, disguise).map(move |needle| (disguise, needle));
        Self(DISGUISES.iter().copied().flat_map(all).collect())
    }

    /// Returns the encoding in which the text contains the value.
    pub(crate) fn find(&self, text: &str) -> Option<&'static str> {
        let text = text.to_lowercase();
        self.0.iter().find(|(_, needle)| text.contains(needle)).map(|(disguise, _)| *disguise)
    }
}

/// Lower-case strings to search for: without the characters at the edges that depend on what is
/// encoded beside the value, and also with escapes escaped again (as in JSON) and spaces as `%20`.
fn needles(value: &str, disguise: &str) -> impl Iterator<Item = String> {
    let whole = disguised(value, disguise).to_lowercase();
    let core = match disguise {
        "base64" | "base64_url" => whole[..whole.trim_end_matches('=').len() - 2].to_owned(),
        "base64_shifted" => whole[2..whole.trim_end_matches('=').len() - 2].to_owned(),
        _ => whole,
    };
    let again = core.replace('\\', "\\\\");
    let percent = core.replace(' ', "%20");
    [core, again, percent].into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finder_detects_every_disguise() {
        let finder = Finder::of("cnry-Ab3+/=xyZ0123456789");
        for disguise in DISGUISES.iter() {
            let text = format!("a{}z", disguised("cnry-Ab3+/=xyZ0123456789", disguise));
            assert!(finder.find(&text).is_some(), "{disguise}");
            let json = serde_json::json!([text]).to_string();
            assert!(finder.find(&json).is_some(), "{disguise} in JSON");
        }
        assert_eq!(finder.find("nothing of the kind: cnry-Ab3"), None);
    }
}
