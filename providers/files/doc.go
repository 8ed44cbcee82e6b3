// Package files serves the files plane from a directory.
//
// Confinement. Every access goes through [os.Root], one path segment at a time,
// and each step is checked to be the very directory or file that was looked at,
// so a symbolic link is never followed, not even one that stays inside: authority
// over a folder must not become authority over what a link in it points to. Links
// are listed as such and cannot be read or written through. What the volume's
// owner mounts or hard-links into the directory counts as inside it.
//
// Layout. A world is a folder below the root (or, with Options.World, the root
// itself). The folder ".sharedos" of the root holds metadata, snapshots and
// search indexes by world; names that begin with ".sharedos" can be neither
// addressed nor seen. The owner of a resource is not part of the layout: the
// owners of one world share its tree, and grants tell them apart.
//
// Writing. Content is written beside its target, synced and renamed over it, so a
// reader sees the old or the new file and a crash leaves one of them. Writers of
// one file take turns; operations on whole subtrees wait for writers and hold up
// new ones. Cancellation is honoured up to the rename and not after it. A version
// is the SHA-256 of the content.
//
// The provider is meant to be the only writer. Changes made behind its back are
// read correctly at once and found by search after the next scan.
package files
