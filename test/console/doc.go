// Package console looks at the read-only web console in a real Chromium: every page
// at the width of a telephone and of a desk, light and dark. It asks axe-core whether
// the pages are accessible, and checks that nothing leaves them, that no policy is
// violated, that all of it works from the keyboard, and that hostile text stays text.
//
// It is a module of its own. `go -C test/console test ./...` needs Chromium on the
// path (Debian: chromium) and npm, and writes screenshots to the folder that
// SHAREDOS_SCREENSHOTS names, else to one of the test's own.
package console
