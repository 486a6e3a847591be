//! Compares texts by Unicode's collation algorithm with CLDR's root order, which English uses.

use std::cell::RefCell;
use std::collections::BTreeMap;

use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::provider::{
    Baked, CollationDiacriticsV1, CollationJamoV1, CollationMetadataV1, CollationReorderingV1,
    CollationRootV1, CollationSpecialPrimariesV1, CollationTailoringV1,
};
use icu_collator::{Collator, CollatorPreferences};
use icu_normalizer::provider::{Baked as Normal, NormalizerNfdDataV1, NormalizerNfdTablesV1};
use icu_provider::DataMarker as _;
use icu_provider::{DataError, DataErrorKind, DataProvider, DataRequest, DataResponse};

/// The data of the root order. Data of other languages, 2.7 MB more, is not part of the runtime.
struct Root;

macro_rules! from {
    ($data:expr => $($marker:ty),*) => { $(
        impl DataProvider<$marker> for Root {
            fn load(&self, request: DataRequest<'_>) -> Result<DataResponse<$marker>, DataError> {
                DataProvider::<$marker>::load(&$data, request)
            }
        }
    )* };
}
macro_rules! none {
    ($($marker:ty),*) => { $(
        impl DataProvider<$marker> for Root {
            fn load(&self, request: DataRequest<'_>) -> Result<DataResponse<$marker>, DataError> {
                Err(DataErrorKind::IdentifierNotFound.with_req(<$marker>::INFO, request))
            }
        }
    )* };
}
from!(Baked => CollationRootV1, CollationDiacriticsV1, CollationJamoV1, CollationMetadataV1, CollationSpecialPrimariesV1);
from!(Normal => NormalizerNfdDataV1, NormalizerNfdTablesV1);
none!(CollationTailoringV1, CollationReorderingV1);

thread_local! {
    static USED: RefCell<BTreeMap<String, Collator>> = const { RefCell::new(BTreeMap::new()) };
}

fn collator(kind: &str) -> Option<Collator> {
    let mut words = kind.split(' ');
    let sensitivity = words.next()?;
    let mut options = CollatorOptions::default();
    options.strength = Some(match sensitivity {
        "base" | "case" => Strength::Primary,
        "accent" => Strength::Secondary,
        _ => Strength::Tertiary,
    });
    options.case_level = (sensitivity == "case").then_some(CaseLevel::On);
    let mut preferences = CollatorPreferences::default();
    for word in words {
        match word {
            "numeric" => preferences.numeric_ordering = Some(CollationNumericOrdering::True),
            "upper" => preferences.case_first = Some(CollationCaseFirst::Upper),
            "lower" => preferences.case_first = Some(CollationCaseFirst::Lower),
            "shifted" => options.alternate_handling = Some(AlternateHandling::Shifted),
            _ => {}
        }
    }
    Collator::try_new_unstable(&Root, preferences, options).ok()
}

/// Compares two texts: -1, 0 or 1. `kind` is the sensitivity, followed by any of `numeric`,
/// `upper`, `lower` and `shifted`, separated by blanks.
pub(super) fn compare(kind: String, one: String, other: String) -> i32 {
    USED.with_borrow_mut(|used| {
        if !used.contains_key(&kind) {
            used.extend(collator(&kind).map(|collator| (kind.clone(), collator)));
        }
        used.get(&kind).map_or(0, |collator| collator.as_borrowed().compare(&one, &other) as i32)
    })
}
