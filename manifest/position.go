package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Position is a place in a file. Lines count from 1; 0 is the file as a whole.
type Position struct {
	File string
	Line int
}

// String returns file:line.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Fault is one thing that is wrong with a file.
type Fault struct { //nolint:errname // what a reader of a folder calls it
	Position
	Message string
}

// Error implements error.
func (f Fault) Error() string { return f.Position.String() + ": " + f.Message }

// Faults are everything that is wrong, in the order of the files. As an error they
// read one a line.
type Faults []Fault //nolint:errname // as Fault

// Error implements error.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// orNil is the faults as an error, or nil when there is none.
func (f Faults) orNil() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// sorted orders faults by file and line.
func (f Faults) sorted() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Message, b.Message))
	})
	return f
}
