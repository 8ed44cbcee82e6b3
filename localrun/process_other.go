//go:build !unix

package localrun

import "os/exec"

func group(*exec.Cmd) {}

func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func sweep(*exec.Cmd) {}

func exitCode(cmd *exec.Cmd) int { return cmd.ProcessState.ExitCode() }
