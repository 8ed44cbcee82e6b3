// Package repo serves the repo plane from Git repositories in a directory, with a
// Git library and without Git: no hook, filter, external diff, textconv, signing
// or credential program is ever run, and neither system nor user configuration is
// read.
//
// A repository is what its files say, and its files may be hostile. Everything the
// library touches goes through a file system of ours that cannot leave the
// repository and follows no symbolic link, that gives reading operations nothing to
// write with, that stops when the caller gives up, and that refuses objects which
// inflate without bounds. A repository that points elsewhere (a .git that is a file
// or a link, alternates, a common directory, HEAD outside refs/heads) is refused
// with unsupported_repository. A hostile pack file can still make the process run
// out of memory; it is alone in its pod.
//
// Layout: a world is a folder below the root, or the root itself with
// Options.World, as for the files provider. Writers take Git's own index.lock, so
// that they and a Git beside them keep out of each other's way.
package repo
