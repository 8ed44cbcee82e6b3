package localrun

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/mcp"
)

// envToken holds the execution token where a harness wants its name and not a file.
const envToken = "SHAREDOS_MCP_TOKEN" //nolint:gosec // a name, not a credential

// program is what is run.
type program struct {
	kind v1alpha1.HarnessType
	args []string
	env  []string
	// message is given on standard input.
	message bool
}

// programOf decides what is run.
func programOf(o *Options, h *v1alpha1.Harness) (program, error) {
	p := program{kind: o.Type, args: o.Command}
	if h != nil {
		if p.kind == "" {
			p.kind = h.Spec.Type
		}
		if len(p.args) == 0 {
			if err := p.template(h); err != nil {
				return p, fmt.Errorf("harness %q: %w", h.Name, err)
			}
		}
	}
	if p.kind == "" {
		p.kind = kindOf(p.args[0])
	}
	if len(p.args) > 0 {
		return p, nil
	}
	p.message = true
	switch p.kind {
	case v1alpha1.HarnessClaudeCode:
		p.args = []string{"claude", "-p"}
	case v1alpha1.HarnessCodex:
		p.args = []string{"codex", "exec", "--skip-git-repo-check", "-"}
	default:
		return p, fmt.Errorf("a harness of type %s needs its command, after --", p.kind)
	}
	return p, nil
}

// template takes the command of a Harness's container, and the environment that is
// written there.
func (p *program) template(h *v1alpha1.Harness) error {
	containers := h.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == v1alpha1.ContainerHarness })
	if i < 0 || len(containers[i].Command) == 0 {
		return fmt.Errorf("spec.template has no container %q that sets command", v1alpha1.ContainerHarness)
	}
	c := &containers[i]
	p.args = slices.Concat(c.Command, c.Args)
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			return fmt.Errorf("env %s comes from the cluster; give the command after -- instead", e.Name)
		}
		p.env = append(p.env, e.Name+"="+e.Value)
	}
	if len(c.EnvFrom) > 0 {
		return errors.New("envFrom comes from the cluster; give the command after -- instead")
	}
	return nil
}

// kindOf knows the harnesses by the names of their programs.
func kindOf(command string) v1alpha1.HarnessType {
	switch filepath.Base(command) {
	case "claude":
		return v1alpha1.HarnessClaudeCode
	case "codex":
		return v1alpha1.HarnessCodex
	case "pi":
		return v1alpha1.HarnessPi
	default:
		return v1alpha1.HarnessCustom
	}
}

// wire tells a known program where the bridge is, unless its arguments do already.
// The token is never among them: other users may list a process's arguments.
func (p *program) wire(url, config string) {
	switch filepath.Base(p.args[0]) {
	case "claude":
		if !mentions(p.args, "--mcp-config") {
			p.args = append(slices.Clone(p.args), "--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__"+mcp.DefaultServerName)
		}
	case "codex":
		if mentions(p.args, "mcp_servers.") || slices.ContainsFunc(p.env, func(e string) bool { return strings.HasPrefix(e, "CODEX_HOME=") }) {
			return
		}
		server := "mcp_servers." + mcp.DefaultServerName + "."
		args := []string{p.args[0]}
		for _, setting := range []string{
			`url="` + url + `"`, `required=true`, `default_tools_approval_mode="approve"`,
			fmt.Sprintf("tool_timeout_sec=%d", mcp.DefaultTimeoutSec), `bearer_token_env_var="` + envToken + `"`,
		} {
			args = append(args, "-c", server+setting)
		}
		p.args = append(args, p.args[1:]...)
	}
}

func mentions(args []string, text string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, text) })
}

// connection is what the command finds in its environment.
type connection struct{ url, token, config, message string }

func (c connection) env() []string {
	return []string{
		bridge.EnvMCPURL + "=" + c.url, bridge.EnvMCPConfig + "=" + c.config, bridge.EnvMessage + "=" + c.message,
		bridge.EnvTurn + "=local", envToken + "=" + c.token,
	}
}

// expand replaces $(NAME) as Kubernetes does in a container's command: an unknown
// name stays as it is, and $$ is a dollar sign.
func expand(arg string, env []string) string {
	var b strings.Builder
	for i := 0; i < len(arg); i++ {
		if arg[i] != '$' || i+1 == len(arg) {
			b.WriteByte(arg[i])
			continue
		}
		if arg[i+1] == '$' {
			b.WriteByte('$')
			i++
			continue
		}
		end := strings.IndexByte(arg[i:], ')')
		if arg[i+1] != '(' || end < 0 {
			b.WriteByte('$')
			continue
		}
		value, known := lookup(env, arg[i+2:i+end])
		if !known {
			value = arg[i : i+end+1]
		}
		b.WriteString(value)
		i += end
	}
	return b.String()
}

// lookup finds the last value of a variable.
func lookup(env []string, name string) (string, bool) {
	for _, entry := range slices.Backward(env) {
		if key, value, ok := strings.Cut(entry, "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}
