package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

// Exit codes that no message asks for.
const (
	exitFailed     = 1
	exitTerminated = 128 + int(syscall.SIGTERM)
)

// The environment that the operator sets.
const (
	envConfig  = "SHAREDOS_MCP_CONFIG"
	envMessage = "SHAREDOS_MESSAGE_FILE"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := 0
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		if err := serve(ctx, os.Getenv, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "harness:", err)
			code = exitFailed
		}
	} else {
		code = run(ctx, os.Getenv, os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(code)
}

// run does it all, always prints a report, and returns the exit code.
func run(ctx context.Context, getenv func(string) string, stdout, stderr io.Writer) int {
	report := newReport()
	code, err := work(ctx, getenv, report, stderr)
	switch {
	case ctx.Err() != nil:
		report.Error, code = "terminated", exitTerminated
	case err != nil:
		report.Error, code = err.Error(), exitFailed
	}
	if report.Error != "" {
		fmt.Fprintln(stderr, "harness:", report.Error)
	}
	if err := report.print(stdout); err != nil {
		fmt.Fprintln(stderr, "harness: print report:", err)
		return exitFailed
	}
	return code
}

// work fills the report and returns the exit code that the message asks for.
func work(ctx context.Context, getenv func(string) string, report *report, stderr io.Writer) (int, error) {
	job, err := readTask(getenv(envMessage))
	if err != nil {
		return 0, err
	}
	if job.IgnoreTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	report.probe(job.Probe)
	report.Padding = strings.Repeat("sharedos", job.OutputBytes/len("sharedos"))
	endpoint, err := readConnection(getenv(envConfig))
	if err != nil {
		return 0, err
	}
	report.Token = endpoint.claims()
	agent, err := connect(ctx, endpoint, stderr)
	if err != nil {
		return 0, err
	}
	defer agent.close()
	taken := allocate(job.AllocateMiB)
	defer runtime.KeepAlive(taken)
	return job.ExitCode, agent.do(ctx, job, report)
}

// allocate takes so much memory and writes to all of it.
func allocate(mib int) [][]byte {
	taken := make([][]byte, mib)
	for i := range taken {
		taken[i] = bytes.Repeat([]byte{1}, 1<<20)
	}
	return taken
}
