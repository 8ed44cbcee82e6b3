package plugin

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/sharedos-dev/operator/internal/plain"
	"github.com/sharedos-dev/operator/plugin/internal/command"
)

// The formats of -o.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = command.FormatJSON
	formatYAML  = "yaml"
)

func formats() []string { return []string{formatTable, formatWide, formatJSON, formatYAML} }

// output is how a command prints its answer.
type output struct{ format string }

func (o *output) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", formatTable, "output format: "+strings.Join(formats(), ", "))
	complete(cmd, "output", fixed(formats()...))
}

func (o *output) check() error {
	if !slices.Contains(formats(), o.format) {
		return usage("--output: %q is not one of %s", o.format, strings.Join(formats(), ", "))
	}
	return nil
}

func (o *output) wide() bool { return o.format == formatWide }

// print writes the value as JSON or YAML, or calls table for people.
func (o *output) print(w io.Writer, value any, table func(w io.Writer) error) error {
	switch o.format {
	case formatJSON:
		return command.WriteJSON(w, value)
	case formatYAML:
		data, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode the answer: %w", err)
		}
		_, err = w.Write(data)
		return err
	default:
		return table(w)
	}
}

// table aligns rows. Every cell is made plain.
type table struct {
	w    *tabwriter.Writer
	wide bool
	hide int // trailing columns that are shown only when wide
}

// newTable begins a table whose last hide columns are for wide output.
func newTable(w io.Writer, wide bool, hide int, columns ...string) *table {
	t := &table{w: tabwriter.NewWriter(w, 0, 4, 3, ' ', 0), wide: wide, hide: hide}
	t.row(columns...)
	return t
}

func (t *table) row(cells ...string) {
	if !t.wide {
		cells = cells[:len(cells)-t.hide]
	}
	line := make([]string, len(cells))
	for i, cell := range cells {
		if cell == "" {
			cell = "-"
		}
		line[i] = plain.Text(cell)
	}
	fmt.Fprintln(t.w, strings.Join(line, "\t"))
}

func (t *table) flush() error {
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
