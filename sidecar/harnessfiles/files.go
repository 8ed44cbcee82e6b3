// Package harnessfiles writes what a harness finds of its turn: the message, the
// state if there is one, and the connection file of its kind. The layout is that of
// the shared volume of a harness pod, wherever it lies.
package harnessfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
	"github.com/sharedos-dev/operator/mcp"
)

// Modes: every user of the pod may read, whatever this process's umask, and the
// writer alone may write.
const (
	modeFile fs.FileMode = 0o644
	modeDir  fs.FileMode = 0o755
)

// In is where a path below [bridge.SharedDir] lies when dir stands for that.
func In(dir, path string) string {
	return filepath.Join(dir, strings.TrimPrefix(path, bridge.SharedDir))
}

// Config is the connection file's path for a harness of that type.
func Config(dir, harness string) string {
	return In(dir, filepath.Join(bridge.ConfigDir, bridge.ConfigFileName(harness)))
}

// Write writes the files of a turn whose bridge listens at the URL. They hold the
// execution token.
func Write(dir string, attached *bridge.AttachResponse, url string) error {
	message, err := json.Marshal(attached.Message)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	connection, err := connectionFile(attached, url)
	if err != nil {
		return fmt.Errorf("make connection file: %w", err)
	}
	files := map[string][]byte{
		In(dir, bridge.MessageFile):     message,
		In(dir, bridge.MessageTextFile): []byte(Text(attached.Message.Payload)),
		Config(dir, attached.Harness):   []byte(connection),
	}
	if len(attached.State) > 0 {
		files[In(dir, bridge.StateFile)] = attached.State
	}
	for path, content := range files {
		err := Place(path, modeFile, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Text is a message for a harness that only reads text: the payload if it is
// a string, its text if it is an object that has one, else its JSON.
func Text(payload contract.Value) string {
	node, err := strictjson.Parse(payload)
	if err != nil {
		return string(payload)
	}
	if text, ok := node.Member("text"); ok {
		node = text
	}
	if node.Kind == strictjson.String {
		return node.Text
	}
	return string(payload)
}

// connectionFile is the harness's own configuration format. A harness of no known
// kind gets the one most clients read.
func connectionFile(attached *bridge.AttachResponse, url string) (string, error) {
	c := mcp.Connection{URL: url, TimeoutSec: attached.TimeoutSec, Token: attached.ExecutionToken}
	file, err := mcp.HarnessConfigFile(attached.Harness, c)
	if errors.Is(err, mcp.ErrUnknownHarness) {
		return mcp.ClaudeCodeConfig(c)
	}
	return file.Contents, err
}

// Place writes a file beside its place and moves it there, so that nobody ever
// reads half of one, nor a wrapper that is running is written over.
func Place(path string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(dir, modeDir); err != nil {
		return fmt.Errorf("make directory of %s: %w", name, err)
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error counts
		}
	}()
	if err := errors.Join(write(f), f.Chmod(mode), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("place %s: %w", name, err)
	}
	return nil
}
