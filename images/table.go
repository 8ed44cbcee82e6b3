package main

import "github.com/sharedos-dev/operator/images/internal/build"

// repositoryPrefix is the repository every local image name starts with.
const repositoryPrefix = "sharedos.dev"

// images is every image of the project, in the order they are built. A new binary
// gets its image by a new row here.
func images() []build.Spec {
	return []build.Spec{
		{
			Name:        "manager",
			Module:      ".",
			Package:     "./cmd/manager",
			Title:       "SharedOS manager",
			Description: "Controllers, injection webhook and kernel service of SharedOS for Kubernetes",
		},
		{
			Name:        "bridge-sidecar",
			Module:      ".",
			Package:     "./cmd/bridge-sidecar",
			Title:       "SharedOS bridge sidecar",
			Description: "Serves an agent its granted tools over MCP on the pod's loopback address",
		},
		{
			Name:        "files-provider",
			Module:      ".",
			Package:     "./cmd/files-provider",
			Title:       "SharedOS files provider",
			Description: "Serves directories to the kernel as the files plane",
		},
		{
			Name:        "repo-provider",
			Module:      ".",
			Package:     "./cmd/repo-provider",
			Title:       "SharedOS repo provider",
			Description: "Serves Git repositories to the kernel as the repo plane",
		},
		{
			Name:        "example-harness",
			Module:      "examples/harness",
			Package:     ".",
			Title:       "SharedOS example harness",
			Description: "A small agent with a real MCP client, for samples and end-to-end tests",
		},
	}
}
