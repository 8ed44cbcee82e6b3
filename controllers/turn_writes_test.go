package controllers_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/controllers"
)

// TestWritesAreRemembered: what the manager wrote itself is gone on with while the cache
// is behind it, and never where there may be something newer.
func TestWritesAreRemembered(t *testing.T) {
	at := func(version string) *v1alpha1.Turn {
		return &v1alpha1.Turn{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}}
	}
	type write struct{ over, version string }
	for name, c := range map[string]struct {
		writes []write
		doubt  bool
		cached string
		want   string // empty: ask the API server
		known  bool
	}{
		"never written":             {cached: "1"},
		"the cache is up to date":   {writes: []write{{"1", "2"}}, cached: "2", want: "2", known: true},
		"one write behind":          {writes: []write{{"1", "2"}}, cached: "1", want: "2", known: true},
		"two writes behind":         {writes: []write{{"1", "2"}, {"2", "3"}}, cached: "1", want: "3", known: true},
		"between the two":           {writes: []write{{"1", "2"}, {"2", "3"}}, cached: "2", want: "3", known: true},
		"somebody wrote between":    {writes: []write{{"1", "2"}, {"5", "6"}}, cached: "2", want: "6", known: true},
		"somebody's write is newer": {writes: []write{{"1", "2"}}, cached: "9", known: true},
		"after a conflict":          {writes: []write{{"1", "2"}}, doubt: true, cached: "1", known: true},
		"nothing was written":       {writes: []write{{"1", "1"}}, cached: "1", want: "1", known: true},
		"nothing more was written":  {writes: []write{{"1", "2"}, {"2", "2"}}, cached: "1", want: "2", known: true},
		"behind by more than a few": {writes: []write{{"1", "2"}, {"2", "3"}, {"3", "4"}, {"4", "5"}, {"5", "6"}, {"6", "7"}, {"7", "8"}, {"8", "9"}, {"9", "10"}, {"10", "11"}, {"11", "12"}, {"12", "13"}, {"13", "14"}, {"14", "15"}, {"15", "16"}, {"16", "17"}, {"17", "18"}, {"18", "19"}}, cached: "1", known: true},
	} {
		t.Run(name, func(t *testing.T) {
			var w controllers.Writes
			for _, write := range c.writes {
				w.Note(write.over, at(write.version))
			}
			if c.doubt {
				w.Doubt("u")
			}
			got, known := w.Get(at(c.cached))
			version := ""
			if got != nil {
				version = got.ResourceVersion
			}
			if version != c.want || known != c.known {
				t.Errorf("go on with %q, known %t; want %q, %t", version, known, c.want, c.known)
			}
		})
	}
}

// TestRememberedTurnsAreCopies: changing what was given does not change what is kept.
func TestRememberedTurnsAreCopies(t *testing.T) {
	var w controllers.Writes
	turn := &v1alpha1.Turn{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "2", Labels: map[string]string{"a": "b"}}}
	w.Note("1", turn)
	turn.Labels["a"] = "changed"
	behind := &v1alpha1.Turn{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "1"}}
	first, _ := w.Get(behind)
	first.Labels["a"] = "changed too"
	if second, _ := w.Get(behind); second.Labels["a"] != "b" {
		t.Errorf("kept %v", second.Labels)
	}
}
