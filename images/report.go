package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/sharedos-dev/operator/images/internal/build"
)

// table is what a person reads at the end: one line per image.
type table struct {
	rows []build.Result
}

func (t *table) add(results ...build.Result) { t.rows = append(t.rows, results...) }

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "IMAGE\tPLATFORM\tSIZE\tDIGEST\tSTATE")
	for _, row := range t.rows {
		state := "written"
		switch {
		case row.Pushed:
			state = "pushed"
		case row.Unchanged:
			state = "unchanged"
		}
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", row.Reference, row.Platform, size(row.Bytes), row.Digest, state)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

// size writes a number of bytes in mebibytes with one decimal.
func size(bytes int64) string {
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
