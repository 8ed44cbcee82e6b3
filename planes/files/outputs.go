package files

import "github.com/sharedos-dev/operator/kernel/contract"

// Entry is one member of a directory.
type Entry struct {
	Name       string             `json:"name"`
	Type       string             `json:"type"`
	Size       *int64             `json:"size,omitempty"` // bytes, of files only
	ModifiedAt contract.Timestamp `json:"modifiedAt"`
}

// ListOutput is the output of files.list, sorted by name.
type ListOutput struct {
	Path    contract.Path `json:"path"`
	Entries []Entry       `json:"entries"`
	// Omitted counts members whose names no path can express.
	Omitted   int  `json:"omitted,omitempty"`
	Truncated bool `json:"truncated"`
}

// StatOutput is the output of files.stat.
type StatOutput struct {
	Path       contract.Path      `json:"path"`
	Type       string             `json:"type"`
	Size       *int64             `json:"size,omitempty"`
	ModifiedAt contract.Timestamp `json:"modifiedAt"`
	// Version is the lower-case hex SHA-256 of a file's content.
	Version  string          `json:"version,omitempty"`
	Metadata contract.Object `json:"metadata,omitempty"`
}

// ReadOutput is the output of files.read.
type ReadOutput struct {
	Path       contract.Path      `json:"path"`
	Encoding   string             `json:"encoding"`
	Content    string             `json:"content"`
	Size       int64              `json:"size"`
	Version    string             `json:"version"`
	ModifiedAt contract.Timestamp `json:"modifiedAt"`
}

// SearchHit is one file that files.search found.
type SearchHit struct {
	Path contract.Path `json:"path"`
	// Text is an excerpt of the current content around the words of the query.
	Text string `json:"text"`
	// Line is the excerpt's first line, from 1.
	Line int `json:"line"`
}

// SearchOutput is the output of files.search, the best hit first.
type SearchOutput struct {
	Path contract.Path `json:"path"`
	Hits []SearchHit   `json:"hits"`
	// Total counts the matching files below the path.
	Total int `json:"total"`
}

// GrepMatch is one matching line.
type GrepMatch struct {
	Path contract.Path `json:"path"`
	Line int64         `json:"line"` // from 1
	Text string        `json:"text"`
	// Cut says that the line was longer than what Text shows.
	Cut    bool     `json:"cut,omitempty"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// GrepOutput is the output of files.grep, ordered by path and line.
type GrepOutput struct {
	Path    contract.Path `json:"path"`
	Matches []GrepMatch   `json:"matches"`
	// FilesSearched and FilesSkipped count files up to where the answer ends;
	// binary and unreadable files are skipped.
	FilesSearched int  `json:"filesSearched"`
	FilesSkipped  int  `json:"filesSkipped"`
	Truncated     bool `json:"truncated"`
}

// WriteOutput is the output of files.create, files.replace and files.append.
type WriteOutput struct {
	Path       contract.Path      `json:"path"`
	Size       int64              `json:"size"`
	Version    string             `json:"version"`
	ModifiedAt contract.Timestamp `json:"modifiedAt"`
	Created    bool               `json:"created"`
}

// DeleteOutput is the output of files.delete.
type DeleteOutput struct {
	Path contract.Path `json:"path"`
	// Deleted counts the files that are gone.
	Deleted int `json:"deleted"`
}

// Snapshot describes one snapshot.
type Snapshot struct {
	ID        string             `json:"id"`
	Label     string             `json:"label,omitempty"`
	Type      string             `json:"type"` // of what was at the path
	CreatedAt contract.Timestamp `json:"createdAt"`
	Files     int                `json:"files"`
	Bytes     int64              `json:"bytes"`
}

// SnapshotCreateOutput is the output of files.snapshot.create.
type SnapshotCreateOutput struct {
	Path     contract.Path `json:"path"`
	Snapshot Snapshot      `json:"snapshot"`
}

// SnapshotListOutput is the output of files.snapshot.list, the newest first: the
// snapshots of exactly this path.
type SnapshotListOutput struct {
	Path      contract.Path `json:"path"`
	Snapshots []Snapshot    `json:"snapshots"`
	Truncated bool          `json:"truncated"`
}

// SnapshotRestoreOutput is the output of files.snapshot.restore.
type SnapshotRestoreOutput struct {
	Path       contract.Path `json:"path"`
	SnapshotID string        `json:"snapshotId"`
	Files      int           `json:"files"`
	// Version is that of a restored file.
	Version string `json:"version,omitempty"`
}
