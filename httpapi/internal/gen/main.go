// Command gen writes the OpenAPI document and the reference of the HTTP API into the
// folder that is its one argument.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sharedos-dev/operator/httpapi"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the folder to write into, got %d", len(args))
	}
	document, err := httpapi.Document("")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"openapi.json": document, "http-api.md": []byte(httpapi.Reference()),
	} {
		//nolint:gosec // documents for everyone to read
		if err := os.WriteFile(filepath.Join(args[0], name), content, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
