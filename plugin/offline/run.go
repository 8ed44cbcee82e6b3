package offline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/egress"
	"github.com/sharedos-dev/operator/internal/plain"
	"github.com/sharedos-dev/operator/kernel/audit/durable"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/localrun"
	"github.com/sharedos-dev/operator/plugin/internal/command"
)

type run struct {
	env     *Env
	options localrun.Options
	kind    string
	egress  string
	audit   string
	output  string
	quiet   bool
}

// NewRun makes the command that runs one turn.
func NewRun(e *Env) *cobra.Command {
	l := &run{env: e}
	cmd := &cobra.Command{
		Use:   "run DIR... --principal NAME [-- COMMAND...]",
		Short: "Run one turn: kernel in this process, bridge on loopback",
		Long: `Runs one turn with the manifests of a folder: the kernel in this process, an MCP
server on loopback, and the agent as a subprocess. What happens goes to standard
error, the agent's output to standard output.

The agent finds the bridge as in a pod: SHAREDOS_MCP_CONFIG names its connection file,
SHAREDOS_MCP_URL the address, SHAREDOS_MESSAGE_FILE the message; in the command,
$(NAME) stands for such a variable. claude and codex are told by themselves. Without a
command, --type claude-code or codex runs that program with the message, and --harness
runs the command of a Harness of the folder.

MCP servers of ToolNamespaces are dialled from here, with the Secrets that they name:
from the folder --secrets names, or from the manifests. A server on this machine needs
--egress-allow 127.0.0.1, and one that is a Service of a cluster --upstream.

Only what goes through the bridge is authorized. The agent runs as you, and nothing
here confines its own tools; on a cluster its pod does.

Exit codes: 0 succeeded, 1 denied, failed or cancelled, 2 no turn, 3 escalated.`,
		Example: command.Examples(`
# Claude Code, with your own login
kubectl sharedos local run policies/ --principal alice-assistant --files ./files -- claude -p 'When does Atlas ship?'

# the same, told by a message
kubectl sharedos local run policies/ --principal alice-assistant --files ./files --type codex -m 'When does Atlas ship?'

# with an MCP server on this machine
kubectl sharedos local run policies/ --principal alice-assistant --egress-allow 127.0.0.1 \
  --upstream wiki=http://127.0.0.1:8080/mcp --secrets ./secrets -- claude -p 'What is new?'

# any program that speaks MCP
kubectl sharedos local run policies/ --principal alice-assistant --files ./files -- ./my-agent --mcp '$(SHAREDOS_MCP_URL)'`),
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash < 0 {
				dash = len(args)
			}
			l.options.Paths, l.options.Command = args[:dash], args[dash:]
			return l.run(cmd)
		},
	}
	l.addFlags(cmd)
	return cmd
}

func (l *run) addFlags(cmd *cobra.Command) {
	o, f := &l.options, cmd.Flags()
	f.StringVar(&o.Principal, "principal", "", "Principal that acts (required)")
	f.StringVar(&o.Purpose, "purpose", "", "purpose that it declares; its first one if none is given")
	f.StringVar(&o.From, "from", "", "Principal that sends the message; the acting one if none is given")
	f.StringVarP(&o.Message, "message", "m", "", "what the agent is told; the command itself if none is given")
	f.StringVar(&o.Harness, "harness", "", "Harness of the folder whose command is run")
	f.StringVar(&l.kind, "type", "", "type of harness: claude-code, codex, deepseek, pi, custom; guessed from the command if none is given")
	f.BoolVar(&o.Plain, "plain", false, "do not tell claude or codex where the bridge is")
	f.BoolVar(&o.JSONOutput, "json-output", false, "the agent prints one JSON value")
	f.StringVar(&o.Files, "files", "", "folder that is served as the files plane")
	f.StringVar(&o.Repo, "repo", "", "folder of Git repositories that is served as the repo plane")
	f.BoolVar(&o.ReadOnly, "read-only", false, "let nothing in these folders be changed")
	f.StringSliceVar(&o.Without, "without", nil, "ToolNamespaces to leave out")
	f.StringToStringVar(&o.Upstreams, "upstream", nil, "address of a ToolNamespace's MCP server, NAME=URL, instead of the one in the folder")
	f.StringVar(&o.Secrets, "secrets", "", "folder of the Secrets that ToolNamespaces name: SECRET/KEY; else they are among the manifests")
	f.StringVar(&l.egress, "egress-allow", "", "addresses of MCP servers to allow although they are refused, such as 127.0.0.1")
	f.DurationVar(&o.Timeout, "timeout", 0, "time that the turn may take, up to 10m; the Harness's or 2m if none is given")
	f.Int64Var(&o.MaxToolCalls, "max-tool-calls", 0, "calls that the turn may make; the Harness's or 16 if none is given")
	f.StringVar(&o.WorkDir, "workdir", "", "folder that the command runs in; an empty one of its own if none is given")
	f.StringVar(&l.audit, "audit", "", "folder of a durable audit log to record in")
	f.StringVarP(&l.output, "output", "o", "text", "what to print of the result: text, json")
	f.BoolVarP(&l.quiet, "quiet", "q", false, "do not tell what happens")
	command.Complete(cmd, "type", command.Fixed(harnessTypes()...))
	command.Complete(cmd, "output", command.Fixed("text", command.FormatJSON))
}

func harnessTypes() []string {
	return []string{
		string(v1alpha1.HarnessClaudeCode), string(v1alpha1.HarnessCodex), string(v1alpha1.HarnessDeepSeek),
		string(v1alpha1.HarnessPi), string(v1alpha1.HarnessCustom),
	}
}

func (l *run) run(cmd *cobra.Command) (err error) {
	o := &l.options
	if l.output != "text" && l.output != command.FormatJSON {
		return command.Usage("--output: %q is not text or json", l.output)
	}
	if f := cmd.Flags(); f.Changed("timeout") && o.Timeout <= 0 {
		return command.Usage("--timeout: must be above 0")
	} else if f.Changed("max-tool-calls") && o.MaxToolCalls <= 0 {
		return command.Usage("--max-tool-calls: must be above 0")
	}
	if o.Namespace, err = l.env.world(); err != nil {
		return err
	}
	allowed, err := egress.ParsePrefixes(l.egress)
	if err != nil {
		return command.Usage("--egress-allow: %v", err)
	}
	o.Egress, o.Version = &egress.Guard{Allow: allowed}, command.Version()
	o.Type = v1alpha1.HarnessType(l.kind)
	o.Stderr, o.Clock = l.env.Streams.ErrOut, l.env.Clock
	if !l.quiet {
		o.Progress = l.env.Streams.ErrOut
	}
	if o.Message == "" {
		if len(o.Command) == 0 {
			return command.Usage("say what the agent is told with --message, or give a command after --")
		}
		o.Message = strings.Join(o.Command, " ")
	}
	if l.audit != "" {
		log, err := durable.Open(l.audit, durable.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, log.Close()) }()
		o.Audit = log
	}
	result, err := localrun.Run(cmd.Context(), *o)
	if err != nil {
		return err
	}
	return l.print(&result)
}

func (l *run) print(r *contract.ExecutionResult) error {
	if l.output == command.FormatJSON {
		if err := command.WriteJSON(l.env.Streams.Out, r); err != nil {
			return err
		}
		return command.TurnExit(v1alpha1.TurnOutcome(r.Status))
	}
	if err := command.PrintOutput(l.env.Streams.Out, command.OutputText(r.Output)); err != nil {
		return err
	}
	if r.Error != nil {
		fmt.Fprintf(l.env.Streams.ErrOut, "%s: %s: %s\n", r.Status, plain.Text(r.Error.Code), plain.Text(r.Error.Message))
	}
	if r.Escalation != nil {
		fmt.Fprintf(l.env.Streams.ErrOut, "asks for a decision: %s\n", plain.Text(r.Escalation.Reason))
	}
	return command.TurnExit(v1alpha1.TurnOutcome(r.Status))
}
