//! TABLE: all defences, each with its name.

macro_rules! defences {
    ($($(#[$doc:meta])* $defence:ident = $name:literal,)*) => {
        /// What stands between a stranger and something that they should not have. Each acts in one
        /// place.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Defence {
            $($(#[$doc])* $defence,)*
        }

        impl Defence {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$defence,)*];

            /// As SPECIFICATION.md calls it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$defence => $name,)*
                }
            }
        }
    };
}

defences! {
    // -- a cell's time
    /// A loop ends without a deadline.
    Fuel = "fuel",
    /// A guest that neither spends fuel nor asks the host is looked at every millisecond, or when
    /// the one instruction that it is in has ended.
    Ticks = "ticks",
    /// The thread that ticks is replaced when it dies.
    TickerWatch = "ticker-watch",
    /// A guest that waits for the host is left at its deadline.
    Deadline = "deadline",
    /// A handler of the embedder's own is not waited for past the deadline.
    Patience = "patience",
    /// A call that no caller waits for any more is stopped.
    Cancellation = "cancellation",
    /// Calls into the host are counted.
    HostCalls = "host-calls",
    /// Calls that wait for a cell are counted.
    Queue = "queue",
    /// A tenant leaves as many cells to others as it has.
    TenantCells = "tenant-cells",
    /// It does so for tenants that are defined before any call of theirs has come.
    DefinedTenants = "defined-tenants",
    /// And as many places to wait for one.
    TenantQueue = "tenant-queue",
    /// The bytes that calls hold while they wait, or as trees of their arguments, are bounded.
    HeldBytes = "held-bytes",
    /// A tenant leaves as many of them as it holds.
    TenantBytes = "tenant-bytes",
    /// Of those that wait, who has the fewest cells is next.
    CellTurns = "cell-turns",
    /// Who mostly runs for long does not begin where short calls do.
    Habits = "habits",
    /// Where slices wait, each owner of calls has a turn after a turn of each other owner.
    Turns = "turns",
    /// A thread of the quick lane that lost its processor to another does not count as awake.
    Awake = "awake",
    // -- a cell's memory
    /// Memories and tables have one budget.
    Memory = "memory",
    /// The elements of a table are bounded.
    TableElements = "table-elements",
    /// Core instances, memories and tables of a cell are counted.
    Instances = "instances",
    /// Handles of the component model are counted.
    Handles = "handles",
    /// Host objects of a cell are counted.
    HostObjects = "host-objects",
    /// What one call across the boundary copies is bounded.
    CopiedBytes = "copied-bytes",
    /// Under strict isolation no slot passes from one cell to the next.
    StrictCells = "strict-cells",
    /// What a handler returns is bounded.
    ResultBytes = "result-bytes",
    /// The parts of what a handler returns are bounded.
    ResultParts = "result-parts",
    /// What a guest logs is bounded.
    LogBytes = "log-bytes",
    // -- what a cell can learn
    /// Clocks are too coarse to time a cache line.
    CoarseClocks = "coarse-clocks",
    /// Clocks stand still where they are told to.
    FrozenClock = "frozen-clock",
    /// Times of files tell no more than the clocks.
    FileTimes = "file-times",
    /// Randomness comes in small pieces.
    RandomBytes = "random-bytes",
    /// No two calls have the same randomness.
    RandomnessOfACall = "randomness-of-a-call",
    /// Of the environment there is what all layers leave.
    Environment = "environment",
    /// A guest's last words have no control characters.
    PlainWords = "plain-words",
    /// A guest's function names are names.
    PlainSymbols = "plain-symbols",
    /// What a guest is told of a failure is the host's own text, whatever the host's environment
    /// is.
    ErrorTexts = "error-texts",
    // -- panics
    /// A panic ends what it happened in, and no thread.
    Fence = "fence",
    /// A panic in a cell ends the call with its cause, and the thread goes on.
    CellFence = "cell-fence",
    /// A component in whose calls the host keeps panicking is not run any more.
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
    /// Components stand inside each other so deep and no deeper.
    Nesting = "nesting",
    /// The types of a component are bounded.
    Types = "types",
    /// The types of an exported function that becomes a tool are bounded.
    FunctionTypes = "function-types",
    /// What a module says to an encoder of components is removed before one reads it.
    ModuleMetadata = "module-metadata",
    /// Instances are counted as often as what they stand in is made.
    MultipliedInstances = "multiplied-instances",
    /// The globals, exports and table items of a component are bounded.
    Items = "items",
    /// So are they over all instances that the component makes.
    ItemsOfInstances = "items-of-instances",
    /// An import that no cell has is refused by its name.
    Imports = "imports",
    /// An import that was not granted is refused when the component is loaded.
    UngrantedImports = "ungranted-imports",
    /// Proposals that tools do not need are off.
    Proposals = "proposals",
    /// The processor time of a compiler is bounded.
    CompileTime = "compile-time",
    /// The memory of a compiler is bounded.
    CompileMemory = "compile-memory",
    /// A compiler that waits is killed.
    CompileWall = "compile-wall",
    /// What a compiler says is read up to a bound.
    CompileOutput = "compile-output",
    /// The native programs of a build get the variables of a list, and no others.
    BuildVariables = "build-variables",
    /// The depth of a file of cases, and what its aliases stand for, are bounded before it is read
    /// as values.
    CasesBounds = "cases-bounds",
    /// A tenant has so many components compiled a minute.
    CompileQuota = "compile-quota",
    /// And loads one at a time.
    CompileTurn = "compile-turn",
    /// Those that wait for it are counted.
    CompileLine = "compile-line",
    /// No tenant's components are optimised one after the other while others wait.
    OptimiserTurn = "optimiser-turn",
    /// Nor do they take all the room that there is to wait in.
    OptimiserShare = "optimiser-share",
    /// An artifact is used when its MAC fits.
    ArtifactMac = "artifact-mac",
    /// The bytes of a cache are bounded.
    CacheBytes = "cache-bytes",
    // -- a definition
    /// The tools of a component are bounded.
    Tools = "tools",
    /// The bytes of a description are bounded.
    DescriptionBytes = "description-bytes",
    /// A name has letters, digits, `_` and `-`.
    Names = "names",
    /// A component has one tool of a name.
    NamesTwice = "names-twice",
    /// The bytes of a schema are bounded.
    SchemaBytes = "schema-bytes",
    /// The subschemas of a schema are bounded.
    Subschemas = "subschemas",
    /// Subschemas stand inside each other so deep and no deeper.
    SchemaDepth = "schema-depth",
    /// The copies that dynamic references of a schema need are bounded.
    SchemaCopies = "schema-copies",
    /// No reference leaves a schema.
    SchemaReferences = "schema-references",
    /// The steps of a check against a schema are bounded.
    SchemaWork = "schema-work",
    /// The memory of a pattern is bounded.
    PatternBytes = "pattern-bytes",
    /// The patterns of a schema are bounded.
    Patterns = "patterns",
    /// A pattern that has to go back does so a bounded number of times, on texts of bounded length.
    PatternBacktracks = "pattern-backtracks",
    /// The work of patterns on a value is bounded.
    PatternWork = "pattern-work",
    // -- a call's words
    /// The bytes of arguments are bounded.
    ArgumentBytes = "argument-bytes",
    /// Large arguments are parsed and checked a few calls at a time.
    CheckTurns = "check-turns",
    /// The largest arguments and answers are checked on threads of their own.
    CheckThreads = "check-threads",
    /// The tree of a call's arguments is kept only for a handler that reads it.
    DroppedTrees = "dropped-trees",
    /// Arguments fit their schema.
    ArgumentSchema = "argument-schema",
    /// A result fits its schema.
    ResultSchema = "result-schema",
    /// JSON nests so deep and no deeper.
    JsonDepth = "json-depth",
    /// The values in a JSON text are bounded.
    JsonNodes = "json-nodes",
    /// An object names a member once.
    JsonMembers = "json-members",
    /// A tool does not halt with a word of the loop's.
    HaltReasons = "halt-reasons",
    /// The bytes of calls that have not ended are bounded.
    Fragments = "fragments",
    /// Who may not see a tool learns nothing of it.
    Visibility = "visibility",
    // -- directories
    /// A file is opened for writing where the directory was granted for it.
    ReadOnly = "read-only",
    /// No link is made that leads upwards or away.
    LinkTargets = "link-targets",
    /// Nothing moves from one granted directory to another.
    DirectoriesApart = "directories-apart",
    /// A pipe, a socket or a device is not opened.
    PlainFiles = "plain-files",
    /// What a call's overlay leaves of a directory is reached through no link.
    OverlayLinks = "overlay-links",
    /// The bytes in a directory are bounded.
    DirectoryBytes = "directory-bytes",
    /// The files in a directory are bounded.
    DirectoryFiles = "directory-files",
    /// Processes share the room in a directory.
    SharedCounts = "shared-counts",
    /// A call's own directory is removed with it.
    ScratchRemoval = "scratch-removal",
    /// The machine's own directories are not mounted.
    MachineDirectories = "machine-directories",
    /// A link is not mounted.
    MountedLinks = "mounted-links",
    /// Directories do not overlap where one can be written to.
    Overlaps = "overlaps",
    // -- requests
    /// A request is sent where it was granted.
    AllowList = "allow-list",
    /// A suffix matches whole labels.
    HostSuffix = "host-suffix",
    /// A rule's port is the port.
    Ports = "ports",
    /// A path that hides its parts is below nothing.
    HiddenPaths = "hidden-paths",
    /// No path could be read as a host.
    HostAsPath = "host-as-path",
    /// A URL names no user.
    UserInfo = "user-info",
    /// A request goes to the public internet.
    PublicAddresses = "public-addresses",
    /// An address inside of another one is judged too.
    CarriedAddresses = "carried-addresses",
    /// A tool sets no header of the host's.
    OwnHeaders = "own-headers",
    /// The requests of a call are bounded.
    Requests = "requests",
    /// The bytes that a call sends are bounded.
    SentBytes = "sent-bytes",
    /// The bytes that a call receives are bounded.
    ReceivedBytes = "received-bytes",
    /// The bytes that come through a connection are bounded, whatever they are.
    ConnectionBytes = "connection-bytes",
    /// The headers of a response are bounded.
    Headers = "headers",
    /// A response says its length once.
    Framing = "framing",
    /// A request ends at its deadline.
    RequestDeadline = "request-deadline",
    /// Connections that are open at once are bounded.
    Connections = "connections",
    // -- secrets
    /// A secret goes to what it is bound to.
    SecretBinding = "secret-binding",
    /// A tool sets nothing where a secret goes.
    SecretPlace = "secret-place",
    /// A response does not show the secret of its request.
    Redaction = "redaction",
    /// Nor does it show it in another encoding.
    EncodedSecrets = "encoded-secrets",
    /// A response that cannot be searched is refused.
    Searchable = "searchable",
    /// A secret is long enough to be told from other text.
    SecretLength = "secret-length",
    /// What a tool returns has no value of a secret in it.
    ReturnedSecrets = "returned-secrets",
    /// Nor have its log, its progress and its denials.
    ToldSecrets = "told-secrets",
    /// The arguments of a call that a tool makes have no value of the tool's secrets in them.
    PassedSecrets = "passed-secrets",
    /// A called tool neither says nor stores a value of its caller's secrets.
    InheritedSecrets = "inherited-secrets",
    /// A secret is found with white space, quotes or nothing visible between its characters.
    SpacedSecrets = "spaced-secrets",
    /// A secret is found that is broken in two.
    BrokenSecrets = "broken-secrets",
    /// No request carries a secret to where it is not bound to.
    LeavingSecrets = "leaving-secrets",
    /// A request that seems to carry a token is told of.
    TokenShapes = "token-shapes",
    /// Every answer to a tool that was granted a secret is searched.
    LaterAnswers = "later-answers",
    /// What a secret was sent for is answered whole.
    WholeAnswers = "whole-answers",
    /// A part of a response that was not asked for is refused.
    UnaskedParts = "unasked-parts",
    /// A secret is found under two encodings.
    NestedSecrets = "nested-secrets",
    /// A secret is found when its characters are spelled out, with punctuation between them or one
    /// in each header.
    SpelledSecrets = "spelled-secrets",
    /// A secret is found in what is compressed and does not say so.
    DeflatedSecrets = "deflated-secrets",
    /// One call has a few connections and a few questions for names, and no more.
    RequestsOfACall = "requests-of-a-call",
    /// One tenant has a quarter of them.
    RequestsOfATenant = "requests-of-a-tenant",
    /// A question for a name counts until it is answered.
    UnansweredNames = "unanswered-names",
    // -- what cells share
    /// A tenant has a quarter of the threads that wait for disks.
    TenantThreads = "tenant-threads",
    /// A cell has two of them.
    CellThreads = "cell-threads",
    /// A thread counts until its work has come back.
    BusyThreads = "busy-threads",
    /// The files that cells have open are bounded.
    OpenFiles = "open-files",
    /// A tenant has half of them.
    TenantFiles = "tenant-files",
    /// What the host keeps for a cell is bounded.
    HostBytes = "host-bytes",
    /// A write to a file is no longer than what the cell was charged for it.
    WritePermits = "write-permits",
    /// A write past the file-size limit fails, and ends no process.
    FileSizeLimit = "file-size-limit",
    /// Where tenants are defined, a call of another tenant, or of none, is refused.
    KnownTenants = "known-tenants",
    // -- rights
    /// A tool has no right that it did not declare.
    Declared = "declared",
    /// A tool that declares nothing gets nothing, where a tool of its component declares needs.
    SilentTools = "silent-tools",
    /// A tool has no right that it was not granted.
    Granted = "granted",
    /// A single tool has no more than its own section leaves it.
    ToolOverlay = "tool-overlay",
    /// A tool has no right that its tenant has not.
    TenantOverlay = "tenant-overlay",
    /// A tool has no right that its call has not.
    CallOverlay = "call-overlay",
    /// A tool calls the other tools that it was granted, and no more.
    InvokeGrant = "invoke-grant",
    /// A tool that another tool calls has no right that the other has not.
    CallerRights = "caller-rights",
    /// Calls of tools by tools end at a depth.
    CallDepth = "call-depth",
    /// The calls that come of one call are counted.
    SubCallCount = "sub-call-count",
    /// A tool pays for the calls that it makes, and they have what it has left.
    SubCallBudget = "sub-call-budget",
    // -- state
    /// A tenant's keys are its own.
    TenantKeys = "tenant-keys",
    /// A component's keys are its own.
    ComponentKeys = "component-keys",
    /// The bytes of a key are bounded.
    KeyBytes = "key-bytes",
    /// The bytes of a value are bounded.
    ValueBytes = "value-bytes",
    /// The keys of a namespace are bounded.
    StoredKeys = "stored-keys",
    /// The bytes of a namespace are bounded.
    StoredBytes = "stored-bytes",
    /// What is kept for this user alone is not read where others could have written or read it.
    PrivateFile = "private-file",
    /// A sealed state is its call's.
    SealedOrigin = "sealed-origin",
    /// Where a sealer is bound to a principal, a sealed state is that principal's.
    SealedPrincipal = "sealed-principal",
    /// A sealed state ends.
    SealedTime = "sealed-time",
    /// The bytes of a state are bounded.
    SealedBytes = "sealed-bytes",
    /// A tenant who is to have a process of its own has one.
    WorkerProcess = "worker-process",
    /// A tool that ends worker processes again and again is not called any more.
    WorkerDeaths = "worker-deaths",
    /// A frame of a worker process is bounded.
    WorkerFrames = "worker-frames",
    /// A worker process that keeps a call that is over is killed.
    WorkerGrace = "worker-grace",
    /// A worker process answers for the calls that it has, and for no others.
    WorkerAnswers = "worker-answers",
    /// A worker process that speaks of other calls again and again is killed.
    WorkerStrays = "worker-strays",
    /// A worker process inherits no descriptor but its standard streams.
    WorkerDescriptors = "worker-descriptors",
    /// A tenant's process knows no secret that is not the tenant's.
    WorkerSecrets = "worker-secrets",
    // -- the command
    /// A terminal is sent nothing that it acts on.
    CleanText = "clean-text",
    /// Nor is it sent such a thing in JSON.
    CleanJson = "clean-json",
    /// What is read as a file is no pipe, socket or device.
    CommandFiles = "command-files",
    /// A configuration that others can write is not used.
    ConfigurationFile = "configuration-file",
    /// A secret that others can read is not used.
    SecretFile = "secret-file",
    /// A configuration grants no directory of the system's, of keys or of a whole home.
    ForbiddenRoots = "forbidden-roots",
    /// A pinned component is the one that was pinned.
    Pins = "pins",
    /// A component that has to be signed is used with a good signature of a publisher's.
    Signature = "signature",
    /// Every component has to be signed where the configuration says so.
    RequireSigned = "require-signed",
    /// A signature is over the bytes of the component.
    SignedBytes = "signed-bytes",
    /// A signature for another purpose is none.
    SignatureNamespace = "signature-namespace",
    /// A revoked key signs nothing.
    RevokedKeys = "revoked-keys",
    /// A publisher's component is signed by that publisher.
    SignaturePublisher = "signature-publisher",
    /// A configuration that was found is used when its user has approved it.
    FoundConfiguration = "found-configuration",
    /// Until then it raises no limit.
    FoundLimits = "found-limits",
    /// It never waives the approval of a component, approved or not.
    FoundDevelopment = "found-development",
    /// A component of a configuration is used when a person has approved it.
    Approval = "approval",
    /// With the imports that were approved.
    ApprovedImports = "approved-imports",
    /// Signed by the publisher that was approved.
    ApprovedPublisher = "approved-publisher",
    /// With the definitions that were approved.
    ApprovedDefinitions = "approved-definitions",
    /// Where it was given something, with the code that was approved.
    ApprovedCode = "approved-code",
    /// No person is asked to approve what could not be seen whole.
    SeenWhole = "seen-whole",
    /// No two tools have names that are taken for one another.
    LookAlikes = "look-alikes",
    /// Bytes that are kept of a version count with the digest that was approved.
    KeptVersions = "kept-versions",
    /// A server answers requests for its own hosts only.
    HostList = "host-list",
    /// A server answers browser pages of listed origins only.
    OriginList = "origin-list",
    /// A server reads a bounded part of a body.
    BodyBytes = "body-bytes",
    /// A server waits a bounded time for a request's head.
    HeadTime = "head-time",
    /// A file of a call has a name without a path.
    CallFileNames = "call-file-names",
    /// A call can only read the files that came with it.
    CallFilesReadOnly = "call-files-read-only",
    /// An artifact is found by its own tenant only.
    ArtifactTenants = "artifact-tenants",
    /// The artifacts of a tenant have a bounded size together.
    ArtifactQuota = "artifact-quota",
    /// An expired artifact is removed also when its tenant does not come back.
    ArtifactSweep = "artifact-sweep",
    /// A tenant makes so many calls a minute.
    CallQuota = "call-quota",
    /// A server that others reach asks for keys, and keys do not travel in plain text.
    PublicAddress = "public-address",
    /// A tenant leaves as many bytes of bodies free as it holds.
    BodyShare = "body-share",
    /// A tenant leaves as many requests free as it has.
    RequestShare = "request-share",
    /// A request keeps its place and its bytes until its work has ended, not only until its
    /// connection has.
    WorkPlaces = "work-places",
    /// A tenant has a bounded number of open MCP streams.
    StreamCount = "stream-count",
    /// A session of MCP, and a tenant, have a bounded number of questions that wait for an answer.
    OpenQuestions = "open-questions",
    /// A session of MCP that only waits for answers ends when it is idle.
    IdleSessions = "idle-sessions",
    /// The connection that was idle for longest is closed for a new one.
    IdleConnections = "idle-connections",
    /// A revoked key's sessions and streams end.
    RevokedStreams = "revoked-streams",
    /// A token whose header or claims have two meanings is refused.
    TokenMeaning = "token-meaning",
    /// The sessions and streams of an expired token end.
    ExpiredStreams = "expired-streams",
    /// Labels of metrics are names of tenants and tools, and their number is bounded.
    MetricNames = "metric-names",
    /// Metrics are served on this machine only.
    MetricsAddress = "metrics-address",
    /// A key of a tenant that is not served opens no MCP session.
    ServedTenants = "served-tenants",
    /// The usage of a tenant does not show the tools that are hidden from it.
    HiddenUsage = "hidden-usage",
    /// The fuel that tools use beside calls is charged to the quota of the tenant.
    CheckFuel = "check-fuel",
    /// The principals of a tenant share a bound of requests with an `Idempotency-Key` and of their
    /// answers.
    TenantAnswers = "tenant-answers",
    /// An unknown API key takes the steps of a known one.
    KeyPath = "key-path",
    /// A server that starts without keys asks for them once there are some.
    KeyedServer = "keyed-server",
    /// An MCP session is used by the principal that opened it only.
    SessionPrincipal = "session-principal",
    /// A line of MCP is read up to a limit.
    LineBytes = "line-bytes",
    /// A message of MCP has one meaning: no member twice.
    OneMeaning = "one-meaning",
}
