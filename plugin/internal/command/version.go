package command

import "runtime/debug"

// release is set when a release is built.
var release string //nolint:gochecknoglobals // the linker sets it

// Version is that of this program: the release's, the module's, or "dev".
func Version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
