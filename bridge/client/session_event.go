package client

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// parseEvent reads one line. ok is false for a line that says nothing to this
// version, blank or of a type it does not know: such a line is a sign of life
// and no more.
func parseEvent(line []byte) (event bridge.SessionEvent, ok bool, err error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return event, false, nil
	}
	if err := strictjson.Unmarshal(line, &event, strictjson.Options{AllowUnknown: true}); err != nil {
		return bridge.SessionEvent{}, false, fmt.Errorf("decode session line: %w", err)
	}
	switch event.Type {
	case bridge.SessionAttached, bridge.SessionHeartbeat, bridge.SessionEnded:
		return event, true, nil
	default:
		return bridge.SessionEvent{}, false, nil
	}
}

// watchdog calls bark once nothing has reset it for a while.
type watchdog struct {
	clock   Clock
	patient time.Duration
	bark    func()

	mu      sync.Mutex
	disarm  func() bool
	stopped bool
}

func newWatchdog(clock Clock, patient time.Duration, bark func()) *watchdog {
	w := &watchdog{clock: clock, patient: patient, bark: bark}
	w.reset()
	return w
}

func (w *watchdog) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if w.disarm != nil {
		w.disarm()
	}
	w.disarm = w.clock.AfterFunc(w.patient, w.bark)
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.disarm()
}
