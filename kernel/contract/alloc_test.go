package contract

import "testing"

func TestValidRequirementIsCheckedWithoutAllocating(t *testing.T) {
	owner := Human("alice")
	need := CapabilityRequirement{
		Resource: ResourceRef{Namespace: "files", Path: Path{"Work", "Projects", "atlas", "status.md"}, Owner: &owner},
		Action:   "read",
	}
	if n := testing.AllocsPerRun(100, func() {
		if need.Validate() != nil {
			t.Fatal("a valid requirement was refused")
		}
	}); n != 0 {
		t.Errorf("Validate allocates %v times, want 0", n)
	}
}

func BenchmarkValidateRequirement(b *testing.B) {
	need := CapabilityRequirement{
		Resource: ResourceRef{Namespace: "files", Path: Path{"Work", "Projects", "atlas", "status.md"}},
		Action:   "read",
	}
	b.ReportAllocs()
	for b.Loop() {
		if need.Validate() != nil {
			b.Fatal("refused")
		}
	}
}
