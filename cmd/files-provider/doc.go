// Command files-provider serves a directory to the kernel as the files plane.
package main
