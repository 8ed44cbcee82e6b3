package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// capture records every packet on every interface of the network namespace that has the
// address, from the time it returns until stop is called. It works where pods are
// processes of this machine.
func capture(t *testing.T, address string) (stop func() []byte) {
	t.Helper()
	path, err := namespaceOf(address)
	must(t, err)
	socket, err := packetSocket(path)
	must(t, err)
	end, done := make(chan struct{}), make(chan []byte)
	go func() {
		defer func() { _ = unix.Close(socket) }()
		var all bytes.Buffer
		packet := make([]byte, 1<<17)
		for {
			n, _, err := unix.Recvfrom(socket, packet, 0)
			if err == nil {
				all.Write(packet[:n])
				continue
			}
			select {
			case <-end: // and nothing is left to read
				done <- all.Bytes()
				return
			default:
			}
		}
	}()
	return func() []byte {
		close(end)
		return <-done
	}
}

// namespaceOf finds a process whose own address that is.
func namespaceOf(address string) (string, error) {
	tables, err := filepath.Glob("/proc/[0-9]*/net/fib_trie")
	if err != nil {
		return "", fmt.Errorf("look for processes: %w", err)
	}
	for _, table := range tables {
		raw, err := os.ReadFile(table)
		if err != nil {
			continue // it has ended
		}
		if _, after, ok := strings.Cut(string(raw), "-- "+address+"\n"); ok {
			if line, _, _ := strings.Cut(after, "\n"); strings.Contains(line, "host LOCAL") {
				return filepath.Join(filepath.Dir(filepath.Dir(table)), "ns", "net"), nil
			}
		}
	}
	return "", fmt.Errorf("no process of this machine has the address %s", address)
}

// packetSocket opens a socket inside of a network namespace. A socket stays where it was
// opened; the thread that went there is given up.
func packetSocket(namespace string) (int, error) {
	type opened struct {
		socket int
		err    error
	}
	out := make(chan opened)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		socket, err := func() (int, error) {
			file, err := os.Open(namespace)
			if err != nil {
				return -1, err
			}
			defer func() { _ = file.Close() }()
			if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
				return -1, err
			}
			const everything = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network order
			socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, everything)
			if err != nil {
				return -1, err
			}
			err = errors.Join(unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}),
				unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20))
			return socket, err
		}()
		out <- opened{socket, err}
	}()
	o := <-out
	if o.err != nil {
		return -1, fmt.Errorf("listen in %s: %w", namespace, o.err)
	}
	return o.socket, nil
}
