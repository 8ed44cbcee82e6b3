package offline

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context is a program's: it ends when somebody interrupts or ends the program, hangs up
// the terminal, or stops reading its output. A turn that runs then is cancelled, its
// agent is ended, and what was written for it is removed. The caller must stop it.
func Context() (ctx context.Context, stop context.CancelFunc) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), ends...)
}
