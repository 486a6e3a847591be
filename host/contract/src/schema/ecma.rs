//! Translates the regular expressions of JSON Schema into the syntax of Rust's regex engines.
//!
//! JSON Schema uses the syntax of JavaScript (ECMA-262), read here without flags, `\u{…}` and
//! `\p{…}` included. [`translate`] takes a pattern and returns a [`Translation`] for the crate
//! `regex`, or for `fancy-regex` if the pattern has look-around or back-references, which need
//! backtracking. It also returns the exponent of the matching cost. `None` means that the pattern
//! is not ECMA-262. Not here: compiling and matching, in `pattern`.
//!
//! Source: ECMA-262, section 22.2 and annex B.1.2.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// A pattern in the syntax of the engine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translation {
    pub(super) text: String,
    /// True if it has look-around or back-references, which only a backtracking engine can match.
    pub(super) backtracks: bool,
    /// The exponent of the cost: before it backtracks for the first time, a match takes as many
    /// steps as the text has bytes, to this power. A look-around inside a repetition runs again at
    /// each repetition. What is reached again after each step back counts like that if it can read
    /// far.
    pub(super) power: u32,
}

const DIGITS: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str =
    r"\x09-\x0D\x20\xA0\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}";
const NEWLINE: &str = r"\n\r\x{2028}\x{2029}";
const NONE: &str = r"[^\x00-\x{10FFFF}]";

/// Translates a pattern into the engine's syntax. `None` if it is not ECMA-262.
pub(super) fn translate(pattern: &str) -> Option<Translation> {
    let spelled = Translator::new(pattern, false).translate()?;
    if spelled.backtracks { Translator::new(pattern, true).translate() } else { Some(spelled) }
}

/// Translates a pattern, always for the backtracking engine.
pub(super) fn translate_backtracking(pattern: &str) -> Option<Translation> {
    Translator::new(pattern, true).translate()
}

/// An open group, the exponent of the cost of what precedes it, and the state before it.
struct Group {
    is_look: bool,
    end: &'static str,
    before: u32,
    ways: u32,
    /// The number of ways through the branches before the last one.
    other_ways: u32,
    reach: u32,
    part: Part,
}

/// What is known of the open look-around, or of the whole pattern outside of one. The engine hands
/// all that follows the last look-around or back-reference to a linear engine, at once.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// The linear engine may begin here many times.
    is_repeated: bool,
    /// It has a long repetition after such a place.
    has_far: bool,
    /// Something follows that repetition. If it does not match, the text is read again from the
    /// next place.
    rereads: bool,
    /// It, or its open group, has a look-around or a back-reference so far. Without one, it is
    /// matched in linear time.
    backtracks: bool,
}

/// A place that a match can reach in more ways is reached many times.
const FEW: u32 = 4;
/// The number of ways without such a bound.
const MANY: u32 = FEW + 1;

/// A look-around reads far if it can repeat more characters than this.
const NEAR: u32 = 16;
/// The reach of a repetition without such a bound.
const FAR: u32 = NEAR + 1;

struct Translator<'a> {
    rest: Peekable<Chars<'a>>,
    is_backtracking: bool,
    out: String,
    open: Vec<Group>,
    /// The exponents of the cost of the open group so far, and of its last part: 0 without a
    /// look-around.
    power: u32,
    last: u32,
    /// The number of ways in which a match can reach this place, and come back to it, roughly.
    ways: u32,
    /// The number of characters that the open look-around can repeat, roughly.
    reach: u32,
    part: Part,
    /// True if the last part is, or has in it, a look-around or a back-reference.
    is_hard: bool,
    /// True if the last part can be repeated.
    is_atom: bool,
    backtracks: bool,
    groups: usize,
    referred: usize,
    /// The numbers of the named groups so far, and the names that are referred to.
    names: BTreeMap<String, usize>,
    asked: Vec<String>,
}

/// The meaning of an escape in a class.
enum Member {
    One(u32),
    /// Many characters, as the inside of a class in the engine's syntax.
    Many(String),
}

impl<'a> Translator<'a> {
    fn new(pattern: &'a str, fancy: bool) -> Self {
        let rest = pattern.chars().peekable();
        let (out, open) = (String::with_capacity(pattern.len()), Vec::new());
        // A search begins at each place of the text.
        let is_repeated = !pattern.starts_with('^');
        Self {
            rest,
            is_backtracking: fancy,
            out,
            open,
            power: 0,
            last: 0,
            ways: if is_repeated { MANY } else { 1 },
            reach: 0,
            part: Part { is_repeated, ..Part::default() },
            is_hard: false,
            is_atom: false,
            backtracks: false,
            groups: 0,
            referred: 0,
            names: BTreeMap::new(),
            asked: Vec::new(),
        }
    }

    fn translate(mut self) -> Option<Translation> {
        while let Some(c) = self.rest.next() {
            match c {
                '(' => self.group()?,
                ')' => self.close()?,
                '|' => self.branch(),
                '^' | '$' => self.assertion(c.encode_utf8(&mut [0; 4])),
                '.' => self.atom(&format!("[^{NEWLINE}]")),
                '[' => self.class()?,
                '*' | '+' | '?' => {
                    let (most, ways) = if c == '?' { (1, 2) } else { (FAR, MANY) };
                    self.reaches(most);
                    self.out.push(c);
                    self.repeated(c != '?', ways)?;
                }
                '{' => match self.counted() {
                    Some((counted, most, ways)) => {
                        let is_group = self.out.ends_with(')');
                        let (most, ways) = if is_group { (FAR, MANY) } else { (most, ways) };
                        self.reaches(most);
                        self.out.push_str(&counted);
                        self.repeated(true, ways)?;
                    }
                    None => self.atom(r"\{"),
                },
                '\\' => self.escape()?,
                other => self.one(u32::from(other)),
            }
        }
        let is_known = |name: &String| self.names.contains_key(name);
        let is_whole =
            self.open.is_empty() && self.referred <= self.groups && self.asked.iter().all(is_known);
        is_whole.then(|| Translation {
            text: self.out,
            backtracks: self.backtracks,
            power: self.power.max(1 + u32::from(self.part.rereads && self.part.backtracks)),
        })
    }

    fn consume(&mut self, wanted: char) -> bool {
        self.rest.next_if_eq(&wanted).is_some()
    }

    /// Reads the text between brackets. `None`, with nothing read, if there is no opening one.
    fn bracketed(&mut self, open: char, close: char) -> Option<String> {
        self.consume(open).then(|| self.rest.by_ref().take_while(|c| *c != close).collect())
    }

    fn atom(&mut self, text: &str) {
        self.assertion(text);
        self.is_atom = true;
    }

    fn assertion(&mut self, text: &str) {
        self.part.rereads |= self.part.has_far;
        self.part.is_repeated |= std::mem::take(&mut self.is_hard) && self.ways > FEW;
        self.out.push_str(text);
        (self.is_atom, self.last) = (false, 0);
    }

    fn branch(&mut self) {
        match self.open.last_mut() {
            Some(group) => {
                group.other_ways = group.other_ways.saturating_add(self.ways);
                self.ways = group.ways;
            }
            // Only the first branch has the `^`.
            None => (self.ways, self.part.is_repeated) = (MANY, true),
        }
        self.out.push('|');
        (self.is_atom, self.is_hard, self.last) = (false, false, 0);
    }

    fn one(&mut self, character: u32) {
        let text = literal(character);
        self.atom(&text);
    }

    fn group(&mut self) -> Option<()> {
        let (mut start, mut end, mut is_look) = ("(".to_owned(), ")", false);
        if self.consume('?') {
            start.push('?');
            let mut kind = self.rest.next()?;
            start.push(kind);
            if kind == '<' {
                kind = self.rest.next()?;
                start.push(kind);
                if !matches!(kind, '=' | '!') {
                    self.named_group(kind)?;
                    "(".clone_into(&mut start);
                    kind = ':';
                }
            }
            is_look = kind != ':';
            if !matches!(kind, ':' | '=' | '!') {
                return None;
            }
            if kind == '=' {
                // A match does not come back into a look-around. In this engine, it would.
                start.insert_str(0, "(?>");
                end = "))";
            }
        } else {
            self.groups += 1;
        }
        self.assertion(&start);
        let (ways, reach) = (self.ways, std::mem::take(&mut self.reach));
        let (before, part) = (std::mem::take(&mut self.power), self.part);
        self.open.push(Group { is_look, end, before, ways, other_ways: 0, reach, part });
        self.part = if is_look { Part::default() } else { Part { backtracks: false, ..self.part } };
        Some(())
    }

    /// Reads the rest of a group's name, which begins with this character. The engine gets numbers
    /// only: it does not accept both in one pattern.
    fn named_group(&mut self, first: char) -> Option<()> {
        let mut name = String::new();
        let mut next = first;
        while next != '>' {
            let is_part = next.is_alphanumeric() || matches!(next, '_' | '$');
            if !is_part || name.is_empty() && next.is_numeric() {
                return None;
            }
            name.push(next);
            next = self.rest.next()?;
        }
        self.groups += 1;
        let is_new = !name.is_empty() && self.names.insert(name, self.groups).is_none();
        is_new.then_some(())
    }

    /// Writes a reference to a group. A group that did not take part in the match matches the empty
    /// text.
    fn reference(&mut self, number: usize) {
        self.atom(&format!(r"(?:(?({number})\{number}))"));
        self.hard();
    }

    fn hard(&mut self) {
        (self.backtracks, self.part.backtracks, self.is_hard) = (true, true, true);
    }

    fn close(&mut self) -> Option<()> {
        let Group { is_look, end, before, ways, other_ways, reach, part } = self.open.pop()?;
        self.out.push_str(end);
        (self.is_atom, self.last) = (true, self.power);
        if is_look {
            let again =
                ways > FEW && self.reach > NEAR || self.part.rereads && self.part.backtracks;
            self.last = self.power.max(1) + u32::from(again);
            (self.part, self.ways) = (part, ways);
            self.hard();
        } else {
            self.is_hard = self.part.backtracks;
            self.part.backtracks |= part.backtracks;
            self.ways = self.ways.saturating_add(other_ways);
        }
        self.reach = self.reach.saturating_add(reach);
        self.power = before.max(self.last);
        Some(())
    }

    /// Notes a repetition of this many characters.
    fn reaches(&mut self, more: u32) {
        self.part.has_far |= self.part.is_repeated && more > NEAR;
        self.reach = self.reach.saturating_add(more);
    }

    /// Handles the end of a quantifier, which may be lazy and can match in so many ways. No other
    /// quantifier may follow.
    fn repeated(&mut self, many: bool, ways: u32) -> Option<()> {
        if self.consume('?') {
            self.out.push('?');
        }
        self.ways = self.ways.saturating_mul(ways);
        if many && self.last > 0 {
            self.power = self.power.max(self.last + 1);
        }
        std::mem::take(&mut self.is_atom).then_some(())
    }

    /// Reads a quantifier in braces, its maximum, at most [`FAR`], and the number of its counts.
    /// `None`, with nothing read, if the brace is a literal.
    fn counted(&mut self) -> Option<(String, u32, u32)> {
        let mut ahead = self.rest.clone();
        let mut inside = String::new();
        loop {
            match ahead.next()? {
                '}' => break,
                c @ ('0'..='9' | ',') => inside.push(c),
                _ => return None,
            }
        }
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (least, most) = inside.split_once(',').unwrap_or((inside.as_str(), ""));
        if !is_number(least) || !(most.is_empty() || is_number(most)) {
            return None;
        }
        self.rest = ahead;
        let most = if inside.contains(',') { most } else { least };
        let most = most.parse().unwrap_or(u32::MAX);
        let ways = most.saturating_sub(least.parse().unwrap_or(0)).saturating_add(1);
        Some((format!("{{{inside}}}"), most.min(FAR), ways))
    }

    fn escape(&mut self) -> Option<()> {
        let c = *self.rest.peek()?;
        match c {
            'b' | 'B' => {
                self.rest.next();
                let boundary = if self.is_backtracking {
                    let (in_word, after) = (format!("(?<=[{WORD}])"), format!("(?=[{WORD}])"));
                    let (not_in, not_after) = (format!("(?<![{WORD}])"), format!("(?![{WORD}])"));
                    let [one, other] =
                        if c == 'b' { [&not_after, &after] } else { [&after, &not_after] };
                    format!("(?:{in_word}{one}|{not_in}{other})")
                } else {
                    format!(r"(?-u:\{c})")
                };
                self.assertion(&boundary);
                if self.is_backtracking {
                    self.hard();
                }
            }
            'k' => {
                self.rest.next();
                let name = self.bracketed('<', '>')?;
                match self.names.get(&name).copied() {
                    Some(number) => self.reference(number),
                    // Its group comes later and has not taken part in the match.
                    None => self.atom("(?:)"),
                }
                self.asked.push(name);
            }
            '1'..='9' => {
                let mut number = String::new();
                while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
                    number.push(digit);
                }
                let number = number.parse().ok()?;
                self.referred = self.referred.max(number);
                self.reference(number);
            }
            _ => match self.escaped()? {
                Member::One(character) => self.one(character),
                Member::Many(class) => self.atom(&class),
            },
        }
        Some(())
    }

    /// Reads the meaning of an escape, in a class and outside of one.
    fn escaped(&mut self) -> Option<Member> {
        let many = |class: String| Some(Member::Many(class));
        let c = self.rest.next()?;
        let one = match c {
            'd' => return many(format!("[{DIGITS}]")),
            'D' => return many(format!("[^{DIGITS}]")),
            'w' => return many(format!("[{WORD}]")),
            'W' => return many(format!("[^{WORD}]")),
            's' => return many(format!("[{SPACE}]")),
            'S' => return many(format!("[^{SPACE}]")),
            'p' | 'P' => {
                let name = self.bracketed('{', '}')?;
                return many(format!("\\{c}{{{name}}}"));
            }
            't' => 0x09,
            'n' => 0x0A,
            'v' => 0x0B,
            'f' => 0x0C,
            'r' => 0x0D,
            '0' if !self.rest.peek().is_some_and(char::is_ascii_digit) => 0,
            'c' => u32::from(self.rest.next().filter(char::is_ascii_alphabetic)?) % 32,
            'x' => self.hexadecimal(2)?,
            'u' => self.unicode()?,
            other if !other.is_alphanumeric() => u32::from(other),
            _ => return None,
        };
        Some(Member::One(one))
    }

    fn hexadecimal(&mut self, digits: usize) -> Option<u32> {
        let text: String = self.rest.by_ref().take(digits).collect();
        let is_whole = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_whole.then(|| u32::from_str_radix(&text, 16).ok())?
    }

    /// Reads the rest of an escape after `\u`: four digits, two such escapes that form a surrogate
    /// pair, or digits in braces.
    fn unicode(&mut self) -> Option<u32> {
        if let Some(digits) = self.bracketed('{', '}') {
            return u32::from_str_radix(&digits, 16).ok().filter(|one| *one <= 0x0010_FFFF);
        }
        let first = self.hexadecimal(4)?;
        if !(0xD800..0xDC00).contains(&first) {
            return Some(first);
        }
        let second = (self.consume('\\') && self.consume('u')).then(|| self.hexadecimal(4))??;
        let low = second.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
        Some(0x1_0000 + ((first - 0xD800) << 10) + low)
    }

    /// Reads a member of a class. `Some(None)` is the end of the class.
    fn member(&mut self) -> Option<Option<Member>> {
        let member = match self.rest.next()? {
            ']' => return Some(None),
            '\\' if self.consume('b') => Member::One(0x08),
            '\\' => self.escaped()?,
            other => Member::One(u32::from(other)),
        };
        Some(Some(member))
    }

    fn class(&mut self) -> Option<()> {
        let is_negated = self.consume('^');
        let mut class = String::new();
        while let Some(member) = self.member()? {
            let from = match member {
                Member::One(from) => from,
                Member::Many(text) => {
                    class.push_str(&text);
                    continue;
                }
            };
            class.push_str(&literal(from));
            if self.consume('-') {
                // A hyphen that makes no range is a member; an escaped one is out of order then.
                let is_hyphen = self.rest.peek() == Some(&'-');
                match self.member()? {
                    Some(Member::One(to)) if to >= from => {
                        class.push_str(&format!("-{}", literal(to)));
                    }
                    Some(Member::One(_)) if is_hyphen => class.push_str(r"\-"),
                    Some(Member::One(_)) => return None,
                    Some(Member::Many(text)) => class.push_str(&format!(r"\-{text}")),
                    None => {
                        class.push_str(r"\-");
                        break;
                    }
                }
            }
        }
        match (class.is_empty(), is_negated) {
            (true, true) => self.atom("(?s:.)"),
            (true, false) => self.atom(NONE),
            (false, true) => self.atom(&format!("[^{class}]")),
            (false, false) => self.atom(&format!("[{class}]")),
        }
        Some(())
    }
}

/// Writes a character as itself, or as its number if the engine could give it a special meaning.
/// Half a surrogate pair matches nothing.
fn literal(character: u32) -> String {
    match char::from_u32(character) {
        Some(plain)
            if plain.is_alphanumeric()
                || matches!(plain, ' ' | '_' | '/' | ':' | '@' | ',' | ';' | '=' | '%') =>
        {
            plain.to_string()
        }
        Some(_) => format!(r"\x{{{character:X}}}"),
        None => NONE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Pattern;
    use crate::cases::rows;
    use jsonschema::Keyword as _;
    use serde_json::json;

    /// Cases of ECMA-262 that the engines write differently.
    #[test]
    fn patterns_follow_ecma_262() {
        for (pattern, good, bad) in
            rows::<(&str, &str, &str)>("schema/ecma", "patterns_follow_ecma_262")
        {
            let read =
                Pattern::new(pattern).unwrap_or_else(|problem| panic!("{pattern}: {problem:?}"));
            assert!(read.is_valid(&json!(good)), "{pattern} takes {good:?}");
            assert!(!read.is_valid(&json!(bad)), "{pattern} refuses {bad:?}");
        }
        for unreadable in
            ["(", ")", "[b-a]", "(?>a)", r"(a)\2", r"\k<x>", "*a", "[a", r"\u{110000}", r"(?=a)a++"]
        {
            assert!(Pattern::new(unreadable).is_err(), "{unreadable}");
        }
    }

    #[test]
    fn ordinary_look_arounds_cost_the_length_of_a_text() {
        for pattern in rows::<&str>("schema/ecma", "ordinary_look_arounds") {
            assert_eq!(Pattern::new(pattern).unwrap().power(), 1, "{pattern}");
        }
        let url = format!("https://a.example/?signature={}", "x".repeat(5_000));
        assert!(Pattern::new(r"^https?://(?!localhost)\S+$").unwrap().is_valid(&json!(url)));
    }
}
