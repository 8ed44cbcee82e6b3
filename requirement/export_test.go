package requirement

// Counted is the same expression without the way around counting.
func (p *Path) Counted() *Path { return &Path{args: p.args, program: p.program} }
