package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/providers/wire"
)

// grace is how long running operations may take to end.
const grace = 10 * time.Second

// Run serves the provider until ctx ends, then lets running operations finish.
func Run(ctx context.Context, opts *Options, provider kernel.ResourceProvider, log *slog.Logger) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", opts.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	var health net.Listener
	if opts.HealthListen != "" {
		if health, err = config.Listen(ctx, "tcp", opts.HealthListen); err != nil {
			_ = listener.Close()
			return fmt.Errorf("listen for probes: %w", err)
		}
	}
	return Serve(ctx, opts, provider, listener, health, log)
}

// Serve is [Run] on listeners that are open already; health may be nil. It closes both.
func Serve(ctx context.Context, opts *Options, provider kernel.ResourceProvider, listener, health net.Listener, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	certificates := NewCertificates(opts, log)
	servers := []*http.Server{newServer(wire.NewHandler(provider, wire.HandlerOptions{
		MaxBody: opts.MaxBody, Timeout: opts.Timeout, MaxInFlight: opts.MaxInFlight, ClientNames: opts.clientNames(), Log: log,
	}), opts, log)}
	servers[0].TLSConfig = certificates.ServerConfig()
	if health != nil {
		servers = append(servers, newServer(probes(certificates), opts, log))
	}

	var wg sync.WaitGroup
	ticker := time.NewTicker(opts.Reload)
	defer ticker.Stop()
	wg.Go(func() { certificates.Watch(ctx, ticker.C) })
	ended := make(chan error, len(servers))
	log.Info("Serving", "address", listener.Addr().String())
	wg.Go(func() { ended <- servers[0].ServeTLS(listener, "", "") })
	if health != nil {
		wg.Go(func() { ended <- servers[1].Serve(health) })
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	stop(context.WithoutCancel(ctx), servers)
	cancel()
	wg.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func newServer(h http.Handler, opts *Options, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       opts.Timeout + 30*time.Second,
		WriteTimeout:      opts.Timeout + time.Minute,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// Probes that only connect end as failed handshakes: not worth a line.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

func stop(ctx context.Context, servers []*http.Server) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for _, server := range servers {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
}

// probes answers /healthz always and /readyz once handshakes can succeed.
func probes(certificates *Certificates) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !certificates.Ready() {
			http.Error(w, ErrNotReady.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	return mux
}
