package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stat is the part of /proc/PID/stat that is needed here.
type stat struct {
	state      byte
	startTicks uint64
}

// ended says whether the process is only waiting to be collected.
func (s stat) ended() bool { return s.state == 'Z' || s.state == 'X' }

func readStat(procFS string, pid int) (stat, error) {
	data, err := os.ReadFile(filepath.Join(procFS, strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return parseStat(string(data))
}

// parseStat reads a stat line. The second field is the program's name in
// brackets and may itself hold spaces and brackets.
func parseStat(line string) (stat, error) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return stat{}, fmt.Errorf("parse process status %q: no program name", line)
	}
	fields := strings.Fields(line[end+1:])
	const state, start = 0, 22 - 3 // fields are counted from the third
	if len(fields) <= start || len(fields[state]) != 1 {
		return stat{}, fmt.Errorf("parse process status %q: too few fields", line)
	}
	ticks, err := strconv.ParseUint(fields[start], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("parse start time of process: %w", err)
	}
	return stat{state: fields[state][0], startTicks: ticks}, nil
}

func bootID(procFS string) (string, error) {
	data, err := os.ReadFile(filepath.Join(procFS, "sys", "kernel", "random", "boot_id"))
	if err != nil {
		return "", fmt.Errorf("read boot identity: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// MemoryKiB returns the resident memory of a process, or 0 if it is unknown.
func (s Store) MemoryKiB(pid int) int {
	data, err := os.ReadFile(filepath.Join(s.procFS(), strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			return kib
		}
	}
	return 0
}

// FindByExe lists records of processes whose program is the file exe and whose
// arguments hold the word arg. It serves to find children of our own daemons
// that nobody recorded, such as the shims of a containerd that died.
func (s Store) FindByExe(exe, arg string) []Record {
	boot, err := bootID(s.procFS())
	if err != nil {
		return nil
	}
	dirs, _ := filepath.Glob(filepath.Join(s.procFS(), "[0-9]*"))
	var found []Record
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		target, err := os.Readlink(filepath.Join(dir, "exe"))
		if err != nil || strings.TrimSuffix(target, " (deleted)") != exe {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !containsWord(string(cmdline), arg) {
			continue
		}
		st, err := readStat(s.procFS(), pid)
		if err != nil || st.ended() {
			continue
		}
		found = append(found, Record{Name: filepath.Base(exe), PID: pid, StartTicks: st.startTicks, BootID: boot, Exe: exe})
	}
	return found
}

func containsWord(cmdline, word string) bool {
	for w := range strings.SplitSeq(cmdline, "\x00") {
		if w == word {
			return true
		}
	}
	return false
}
