// Package proc starts daemons that outlive the tool, remembers them, and stops
// exactly those again: a process counts as ours only while its pid, its start
// time and the machine's boot are the recorded ones.
package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrNoRecord says that no process of that name was recorded.
var ErrNoRecord = errors.New("no record of the process")

// Record identifies one process of this machine for as long as it lives.
type Record struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// StartTicks is field 22 of /proc/PID/stat: a reused pid has another one.
	StartTicks uint64 `json:"startTicks"`
	// BootID tells boots apart, because ticks count from the boot.
	BootID  string    `json:"bootID"`
	Exe     string    `json:"exe"`
	Started time.Time `json:"started"`
}

// Store keeps records as files of one folder.
type Store struct {
	// Dir holds one file per process.
	Dir string
	// ProcFS is where process information is read; empty means /proc.
	ProcFS string
}

func (s Store) file(name string) string { return filepath.Join(s.Dir, name+".json") }

func (s Store) procFS() string {
	if s.ProcFS == "" {
		return "/proc"
	}
	return s.ProcFS
}

// Save writes a record so that readers see all of it or nothing.
func (s Store) Save(r Record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode record of %s: %w", r.Name, err)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("create folder of process records: %w", err)
	}
	tmp := s.file(r.Name) + ".tmp"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write record of %s: %w", r.Name, err)
	}
	if err := os.Rename(tmp, s.file(r.Name)); err != nil {
		return fmt.Errorf("write record of %s: %w", r.Name, err)
	}
	return nil
}

// Load reads a record, or returns ErrNoRecord.
func (s Store) Load(name string) (Record, error) {
	data, err := os.ReadFile(s.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("%s: %w", name, ErrNoRecord)
	}
	if err != nil {
		return Record{}, fmt.Errorf("read record of %s: %w", name, err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("record %s is damaged (end the process by hand if it runs, then remove the file): %w", s.file(name), err)
	}
	if r.Name != name || r.PID <= 1 || r.StartTicks == 0 || r.BootID == "" {
		return Record{}, fmt.Errorf("record %s is damaged (end the process by hand if it runs, then remove the file): it does not identify a process", s.file(name))
	}
	return r, nil
}

// Names lists the recorded processes, sorted.
func (s Store) Names() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.Dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list process records: %w", err)
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".json"))
	}
	return names, nil
}

// Remove forgets a process; forgetting an unknown one is no error.
func (s Store) Remove(name string) error {
	if err := os.Remove(s.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of %s: %w", name, err)
	}
	return nil
}

// Alive says whether the recorded process still runs. Any doubt means no: the
// caller may start or forget a process then, but never signal one.
func (s Store) Alive(r Record) bool {
	boot, err := bootID(s.procFS())
	if err != nil || boot != r.BootID {
		return false
	}
	st, err := readStat(s.procFS(), r.PID)
	return err == nil && st.startTicks == r.StartTicks && !st.ended()
}

// Running returns the record of a process that runs now.
func (s Store) Running(name string) (Record, bool) {
	r, err := s.Load(name)
	return r, err == nil && s.Alive(r)
}

// SameBoot says whether the process was recorded since the machine started.
func (s Store) SameBoot(r Record) bool {
	boot, err := bootID(s.procFS())
	return err == nil && boot == r.BootID
}
