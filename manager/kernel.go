package manager

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/authority"
	"github.com/sharedos-dev/operator/bridge/server"
	"github.com/sharedos-dev/operator/controllers"
	"github.com/sharedos-dev/operator/injection"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/keyring"
	"github.com/sharedos-dev/operator/objects/cluster"
	"github.com/sharedos-dev/operator/oneview"
	"github.com/sharedos-dev/operator/sessions"
	"github.com/sharedos-dev/operator/toolsource"
)

// addKernel puts together what the leader runs: the kernel over its ports, the
// sessions, the controllers, and the kernel service with the HTTP API beside it.
func (p *process) addKernel(ctx context.Context) error {
	live, cached := oneview.Reader{Reader: p.mgr.GetAPIReader()}, p.mgr.GetClient()
	grants := authority.Grants{Reader: cluster.Reader(live)}
	rule, err := p.opts.egress()
	if err != nil {
		return err
	}
	connections := &toolsource.Connections{Reader: cluster.Reader(live), Material: p.material, Egress: rule, Version: p.opts.Version,
		Around: p.observation.tracer.Transport, Watch: p.observation.tracer.Upstream,
	}
	// A client of its own: whoever sends tokens in masses must not keep the bridges
	// waiting.
	callers, err := kubernetes.NewForConfig(p.mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	stopping := make(chan struct{})
	api, err := NewAPI(APIOptions{ //nolint:contextcheck // it serves until the process ends, each request with its own
		Live: live, Cached: cached, Connector: connections, Stopping: stopping, OnError: p.onAPIError,
		Kernel: kernel.Options{
			Usage: &authority.Uses{Reader: cluster.Reader(live), Writer: cluster.GrantStatus{Writer: cached.Status()}},
			Audit: p.observation.metrics.Sink(p.audit), Clock: p.clock, NewID: newID, Observer: p.observation.observer(),
		},
		Reviews: callers.AuthenticationV1().TokenReviews(),
		Access:  injection.RBAC{Reviews: callers.AuthorizationV1().SubjectAccessReviews()},
	})
	if err != nil {
		return err
	}
	p.observation.tokens = api.Tokens.Stats
	k := api.Kernel
	informer, err := p.mgr.GetCache().GetInformer(ctx, &v1alpha1.Turn{})
	if err != nil {
		return fmt.Errorf("watch turns: %w", err)
	}
	if _, err := informer.AddEventHandler(api.Endings); err != nil {
		return fmt.Errorf("watch turns: %w", err)
	}
	changes := &controllers.Changes{}
	recorder := p.mgr.GetEventRecorder("sharedos-manager")
	registry := sessions.New(sessions.Options{
		Kernel: k, OnChange: changes.Notify, OnProgress: changes.NotifyLater, OnCall: controllers.OnCall(ctx, recorder, cached), Lookup: lookup(cached),
		Context: p.observation.within,
	})
	p.observation.live = registry.Len
	labels, err := p.managerLabels(ctx)
	if err != nil {
		return err
	}
	turns := &controllers.TurnReconciler{
		Client: cached, Live: live, Grants: grants, Sessions: registry, Changes: changes, Recorder: recorder, Clock: p.clock,
		OnFinished: p.observation.finished, Ready: p.certs.Ready(),
		Egress: controllers.EgressTarget{Namespace: p.opts.Namespace, PodLabels: labels, Port: int32(p.opts.KernelPort)}, //nolint:gosec // a port
	}
	for _, c := range []interface {
		SetupWithManager(mgr ctrl.Manager) error
	}{
		turns,
		&controllers.PrincipalReconciler{Client: cached},
		&controllers.GrantReconciler{Client: cached, Clock: p.clock},
		&controllers.HarnessReconciler{Client: cached, Sidecar: p.sidecar},
		&controllers.ToolNamespaceReconciler{Client: cached, Connections: connections, Ready: p.certs.Ready()},
		&authorityBundle{Reader: live, Writer: cached, Principals: cached, CA: p.certs.CA},
	} {
		if err := c.SetupWithManager(p.mgr); err != nil {
			return err
		}
	}
	p.keyring = &keyring.Keyring{Reader: live, Writer: cached, Secret: p.own(p.opts.TokenSecret), Clock: p.clock}
	if err := p.mgr.Add(p.keyring); err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(p.mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return p.mgr.Add(&kernelService{
		process: p, stopping: stopping,
		handler: beside(server.New(server.Options{
			Turns: registry, Stopping: stopping, Keyring: p.keyring, Clock: p.clock, Log: p.log.WithName("kernel-service"),
			Reviewer: server.NewAPIReviewer(clientset.AuthenticationV1().TokenReviews(), p.clock),
		}), api.Handler),
	})
}

func (p *process) material() (toolsource.Material, error) {
	certificate, ca, err := p.certs.Client()
	return toolsource.Material{Certificate: certificate, ProviderCA: ca}, err
}

// lookup says how a Turn stands that has no session here.
func lookup(reader client.Reader) func(context.Context, sessions.Key, string) sessions.Standing {
	return func(ctx context.Context, key sessions.Key, executionID string) sessions.Standing {
		if key.Turn != "" {
			turn := &v1alpha1.Turn{}
			err := reader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Turn}, turn)
			switch {
			case err == nil && turn.IsFinished():
				return sessions.StandingEnded
			default:
				return sessions.StandingUnknown // the cache may not know it yet
			}
		}
		var list v1alpha1.TurnList
		same := client.MatchingFields{controllers.IndexExecution: executionID}
		if err := reader.List(ctx, &list, client.InNamespace(key.Namespace), same, client.UnsafeDisableDeepCopy); err != nil {
			return sessions.StandingUnknown
		}
		switch {
		case len(list.Items) == 0:
			return sessions.StandingMissing
		case list.Items[0].IsFinished():
			return sessions.StandingEnded
		default:
			return sessions.StandingUnknown
		}
	}
}
