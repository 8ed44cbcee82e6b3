package kernel

// CheckTool reports whether a tool can be registered, as [New] and a turn's catalogue
// would: its definition is valid, its schemas compile and refer to nothing outside of
// themselves, and it has a requirement and a handler. A provider asks before it yields
// a tool that it did not write itself, because one that cannot be registered takes the
// whole catalogue with it.
func CheckTool(tool Tool) error {
	var f forms
	_, err := f.compile(tool)
	return err
}
