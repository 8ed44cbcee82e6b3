package upstream_test

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/upstream"
)

// hostile are answers of less than 4 MiB that would make trees of hundreds.
var hostile = map[string]string{
	"lists":   `{"content":[],"structuredContent":{"a":[` + strings.Repeat("[],", 1_300_000) + `[]]}}`,
	"members": `{"content":[],"structuredContent":{"a":[` + strings.Repeat(`{"a":1},`, 500_000) + `{}]}}`,
	"blocks":  `{"content":[` + strings.Repeat(`0,`, 2_000_000) + `0]}`,
}

// answering is a server that gives the result, whole or streamed.
func answering(t *testing.T, result string, streamed bool) *rogue {
	t.Helper()
	return newRogue(t, func(s *rogue) {
		s.call = func(w http.ResponseWriter, _ *http.Request, m message) {
			if streamed {
				s.stream(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, result))
				return
			}
			s.result(w, m, result)
		}
	})
}

// TestManyValues: an answer of too many is refused before anything is made of it, by a
// code that says why, and takes no session along.
func TestManyValues(t *testing.T) { //nolint:paralleltest // it measures memory
	for name, result := range hostile {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/streamed=%v", name, streamed), func(t *testing.T) {
				s := answering(t, result, streamed)
				client := s.client(nil)
				if _, err := client.Tools(t.Context()); err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := echo(client, t.Context())
				runtime.ReadMemStats(&after)
				if codeOf(err) != upstream.CodeTooLarge {
					t.Errorf("%v, want %s", err, upstream.CodeTooLarge)
				}
				// The text itself is held a few times, here and at the server.
				if made := after.TotalAlloc - before.TotalAlloc; made > 16*upstream.DefaultMaxAnswer {
					t.Errorf("%d MiB were allocated", made>>20)
				}
				s.set(func(s *rogue) {
					s.call = func(w http.ResponseWriter, _ *http.Request, m message) { s.result(w, m, `{"content":[]}`) }
				})
				if _, err := echo(client, t.Context()); err != nil || s.made() != 1 {
					t.Errorf("the next call: %v, in session %d", err, s.made())
				}
			})
		}
	}
}

// TestManyValuesOfAGreeting: what a server says about itself goes no further than is
// needed, and one of too many values is no handshake.
func TestManyValuesOfAGreeting(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]error{100_000: nil, 1_000_000: upstream.ErrDiscovery} {
		s := newRogue(t, func(s *rogue) {
			s.noSession = true
			s.before = func(w http.ResponseWriter, _ *http.Request, m message) bool {
				if m.Method == "initialize" {
					s.result(w, m, `{"protocolVersion":"2025-06-18","serverInfo":{"name":"n","version":"1","title":7},"instructions":["not a text"],
						"capabilities":{"tools":{"listChanged":true},"experimental":[`+strings.Repeat("[],", n)+`1]}}`)
				}
				return m.Method == "initialize"
			}
		})
		if _, err := s.client(nil).Discover(t.Context()); !errors.Is(err, want) {
			t.Errorf("%d values: %v, want %v", n, err, want)
		}
	}
}

// TestSchemaSizes: a schema that is too large holds its tool back, and so do all that
// come after the sum is reached.
func TestSchemaSizes(t *testing.T) {
	t.Parallel()
	schema := func(size int) string {
		return `{"type":"object","title":"` + strings.Repeat("x", size-len(`{"type":"object","title":""}`)) + `"}`
	}
	tool := func(name string, size int) string {
		return fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, name, schema(size))
	}
	s := newRogue(t, func(s *rogue) {
		s.tools = strings.Join([]string{
			tool("at most", upstream.MaxSchema), tool("too large", upstream.MaxSchema+1),
			`{"name":"output","inputSchema":{},"outputSchema":` + schema(upstream.MaxSchema+1) + `}`,
		}, ",")
	})
	found, err := s.client(nil).Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, flawed := range map[string]bool{"at most": false, "too large": true, "output": true} {
		if got, ok := found.Find(name); !ok || (got.Flaw != "") != flawed || (got.InputSchema == nil) != flawed {
			t.Errorf("%s: flaw %q, %d bytes", name, got.Flaw, len(got.InputSchema))
		}
	}
	// Thirty-three of the largest, in pages.
	pages := newRogue(t, func(s *rogue) {
		s.before = func(w http.ResponseWriter, _ *http.Request, m message) bool {
			if m.Method != "tools/list" {
				return false
			}
			page := 0
			if _, cursor, ok := strings.Cut(string(m.Params), `"cursor":"`); ok {
				_, _ = fmt.Sscanf(cursor, "%d", &page)
			}
			next := fmt.Sprintf(`,"nextCursor":"%d"`, page+1)
			if page == upstream.MaxSchemas/upstream.MaxSchema {
				next = ""
			}
			s.result(w, m, fmt.Sprintf(`{"tools":[%s]%s}`, tool(fmt.Sprintf("tool-%02d", page), upstream.MaxSchema), next))
			return true
		}
	})
	client := pages.client(nil)
	if found, err = client.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range found.Tools {
		if last := i == len(found.Tools)-1; (found.Tools[i].Flaw != "") != last || (found.Tools[i].InputSchema == nil) != last {
			t.Errorf("%s: flaw %q, %d bytes", found.Tools[i].Name, found.Tools[i].Flaw, len(found.Tools[i].InputSchema))
		}
	}
	// Those that nobody wants take none of it.
	wanting := pages.client(func(o *upstream.Options) { o.OnlyWanted = true })
	wanting.Want("tool-32")
	if found, err = wanting.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range found.Tools {
		got := &found.Tools[i]
		if wanted := got.Name == "tool-32"; got.Flaw != "" || got.Digest == "" || (got.InputSchema != nil) != wanted {
			t.Errorf("%s: flaw %q, digest %q, %d bytes", got.Name, got.Flaw, got.Digest, len(got.InputSchema))
		}
	}
	wanting.Want("tool-32", "tool-00", "no such tool")
	if found, err = wanting.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first, _ := found.Find("tool-00"); len(first.InputSchema) != upstream.MaxSchema {
		t.Errorf("wanted later: %d bytes", len(first.InputSchema))
	}
	lists := len(pages.saw("tools/list"))
	if _, err := wanting.Tools(t.Context()); err != nil || len(pages.saw("tools/list")) != lists {
		t.Errorf("what is known was asked for again (%v)", err)
	}
}
