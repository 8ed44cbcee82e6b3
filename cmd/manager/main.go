// Command manager is the SharedOS operator: permission kernel, controllers,
// injection webhook and kernel service in one process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"go.uber.org/zap/zapcore"
	_ "golang.org/x/crypto/x509roots/fallback" // authorities for upstream servers: the image has no files
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/sharedos-dev/operator/manager"
)

// version is set by the build.
var version = "dev"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	opts := manager.Options{Version: version}
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	opts.AddFlags(flags)
	showVersion := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *showVersion {
		_, err := fmt.Println(version)
		return err
	}
	if err := opts.Validate(); err != nil {
		return err
	}
	log := zap.New(zap.Level(zapcore.Level(-opts.Verbosity)), zap.WriteTo(os.Stderr)) //nolint:gosec // a small number
	klog.SetLogger(log)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	config.QPS, config.Burst = -1, -1 // the API server's own priority and fairness decides
	ctx, stop := context.WithCancel(ctrl.SetupSignalHandler())
	collector := limitGarbage(ctx)
	err = manager.Run(ctx, config, opts, log)
	stop()
	<-collector
	return err
}
