package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applydiscoveryv1 "k8s.io/client-go/applyconfigurations/discovery/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/controllers"
)

// Times and limits of the kernel service.
const (
	shutdownGrace  = 2 * time.Second
	reassertEvery  = 30 * time.Second
	retryEndpoints = time.Second
	headerTimeout  = 10 * time.Second
	idleTimeout    = 5 * time.Minute
	maxStreams     = 1024
	maxHeader      = 64 << 10
)

// kernelService answers the bridges and the callers of the HTTP API. Only the leader runs it, and says so in the
// EndpointSlice of the kernel's Service.
type kernelService struct {
	*process
	handler http.Handler
	// stopping is closed before anybody is cut off.
	stopping chan<- struct{}
}

// NeedLeaderElection keeps it to the leader: it holds the sessions.
func (k *kernelService) NeedLeaderElection() bool { return true }

// Start serves until ctx ends.
func (k *kernelService) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(k.opts.KernelPort))
	if err != nil {
		return fmt.Errorf("listen for bridges: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"}}
	k.serveWith(config)
	srv := &http.Server{
		Handler: k.handler, TLSConfig: config, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog: nil,
		// The HTTP API answers in its own way whatever it is asked, within its limits.
		MaxHeaderBytes: maxHeader, DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	served := make(chan error, 1)
	go func() { served <- srv.ServeTLS(listener, "", "") }()
	go k.announce(ctx)
	select {
	case err := <-served:
		return fmt.Errorf("serve bridges: %w", err)
	case <-ctx.Done():
	}
	close(k.stopping)
	// Session streams never end by themselves: after the grace they are closed, and
	// the bridges look for the next leader.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		err = srv.Close()
		if err != nil {
			k.log.Error(err, "Closing the kernel service failed")
		}
	}
	if err := <-served; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve bridges: %w", err)
	}
	return nil
}

// announce keeps the EndpointSlice pointing here until ctx ends.
func (k *kernelService) announce(ctx context.Context) {
	for {
		wait := reassertEvery
		if err := k.applyEndpoints(ctx); err != nil && ctx.Err() == nil {
			k.log.Error(err, "The kernel service cannot be announced")
			wait = retryEndpoints
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (k *kernelService) applyEndpoints(ctx context.Context) error {
	service := &corev1.Service{}
	if err := k.mgr.GetAPIReader().Get(ctx, k.own(k.opts.KernelService), service); err != nil {
		return fmt.Errorf("get the kernel's Service: %w", err)
	}
	family := discoveryv1.AddressTypeIPv4
	if ip := net.ParseIP(k.opts.PodIP); ip != nil && ip.To4() == nil {
		family = discoveryv1.AddressTypeIPv6
	}
	slice := applydiscoveryv1.EndpointSlice(k.opts.KernelService+"-leader", k.opts.Namespace).
		WithLabels(map[string]string{
			discoveryv1.LabelServiceName: k.opts.KernelService,
			discoveryv1.LabelManagedBy:   controllers.FieldOwner,
		}).
		WithOwnerReferences(applymetav1.OwnerReference().WithAPIVersion("v1").WithKind("Service").
			WithName(service.Name).WithUID(service.UID)).
		WithAddressType(family).
		WithEndpoints(applydiscoveryv1.Endpoint().WithAddresses(k.opts.PodIP).
			WithConditions(applydiscoveryv1.EndpointConditions().WithReady(true).WithServing(true).WithTerminating(false)).
			WithTargetRef(applycorev1.ObjectReference().WithKind("Pod").WithNamespace(k.opts.Namespace).WithName(k.opts.PodName))).
		WithPorts(applydiscoveryv1.EndpointPort().WithName("https").WithProtocol(corev1.ProtocolTCP).
			WithPort(int32(k.opts.KernelPort))) //nolint:gosec // a port
	if err := k.mgr.GetClient().Apply(ctx, slice, client.FieldOwner(controllers.FieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply the EndpointSlice: %w", err)
	}
	return nil
}
