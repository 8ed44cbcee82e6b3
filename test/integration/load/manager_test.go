//go:build load

package load

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// process is one manager.
type process struct {
	cmd    *exec.Cmd
	kernel int
	log    string
	ended  chan struct{}
}

// startManager starts a manager. The first one has the webhooks' port.
func startManager(t *testing.T, n int) *process {
	t.Helper()
	dir := t.TempDir()
	port := func(base int) string { return strconv.Itoa(base + n) }
	p := &process{kernel: 18444 + n, log: filepath.Join(dir, "manager.log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	must(t, err)
	p.cmd = exec.Command(env.binary, "--namespace="+system, "--pod-name=manager-"+strconv.Itoa(n), "--pod-ip=192.0.2.1", //nolint:gosec,noctx // ended by stop
		"--health-listen=127.0.0.1:"+port(18081), "--metrics-listen=0", "--console-listen=0", "--profile-listen=127.0.0.1:"+port(18061),
		"--webhook-port="+port(webhookPort), "--kernel-port="+port(18444), "--leader-elect",
		"--sidecar-image=sidecar:load", "--provider-tls-secret=sharedos-files-provider-tls", "--provider-service=sharedos-files-provider",
		"--audit-dir="+filepath.Join(dir, "audit"), "--egress-allow=127.0.0.0/8")
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+env.kubeconfig, "GOMEMLIMIT=480MiB")
	p.cmd.Stdout, p.cmd.Stderr = log, log
	must(t, p.cmd.Start())
	go func() { _ = p.cmd.Wait(); _ = log.Close(); close(p.ended) }()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		if t.Failed() {
			if raw, err := os.ReadFile(p.log); err == nil {
				t.Logf("manager %d:\n%s", n, raw[max(0, len(raw)-4000):])
			}
		}
	})
	return p
}

// signal sends a signal and, when it kills, waits for the end.
func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.ended:
		return
	default:
	}
	_ = p.cmd.Process.Signal(s)
	if s == syscall.SIGKILL {
		<-p.ended
	}
}

// resident is the process's memory, MiB.
func (p *process) resident(t *testing.T) float64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	must(t, err)
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			must(t, err)
			return float64(kib) / 1024
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// leads waits until the manager is the one that the kernel's Service leads to.
func (p *process) leads(t *testing.T) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, fmt.Errorf("the manager has ended; see %s", p.log)
		default:
		}
		return leaderPort(ctx) == p.kernel, nil
	})
	must(t, err)
}

// leaderPort is the port of the manager that the EndpointSlice names; 0 is none.
func leaderPort(ctx context.Context) int {
	slice := &discoveryv1.EndpointSlice{}
	err := env.client.Get(ctx, types.NamespacedName{Namespace: system, Name: "sharedos-kernel-leader"}, slice)
	if err != nil || len(slice.Ports) == 0 || slice.Ports[0].Port == nil {
		return 0
	}
	return int(*slice.Ports[0].Port)
}

// service plays kube-proxy: it leads each new connection to where the EndpointSlice
// says at that time.
type service struct {
	listener net.Listener
	port     sync.Map // "port" -> int
}

func startService(t *testing.T) *service {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	s := &service{listener: listener}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); _ = listener.Close() })
	go func() {
		for ctx.Err() == nil {
			if port := leaderPort(ctx); port != 0 {
				s.port.Store("port", port)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.carry(conn)
		}
	}()
	return s
}

func (s *service) url() string { return "https://" + s.listener.Addr().String() }

func (s *service) carry(from net.Conn) {
	defer func() { _ = from.Close() }()
	port, _ := s.port.Load("port")
	to, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%v", port)) //nolint:noctx // loopback
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() { _, _ = bufio.NewReader(to).WriteTo(from); _ = from.Close() }()
	_, _ = bufio.NewReader(from).WriteTo(to)
}

// kernelCA is the bundle that sidecars trust.
func kernelCA(t *testing.T) []byte {
	t.Helper()
	secret := &corev1.Secret{}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := env.client.Get(ctx, types.NamespacedName{Namespace: system, Name: "sharedos-manager-tls"}, secret)
		return err == nil && len(secret.Data["ca.crt"]) > 0, err
	})
	must(t, err)
	return secret.Data["ca.crt"]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
