package manager

import (
	"github.com/sharedos-dev/operator/console"
)

// addConsole serves the read-only console on a loopback address of every replica.
// It reads the cache, which a replica that is not the leader fills at the first page.
func (p *process) addConsole() error {
	if p.opts.ConsoleListen == console.Off {
		return nil
	}
	handler, err := console.NewHandler(console.Options{
		Reader: p.mgr.GetClient(), Clock: p.clock, NewID: newID, Log: p.log.WithName("console"),
	})
	if err != nil {
		return err
	}
	return p.mgr.Add(&console.Server{Listen: p.opts.ConsoleListen, Handler: handler})
}
