// Command images makes the container images of SharedOS from static Go binaries,
// without a container engine.
//
//	images list
//	images build [--out DIR] [--tag TAG] [--platform OS/ARCH,...] [--only NAME,...]
//	images push REPOSITORY_PREFIX [--tag TAG] [--platform OS/ARCH,...] [--only NAME,...]
//
// An image holds one binary, an /etc/passwd with one unprivileged user, and
// nothing else. The same sources, Go version, platform and version string give the
// same digest on any machine: binaries are built with trimmed paths and no build
// id, and every file in a layer carries SOURCE_DATE_EPOCH, or 1970 without it.
//
// build writes one archive per image that `ctr image import` and `docker load`
// read, and leaves an archive alone whose image is already the one it would write.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage.
package main
