package kerneltest_test

import (
	"testing"

	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

const document = "../../docs/conformance.md"

func TestConformanceThroughTheKernel(t *testing.T) {
	kerneltest.Conform(t, kerneltest.KernelDoor{}, document)
}

func TestConformanceThroughTheEnvelope(t *testing.T) {
	kerneltest.Conform(t, kerneltest.EnvelopeDoor{}, document)
}
