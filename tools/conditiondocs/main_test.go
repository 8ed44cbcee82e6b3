package main

import (
	"strings"
	"testing"
)

const source = `package v1

// The condition type of a Grant.
const (
	// GrantReady says whether the
	// grant works.
	GrantReady ConditionType = "Ready"
)

// Reasons of [GrantReady] when it is True.
const (
	// GrantReasonActive means a|b.
	GrantReasonActive ConditionReason = "Active"
)

// Other constants are left out.
const Other = 3
`

func TestRender(t *testing.T) {
	groups, err := parseGroups("grant.go", []byte(source))
	if err != nil {
		t.Fatalf("parseGroups: %v", err)
	}
	got := render(groups)
	for _, want := range []string{
		"## Grant\n",
		"| Condition | |\n| --- | --- |\n| `Ready` | says whether the grant works. |\n",
		"Reasons of `Ready` when it is True.\n\n| Reason | |\n| --- | --- |\n| `Active` | means a\\|b. |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the reference lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "Other") {
		t.Errorf("the reference has a constant that is no condition:\n%s", got)
	}
}

func TestConstantsNeedComments(t *testing.T) {
	for name, constant := range map[string]string{
		"no comment": "// Heading.\nconst (\n\tGrantReady ConditionType = \"Ready\"\n)",
		"no heading": "const (\n\t// GrantReady says.\n\tGrantReady ConditionType = \"Ready\"\n)",
	} {
		t.Run(name, func(t *testing.T) {
			if groups, err := parseGroups("grant.go", []byte("package v1\n\n"+constant)); err == nil {
				t.Errorf("parseGroups accepted it: %v", groups)
			}
		})
	}
}

func TestReadPackageWithoutConditions(t *testing.T) {
	if groups, err := readPackage(t.TempDir()); err == nil {
		t.Errorf("readPackage accepted an empty folder: %v", groups)
	}
}
