package envelope_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/audit/durable"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

// noop is a tool that does nothing.
func noop() kernel.Tool {
	return kernel.Tool{
		Definition: kerneltest.Definition("read", contract.ClassRead),
		Requirement: func(args kernel.Arguments, _ contract.AccessContext) (contract.CapabilityRequirement, error) {
			path, err := args.Path("path")
			return contract.CapabilityRequirement{Resource: contract.ResourceRef{Namespace: "files", Path: path}, Action: "read"}, err
		},
		Handle: func(context.Context, kernel.ToolInvocation) (kernel.Output, error) {
			return kernel.Output{Value: contract.Value(`{"ok":true}`)}, nil
		},
	}
}

// machine is an envelope over a world whose only tool does nothing.
func machine(b *testing.B, sink audit.Sink) (*envelope.Envelope, contract.ExecutionRequest) {
	b.Helper()
	w := kerneltest.New(kerneltest.Admission(), kerneltest.MakeGrant("work").Descendants("files", []string{"Work"}, "*").Obj())
	w.Options.Tools = []kernel.Tool{noop()}
	w.Options.Audit = sink
	w.Options.Clock = time.Now
	req := w.Request()
	req.Context.Now = contract.At(time.Now())
	req.Options = &contract.ExecutionOptions{MaxToolCalls: new(int64(10000)), TimeoutMs: new(int64(600000))}
	return envelope.New(w.Kernel(b), envelope.Options{}), req
}

// worker makes calls, in turn after turn.
type worker struct {
	env  *envelope.Envelope
	req  contract.ExecutionRequest
	x    *envelope.Execution
	left int
}

func (w *worker) call(b *testing.B, id string) {
	b.Helper()
	if w.left == 0 {
		w.finish()
		w.x, w.left = w.env.Open(context.Background(), w.req), 10000
		w.x.Start(context.Background())
	}
	w.left--
	if r := w.x.Invoke(context.Background(), kerneltest.Call(id, "files.read", `{"path":["Work","a","status.md"]}`), nil); r.Status != contract.StatusSucceeded {
		b.Errorf("%+v", r.Error)
	}
}

func (w *worker) finish() {
	if w.x != nil {
		w.x.Finish(context.Background(), completed(`1`))
	}
}

// BenchmarkMediatedCall is one call through envelope and kernel, audit to memory.
func BenchmarkMediatedCall(b *testing.B) {
	memory := &audit.Memory{}
	env, req := machine(b, memory)
	w := &worker{env: env, req: req}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n%10000 == 0 {
			memory.Reset()
		}
		w.call(b, "call")
	}
	w.finish()
}

// BenchmarkMediatedCallDurable is the same from 64 turns at once, with the durable
// log: every decision is on disk before its handler runs.
func BenchmarkMediatedCallDurable(b *testing.B) {
	const turns = 64
	log, err := durable.Open(b.TempDir(), durable.Options{})
	if err != nil {
		b.Fatal(err)
	}
	env, req := machine(b, log)
	var next atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for t := range turns {
		all.Go(func() {
			w := &worker{env: env, req: req}
			w.req.ExecutionID = "execution-" + strconv.Itoa(t)
			for next.Add(1) <= int64(b.N) {
				w.call(b, "call")
			}
			w.finish()
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
}
