package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Spec says what to start.
type Spec struct {
	Name string
	Exe  string
	Args []string
	// Env is the whole environment of the process.
	Env []string
	// LogFile receives both outputs, appended.
	LogFile string
}

// Start runs a program detached from this one, in its own session, and records
// it. The process stays when this one ends.
func (s Store) Start(spec Spec) (Record, error) {
	if err := os.MkdirAll(filepath.Dir(spec.LogFile), 0o750); err != nil {
		return Record{}, fmt.Errorf("create log folder: %w", err)
	}
	log, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return Record{}, fmt.Errorf("open log of %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()

	cmd := exec.Command(spec.Exe, spec.Args...) //nolint:noctx // it outlives this program
	cmd.Env = spec.Env
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	boot, err := bootID(s.procFS())
	if err != nil {
		return Record{}, err
	}
	if err := cmd.Start(); err != nil {
		return Record{}, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// Until it is collected below, the pid cannot belong to anyone else.
	st, err := readStat(s.procFS(), cmd.Process.Pid)
	record := Record{
		Name: spec.Name, PID: cmd.Process.Pid, StartTicks: st.startTicks,
		BootID: boot, Exe: spec.Exe, Started: time.Now().UTC().Truncate(time.Second),
	}
	if err == nil {
		err = s.Save(record)
	}
	if err != nil {
		// Nobody would know it later, so it must not stay.
		return Record{}, errors.Join(fmt.Errorf("record %s: %w", spec.Name, err), cmd.Process.Kill(), cmd.Wait())
	}
	// Collect it if it ends while this process lives.
	go func() { _ = cmd.Wait() }()
	return record, nil
}

// Tail returns the last lines of a log file, for error messages.
func Tail(file string, lines int) string {
	const most = 16 << 10
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
