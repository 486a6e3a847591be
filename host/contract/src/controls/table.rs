//! Lists every security control of the project, grouped by the thing that it protects: a variant of
//! [`Control`], a sentence, a name.
//!
//! The module `controls` compares these names with the control that a test disables, and
//! docs/threat-model.md, section 2, names the test of each. To add a control, add a line here and
//! write `enforced!(Name)` or `bound!(Name, MAX)` at the place that enforces it.

macro_rules! controls {
    ($($(#[$doc:meta])* $control:ident = $name:literal,)*) => {
        /// A control: it keeps untrusted code or input from what it must not have. Each is enforced
        /// in one place.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Control {
            $($(#[$doc])* $control,)*
        }

        impl Control {
            /// All controls.
            pub const ALL: &[Self] = &[$(Self::$control,)*];

            /// Returns the name of the control in docs/threat-model.md, section 2.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$control => $name,)*
                }
            }
        }
    };
}

controls! {
    // -- a cell's time
    /// An endless loop ends without a deadline.
    Fuel = "fuel",
    /// A guest that neither uses fuel nor calls the host is checked every millisecond, or when its
    /// current instruction ends.
    Ticks = "ticks",
    /// The ticker thread goes on after a panic.
    TickerWatch = "ticker-watch",
    /// A guest that waits for the host is ended at its deadline.
    Deadline = "deadline",
    /// The executor does not wait for an embedder's handler past the deadline.
    Patience = "patience",
    /// A call is stopped if its caller no longer waits for it.
    Cancellation = "cancellation",
    /// The calls of a guest into the host are limited.
    HostCalls = "host-calls",
    /// The calls that wait for a cell are limited.
    Queue = "queue",
    /// A tenant leaves as many cells free for others as it has.
    TenantCells = "tenant-cells",
    /// A tenant leaves cells also for defined tenants that have not made a call yet.
    DefinedTenants = "defined-tenants",
    /// A tenant leaves as many places in the queue free for others as it has.
    TenantQueue = "tenant-queue",
    /// The bytes of waiting calls, and of the trees of their arguments, are bounded.
    HeldBytes = "held-bytes",
    /// A tenant leaves as many of these bytes free as it holds.
    TenantBytes = "tenant-bytes",
    /// A free cell goes to the waiting tenant that has the fewest cells.
    CellTurns = "cell-turns",
    /// Calls whose owner's calls mostly run long do not start in the fast lane.
    Habits = "habits",
    /// Waiting slices run in turns: one of each owner of calls before the next of the same owner.
    Turns = "turns",
    /// A thread of the fast lane that lost its processor to another thread does not count as awake.
    Awake = "awake",
    // -- a cell's memory
    /// The memories and tables of a cell share one budget.
    Memory = "memory",
    /// The elements of a table are bounded.
    TableElements = "table-elements",
    /// The core instances, memories and tables of a cell are limited.
    Instances = "instances",
    /// The handles of the component model are limited.
    Handles = "handles",
    /// The host objects of a cell are limited.
    HostObjects = "host-objects",
    /// The bytes that one call between guest and host copies are bounded.
    CopiedBytes = "copied-bytes",
    /// Under strict isolation, no slot passes from one cell to the next.
    StrictCells = "strict-cells",
    /// The bytes that a handler returns are bounded.
    ResultBytes = "result-bytes",
    /// The number of parts that a handler returns is bounded.
    ResultParts = "result-parts",
    /// The bytes that a guest logs are bounded.
    LogBytes = "log-bytes",
    // -- what a cell can learn
    /// Clocks are too coarse to time a cache line.
    CoarseClocks = "coarse-clocks",
    /// Clocks stand still if they are configured to.
    FrozenClock = "frozen-clock",
    /// The times of files are no more precise than the clocks.
    FileTimes = "file-times",
    /// The bytes that a guest can request from a random source at once are bounded.
    RandomBytes = "random-bytes",
    /// Two calls never have the same randomness.
    RandomnessOfACall = "randomness-of-a-call",
    /// A guest sees only the environment variables that all layers leave.
    Environment = "environment",
    /// The panic message and other last output of a guest have no control characters.
    PlainWords = "plain-words",
    /// The function names of a guest have no characters but those of names.
    PlainSymbols = "plain-symbols",
    /// The error texts that a guest gets are the host's own, and do not depend on the host's
    /// environment.
    ErrorTexts = "error-texts",
    // -- panics
    /// A panic ends only the code in which it happens, and no thread.
    Fence = "fence",
    /// A panic in a cell ends the call with its cause, and the thread goes on.
    CellFence = "cell-fence",
    /// A component in whose calls the host panicked repeatedly is no longer run.
    Quarantine = "quarantine",
    // -- a component
    /// Only components are parsed.
    Format = "format",
    /// The bytes of a component are bounded.
    ComponentBytes = "component-bytes",
    /// The functions of a component are bounded.
    Functions = "functions",
    /// The bytes of a function are bounded.
    FunctionBytes = "function-bytes",
    /// The local variables of a function are bounded.
    Locals = "locals",
    /// The modules and components in a component are bounded.
    Parts = "parts",
    /// The depth of components inside each other is bounded.
    Nesting = "nesting",
    /// The types of a component are bounded.
    Types = "types",
    /// The types of an exported function that becomes a tool are bounded.
    FunctionTypes = "function-types",
    /// The metadata of a module for a component encoder is removed before the encoder reads it.
    ModuleMetadata = "module-metadata",
    /// Instances are counted as often as the component that contains them is instantiated.
    MultipliedInstances = "multiplied-instances",
    /// The globals, exports and table items of a component are bounded.
    Items = "items",
    /// They are also bounded over all instances that the component creates.
    ItemsOfInstances = "items-of-instances",
    /// An import that no cell offers is refused by its name.
    Imports = "imports",
    /// An import that was not granted is refused when the component is loaded.
    UngrantedImports = "ungranted-imports",
    /// WebAssembly proposals that tools do not need are off.
    Proposals = "proposals",
    /// The processor time of a compiler is bounded.
    CompileTime = "compile-time",
    /// The memory of a compiler is bounded.
    CompileMemory = "compile-memory",
    /// A compiler process that takes too much wall time is killed.
    CompileWall = "compile-wall",
    /// The output of a compiler process is read up to a bound.
    CompileOutput = "compile-output",
    /// The native programs of a build get only the environment variables of a list.
    BuildVariables = "build-variables",
    /// The depth of a file of cases, and its size with aliases written out, are bounded before it
    /// is read as values.
    CasesBounds = "cases-bounds",
    /// The components that a tenant can have compiled in a minute are limited.
    CompileQuota = "compile-quota",
    /// A tenant loads one component at a time.
    CompileTurn = "compile-turn",
    /// The loads that wait for this turn are limited.
    CompileLine = "compile-line",
    /// The optimiser does not take several components of one tenant in a row while others wait.
    OptimiserTurn = "optimiser-turn",
    /// The components of one tenant cannot take all the room in which components wait for the
    /// optimiser.
    OptimiserShare = "optimiser-share",
    /// An artifact is used only if its MAC is correct.
    ArtifactMac = "artifact-mac",
    /// The bytes of a cache are bounded.
    CacheBytes = "cache-bytes",
    // -- a definition
    /// The tools of a component are bounded.
    Tools = "tools",
    /// The bytes of a description are bounded.
    DescriptionBytes = "description-bytes",
    /// A tool's name has only letters, digits, `_` and `-`.
    Names = "names",
    /// A component has one tool of a name at most.
    NamesTwice = "names-twice",
    /// The bytes of a schema are bounded.
    SchemaBytes = "schema-bytes",
    /// The subschemas of a schema are bounded.
    Subschemas = "subschemas",
    /// The depth of subschemas inside each other is bounded.
    SchemaDepth = "schema-depth",
    /// The copies that dynamic references of a schema need are bounded.
    SchemaCopies = "schema-copies",
    /// No reference leads out of a schema.
    SchemaReferences = "schema-references",
    /// The steps of a check against a schema are bounded.
    SchemaWork = "schema-work",
    /// The memory of a pattern is bounded.
    PatternBytes = "pattern-bytes",
    /// The patterns of a schema are bounded.
    Patterns = "patterns",
    /// A pattern that backtracks does so a bounded number of times, on texts of bounded length.
    PatternBacktracks = "pattern-backtracks",
    /// The work of patterns on a value is bounded.
    PatternWork = "pattern-work",
    // -- a call's words
    /// The bytes of arguments are bounded.
    ArgumentBytes = "argument-bytes",
    /// Large arguments are parsed and checked only a few calls at a time.
    CheckTurns = "check-turns",
    /// The largest arguments and answers are checked on separate threads.
    CheckThreads = "check-threads",
    /// The tree of a call's arguments is kept only for a handler that reads it.
    DroppedTrees = "dropped-trees",
    /// Arguments are checked against their schema.
    ArgumentSchema = "argument-schema",
    /// A result is checked against its schema.
    ResultSchema = "result-schema",
    /// The nesting depth of JSON is bounded.
    JsonDepth = "json-depth",
    /// The values in a JSON text are bounded.
    JsonNodes = "json-nodes",
    /// An object cannot name a member twice.
    JsonMembers = "json-members",
    /// A tool cannot halt with a reason that is reserved for the loop.
    HaltReasons = "halt-reasons",
    /// The bytes of calls that arrive in fragments and have not ended are bounded.
    Fragments = "fragments",
    /// A caller that must not see a tool learns nothing about it.
    Visibility = "visibility",
    // -- directories
    /// A file is opened for writing only if its directory was granted for writing.
    ReadOnly = "read-only",
    /// A link can be created only if its target leads downwards.
    LinkTargets = "link-targets",
    /// Nothing can be moved from one granted directory to another.
    DirectoriesApart = "directories-apart",
    /// Pipes, sockets and devices are not opened.
    PlainFiles = "plain-files",
    /// A directory that an overlay leaves of a granted one is opened without following links.
    OverlayLinks = "overlay-links",
    /// The bytes in a directory are bounded.
    DirectoryBytes = "directory-bytes",
    /// The files in a directory are bounded.
    DirectoryFiles = "directory-files",
    /// Processes that share a directory share its quota.
    SharedCounts = "shared-counts",
    /// The directory of a call is removed after the call.
    ScratchRemoval = "scratch-removal",
    /// Directories of the system are not mounted.
    MachineDirectories = "machine-directories",
    /// A link is not mounted.
    MountedLinks = "mounted-links",
    /// Granted directories do not overlap if one of them is writable.
    Overlaps = "overlaps",
    // -- requests
    /// A request is sent only where it was granted.
    AllowList = "allow-list",
    /// A host suffix in a rule matches whole labels only.
    HostSuffix = "host-suffix",
    /// A rule matches only its own port.
    Ports = "ports",
    /// A path with encoded slashes or dots is not below another path.
    HiddenPaths = "hidden-paths",
    /// A path that could be read as a host is refused.
    HostAsPath = "host-as-path",
    /// A URL that names a user is refused.
    UserInfo = "user-info",
    /// A request is sent only to addresses of the public internet, unless a rule names others.
    PublicAddresses = "public-addresses",
    /// An address that another address contains is checked too.
    CarriedAddresses = "carried-addresses",
    /// A tool cannot set headers that belong to the host.
    OwnHeaders = "own-headers",
    /// The requests of a call are bounded.
    Requests = "requests",
    /// The bytes that a call sends are bounded.
    SentBytes = "sent-bytes",
    /// The bytes that a call receives are bounded.
    ReceivedBytes = "received-bytes",
    /// The bytes that arrive over a connection are bounded, whatever they are for.
    ConnectionBytes = "connection-bytes",
    /// The headers of a response are bounded.
    Headers = "headers",
    /// A response states its length only once.
    Framing = "framing",
    /// A request ends at its deadline.
    RequestDeadline = "request-deadline",
    /// The connections that are open at once are limited.
    Connections = "connections",
    // -- secrets
    /// A secret is sent only with requests to which it is bound.
    SecretBinding = "secret-binding",
    /// A tool cannot set the place of a request into which a secret is injected.
    SecretPlace = "secret-place",
    /// The secret of a request is removed from the response.
    Redaction = "redaction",
    /// The secret is also removed in other encodings.
    EncodedSecrets = "encoded-secrets",
    /// A response that cannot be searched for secrets is refused.
    Searchable = "searchable",
    /// A secret is long enough to be distinguished from other text.
    SecretLength = "secret-length",
    /// The values of secrets are removed from a tool's result.
    ReturnedSecrets = "returned-secrets",
    /// The values of secrets are removed from a tool's log, progress and denials.
    ToldSecrets = "told-secrets",
    /// The values of a tool's secrets are removed from the arguments of the calls that it makes.
    PassedSecrets = "passed-secrets",
    /// A called tool can neither return nor store a value of its caller's secrets.
    InheritedSecrets = "inherited-secrets",
    /// A secret is found if white space, quotes or invisible characters stand between its
    /// characters.
    SpacedSecrets = "spaced-secrets",
    /// A secret that is split in two is found.
    BrokenSecrets = "broken-secrets",
    /// No request carries a secret to a place to which it is not bound.
    LeavingSecrets = "leaving-secrets",
    /// A request that seems to carry a token is reported.
    TokenShapes = "token-shapes",
    /// Every response to a tool that was granted a secret is searched.
    LaterAnswers = "later-answers",
    /// A request with a secret cannot ask for a part of the response.
    WholeAnswers = "whole-answers",
    /// A partial response is refused if the request did not ask for one.
    UnaskedParts = "unasked-parts",
    /// A secret under two encodings is found.
    NestedSecrets = "nested-secrets",
    /// A secret whose characters are spelled out is found, with punctuation between them or one in
    /// each header.
    SpelledSecrets = "spelled-secrets",
    /// A secret in compressed data is found, also if nothing declares the compression.
    DeflatedSecrets = "deflated-secrets",
    /// The connections and name lookups of one call are limited.
    RequestsOfACall = "requests-of-a-call",
    /// A tenant can use a quarter of all connections and name lookups.
    RequestsOfATenant = "requests-of-a-tenant",
    /// A name lookup counts until it is answered.
    UnansweredNames = "unanswered-names",
    // -- what cells share
    /// A tenant can use a quarter of the threads that wait for disks.
    TenantThreads = "tenant-threads",
    /// A cell can use two of these threads.
    CellThreads = "cell-threads",
    /// A thread counts as used until its work has returned.
    BusyThreads = "busy-threads",
    /// The files that cells have open are limited.
    OpenFiles = "open-files",
    /// A tenant can use half of the files that cells may have open.
    TenantFiles = "tenant-files",
    /// The host-memory charge of a cell is bounded.
    HostBytes = "host-bytes",
    /// A write to a file is no longer than the host-memory charge of the cell for it.
    WritePermits = "write-permits",
    /// A write past the file-size limit fails, and does not end the process.
    FileSizeLimit = "file-size-limit",
    /// If tenants are defined, a call of another tenant, or without one, is refused.
    KnownTenants = "known-tenants",
    /// A tenant sees and calls only the tools that are offered to it.
    TenantTools = "tenant-tools",
    // -- rights
    /// A tool has no right that it did not declare.
    Declared = "declared",
    /// A tool that declares no needs has no rights if another tool of its component declares needs.
    SilentTools = "silent-tools",
    /// A tool has no right that it was not granted.
    Granted = "granted",
    /// A single tool has only the rights that its own section leaves.
    ToolOverlay = "tool-overlay",
    /// A tool has no right that its tenant does not have.
    TenantOverlay = "tenant-overlay",
    /// A tool has no right that its call does not have.
    CallOverlay = "call-overlay",
    /// A tool can call only the other tools that it was granted.
    InvokeGrant = "invoke-grant",
    /// A called tool has no right that the calling tool does not have.
    CallerRights = "caller-rights",
    /// The depth of calls of tools by tools is bounded.
    CallDepth = "call-depth",
    /// The calls of tools to which one call leads are limited.
    SubCallCount = "sub-call-count",
    /// The calls that a tool makes use the budget of its own call, and have what is left of it.
    SubCallBudget = "sub-call-budget",
    // -- state
    /// A tenant's keys are separate from those of other tenants.
    TenantKeys = "tenant-keys",
    /// A component's keys are separate from those of other components.
    ComponentKeys = "component-keys",
    /// The bytes of a key are bounded.
    KeyBytes = "key-bytes",
    /// The bytes of a value are bounded.
    ValueBytes = "value-bytes",
    /// The keys of a namespace are limited.
    StoredKeys = "stored-keys",
    /// The bytes of a namespace are bounded.
    StoredBytes = "stored-bytes",
    /// A file of this user alone is not read if others could have written or read it.
    PrivateFile = "private-file",
    /// A sealed state is accepted only for the call to which it belongs.
    SealedOrigin = "sealed-origin",
    /// If a sealer is bound to a principal, a sealed state is accepted only from that principal.
    SealedPrincipal = "sealed-principal",
    /// A sealed state expires.
    SealedTime = "sealed-time",
    /// The bytes of a state are bounded.
    SealedBytes = "sealed-bytes",
    /// A tenant that is configured to have its own worker process has one.
    WorkerProcess = "worker-process",
    /// A tool that repeatedly ends worker processes is no longer called.
    WorkerDeaths = "worker-deaths",
    /// The size of a frame of a worker process is bounded.
    WorkerFrames = "worker-frames",
    /// A worker process that keeps a call after the call is over is killed.
    WorkerGrace = "worker-grace",
    /// A worker process can answer only the calls that it has.
    WorkerAnswers = "worker-answers",
    /// A worker process that repeatedly names other calls is killed.
    WorkerStrays = "worker-strays",
    /// A worker process inherits no descriptor but its standard streams.
    WorkerDescriptors = "worker-descriptors",
    /// A tenant's worker process gets no secret that is not the tenant's.
    WorkerSecrets = "worker-secrets",
    // -- the command
    /// Text for a terminal has no characters that a terminal acts on.
    CleanText = "clean-text",
    /// JSON for a terminal has no such characters either.
    CleanJson = "clean-json",
    /// A pipe, a socket or a device is not read as a file.
    CommandFiles = "command-files",
    /// A configuration that other users can write is not used.
    ConfigurationFile = "configuration-file",
    /// A file of a secret that other users can read is not used.
    SecretFile = "secret-file",
    /// A configuration cannot grant a directory of the system, a directory of keys, or a whole home
    /// directory.
    ForbiddenRoots = "forbidden-roots",
    /// A pinned component is used only if it has the pinned digest.
    Pins = "pins",
    /// A component that has to be signed is used only with a valid signature of a publisher.
    Signature = "signature",
    /// If the configuration says so, every component has to be signed.
    RequireSigned = "require-signed",
    /// A signature covers the bytes of the component.
    SignedBytes = "signed-bytes",
    /// A signature for another purpose is refused.
    SignatureNamespace = "signature-namespace",
    /// A signature by a revoked key is refused.
    RevokedKeys = "revoked-keys",
    /// A component of a publisher has to be signed by that publisher.
    SignaturePublisher = "signature-publisher",
    /// A configuration that was found, not named, is used only if its user has approved it.
    FoundConfiguration = "found-configuration",
    /// A found configuration that is not approved raises no limit.
    FoundLimits = "found-limits",
    /// A found configuration never waives the approval of a component, approved or not.
    FoundDevelopment = "found-development",
    /// A component of a configuration is used only if a person has approved it.
    Approval = "approval",
    /// A component is used only with the imports that were approved.
    ApprovedImports = "approved-imports",
    /// A component is used only if the approved publisher signed it.
    ApprovedPublisher = "approved-publisher",
    /// A component is used only with the definitions that were approved.
    ApprovedDefinitions = "approved-definitions",
    /// A component that was granted something is used only with the code that was approved.
    ApprovedCode = "approved-code",
    /// A person is asked for approval only of a page that could be seen completely.
    SeenWhole = "seen-whole",
    /// Two tools cannot have names that look alike.
    LookAlikes = "look-alikes",
    /// The kept bytes of a version are used only if they have the approved digest.
    KeptVersions = "kept-versions",
    // -- the server
    /// A server answers only requests for its own hosts.
    HostList = "host-list",
    /// A server answers browser pages only from listed origins.
    OriginList = "origin-list",
    /// The bytes of a body that a server reads are bounded.
    BodyBytes = "body-bytes",
    /// The time that a server waits for the head of a request is bounded.
    HeadTime = "head-time",
    /// The name of a call's file has no path.
    CallFileNames = "call-file-names",
    /// A call can only read the files that came with it.
    CallFilesReadOnly = "call-files-read-only",
    /// Only the tenant of an artifact can find it.
    ArtifactTenants = "artifact-tenants",
    /// The artifacts of a tenant have a bounded total size.
    ArtifactQuota = "artifact-quota",
    /// An expired artifact is removed even if its tenant makes no further request.
    ArtifactSweep = "artifact-sweep",
    /// The calls that a tenant can make in a minute are limited.
    CallQuota = "call-quota",
    /// A server that others can reach requires keys, and keys are not sent in plain text.
    PublicAddress = "public-address",
    /// A tenant leaves as many bytes of request bodies free as it holds.
    BodyShare = "body-share",
    /// A tenant leaves as many requests free as it has.
    RequestShare = "request-share",
    /// A request keeps its place and its bytes until its work has ended, even if its connection
    /// ended before.
    WorkPlaces = "work-places",
    /// The open MCP streams of a tenant are limited.
    StreamCount = "stream-count",
    /// The questions that wait for an answer are limited for each MCP session and each tenant.
    OpenQuestions = "open-questions",
    /// An MCP session that only waits for answers ends when it is idle.
    IdleSessions = "idle-sessions",
    /// The connection that was idle for longest is closed for a new one.
    IdleConnections = "idle-connections",
    /// The sessions and streams of a revoked key end.
    RevokedStreams = "revoked-streams",
    /// A token with an ambiguous header or ambiguous claims is refused.
    TokenMeaning = "token-meaning",
    /// The sessions and streams of an expired token end.
    ExpiredStreams = "expired-streams",
    /// The labels of metrics are names of tenants and tools, and their number is bounded.
    MetricNames = "metric-names",
    /// Metrics are served only on this machine.
    MetricsAddress = "metrics-address",
    /// A key of a tenant that is not served opens no MCP session.
    ServedTenants = "served-tenants",
    /// The usage of a tenant does not show the tools that are hidden from it.
    HiddenUsage = "hidden-usage",
    /// The fuel that tools use outside of calls is charged to the quota of the tenant.
    CheckFuel = "check-fuel",
    /// The principals of a tenant share a bound on requests with an `Idempotency-Key` and on their
    /// answers.
    TenantAnswers = "tenant-answers",
    /// The lookup of an unknown API key takes the same steps as that of a known one.
    KeyPath = "key-path",
    /// A server that started without keys requires them as soon as there are some.
    KeyedServer = "keyed-server",
    /// Only the principal that opened an MCP session can use it.
    SessionPrincipal = "session-principal",
    /// A line of MCP is read only up to a limit.
    LineBytes = "line-bytes",
    /// A message of MCP with a repeated member is refused, because it could have two meanings.
    OneMeaning = "one-meaning",
}
