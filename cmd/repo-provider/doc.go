// Command repo-provider serves Git repositories to the kernel as the repo plane.
package main
