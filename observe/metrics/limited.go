package metrics

import "sync"

// limited keeps a label's values few: what is new when it is full becomes [Other].
// The zero value is ready to use.
type limited struct {
	mu   sync.RWMutex
	seen map[string]struct{}
}

func (l *limited) label(value string, limit int) string {
	l.mu.RLock()
	_, known := l.seen[value]
	l.mu.RUnlock()
	if known {
		return value
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.seen[value]; known {
		return value
	}
	if len(l.seen) >= limit || len(value) > 64 {
		return Other
	}
	if l.seen == nil {
		l.seen = map[string]struct{}{}
	}
	l.seen[value] = struct{}{}
	return value
}
