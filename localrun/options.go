package localrun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/egress"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Options configure [Run]. Paths, Principal and one of Harness, Type and Command are
// required.
type Options struct {
	// Paths are files and folders of manifests.
	Paths []string
	// Namespace is the world, also of objects that name none.
	Namespace string
	// Principal acts, for Purpose; an empty one is its first.
	Principal string
	Purpose   string
	// From names the Principal that sends the message; empty is the actor itself.
	From string
	// Message is the text that the agent is given.
	Message string

	// Harness names a Harness of the manifests whose command is run. Command, when
	// set, is run instead.
	Harness string
	// Type decides which connection file is written. Empty is the Harness's, or what
	// the command's name says.
	Type v1alpha1.HarnessType
	// Command and its arguments; $(NAME) is replaced by an environment variable.
	Command []string
	// Plain leaves the command as it is. Otherwise claude and codex are told where
	// the bridge is.
	Plain bool
	// JSONOutput says that standard output is one JSON value.
	JSONOutput bool

	// Files and Repo are folders that the in-process providers serve. An enabled tool
	// namespace without one is left out.
	Files, Repo string
	// ReadOnly serves them without any change.
	ReadOnly bool
	// Without are tool namespaces to leave out.
	Without []string

	// Upstreams are addresses of MCP servers by tool namespace, instead of those of the
	// manifests. One that is a Service of a cluster is reached no other way.
	Upstreams map[string]string
	// Secrets is a folder with one folder for each Secret or ConfigMap that a tool
	// namespace names, and in it a file for each key. What it lacks is looked for among
	// the manifests.
	Secrets string
	// Egress says which addresses of MCP servers may be dialled; nil is the built-in
	// rule, which refuses loopback.
	Egress *egress.Guard
	// Version of this program, which MCP servers are told.
	Version string

	// Timeout and MaxToolCalls bound the turn; zero is the Harness's or the default.
	Timeout      time.Duration
	MaxToolCalls int64

	// WorkDir is where the command runs; empty is an empty folder of its own.
	WorkDir string
	// Env is the command's environment; nil is this process's.
	Env []string
	// Stderr gets the command's standard error.
	Stderr io.Writer
	// Progress gets one line per event; nil discards them.
	Progress io.Writer
	// Audit, when set, gets every record.
	Audit audit.Sink

	// Clock and NewID are for tests; nil is the real ones.
	Clock func() time.Time
	NewID func() string
	// KillGrace is how long a process may take to end when told to; zero is 5 seconds.
	KillGrace time.Duration
}

func (o *Options) complete() error {
	var errs []error
	if len(o.Paths) == 0 {
		errs = append(errs, errors.New("name the folder that holds the manifests"))
	}
	if o.Principal == "" {
		errs = append(errs, errors.New("name the Principal that acts"))
	}
	if o.Harness == "" && o.Type == "" && len(o.Command) == 0 {
		errs = append(errs, errors.New("say what to run: a Harness, a type of harness, or a command"))
	}
	errs = append(errs, o.values()...)
	for name, dir := range map[string]string{"files": o.Files, "repo": o.Repo, "secrets": o.Secrets, "working directory": o.WorkDir} {
		if info, err := os.Stat(dir); dir != "" && (err != nil || !info.IsDir()) {
			errs = append(errs, fmt.Errorf("%s: %s is no folder", name, dir))
		}
	}
	o.defaults()
	return errors.Join(errs...)
}

// values checks what has a set of values.
func (o *Options) values() (errs []error) {
	switch o.Type {
	case "", v1alpha1.HarnessClaudeCode, v1alpha1.HarnessCodex, v1alpha1.HarnessDeepSeek, v1alpha1.HarnessPi, v1alpha1.HarnessCustom:
	default:
		errs = append(errs, fmt.Errorf("type: %q is not claude-code, codex, deepseek, pi or custom", o.Type))
	}
	if o.Timeout < 0 || o.Timeout > 0 && o.Timeout < time.Millisecond || o.Timeout > contract.MaxTimeoutMs*time.Millisecond {
		errs = append(errs, fmt.Errorf("timeout: %s is not from 1ms to 10m", o.Timeout))
	}
	if o.MaxToolCalls < 0 {
		errs = append(errs, fmt.Errorf("max-tool-calls: %d is not positive", o.MaxToolCalls))
	}
	return errs
}

func (o *Options) defaults() {
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Audit == nil {
		o.Audit = &audit.Memory{}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.KillGrace == 0 {
		o.KillGrace = 5 * time.Second
	}
}
