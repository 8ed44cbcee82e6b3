package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const pollEvery = 20 * time.Millisecond

// Stop ends a recorded process, first politely, after grace by force, and
// forgets it. A process that is not the recorded one is left alone.
func (s Store) Stop(name string, grace time.Duration) error {
	r, err := s.Load(name)
	if errors.Is(err, ErrNoRecord) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.Kill(r, grace); err != nil {
		return err
	}
	return s.Remove(name)
}

// Kill ends the process of a record if it still is that process. With no
// grace it is ended by force at once.
func (s Store) Kill(r Record, grace time.Duration) error {
	// The handle is taken before the check, and refers to one process only
	// (a pidfd), so that a pid reused in between cannot be hit.
	p, err := os.FindProcess(r.PID)
	if err != nil {
		return nil // already gone
	}
	defer func() { _ = p.Release() }()
	if !s.Alive(r) {
		return nil
	}
	if grace > 0 {
		if err := signal(p, syscall.SIGTERM); err != nil {
			return fmt.Errorf("stop %s (pid %d): %w", r.Name, r.PID, err)
		}
		if s.waitEnd(r, grace) {
			return nil
		}
	}
	if err := signal(p, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s (pid %d): %w", r.Name, r.PID, err)
	}
	const afterKill = 10 * time.Second
	if !s.waitEnd(r, afterKill) {
		return fmt.Errorf("%s (pid %d) still runs %s after SIGKILL: it may hang in the kernel, see its state with `ps -o pid,stat,wchan %d`", r.Name, r.PID, afterKill, r.PID)
	}
	return nil
}

func signal(p *os.Process, sig os.Signal) error {
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// waitEnd polls, because a process that is not our child cannot be waited for.
func (s Store) waitEnd(r Record, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for s.Alive(r) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pollEvery)
	}
	return true
}
