package sidecar

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/bridge/client"
	"github.com/sharedos-dev/operator/sidecar/harnessfiles"
)

// Options configure [Run].
type Options struct {
	// KernelURL is the kernel service, https://host[:port].
	KernelURL string
	// KernelCA is the PEM bundle that signs the kernel service's certificate.
	KernelCA []byte
	// TokenFile holds the pod-bound ServiceAccount token.
	TokenFile string
	// Turn is the Turn's name, 1 to 63 characters.
	Turn string
	// Port is where MCP is served on 127.0.0.1; 0 leaves the choice to the system.
	Port int
	// SharedDir is the volume that the other containers read.
	SharedDir string
	// Binary is this program's own file, copied for the wrapper. None is copied when
	// empty.
	Binary string
	// Version is told to MCP clients.
	Version string
	// ShutdownGrace is how long running calls and reports may take once the pod is
	// going; 5 seconds when zero.
	ShutdownGrace time.Duration
	// Clock is the machine's when nil.
	Clock client.Clock
	// Log receives state changes; nothing when nil. No token is ever written to it.
	Log *slog.Logger
	// OnReady is called each time the kernel has confirmed the session.
	OnReady func()
}

const (
	defaultShutdownGrace = 5 * time.Second
	maxTurnName          = 63
)

// OptionsFromEnv reads what the injecting webhook puts into the sidecar's
// environment.
func OptionsFromEnv(getenv func(string) string) (Options, error) {
	o := Options{
		KernelURL: getenv(bridge.EnvKernelURL),
		KernelCA:  []byte(getenv(bridge.EnvKernelCA)),
		Turn:      getenv(bridge.EnvTurn),
		TokenFile: bridge.TokenFile,
		SharedDir: bridge.SharedDir,
		Port:      bridge.DefaultPort,
	}
	if raw := getenv(bridge.EnvBridgePort); raw != "" {
		port, err := strconv.ParseUint(raw, 10, 16)
		if err != nil {
			return Options{}, fmt.Errorf("%s is not a port", bridge.EnvBridgePort)
		}
		o.Port = int(port)
	}
	for name, value := range map[string]string{
		bridge.EnvKernelURL: o.KernelURL, bridge.EnvKernelCA: string(o.KernelCA), bridge.EnvTurn: o.Turn,
	} {
		if strings.TrimSpace(value) == "" {
			return Options{}, fmt.Errorf("%s is not set", name)
		}
	}
	return o, nil
}

func (o *Options) complete() error {
	switch {
	case o.Turn == "" || len(o.Turn) > maxTurnName:
		return errors.New("the turn's name must have 1 to 63 characters")
	case !filepath.IsAbs(o.SharedDir):
		return errors.New("the shared directory must be an absolute path")
	case o.Port < 0 || o.Port > 65535:
		return errors.New("the port must be between 0 and 65535")
	}
	if o.ShutdownGrace <= 0 {
		o.ShutdownGrace = defaultShutdownGrace
	}
	if o.Clock == nil {
		o.Clock = client.SystemClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnReady == nil {
		o.OnReady = func() {}
	}
	return nil
}

// in is the place inside the shared directory of a path below [bridge.SharedDir].
func (o *Options) in(path string) string {
	return harnessfiles.In(o.SharedDir, path)
}
