// Command conditiondocs writes a Markdown reference of the condition types and
// reasons that are declared as constants in a package of API types. Its one
// argument is the package's folder.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conditiondocs:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the folder of a package, got %d", len(args))
	}
	files, err := readPackage(args[0])
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, render(files))
	if err != nil {
		return fmt.Errorf("write reference: %w", err)
	}
	return nil
}
