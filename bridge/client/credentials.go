package client

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxTokenBytes is far above any real ServiceAccount token and below what a
// header may carry.
const maxTokenBytes = 32 << 10

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
