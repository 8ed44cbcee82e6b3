package files

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
)

// list answers files.list.
func (p *Provider) list(ctx context.Context, c *call) (any, error) {
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	dir, err := c.tree.folder(c.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := readNames(ctx, dir)
	if err != nil {
		return nil, err
	}
	out := plane.ListOutput{Path: c.path, Entries: []plane.Entry{}}
	for _, name := range names {
		if !addressable(name) {
			out.Omitted++
			continue
		}
		if len(out.Entries) == p.opts.MaxEntries {
			out.Truncated = true
			break
		}
		info, err := dir.Lstat(name)
		if err != nil {
			continue // gone since
		}
		out.Entries = append(out.Entries, plane.Entry{
			Name: name, Type: typeOf(info.Mode()), Size: sizeOf(info), ModifiedAt: contract.At(info.ModTime()),
		})
	}
	return out, nil
}

// readNames returns the sorted names in a folder without the provider's own.
func readNames(ctx context.Context, dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var names []string
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		batch, err := f.Readdirnames(4096)
		for _, name := range batch {
			if !isReserved(name) {
				names = append(names, name)
			}
		}
		if err == io.EOF {
			slices.SortFunc(names, cmp.Compare[string])
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read folder: %w", err)
		}
	}
}

func sizeOf(info fs.FileInfo) *int64 {
	if !info.Mode().IsRegular() {
		return nil
	}
	size := info.Size()
	return &size
}

// stat answers files.stat.
func (p *Provider) stat(ctx context.Context, c *call) (any, error) {
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	info, err := c.tree.lstat(c.path)
	if err != nil {
		return nil, err
	}
	out := plane.StatOutput{Path: c.path, Type: typeOf(info.Mode()), Size: sizeOf(info), ModifiedAt: contract.At(info.ModTime())}
	if out.Type != plane.TypeFile {
		return out, nil
	}
	f, info, err := c.tree.file(c.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if out.Version, err = p.versions.of(ctx, f, info); err != nil {
		return nil, err
	}
	if out.Metadata, err = p.metadata(c.tree, c.path); err != nil {
		return nil, err
	}
	out.Size, out.ModifiedAt = sizeOf(info), contract.At(info.ModTime())
	return out, nil
}

// read answers files.read.
func (p *Provider) read(ctx context.Context, c *call) (any, error) {
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	f, info, err := c.tree.file(c.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > p.opts.MaxRead {
		return nil, fail(plane.CodeTooLarge, "The file has %d bytes; at most %d can be read at once.", info.Size(), p.opts.MaxRead)
	}
	weight := max(info.Size(), 1)
	if err := p.budget.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	defer p.budget.Release(weight)
	content := make([]byte, info.Size())
	n, err := io.ReadFull(f, content)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF { //nolint:errorlint // ReadFull returns them bare
		return nil, fmt.Errorf("read file: %w", err)
	}
	content = content[:n] // shorter when a writer beside us cut it
	version, ok := p.versions.get(info)
	if !ok || int64(n) != info.Size() {
		sum := sha256.Sum256(content)
		version = hex.EncodeToString(sum[:])
		if int64(n) == info.Size() {
			p.versions.put(info, sum)
		}
	}
	return encodeRead(c.path, content, version, contract.At(info.ModTime()))
}

// encodeRead writes a [plane.ReadOutput] without copying the content more than once.
func encodeRead(path contract.Path, content []byte, version string, modified contract.Timestamp) (contract.Value, error) {
	head, err := encode(struct {
		Path       contract.Path      `json:"path"`
		Size       int                `json:"size"`
		Version    string             `json:"version"`
		ModifiedAt contract.Timestamp `json:"modifiedAt"`
	}{path, len(content), version, modified})
	if err != nil {
		return nil, err
	}
	head = bytes.TrimSuffix(head, []byte("}"))
	text := isText(content)
	encoding := plane.EncodingUTF8
	room := len(content) + len(content)/16
	if !text {
		encoding = plane.EncodingBase64
		room = base64.StdEncoding.EncodedLen(len(content))
	}
	out := make([]byte, 0, len(head)+room+64)
	out = append(out, head...)
	out = append(out, `,"encoding":`...)
	out = strconv.AppendQuote(out, encoding)
	out = append(out, `,"content":`...)
	if text {
		out = appendJSONText(out, content)
	} else {
		out = append(out, '"')
		out = base64.StdEncoding.AppendEncode(out, content)
		out = append(out, '"')
	}
	return append(out, '}'), nil
}

func hasZero(content []byte) bool { return bytes.IndexByte(content, 0) >= 0 }
