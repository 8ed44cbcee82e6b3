package sidecar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
	"github.com/sharedos-dev/operator/mcp"
)

// Everything in the shared volume is for every user of the pod to read, whatever
// this process's umask, and for the sidecar alone to write.
const (
	modeFile   fs.FileMode = 0o644
	modeBinary fs.FileMode = 0o755
	modeDir    fs.FileMode = 0o755
)

// installBinary copies this program to where the wrapper is started from.
func installBinary(o *Options) error {
	if o.Binary == "" {
		return nil
	}
	source, err := os.Open(o.Binary)
	if err != nil {
		return fmt.Errorf("open own binary: %w", err)
	}
	defer source.Close() //nolint:errcheck // read only
	return place(o.in(bridge.WrapperPath), modeBinary, func(w io.Writer) error {
		_, err := io.Copy(w, source)
		return err
	})
}

// writeHarnessFiles writes what a harness reads: the message, the state if there is
// one, and the connection file of its kind.
func writeHarnessFiles(o *Options, attached *bridge.AttachResponse, url string) error {
	message, err := json.Marshal(attached.Message)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	connection, err := connectionFile(attached, url)
	if err != nil {
		return fmt.Errorf("make connection file: %w", err)
	}
	files := map[string][]byte{
		bridge.MessageFile:     message,
		bridge.MessageTextFile: []byte(messageText(attached.Message.Payload)),
		filepath.Join(bridge.ConfigDir, bridge.ConfigFileName(attached.Harness)): []byte(connection),
	}
	if len(attached.State) > 0 {
		files[bridge.StateFile] = attached.State
	}
	for path, content := range files {
		err := place(o.in(path), modeFile, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// messageText is a message for a harness that only reads text: the payload if it is
// a string, its text if it is an object that has one, else its JSON.
func messageText(payload contract.Value) string {
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

// place writes a file beside its place and moves it there, so that nobody ever
// reads half of one, nor a wrapper that is running is written over.
func place(path string, mode fs.FileMode, write func(io.Writer) error) (err error) {
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
