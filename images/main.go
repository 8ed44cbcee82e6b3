package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/sharedos-dev/operator/images/internal/build"
)

// errUsage marks a mistake in the command line; the flag package, or run, has
// already explained it.
var errUsage = errors.New("wrong usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

const usage = `usage:
  images list
  images build [flags]
  images push REPOSITORY_PREFIX [flags]
"images build -h" explains the flags.
`

// run carries out one command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "list":
		return list(images(), stdout)
	case "build":
		return runBuild(ctx, args, stdout, stderr)
	case "push":
		return runPush(ctx, args, stdout, stderr)
	default:
		_, _ = io.WriteString(stderr, usage)
		return errUsage
	}
}

func runBuild(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, rest, err := parse("build", args, stderr)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		_, _ = fmt.Fprintf(stderr, "unexpected argument %q\n", rest[0])
		return errUsage
	}
	specs, err := opts.selected(images())
	if err != nil {
		return err
	}
	builder, err := opts.builder(stderr)
	if err != nil {
		return err
	}
	report := &table{}
	for _, spec := range specs {
		results, err := builder.Save(ctx, spec, opts.out, opts.tag)
		if err != nil {
			return err
		}
		report.add(results...)
	}
	return report.print(stdout)
}

func runPush(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		_, _ = io.WriteString(stderr, usage)
		return errUsage
	}
	prefix := args[0]
	opts, rest, err := parse("push", args[1:], stderr)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		_, _ = fmt.Fprintf(stderr, "unexpected argument %q\n", rest[0])
		return errUsage
	}
	specs, err := opts.selected(images())
	if err != nil {
		return err
	}
	builder, err := opts.builder(stderr)
	if err != nil {
		return err
	}
	report := &table{}
	for _, spec := range specs {
		result, err := builder.Push(ctx, spec, prefix, opts.tag)
		if err != nil {
			return err
		}
		report.add(result)
	}
	return report.print(stdout)
}

// parse reads the flags that build and push share.
func parse(name string, args []string, stderr io.Writer) (*options, []string, error) {
	opts := &options{}
	set := flag.NewFlagSet("images "+name, flag.ContinueOnError)
	set.SetOutput(stderr)
	opts.addFlags(set)
	if err := set.Parse(args); err != nil {
		return nil, nil, errUsage
	}
	return opts, set.Args(), nil
}

// list prints the names of the images and where their binaries come from.
func list(specs []build.Spec, w io.Writer) error {
	for _, spec := range specs {
		if _, err := fmt.Fprintf(w, "%s/%s\t%s\t%s\n", repositoryPrefix, spec.Name, spec.Module, spec.Package); err != nil {
			return fmt.Errorf("print list: %w", err)
		}
	}
	return nil
}
