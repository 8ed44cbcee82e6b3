package host

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestParseNameServers(t *testing.T) {
	tests := []struct {
		name, conf string
		want       []string
	}{
		{name: "several", conf: "# nameserver 9.9.9.9\nsearch x\nnameserver 10.0.0.1\nnameserver 10.0.0.2\n", want: []string{"10.0.0.1", "10.0.0.2"}},
		{name: "loopback and ipv6 are of no use to pods", conf: "nameserver 127.0.0.53\nnameserver ::1\nnameserver fd00::1\n"},
		{name: "not an address", conf: "nameserver\n" + "nameserver here\n"},
		{name: "empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseNameServers(tt.conf); !slices.Equal(got, tt.want) {
				t.Errorf("parseNameServers() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMountsBelow(t *testing.T) {
	const mountinfo = `21 1 0:1 / / rw - ext4 x rw
30 21 0:2 / /state/pods/a rw - tmpfs x rw
31 30 0:3 / /state/pods/a/with\040blank rw - tmpfs x rw
32 21 0:4 / /statement rw - tmpfs x rw
33 21 0:5 / /run/x rw - tmpfs x rw
broken
`
	want := []string{"/run/x", "/state/pods/a/with blank", "/state/pods/a"}
	if got := mountsBelow(mountinfo, []string{"/state", "/run/x"}); !slices.Equal(got, want) {
		t.Errorf("mountsBelow() = %q, want %q", got, want)
	}
	if got := mountsBelow(mountinfo, nil); len(got) != 0 {
		t.Errorf("mountsBelow() of no folder = %q, want none", got)
	}
}

func TestHasCapability(t *testing.T) {
	const status = "Name:\tx\nCapEff:\t000001fffeffffff\nCapBnd:\t000001ffffffffff\n"
	if hasCapability(status, "CapEff", capSysResource) {
		t.Error("bit 24 of CapEff is not set, but was found")
	}
	if !hasCapability(status, "CapBnd", capSysResource) {
		t.Error("bit 24 of CapBnd is set, but was not found")
	}
	if hasCapability("", "CapEff", 0) || hasCapability("CapEff:\tzz\n", "CapEff", 0) {
		t.Error("found a capability where none is told")
	}
}

func TestFindCNI(t *testing.T) {
	partial, full := t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(partial, "bridge"), filepath.Join(full, "bridge"), filepath.Join(full, "host-local"), filepath.Join(full, "loopback")} {
		if err := os.WriteFile(file, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok := findCNI([]string{"/none", partial, full}); !ok || got != full {
		t.Errorf("findCNI() = %q, %v, want %q", got, ok, full)
	}
	if _, ok := findCNI([]string{partial}); ok {
		t.Error("findCNI() takes a folder that lacks plugins")
	}
	if got := missingPackages([]string{partial}); !slices.Contains(got, cniPackage) || !slices.IsSorted(got) {
		t.Errorf("missingPackages() = %q, want %s among them, sorted", got, cniPackage)
	}
}

func TestPortFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := PortFree(l.Addr().String()); err == nil {
		t.Error("a port somebody listens on counts as free")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := PortFree(l.Addr().String()); err != nil {
		t.Errorf("a closed port counts as taken: %v", err)
	}
}
