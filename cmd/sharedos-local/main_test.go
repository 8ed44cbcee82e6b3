//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// envProgram makes this test binary the program.
const envProgram = "SHAREDOS_LOCAL_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestHoweverItEnds: whatever ends the program ends its agent too, and nothing that was
// written for it stays, the token least of all.
func TestHoweverItEnds(t *testing.T) {
	// Where the tests run under nohup, the program would ignore it too. What is taken here
	// is the default again in a program that is started.
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangUps) })
	for name, end := range map[string]func(t *testing.T, program *os.Process, output io.Closer){
		"interrupted": func(t *testing.T, p *os.Process, _ io.Closer) { t.Helper(); send(t, p, syscall.SIGINT) },
		"terminated":  func(t *testing.T, p *os.Process, _ io.Closer) { t.Helper(); send(t, p, syscall.SIGTERM) },
		"hung up":     func(t *testing.T, p *os.Process, _ io.Closer) { t.Helper(); send(t, p, syscall.SIGHUP) },
		// The agent calls nothing, so the next line is the one about its end.
		"unread": func(t *testing.T, p *os.Process, output io.Closer) {
			t.Helper()
			if err := output.Close(); err != nil {
				t.Error(err)
			}
			send(t, p, syscall.SIGTERM)
		},
		"broken pipe": func(t *testing.T, p *os.Process, _ io.Closer) { t.Helper(); send(t, p, syscall.SIGPIPE) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temporary := t.TempDir()
			pid := filepath.Join(t.TempDir(), "pid")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			program := exec.CommandContext(ctx, os.Args[0], "run", "../../examples/policies", "--principal", "alice-assistant", "--type", "custom",
				"--", "sh", "-c", `echo $$$$ >"$0.new" && mv "$0.new" "$0" && exec sleep 600`, pid)
			program.Env = append(os.Environ(), envProgram+"=yes", "TMPDIR="+temporary)
			output, err := program.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(output)
			for lines.Scan() && !strings.Contains(lines.Text(), "turn started") {
				continue
			}
			agent := started(t, pid)
			end(t, program.Process, output)
			for lines.Scan() {
				continue // what it still says must not keep it
			}
			_ = program.Wait() // how it ended is its own affair here
			if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
			gone(t, agent)
		})
	}
}

func send(t *testing.T, p *os.Process, s syscall.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Error(err)
	}
}

// started waits for the agent and returns its process.
func started(t *testing.T, file string) (pid int) {
	t.Helper()
	eventually(t, "the agent has not started", func() bool {
		raw, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		if pid, err = strconv.Atoi(strings.TrimSpace(string(raw))); err != nil {
			t.Fatal(err)
		}
		return true
	})
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the agent, process %d: %v", pid, err)
	}
	return pid
}

// gone waits until the process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, "the agent goes on without its turn", func() bool {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err == nil && strings.Contains(string(stat), ") Z") // it has ended; nobody has looked yet
	})
}

func eventually(t *testing.T, fault string, done func() bool) {
	t.Helper()
	ticker, timeout := time.NewTicker(10*time.Millisecond), time.After(30*time.Second)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatal(fault)
		}
	}
}
