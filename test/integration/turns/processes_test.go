package turns

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// processes are the programs that this test process started.
type processes struct{ restarted *exec.Cmd }

// child finds the child process of this one that runs the program.
func (*processes) child(program string) (pid int, args []string, err error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, nil, err
	}
	for _, folder := range folders {
		raw, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || len(raw) == 0 {
			continue // it has ended meanwhile
		}
		var all []string
		for part := range bytes.SplitSeq(bytes.TrimSuffix(raw, []byte{0}), []byte{0}) {
			all = append(all, string(part))
		}
		stat, err := os.ReadFile(filepath.Join(folder, "stat"))
		if err != nil || filepath.Base(all[0]) != program {
			continue
		}
		// pid (name) state ppid: the name holds no parenthesis here.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if parent, err := strconv.Atoi(string(fields[1])); err != nil || parent != os.Getpid() || string(fields[0]) == "Z" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		return pid, all, err
	}
	return 0, nil, fmt.Errorf("%s is not a child of this process", program)
}

// pause stops a program for a while, as a disk that does not answer would.
func (p *processes) pause(t *testing.T, program string, d time.Duration) {
	t.Helper()
	pid, _, err := p.child(program)
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	time.Sleep(d) //nolint:forbidigo // the outage itself
	must(t, syscall.Kill(pid, syscall.SIGCONT))
}

// restart kills the API server and starts it again as it was.
func (p *processes) restart(t *testing.T) {
	t.Helper()
	pid, args, err := p.child("kube-apiserver")
	must(t, err)
	again := exec.Command(args[0], args[1:]...) // what was running before; it ends with the tests
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	gone := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		_, _, err := p.child("kube-apiserver")
		return err != nil, nil
	})
	must(t, gone)
	must(t, again.Start())
	p.restarted = again
	clientset, err := kubernetes.NewForConfig(server.config)
	must(t, err)
	ready := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return clientset.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	must(t, ready)
}

// end stops what was restarted.
func (p *processes) end() {
	if p.restarted != nil {
		_ = p.restarted.Process.Kill()
		_ = p.restarted.Wait()
	}
}
