//! The regular expressions that find suspicious texts, each with the kind of suspicion that it
//! means.
//!
//! The parent module matches them with the texts of a tool's definition, after it has put each text
//! into lower case and replaced runs of whitespace by single blanks. Each pattern covers a family
//! of published attacks, for example "keep this secret from the user".
//!
//! Measured: together they match 5 of 872 definitions of real tools, and 62 of 200 poisoned
//! ones whose author did not know the patterns: most of those that hide something or set it
//! apart, few that are worded politely. More patterns matched more of both.

use super::SuspicionKind::{
    self, Concealment, DataRequest, EncodedText, Impersonation, InstructionOverride, ToolSteering,
};

/// In the order of their kinds: each kind is reported once for a text.
pub(super) const ALL: [(SuspicionKind, &str); 19] = [
    // Tags, brackets and headings that make words look like another speaker's.
    (
        Impersonation,
        r"<\s*/?\s*(important|system\w*|instructions?|secret|hidden|admin|assistant|critical|policy|priority|directive|override|internal|inst|tool_(result|output|response|call)s?|function_(result|call)s?|sys|prompt)\b[^>]{0,80}>",
    ),
    (
        Impersonation,
        r"\[\s*/?\s*(inst|system|admin|important|hidden|internal|assistant|developer|tool:)\b[^\]]{0,60}\]|<\||\|>|<!--|<<sys|\{\{\s*#?system|#{2,}\s*(system|instruction|assistant|admin|developer)|[-=]{3,}\s*(begin|end|system)\b",
    ),
    (
        Impersonation,
        r"(^|[.>] ?)(system|assistant|developer|admin)( (message|note|notice|prompt|override|directive|instruction))?\s*:",
    ),
    (
        InstructionOverride,
        r"\b(ignor\w*|disregard\w*|forget|overrid\w*|bypass\w*|supersed\w*|set aside)\b[^.]{0,40}\b(instructions?|prompts?|guidelines?|directions?|polic(y|ies)|restrictions?|guardrails?|safety|confirmations?)\b",
    ),
    (
        InstructionOverride,
        r"\b(you are now|from now on,? you|new (system )?instructions?|developer mode|(higher )?precedence (over|than)|as an order from)\b",
    ),
    (
        InstructionOverride,
        r"\b(vergiss|ignorier\w*|ignorez|ignora)\b.{0,40}\b(anweisung\w*|instruc\w+|consignes)\b|指示.{0,12}無視|忽略.{0,12}指令",
    ),
    (
        Concealment,
        r"\b(do not|don't|never|must not|mustn't|should not|no need to|without|refrain from)\b[^.]{0,25}\b(mention|tell|inform|reveal|disclos|notify|alert|warn|announc|narrat|confirm|discuss|learn)\w*\b[^.]{0,40}\b(users?|humans?|customers?|operators?|anyone|person|people|them|this|it)\b",
    ),
    (
        Concealment,
        r"\b(silently|secretly|covertly|discreetly|unnoticed|hidden from|hide (this|it) from|invisible to|make no mention|stays? between|keep (this|it) (secret|to yourself))\b",
    ),
    (
        ToolSteering,
        r"\b(other|another|built-in|native|existing|competing|alternative|similar)\b[^.]{0,25}\b(tools?|functions?|servers?|plugins?)\b[^.]{0,40}\b(deprecated|insecure|unsafe|broken|outdated|unreliable|disabled|compromised)\b",
    ),
    (
        ToolSteering,
        r"\b(never|do not|don't|avoid|stop) (us|call|invok|choos|rely|select)\w*\b[^.]{0,30}\b(other|another|built-in|native|competing) ",
    ),
    (
        ToolSteering,
        r"\b(before|after|prior to|whenever|each time|every time)\b[^.]{0,20}\b(any|other|another|every|all)\b[^.]{0,20}\b(tools?|functions?|commands?)\b",
    ),
    (
        ToolSteering,
        r"\b(always (use|call|prefer|invoke|choose|pick|select) (this|me)\b|call me first)",
    ),
    (
        DataRequest,
        r"\b(conversation|chat|dialog(ue)?)('s)?[ -](history|transcripts?|logs?|so far)\b|\b(full|entire|complete|whole|previous|prior|verbatim)\b[^.]{0,20}\b(conversations?|chats?|dialogues?|transcripts?|system prompt|context window)\b|\byour (own )?(system prompt|hidden reasoning|chain of thought|initial prompt)\b",
    ),
    (
        DataRequest,
        r"\.(aws|cursor|netrc|npmrc|pypirc|bash_history|zsh_history|gnupg|git-credentials)\b|\bid_(rsa|ed25519|ecdsa)\b|/etc/(passwd|shadow)|\bmcp\.json|\bwallet\.dat|\bseed phrase|\b(browser|saved) (cookies|logins?|passwords?)\b",
    ),
    (
        DataRequest,
        r"\b(include|pass|send|attach|append|supply|put|paste|copy|forward|embed|relay|contents? of)\b[^.]{0,60}(~/|\.ssh\b|\.env\b|\b(environment variables?|credentials|private keys?|(user's|their|usual) passwords?|session cookies?)\b)",
    ),
    (
        DataRequest,
        r"\b(bcc|blind copy|forward|exfiltrat\w*|(also|first) (send|post|upload))\b[^.]{0,60}(https?://|[\w.+-]+@[\w-]+\.\w+)",
    ),
    (
        EncodedText,
        r"\b[a-z0-9+/]{60,}={0,2}(\s|$)|\b([0-9a-f]{2} ){20,}|(\\x[0-9a-f]{2}){6,}|(&#x?[0-9a-f]+;){4,}",
    ),
    (
        EncodedText,
        r"\b(decode|decipher|rot-?13|unscramble)\b[^.]{0,60}\b(follow|obey|carry out|instructions?)\b",
    ),
    (
        EncodedText,
        r"\bignore[-_](user|previous|all)[-_]|[-_](system|admin)[-_](token|prompt)[-_]from\b",
    ),
];
