package files

import "github.com/sharedos-dev/operator/kernel/contract"

// Inputs are the operation's input: a call's arguments without the path.

// SearchInput is the input of files.search.
type SearchInput struct {
	Query string `json:"query"`
	Limit int    `json:"limit,omitempty"` // 0 is DefaultSearchLimit
}

// GrepInput is the input of files.grep.
type GrepInput struct {
	Pattern       string `json:"pattern"`
	Mode          string `json:"mode,omitempty"` // empty is ModeLiteral
	CaseSensitive bool   `json:"caseSensitive,omitempty"`
	ContextBefore int    `json:"contextBefore,omitempty"`
	ContextAfter  int    `json:"contextAfter,omitempty"`
}

// WriteInput is the input of files.create, files.replace and files.append; each
// takes only the fields its schema names.
type WriteInput struct {
	Content         string          `json:"content"`
	Encoding        string          `json:"encoding,omitempty"` // empty is EncodingUTF8
	ExpectedVersion string          `json:"expectedVersion,omitempty"`
	Metadata        contract.Object `json:"metadata,omitempty"`
}

// DeleteInput is the input of files.delete.
type DeleteInput struct {
	ExpectedVersion string `json:"expectedVersion,omitempty"`
	Recursive       bool   `json:"recursive,omitempty"`
}

// SnapshotCreateInput is the input of files.snapshot.create.
type SnapshotCreateInput struct {
	Label string `json:"label,omitempty"`
}

// SnapshotListInput is the input of files.snapshot.list.
type SnapshotListInput struct {
	Limit int `json:"limit,omitempty"` // 0 is DefaultSnapshotLimit
}

// SnapshotRestoreInput is the input of files.snapshot.restore.
type SnapshotRestoreInput struct {
	SnapshotID      string `json:"snapshotId"`
	ExpectedVersion string `json:"expectedVersion,omitempty"`
}
