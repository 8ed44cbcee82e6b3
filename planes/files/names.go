package files

// Namespace is both the tool namespace and the resource namespace of the plane.
const Namespace = "files"

// Source is the provenance of the definitions.
const Source = "sharedos"

// Actions of the plane.
const (
	ActionList            = "list"
	ActionStat            = "stat"
	ActionRead            = "read"
	ActionSearch          = "search"
	ActionGrep            = "grep"
	ActionCreate          = "create"
	ActionReplace         = "replace"
	ActionAppend          = "append"
	ActionDelete          = "delete"
	ActionSnapshotCreate  = "snapshot:create"
	ActionSnapshotList    = "snapshot:list"
	ActionSnapshotRestore = "snapshot:restore"
)

// Limits of arguments and defaults where an argument is absent.
const (
	MaxQuery             = 8192 // code points of query and pattern
	MaxContextLines      = 100
	MaxSearchLimit       = 100
	DefaultSearchLimit   = 20
	MaxSnapshotLimit     = 100
	DefaultSnapshotLimit = 20
	MaxLabel             = 256 // code points
)

// Modes of files.grep.
const (
	ModeLiteral = "literal"
	ModeRegex   = "regex"
)

// Encodings of content.
const (
	EncodingUTF8   = "utf-8"
	EncodingBase64 = "base64"
)

// Types of an entry.
const (
	TypeFile      = "file"
	TypeDirectory = "directory"
	TypeSymlink   = "symlink"
	TypeOther     = "other"
)

// Codes a provider of the plane may fail with, beside version_conflict.
const (
	CodeNotFound         = "not_found"
	CodeAlreadyExists    = "already_exists"
	CodeNotAFile         = "not_a_file"
	CodeNotADirectory    = "not_a_directory"
	CodeNotEmpty         = "directory_not_empty"
	CodeTooLarge         = "file_too_large"
	CodeTooMany          = "too_many_files"
	CodeInvalidContent   = "invalid_content"
	CodeInvalidInput     = "invalid_input"
	CodeInvalidPattern   = "invalid_pattern"
	CodeInvalidPath      = "invalid_path"
	CodeReadOnly         = "read_only"
	CodeNoSpace          = "no_space"
	CodeSnapshotNotFound = "snapshot_not_found"
	CodeSearchNotReady   = "search_not_ready"
	CodeUnsupported      = "unsupported_action"
)
