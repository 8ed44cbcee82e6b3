package peers_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/test/peers/turn"
)

// asServer makes the test binary a stdio server, for clients that spawn one.
const asServer = "SHAREDOS_PEERS_STDIO"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) == "" {
		os.Exit(m.Run())
	}
	if err := serveStdio(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveStdio(ctx context.Context) error {
	t, err := turn.Open(ctx, turn.Options{})
	if err != nil {
		return err
	}
	defer t.End()
	return mcp.ServeStdio(ctx, t.Server, os.Stdin, os.Stdout)
}

const token = "token-1"

// open starts a turn and serves it on loopback until the test ends.
func open(tb testing.TB, opts turn.Options, authorized bool) (*turn.Turn, *mcp.HTTPServer) {
	tb.Helper()
	t, err := turn.Open(context.WithoutCancel(tb.Context()), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { t.End() })
	listener := mcp.HTTPOptions{Server: t.Server}
	if authorized {
		listener.Authorize = func(bearer string, present bool) bool { return present && bearer == token }
	}
	s, err := mcp.NewHTTPServer(tb.Context(), listener)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return t, s
}
