package manager

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/identity"
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/observe"
	metric "github.com/sharedos-dev/operator/observe/metrics"
	"github.com/sharedos-dev/operator/observe/tracing"
	"github.com/sharedos-dev/operator/sessions"
	"github.com/sharedos-dev/operator/translate"
)

// traceFlush is how long the process waits at its end for spans to be sent.
const traceFlush = 3 * time.Second

// observation is what watches the process: metrics always, traces if configured.
type observation struct {
	metrics *metric.Metrics
	tracer  *tracing.Tracer
	live    func() int
	tokens  func() identity.TokenStats
}

// openObservation registers the metrics and starts the tracer that the OTEL_*
// variables describe. The returned function sends what is left.
func (p *process) openObservation(ctx context.Context) (func(), error) {
	o := &observation{live: func() int { return 0 }, tokens: func() identity.TokenStats { return identity.TokenStats{} }}
	var err error
	if o.metrics, err = metric.New(metrics.Registry, p.clock, metric.Live{
		Sessions: func() int { return o.live() }, CertificateExpiry: p.certs.Expiry,
		Tokens: func() metric.TokenCache { return metric.TokenCache(o.tokens()) },
	}); err != nil {
		return nil, err
	}
	if o.tracer, err = tracing.FromEnvironment(ctx, p.opts.Version); err != nil {
		return nil, fmt.Errorf("set up tracing: %w", err)
	}
	p.observation = o
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceFlush)
		defer cancel()
		if err := o.tracer.Close(ctx); err != nil {
			p.log.Error(err, "Sending the last spans failed")
		}
	}, nil
}

func (o *observation) observer() kernel.Observer {
	if o.tracer == nil {
		return o.metrics
	}
	return observe.Join(o.metrics, o.tracer)
}

// within is the sessions' hook: what a turn does belongs to its span.
func (o *observation) within(ctx context.Context, key sessions.Key, executionID, traceID string) context.Context {
	return o.tracer.Within(ctx, tracing.Turn{World: key.Namespace, Name: key.Turn, ExecutionID: executionID, TraceID: traceID})
}

// finished is the Turn controller's hook.
func (o *observation) finished(t *v1alpha1.Turn) {
	from, to := t.CreationTimestamp.Time, t.CreationTimestamp.Time
	if t.Status.CompletedAt != nil {
		to = t.Status.CompletedAt.Time
	}
	outcome, code := contract.Status(t.Status.Outcome), ""
	if t.Status.Error != nil {
		code = t.Status.Error.Code
	}
	o.metrics.TurnEnded(t.Namespace, outcome, code, to.Sub(from))
	o.tracer.Ended(context.Background(), tracing.Turn{
		World: t.Namespace, Name: t.Name, ExecutionID: t.EffectiveExecutionID(), TraceID: translate.TraceID(t),
	}, from, to, outcome, code)
}
