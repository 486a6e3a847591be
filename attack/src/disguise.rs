//! Forms in which a secret may leave, and how it is found in all of them.

mod forms;

pub(crate) use forms::disguised;

/// Twelve forms.
pub(crate) const DISGUISES: [&str; 12] = [
    "plain",
    "upper",
    "base64",
    "base64_shifted",
    "base64_url",
    "hex",
    "hex_upper",
    "percent",
    "component",
    "escaped",
    "reversed",
    "halves",
];

/// Finds a value in all its forms.
pub(crate) struct Finder(Vec<(&'static str, String)>);

impl Finder {
    pub(crate) fn of(value: &str) -> Self {
        Self(
            DISGUISES
                .iter()
                .flat_map(|disguise| needles(value, disguise).map(|needle| (*disguise, needle)))
                .collect(),
        )
    }

    /// The form in which the value stands in this text.
    pub(crate) fn find(&self, text: &str) -> Option<&'static str> {
        let text = text.to_lowercase();
        self.0.iter().find(|(_, needle)| text.contains(needle)).map(|(disguise, _)| *disguise)
    }
}

/// What to look for, whatever the letters' case: without what stands beside the value in its
/// encoding, and with escapes escaped once more, as in JSON.
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
    fn every_disguise_is_seen_through() {
        let finder = Finder::of("cnry-Ab3+/=xyZ0123456789");
        for disguise in DISGUISES {
            let text = format!("a{}z", disguised("cnry-Ab3+/=xyZ0123456789", disguise));
            assert!(finder.find(&text).is_some(), "{disguise}");
            assert!(
                finder.find(&serde_json::json!([text]).to_string()).is_some(),
                "{disguise} in JSON"
            );
        }
        assert_eq!(finder.find("nothing of the kind: cnry-Ab3"), None);
    }
}
