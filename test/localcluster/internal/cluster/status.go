package cluster

import (
	"context"
	"slices"
	"time"
)

// Status is what is known about the cluster now.
type Status struct {
	// Up says that everything below is as it should be.
	Up         bool              `json:"up"`
	Version    string            `json:"version,omitempty"`
	Kubeconfig string            `json:"kubeconfig"`
	Components []ComponentStatus `json:"components"`
	Checks     []Check           `json:"checks"`
}

// ComponentStatus tells about one daemon.
type ComponentStatus struct {
	Name      string     `json:"name"`
	Running   bool       `json:"running"`
	PID       int        `json:"pid,omitempty"`
	MemoryMiB int        `json:"memoryMiB,omitempty"`
	Started   *time.Time `json:"started,omitempty"`
	Log       string     `json:"log"`
}

// Check is one question asked of the whole cluster.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

const checkLimit = 3 * time.Second

// Status looks at every process and asks the cluster whether it works.
func (c *Cluster) Status(ctx context.Context) Status {
	s := Status{Up: true, Kubeconfig: c.Layout.Kubeconfig()}
	names := slices.Clone(stopOrder)
	slices.Sort(names)
	for _, name := range names {
		component := ComponentStatus{Name: name, Log: c.logFile(name)}
		if r, running := c.procs.Running(name); running {
			component.Running, component.PID, component.Started = true, r.PID, &r.Started
			component.MemoryMiB = c.procs.MemoryKiB(r.PID) >> 10
		}
		s.Up = s.Up && component.Running
		s.Components = append(s.Components, component)
	}
	s.Checks = c.checks(ctx, &s.Version)
	for _, check := range s.Checks {
		s.Up = s.Up && check.OK
	}
	return s
}

func (c *Cluster) checks(ctx context.Context, version *string) []Check {
	client, err := c.client()
	if err != nil {
		return []Check{{Name: "api", Detail: "there are no keys of a cluster"}}
	}
	questions := []struct {
		name string
		ask  func(context.Context) error
	}{
		{"api", func(ctx context.Context) error {
			var v struct{ GitVersion string }
			err := client.Get(ctx, "/version", &v)
			*version = v.GitVersion
			return err
		}},
		{"node", func(ctx context.Context) error { return nodeReady(ctx, client) }},
		{"coredns", func(ctx context.Context) error { return dnsAvailable(ctx, client) }},
		{"service names", dnsAnswers},
	}
	checks := make([]Check, 0, len(questions))
	for _, q := range questions {
		ctx, cancel := context.WithTimeout(ctx, checkLimit)
		check := Check{Name: q.name, OK: true}
		if err := q.ask(ctx); err != nil {
			check.OK, check.Detail = false, err.Error()
		}
		cancel()
		checks = append(checks, check)
		if q.name == "api" && !check.OK {
			break // the others ask the same server
		}
	}
	return checks
}
