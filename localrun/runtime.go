package localrun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/mcp"
	"github.com/sharedos-dev/operator/sessions"
	"github.com/sharedos-dev/operator/sidecar/harnessfiles"
)

// process is the runtime of a harness that is a subprocess with a bridge on loopback.
type process struct {
	opts    *Options
	program program
	dir     string // private
	ended   chan struct{}
}

// Run implements [envelope.Runtime]. It returns once the process and all that it
// started have ended.
func (p *process) Run(ctx context.Context, req envelope.Request, host envelope.Host) (envelope.Outcome, error) {
	defer close(p.ended)
	turn := mcp.OpenTurnBridge(mcp.TurnBridgeOptions{Catalogue: req.Catalogue, Host: host, Now: p.opts.Clock})
	defer turn.Close()
	server, err := mcp.NewServer(mcp.ServerOptions{Invoker: turn})
	if err != nil {
		return envelope.Outcome{}, fmt.Errorf("make MCP server: %w", err)
	}
	secret := make([]byte, mcp.MinTokenSecret)
	if _, err := rand.Read(secret); err != nil {
		return envelope.Outcome{}, fmt.Errorf("make a secret: %w", err)
	}
	listener, err := mcp.NewHTTPServer(ctx, mcp.HTTPOptions{Server: server, Authorize: p.authorize(req, secret)})
	if err != nil {
		return envelope.Outcome{}, fmt.Errorf("open bridge: %w", err)
	}
	defer listener.Close() //nolint:errcheck // it is closed either way
	connection, err := p.files(req, secret, listener.URL())
	if err != nil {
		return envelope.Outcome{}, err
	}
	outcome := p.execute(ctx, connection)
	outcome.Initialized = server.Initialized()
	out := sessions.EnvelopeOutcome(outcome, p.opts.JSONOutput)
	if kept := int64(len(outcome.Output)); outcome.OutputSize > kept {
		fmt.Fprintf(p.opts.Stderr, "the output is cut: the first %d of %d bytes are kept\n", kept, outcome.OutputSize)
		out.Metadata = fmt.Appendf(nil, `{"outputSize":%d,"outputTruncated":true}`, outcome.OutputSize)
	}
	return out, nil
}

func (p *process) authorize(req envelope.Request, secret []byte) func(string, bool) bool {
	expect := mcp.ExpectedClaims{ExecutionID: req.ExecutionID, CatalogHash: req.Catalogue.CatalogHash}
	return func(bearer string, present bool) bool {
		_, err := mcp.VerifyExecutionToken(bearer, mcp.Keys{Current: secret}, mcp.VerifyOptions{Now: p.opts.Clock(), Expect: expect})
		return present && err == nil
	}
}

// tokenSlack is how much longer than the turn its token is valid.
const tokenSlack = time.Minute

// files writes what the harness reads, as the sidecar does in a pod.
func (p *process) files(req envelope.Request, secret []byte, url string) (connection, error) {
	actor := contract.CanonicalActor(req.Agent)
	token, err := mcp.MintExecutionToken(mcp.ExecutionClaims{
		ExecutionID: req.ExecutionID, NamespaceID: req.NamespaceID, Actor: actor, CatalogHash: req.Catalogue.CatalogHash,
		ExpiresAt: contract.At(p.opts.Clock().Add(req.Timeout + tokenSlack)),
	}, secret)
	if err != nil {
		return connection{}, err
	}
	dir, kind := filepath.Join(p.dir, "sharedos"), string(p.program.kind)
	err = harnessfiles.Write(dir, &bridge.AttachResponse{
		ExecutionID: req.ExecutionID, NamespaceID: req.NamespaceID, Actor: actor, TraceID: req.TraceID,
		ExecutionToken: token, CatalogHash: req.Catalogue.CatalogHash, Message: req.Message, State: req.State,
		Harness: kind, TimeoutSec: max(int(req.Timeout/time.Second), 1),
	}, url)
	return connection{
		url: url, token: token, config: harnessfiles.Config(dir, kind), message: harnessfiles.In(dir, bridge.MessageFile),
	}, err
}

// execute runs the command to its end.
func (p *process) execute(ctx context.Context, c connection) bridge.Outcome {
	command := p.program
	if !p.opts.Plain {
		command.wire(c.url, c.config)
	}
	env := slices.Concat(p.opts.Env, command.env, c.env())
	args := make([]string, len(command.args))
	for i, arg := range command.args {
		args[i] = expand(arg, env)
	}
	name, err := locate(args[0])
	if err != nil {
		return notStarted(err)
	}
	cmd := exec.CommandContext(ctx, name, args[1:]...) //nolint:gosec // the caller's own command
	cmd.Env, cmd.Dir, cmd.Stderr = env, p.opts.WorkDir, p.opts.Stderr
	out := &head{limit: bridge.MaxOutputBytes}
	cmd.Stdout = out
	if command.message {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(c.message), filepath.Base(bridge.MessageTextFile)))
		if err != nil {
			return notStarted(err)
		}
		cmd.Stdin = strings.NewReader(string(text))
	}
	group(cmd)
	cmd.Cancel = func() error { return terminate(cmd) }
	cmd.WaitDelay = p.opts.KillGrace
	if err := cmd.Start(); err != nil {
		return notStarted(err)
	}
	_ = cmd.Wait() // the exit code says it
	sweep(cmd)
	return bridge.Outcome{Started: true, ExitCode: exitCode(cmd), Output: out.kept, OutputSize: out.size}
}

// locate makes a path relative to the caller's folder absolute: the command runs in
// another one. A bare name is looked for as a shell does.
func locate(name string) (string, error) {
	if filepath.IsAbs(name) || filepath.Base(name) == name {
		return name, nil
	}
	full, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("find the command: %w", err)
	}
	return full, nil
}

// Exit codes of a command that never ran, as shells have them.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

func notStarted(err error) bridge.Outcome {
	code := exitCannotRun
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = exitNotFound
	}
	return bridge.Outcome{ExitCode: code, Message: err.Error()}
}

// head keeps the beginning of what is written and counts all of it.
type head struct {
	limit int
	kept  []byte
	size  int64
}

// Write implements [io.Writer]. It never fails.
func (h *head) Write(p []byte) (int, error) {
	if room := h.limit - len(h.kept); room > 0 {
		h.kept = append(h.kept, p[:min(room, len(p))]...)
	}
	h.size += int64(len(p))
	return len(p), nil
}
