package plugin

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The states of a finding.
const (
	stateOK      = "ok"
	stateWarning = "warning"
	stateFault   = "FAULT"
	stateUnknown = "unknown"
)

// finding is one line of doctor, also in JSON and YAML.
type finding struct {
	Check   string `json:"check"`
	State   string `json:"state"`
	Message string `json:"message"`
	// Fix says what to do.
	Fix string `json:"fix,omitempty"`
}

// patient is what is examined.
type patient struct {
	env       *env
	client    client.WithWatch
	set       kubernetes.Interface
	system    string // namespace of the installation
	namespace string // of the caller
	findings  []finding

	// What was found on the way.
	skew      time.Duration       // this machine's clock is ahead of the API server's by it
	installed *appsv1.StatefulSet // the manager, or nil
	base      string              // what names of the installation begin with
	secrets   map[string]*corev1.Secret
}

func (p *patient) say(check, state, message, fix string) {
	p.findings = append(p.findings, finding{Check: check, State: state, Message: message, Fix: fix})
}

func (p *patient) ok(check, format string, args ...any) {
	p.say(check, stateOK, fmt.Sprintf(format, args...), "")
}

// failed says why something could not be looked at. What the caller may not see is no
// fault.
func (p *patient) failed(check string, err error, fix string) {
	if apierrors.IsForbidden(err) {
		p.say(check, stateUnknown, "you may not look at it", "ask somebody with the right to, or look with --as-user")
		return
	}
	if fix == "" {
		fix = "see whether the API server is well: kubectl get --raw '/readyz?verbose'"
	}
	p.say(check, stateFault, err.Error(), fix)
}

func newDoctor(e *env) *cobra.Command {
	var o output
	var system string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with this installation, and how to mend it",
		Long: `Looks at the installation and at the objects of the namespace: reachability, clock,
resource definitions, manager, versions, the manager's rights, policies, certificates,
webhooks, kernel service and leader, your own rights, and what is not Ready. Each line that is not ok has its fix.
Exit code 1 means that there is a fault.`,
		Example: examples("kubectl sharedos doctor\nkubectl sharedos doctor -n team-atlas --system-namespace sharedos-system -o json"),
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			p, err := e.patient(system)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), doctorPatience)
			defer cancel()
			p.examine(ctx)
			return p.report(&o)
		},
	}
	cmd.Flags().StringVar(&system, "system-namespace", "sharedos-system", "namespace that SharedOS is installed in")
	complete(cmd, "system-namespace", e.completeNamespaces)
	o.addFlag(cmd)
	return cmd
}

// doctorPatience bounds the whole examination.
const doctorPatience = time.Minute

func (e *env) patient(system string) (*patient, error) {
	c, namespace, err := e.world()
	if err != nil {
		return nil, err
	}
	config, err := e.config()
	if err != nil {
		return nil, err
	}
	// It asks a hundred small questions, a few at once: the API server need not be spared.
	config.QPS = -1
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return &patient{env: e, client: c, set: set, system: system, namespace: namespace}, nil
}

// examine looks at everything. Without an API server there is nothing else to see.
func (p *patient) examine(ctx context.Context) {
	if !p.reachable(ctx) {
		return
	}
	p.definitions(ctx)
	p.manager(ctx)
	p.managerRights(ctx)
	p.policies(ctx)
	p.certificates(ctx)
	p.webhooks(ctx)
	p.kernelService(ctx)
	p.lease(ctx)
	p.rights(ctx)
	p.objects(ctx)
}

func (p *patient) report(o *output) error {
	err := o.print(p.env.streams.Out, p.findings, func(w io.Writer) error {
		t := newTable(w, o.wide(), 0, "CHECK", "STATE", "FOUND", "FIX")
		for _, f := range p.findings {
			t.row(f.Check, f.State, f.Message, f.Fix)
		}
		return t.flush()
	})
	if err != nil {
		return err
	}
	for _, f := range p.findings {
		if f.State == stateFault {
			return no()
		}
	}
	return nil
}
