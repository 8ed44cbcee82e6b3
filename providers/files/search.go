package files

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/files"
)

// searchWait is how long a search waits for the index to be current.
const searchWait = 10 * time.Second

// search answers files.search.
func (p *Provider) search(ctx context.Context, c *call) (any, error) {
	var in plane.SearchInput
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := textOf("query", in.Query, plane.MaxQuery); err != nil {
		return nil, err
	}
	if err := limited(&in.Limit, plane.DefaultSearchLimit, plane.MaxSearchLimit); err != nil {
		return nil, err
	}
	if _, err := c.tree.lstat(c.path); err != nil {
		return nil, err
	}
	x := c.tree.indexer
	if x == nil {
		return nil, fail(plane.CodeUnsupported, "This provider does not search.")
	}
	if err := x.current(ctx); err != nil {
		return nil, err
	}
	paths, total, err := x.index.Search(ctx, c.path, in.Query, in.Limit)
	if err != nil {
		return nil, err
	}
	out := plane.SearchOutput{Path: c.path, Hits: []plane.SearchHit{}, Total: total}
	matchers := wordMatchers(in.Query)
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// The index is asked for what lies below the path, and not trusted.
		if !below(path, c.path) {
			return nil, fmt.Errorf("search index: it answered a path outside of the one asked for")
		}
		hit, err := c.tree.excerpt(path, matchers)
		if err != nil {
			out.Total-- // gone since
			continue
		}
		out.Hits = append(out.Hits, hit)
	}
	return out, nil
}

func below(path, at contract.Path) bool {
	if len(path) < len(at) {
		return false
	}
	for i := range at {
		if path[i] != at[i] {
			return false
		}
	}
	return true
}

// current waits for the first scan and brings in what changed since.
func (x *indexer) current(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, searchWait)
	defer cancel()
	select {
	case <-x.scanned:
	case <-waiting.Done():
		return notReady(ctx)
	}
	x.mu.Lock()
	clean := len(x.dirty) == 0 && !x.taken
	x.mu.Unlock()
	if clean {
		return nil
	}
	if x.acquire(waiting) != nil {
		return notReady(ctx)
	}
	defer x.release()
	return x.flush(ctx)
}

func notReady(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return failRetryable(plane.CodeSearchNotReady, "The search index is still being made.")
}

const (
	// maxExcerpt bounds an excerpt, bytes; excerptScan how much of a file is looked
	// through for one; maxWords how many words of the query take part.
	maxExcerpt  = 300
	excerptScan = 256 << 10
	maxWords    = 16
)

// wordMatchers finds the words of a query, or how they begin when they are long.
func wordMatchers(query string) []matcher {
	var out []matcher
	for word := range strings.FieldsFuncSeq(query, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		if runes := []rune(word); len(runes) > 5 {
			word = string(runes[:len(runes)-2]) // its stem may stand there
		}
		if m, err := newMatcher(&plane.GrepInput{Pattern: word}); err == nil {
			out = append(out, m)
		}
		if len(out) == maxWords {
			break
		}
	}
	return out
}

// excerpt shows the line of a file that holds the most words, among the first lines
// of each, or how the file begins.
func (t *tree) excerpt(path contract.Path, words []matcher) (plane.SearchHit, error) {
	f, info, err := t.file(path)
	if err != nil {
		return plane.SearchHit{}, err
	}
	defer func() { _ = f.Close() }()
	text, err := beginning(f, min(info.Size(), excerptScan))
	if err != nil {
		return plane.SearchHit{}, err
	}
	b := []byte(text)
	start, best := 0, -1
	for _, word := range words {
		at := word.find(b)
		if at < 0 {
			continue
		}
		from := strings.LastIndexByte(text[:at], '\n') + 1
		line := b[from:indexFrom(b, '\n', from)]
		count := 0
		for _, other := range words {
			if other.find(line) >= 0 {
				count++
			}
		}
		if count > best || (count == best && from < start) {
			start, best = from, count
		}
	}
	hit := plane.SearchHit{Path: path, Line: 1 + strings.Count(text[:start], "\n")}
	hit.Text = strings.TrimSpace(cutText(text[start:], maxExcerpt))
	return hit, nil
}

// cutText is the beginning of s without half a character at its end.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
