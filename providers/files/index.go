package files

// Index finds files by words.
type Index interface {
	// Close releases the index.
	Close() error
}
