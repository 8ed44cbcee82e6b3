package serve

import (
	"errors"
	"flag"
	"strings"
	"time"

	"github.com/sharedos-dev/operator/providers/wire"
)

// Options are the flags every provider has.
type Options struct {
	Listen       string
	HealthListen string
	TLSCert      string
	TLSKey       string
	ClientCA     string
	ClientNames  string
	MaxInFlight  int
	MaxBody      int64
	Timeout      time.Duration
	// Reload is how often the certificate files are looked at.
	Reload time.Duration
}

// AddFlags declares the flags with their defaults.
func (o *Options) AddFlags(set *flag.FlagSet) {
	set.StringVar(&o.Listen, "listen", ":8443", "address of the HTTPS port")
	set.StringVar(&o.HealthListen, "health-listen", "", "address of a plain HTTP port with /healthz and /readyz (default none)")
	set.StringVar(&o.TLSCert, "tls-cert", "", "file with the certificate chain, PEM; may appear and change later")
	set.StringVar(&o.TLSKey, "tls-key", "", "file with the private key, PEM")
	set.StringVar(&o.ClientCA, "client-ca", "", "file with the CA that client certificates must come from, PEM")
	set.StringVar(&o.ClientNames, "client-names", "", "DNS or common names, separated by commas, of which a client certificate must have one (default any)")
	set.IntVar(&o.MaxInFlight, "max-in-flight", 16, "operations at one time")
	set.Int64Var(&o.MaxBody, "max-body", wire.DefaultMaxBody, "largest request, bytes")
	set.DurationVar(&o.Timeout, "timeout", wire.DefaultTimeout, "longest operation")
	set.DurationVar(&o.Reload, "tls-reload", 2*time.Second, "how often the certificate files are looked at")
}

// Validate checks the flags without touching the file system.
func (o *Options) Validate() error {
	switch {
	case o.Listen == "":
		return errors.New("--listen is required")
	case o.TLSCert == "" || o.TLSKey == "" || o.ClientCA == "":
		return errors.New("--tls-cert, --tls-key and --client-ca are required: operations are taken from verified clients only")
	case o.MaxInFlight < 1 || o.MaxBody < 1 || o.Timeout <= 0 || o.Reload <= 0:
		return errors.New("--max-in-flight, --max-body, --timeout and --tls-reload must be positive")
	}
	return nil
}

func (o *Options) clientNames() []string {
	var names []string
	for name := range strings.SplitSeq(o.ClientNames, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
