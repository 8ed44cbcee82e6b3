package proc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const tail = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21"
	tests := []struct {
		name, line string
		want       stat
		wantErr    bool
	}{
		{name: "plain", line: "7 (etcd)" + tail, want: stat{state: 'S', startTicks: 4242}},
		{name: "name with spaces and brackets", line: "7 (a) Z (b c)" + tail, want: stat{state: 'S', startTicks: 4242}},
		{name: "no name", line: "7 etcd S", wantErr: true},
		{name: "short", line: "7 (etcd) S 1 2", wantErr: true},
		{name: "empty", line: "", wantErr: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseStat(tt.line)
			if (err != nil) != tt.wantErr || got != tt.want {
				t.Errorf("parseStat() = %+v, %v, want %+v, error %v", got, err, tt.want, tt.wantErr)
			}
		})
	}
}

func startSleep(t *testing.T, s Store) Record {
	t.Helper()
	r, err := s.Start(Spec{
		Name: "sleeper", Exe: "/bin/sh", Args: []string{"-c", "echo started; exec sleep 60"},
		LogFile: filepath.Join(s.Dir, "sleeper.log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Kill(r, 0) })
	return r
}

func TestStartRecordsAndStopEnds(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	r := startSleep(t, s)
	loaded, running := s.Running("sleeper")
	if !running || loaded.PID != r.PID || loaded.StartTicks != r.StartTicks || !loaded.Started.Equal(r.Started) {
		t.Fatalf("Running() = %+v, %v, want the started process %+v", loaded, running, r)
	}
	if s.MemoryKiB(r.PID) <= 0 {
		t.Error("MemoryKiB() of a running process is not positive")
	}
	if err := s.Stop("sleeper", 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if s.Alive(r) {
		t.Error("process lives after Stop")
	}
	if _, err := s.Load("sleeper"); !errors.Is(err, ErrNoRecord) {
		t.Errorf("Load() after Stop: error = %v, want ErrNoRecord", err)
	}
	if err := s.Stop("sleeper", time.Second); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

func TestReusedPidIsNeverKilled(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	r := startSleep(t, s)
	tests := map[string]func(Record) Record{
		"other start time": func(r Record) Record { r.StartTicks++; return r },
		"other boot":       func(r Record) Record { r.BootID = "another"; return r },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			other := change(r)
			if s.Alive(other) {
				t.Error("a process that is not the recorded one counts as alive")
			}
			if err := s.Save(other); err != nil {
				t.Fatal(err)
			}
			if err := s.Stop("sleeper", time.Second); err != nil {
				t.Fatal(err)
			}
			if !s.Alive(r) {
				t.Fatal("Stop ended a process that was not the recorded one")
			}
		})
	}
}

func TestStopForcesAProcessThatIgnoresSignals(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	log := filepath.Join(s.Dir, "log")
	r, err := s.Start(Spec{Name: "deaf", Exe: "/bin/sh", Args: []string{"-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"}, LogFile: log})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(Tail(log, 1), "ready") {
		if time.Now().After(deadline) {
			t.Fatal("process did not start")
		}
		time.Sleep(pollEvery)
	}
	if err := s.Stop("deaf", 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if s.Alive(r) {
		t.Error("process lives after Stop")
	}
}

func TestLoadRefusesDamagedRecords(t *testing.T) {
	for name, content := range map[string]string{
		"not json": "{",
		"pid one":  `{"name":"x","pid":1,"startTicks":5,"bootID":"b"}`,
		"no start": `{"name":"x","pid":77,"bootID":"b"}`,
		"no boot":  `{"name":"x","pid":77,"startTicks":5}`,
		"no name":  `{"pid":77,"startTicks":5,"bootID":"b"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := Store{Dir: t.TempDir()}
			if err := os.WriteFile(filepath.Join(s.Dir, "x.json"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load("x"); err == nil || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("Load() error = %v, want it to call the record damaged", err)
			}
		})
	}
}

func TestFindByExe(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	r := startSleep(t, s)
	exe, err := filepath.EvalSymlinks("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	has := func(found []Record) bool {
		for _, f := range found {
			if f.PID == r.PID && f.StartTicks == r.StartTicks {
				return true
			}
		}
		return false
	}
	deadline := time.Now().Add(10 * time.Second)
	for !has(s.FindByExe(exe, "60")) { // the shell has to become sleep first
		if time.Now().After(deadline) {
			t.Fatal("FindByExe() does not find the process")
		}
		time.Sleep(pollEvery)
	}
	if has(s.FindByExe(exe, "6")) {
		t.Error("FindByExe() matched a part of an argument")
	}
}
