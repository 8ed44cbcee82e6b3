package main

import (
	"flag"
	"io"
	"testing"
)

func TestFlags(t *testing.T) {
	tls := []string{"--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key", "--client-ca=/client-ca/ca.crt"}
	for name, tc := range map[string]struct {
		args []string
		ok   bool
	}{
		"chart":           {append([]string{"--listen=:8443", "--root=/data", "--seed=/seed"}, tls...), true},
		"world":           {append([]string{"--root=/data", "--world=team", "--read-only", "--index-dir=/index", "--health-listen=:8081"}, tls...), true},
		"no root":         {tls, false},
		"no client CA":    {append([]string{"--root=/data"}, tls[:2]...), false},
		"two layouts":     {append([]string{"--root=/data", "--world=a", "--per-world"}, tls...), false},
		"read-only index": {append([]string{"--root=/data", "--read-only"}, tls...), false},
		"read-only seed":  {append([]string{"--root=/data", "--read-only", "--search=false", "--seed=/seed"}, tls...), false},
	} {
		t.Run(name, func(t *testing.T) {
			var opts Options
			set := flag.NewFlagSet("test", flag.ContinueOnError)
			set.SetOutput(io.Discard)
			opts.AddFlags(set)
			if err := set.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if err := opts.Validate(); (err == nil) != tc.ok {
				t.Errorf("Validate() = %v, want ok %v", err, tc.ok)
			}
		})
	}
	if code := command([]string{"--nonsense"}); code != 2 {
		t.Errorf("exit code of a wrong flag = %d, want 2", code)
	}
}
