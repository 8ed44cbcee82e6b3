package kernel

// Refusal is the error of an operation that could not be taken up at all. It
// carries only what a caller may know.
type Refusal struct {
	Code    string
	Message string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Code + ": " + r.Message }
