package manager

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Times of the leader's lease. Who waits for it looks often, so that a handover is
// short; who holds it renews it less often, so that the API server is spared.
const (
	leaseName   = "sharedos-manager"
	leaseLook   = 500 * time.Millisecond
	leaseWrites = 2 * time.Second
)

// renewDeadline is how long a leader goes on that cannot renew a lease of that
// duration.
func renewDeadline(duration time.Duration) time.Duration { return duration * 2 / 3 }

// writeEvery is the time between two renewals that are written. The last written one
// is older than the holder believes by at most that, so it must be well below what
// the renew deadline leaves of the duration: a third of it.
func writeEvery(duration time.Duration) time.Duration { return min(leaseWrites, duration/6) }

// leaseLock is the lock that the replicas compete for. Its client is its own, so that
// no other request keeps a renewal waiting.
func leaseLock(config *rest.Config, namespace string, duration time.Duration) (resourcelock.Interface, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	// One request without an answer must not cost the lease.
	config.Timeout = renewDeadline(duration) / 2
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the host's name: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, leaseName, clientset.CoreV1(), clientset.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: host + "_" + uuid.NewString()})
	if err != nil {
		return nil, fmt.Errorf("make the lease's lock: %w", err)
	}
	return &sparingLock{Interface: lock, every: writeEvery(duration), clock: time.Now}, nil
}

// sparingLock leaves out renewals that follow another too soon. To the other replicas
// the lease is then older than its holder believes; see [writeEvery].
type sparingLock struct {
	resourcelock.Interface
	every time.Duration
	clock func() time.Time

	mu      sync.Mutex
	last    resourcelock.LeaderElectionRecord
	written time.Time
}

// Create implements [resourcelock.Interface].
func (l *sparingLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements [resourcelock.Interface].
func (l *sparingLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	same := record.HolderIdentity == l.Identity() && record.HolderIdentity == l.last.HolderIdentity &&
		record.LeaderTransitions == l.last.LeaderTransitions && record.LeaseDurationSeconds == l.last.LeaseDurationSeconds
	soon := l.clock().Sub(l.written) < l.every
	l.mu.Unlock()
	if same && soon {
		return nil
	}
	return l.write(record, func() error { return l.Interface.Update(ctx, record) })
}

// write remembers what was written. After a failure nothing is taken for written.
func (l *sparingLock) write(record resourcelock.LeaderElectionRecord, do func() error) error {
	at := l.clock()
	err := do()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.written = record, at
	if err != nil {
		l.last, l.written = resourcelock.LeaderElectionRecord{}, time.Time{}
	}
	return err
}
