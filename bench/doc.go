// Package bench asks this kernel and other authorization engines the same question,
// side by side in one run: may a principal do an action on a path below a granted
// prefix, where only the last of n grants covers it.
//
// It is a module of its own so that its peers are no dependency of the product:
//
//	cd bench && go test -run Same -bench . -benchmem
package bench
