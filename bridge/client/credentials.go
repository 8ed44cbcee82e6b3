package client

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

// maxTokenBytes is far above any real ServiceAccount token and below what a
// header may carry.
const maxTokenBytes = 32 << 10

// settled is how old a file must be for its times to tell a later change: within one
// tick of the file system's clock it could be written twice.
const settled = 2 * time.Second

// tokenSource is the pod's token, read again whenever the file is another one. The
// kubelet replaces the file, and asking which file it is costs a fraction of reading it.
type tokenSource struct {
	path string

	mu    sync.Mutex
	file  fs.FileInfo // what token was read from; nil when there is none to keep
	token string
}

// read returns what the file holds now.
func (t *tokenSource) read() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := os.Stat(t.path)
	if err != nil {
		return "", fmt.Errorf("open pod token: %w", err)
	}
	if t.file != nil && os.SameFile(t.file, now) && t.file.ModTime().Equal(now.ModTime()) && t.file.Size() == now.Size() {
		return t.token, nil
	}
	t.file = nil
	token, err := readToken(t.path)
	if err != nil {
		return "", err
	}
	if time.Since(now.ModTime()) > settled {
		t.file, t.token = now, token
	}
	return token, nil
}

// forget makes the next read a real one: the token was not accepted.
func (t *tokenSource) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.file = nil
}

// readToken reads the pod's token. Its errors name the file, never what is in it.
func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open pod token: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxTokenBytes+1))
	if err != nil {
		return "", fmt.Errorf("read pod token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if !headerSafe(token) {
		return "", errors.New("read pod token: the file holds no token")
	}
	return token, nil
}

// headerSafe says that a token is present, bounded and visible ASCII, so that
// net/http never refuses it with an error that might quote it.
func headerSafe(token string) bool {
	if token == "" || len(token) > maxTokenBytes {
		return false
	}
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return false
		}
	}
	return true
}
