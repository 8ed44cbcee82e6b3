package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/test/e2e/internal/kit"
)

const (
	namespace = "team-atlas"
	turnName  = "status-report"
	patience  = 3 * time.Minute
)

// demo is the run with what it has established so far.
type demo struct {
	out     io.Writer
	started time.Time
	cluster *kit.Cluster
	turn    *v1alpha1.Turn
}

func run(ctx context.Context, out io.Writer) error {
	d := &demo{out: out, started: time.Now()}
	for _, step := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"A real Kubernetes", d.connect},
		{"The images", d.load},
		{"helm upgrade --install sharedos charts/sharedos", d.install},
		{"kubectl apply -k config/samples", d.apply},
		{"The agent runs", d.follow},
	} {
		d.say("==> %s", step.title)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	return d.show(ctx)
}

// say prints one line with the time that has passed.
func (d *demo) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "%6.1fs  %s\n", time.Since(d.started).Seconds(), fmt.Sprintf(format, args...))
}

// print prints text as it is.
func (d *demo) print(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, format, args...)
}

func (d *demo) connect(ctx context.Context) error {
	cluster, err := kit.Connect(ctx, os.Getenv("CLUSTER"), d.out)
	d.cluster = cluster
	return err
}

func (d *demo) load(ctx context.Context) error { return d.cluster.LoadImages(ctx, d.out) }

func (d *demo) install(ctx context.Context) error {
	return d.cluster.Install(ctx, io.Discard, kit.Values())
}

// apply applies the samples. A Turn of an earlier demo would be finished already,
// so it goes first.
func (d *demo) apply(ctx context.Context) error {
	if _, err := d.cluster.Run(ctx, "delete", "turns", "--all", "--namespace", namespace, "--ignore-not-found"); err != nil {
		return err
	}
	out, err := d.cluster.Run(ctx, "apply", "--server-side", "-k", filepath.Join(d.cluster.Root, "config", "samples"))
	d.print("%s", indent(out))
	return err
}

// follow prints each state of the Turn as it comes.
func (d *demo) follow(ctx context.Context) error {
	last := ""
	turn := &v1alpha1.Turn{}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if err := d.cluster.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: turnName}, turn); err != nil {
			return false, err
		}
		if line := progress(turn); line != last {
			last = line
			d.say("    %s", line)
		}
		return turn.IsFinished(), nil
	})
	d.turn = turn
	if err != nil {
		return fmt.Errorf("turn %s did not end (%s): %w; see kubectl -n %s describe turn %s", turnName, last, err, namespace, turnName)
	}
	return nil
}
