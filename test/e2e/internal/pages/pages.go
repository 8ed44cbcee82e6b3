// Package pages finds the commands that the documentation tells people to type.
//
// A fenced block without a language, or of "sh", holds commands, one a line, with the shell's
// continuation and comments; in a block of the language "console" commands begin with
// "$ " and what follows is their output. Every other language is no command. A block
// that cannot be run by a test has the reason in a comment just above it:
//
//	<!-- not run: it needs your registry -->
package pages

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Block is one fenced block of commands.
type Block struct {
	File string
	// Line is the first line inside the fence.
	Line int
	// Commands is the text for a shell.
	Commands string
	// NotRun is why no test runs it; empty for a block to run.
	NotRun string
}

// languages of blocks that are no commands.
var languages = []string{"text", "yaml", "json", "go", "lua", "toml", "promql", "diff"}

// commands says that a block's lines are commands.
func commands(language string) bool { return language == "" || language == "sh" }

const notRun = "<!-- not run:"

// Find reads the pages below root: README.md, CONTRIBUTING.md and everything in docs.
// A fence of a language that is not known is an error, so that nothing is passed over.
func Find(root string) ([]Block, error) {
	files := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the pages: %w", err)
	}
	var out []Block
	for _, file := range files {
		found, err := read(root, file)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func read(root, path string) ([]Block, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a page: %w", err)
	}
	defer func() { _ = file.Close() }()
	name, err := filepath.Rel(root, path)
	if err != nil {
		return nil, fmt.Errorf("name a page: %w", err)
	}
	return scan(name, bufio.NewScanner(file))
}

func scan(name string, lines *bufio.Scanner) ([]Block, error) { //nolint:gocyclo // a line at a time, each kind of line once
	var out []Block
	var open *Block // the block we are in
	var fence, language, reason string
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case open == nil && strings.HasPrefix(line, "```"):
			language = strings.TrimLeft(line, "`")
			fence = line[:len(line)-len(language)]
			if !commands(language) && language != "console" && !slices.Contains(languages, language) {
				return nil, fmt.Errorf("%s:%d: a block of %q; known are %v, console, and none for commands", name, n, language, languages)
			}
			open = &Block{File: name, Line: n + 1, NotRun: reason}
		case open == nil:
			if rest, ok := strings.CutPrefix(line, notRun); ok {
				reason = strings.TrimSpace(strings.TrimSuffix(rest, "-->"))
			} else if line != "" {
				reason = ""
			}
		case line == fence:
			if (commands(language) || language == "console") && strings.TrimSpace(open.Commands) != "" {
				out = append(out, *open)
			}
			open, reason = nil, ""
		case commands(language):
			open.Commands += lines.Text() + "\n"
		case language == "console":
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				open.Commands += command + "\n"
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if open != nil {
		return nil, fmt.Errorf("%s:%d: the block does not end", name, open.Line)
	}
	return out, nil
}
