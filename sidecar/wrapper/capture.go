package wrapper

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/sharedos-dev/operator/bridge"
)

// capture passes output on, keeps its first [bridge.MaxOutputBytes], and counts and
// hashes all of it. Output that can no longer be passed on is still captured.
type capture struct {
	tee  io.Writer
	head []byte
	size int64
	sum  hash.Hash
	lost error // why tee stopped taking output
}

func newCapture(tee io.Writer) *capture {
	return &capture{tee: tee, sum: sha256.New()}
}

// Write implements [io.Writer]. It never fails.
func (c *capture) Write(p []byte) (int, error) {
	if room := bridge.MaxOutputBytes - len(c.head); room > 0 {
		c.head = append(c.head, p[:min(room, len(p))]...)
	}
	c.size += int64(len(p))
	c.sum.Write(p)
	if c.lost == nil {
		_, c.lost = c.tee.Write(p)
	}
	return len(p), nil
}

func (c *capture) describe(o *bridge.Outcome) {
	o.Output = c.head
	o.OutputSize = c.size
	o.OutputSHA256 = hex.EncodeToString(c.sum.Sum(nil))
}
