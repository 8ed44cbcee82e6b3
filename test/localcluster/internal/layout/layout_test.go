package layout

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestDefaultCache(t *testing.T) {
	tests := []struct {
		name    string
		env     map[string]string
		want    string
		wantErr string
	}{
		{name: "own variable wins", env: map[string]string{"SHAREDOS_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, want: "/a/localcluster"},
		{name: "xdg", env: map[string]string{"XDG_CACHE_HOME": "/b", "HOME": "/c"}, want: "/b/sharedos/localcluster"},
		{name: "home", env: map[string]string{"HOME": "/c"}, want: "/c/.cache/sharedos/localcluster"},
		{name: "nothing", env: map[string]string{}, wantErr: "SHAREDOS_CACHE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := defaultCache(func(k string) string { return tt.env[k] })
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("error = %v, want it to mention %q", err, tt.wantErr)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Fatalf("defaultCache() = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestNewFindsItsOwnSource(t *testing.T) {
	l, err := New("", t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(l.Source) != "localcluster" {
		t.Errorf("Source = %q, want the module's folder", l.Source)
	}
}

func TestNewRefusesAStateFolderNearTheRoot(t *testing.T) {
	for _, state := range []string{"/", "/var", "/var/.."} {
		if _, err := New("", t.TempDir(), state); err == nil {
			t.Errorf("New(state=%q) succeeded: `down` would remove it", state)
		}
	}
}
