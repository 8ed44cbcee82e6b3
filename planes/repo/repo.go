package repo

import (
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Namespace is both the tool namespace and the resource namespace of the plane.
const Namespace = "repo"

// Source is the provenance of the definitions.
const Source = "sharedos"

// Actions of the plane.
const (
	ActionStatus = "status"
	ActionDiff   = "diff"
	ActionLog    = "log"
	ActionStage  = "stage"
	ActionCommit = "commit"
)

// Limits of arguments and defaults where an argument is absent.
const (
	MaxPathspec     = 256
	MaxLogCount     = 1000
	DefaultLogCount = 20
	MaxMessage      = 8192 // code points
)

// Codes a provider of the plane may fail with.
const (
	CodeNotFound        = "not_found"
	CodeNotARepository  = "not_a_repository"
	CodeUnsupported     = "unsupported_repository"
	CodeDamaged         = "damaged_repository"
	CodeLocked          = "repository_locked"
	CodeNothingToStage  = "nothing_to_stage"
	CodeNothingToCommit = "nothing_to_commit"
	CodeTooLarge        = "repository_too_large"
	CodeInvalidInput    = "invalid_input"
	CodeInvalidPath     = "invalid_path"
	CodeReadOnly        = "read_only"
	CodeBadAction       = "unsupported_action"
)

// States of a file, in the index and in the working tree.
const (
	StateUnmodified = "unmodified"
	StateUntracked  = "untracked"
	StateModified   = "modified"
	StateAdded      = "added"
	StateDeleted    = "deleted"
	StateOther      = "other"
)

// DiffInput is the input of repo.diff.
type DiffInput struct {
	// Staged compares the index with the last commit, else the working tree with
	// the index.
	Staged bool `json:"staged,omitempty"`
	// Pathspec are paths inside the repository; each stands for itself and what is
	// below it. Absent is everything.
	Pathspec []contract.Path `json:"pathspec,omitempty"`
}

// LogInput is the input of repo.log.
type LogInput struct {
	MaxCount int `json:"maxCount,omitempty"` // 0 is DefaultLogCount
}

// StageInput is the input of repo.stage.
type StageInput struct {
	Pathspec []contract.Path `json:"pathspec"`
}

// CommitInput is the input of repo.commit.
type CommitInput struct {
	Message string `json:"message"`
}

// FileStatus is one file that is not as in the last commit.
type FileStatus struct {
	Path     contract.Path `json:"path"`
	Staged   string        `json:"staged"`
	Worktree string        `json:"worktree"`
}

// StatusOutput is the output of repo.status, the files sorted by path.
type StatusOutput struct {
	Path contract.Path `json:"path"`
	// Branch is absent when no branch is checked out, Head before the first commit.
	Branch    string       `json:"branch,omitempty"`
	Head      string       `json:"head,omitempty"`
	Clean     bool         `json:"clean"`
	Files     []FileStatus `json:"files"`
	Truncated bool         `json:"truncated"`
}

// DiffOutput is the output of repo.diff.
type DiffOutput struct {
	Path contract.Path `json:"path"`
	// Patch is a unified diff. Files that are binary or large show only as changed.
	Patch     string `json:"patch"`
	Files     int    `json:"files"`
	Truncated bool   `json:"truncated"`
}

// Signature says who and when.
type Signature struct {
	Name  string             `json:"name"`
	Email string             `json:"email"`
	When  contract.Timestamp `json:"when"`
}

// Commit is one commit.
type Commit struct {
	ID        string    `json:"id"`
	Parents   []string  `json:"parents"`
	Author    Signature `json:"author"`
	Committer Signature `json:"committer"`
	Message   string    `json:"message"`
}

// LogOutput is the output of repo.log, the newest commit first.
type LogOutput struct {
	Path      contract.Path `json:"path"`
	Commits   []Commit      `json:"commits"`
	Truncated bool          `json:"truncated"`
}

// StageOutput is the output of repo.stage.
type StageOutput struct {
	Path   contract.Path   `json:"path"`
	Staged []contract.Path `json:"staged"`
}

// CommitOutput is the output of repo.commit.
type CommitOutput struct {
	Path   contract.Path `json:"path"`
	Commit Commit        `json:"commit"`
}
