package repo_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5"

	"github.com/sharedos-dev/operator/kernel/contract"
	plane "github.com/sharedos-dev/operator/planes/repo"
)

var everyAction = map[string]string{
	"status": `{}`, "diff": `{}`, "log": `{}`, "stage": `{"pathspec":[[]]}`, "commit": `{"message":"m"}`,
}

// secret is a file outside of the repository that nothing may show or change.
func (w *world) secret() (path string) {
	w.tb.Helper()
	path = filepath.Join(w.tb.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("the secret\n"), 0o600); err != nil {
		w.tb.Fatal(err)
	}
	w.tb.Cleanup(func() {
		entries, err := os.ReadDir(filepath.Dir(path))
		content, rerr := os.ReadFile(path)
		if err != nil || rerr != nil || len(entries) != 1 || string(content) != "the secret\n" {
			w.tb.Errorf("outside of the repository something changed: %v %v %q", entries, err, content)
		}
	})
	return path
}

func (w *world) everything() {
	w.tb.Helper()
	for action, input := range everyAction {
		out, code, err := w.do(w.tb.Context(), action, contract.Path{"app"}, input)
		if strings.Contains(string(out), "the secret") || err != nil {
			w.tb.Errorf("%s: %s %v, output %.500s", action, code, err, out)
		}
	}
}

func TestRepositoriesThatLeadElsewhereAreRefused(t *testing.T) {
	elsewhere := func(t *testing.T) string {
		dir := filepath.Join(t.TempDir(), "other")
		if _, err := git.PlainInit(dir, false); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, spoil := range map[string]func(t *testing.T, w *world){
		".git is a link": func(t *testing.T, w *world) { w.link(".git", filepath.Join(elsewhere(t), ".git")) },
		".git is a file": func(t *testing.T, w *world) {
			_ = os.RemoveAll(filepath.Join(w.dir, ".git"))
			w.put(".git", "gitdir: "+elsewhere(t)+"/.git\n")
		},
		"alternates":         func(t *testing.T, w *world) { w.put(".git/objects/info/alternates", elsewhere(t)+"/.git/objects\n") },
		"common directory":   func(t *testing.T, w *world) { w.put(".git/commondir", elsewhere(t)+"/.git\n") },
		"objects is a link":  func(t *testing.T, w *world) { w.link(".git/objects", elsewhere(t)+"/.git/objects") },
		"HEAD is a link":     func(t *testing.T, w *world) { w.link(".git/HEAD", elsewhere(t)+"/.git/HEAD") },
		"HEAD names config":  func(_ *testing.T, w *world) { w.put(".git/HEAD", "ref: config\n") },
		"HEAD climbs":        func(_ *testing.T, w *world) { w.put(".git/HEAD", "ref: refs/heads/../../../x\n") },
		"HEAD names a hook":  func(_ *testing.T, w *world) { w.put(".git/HEAD", "ref: hooks/pre-commit\n") },
		"branch is symbolic": func(_ *testing.T, w *world) { w.put(".git/refs/heads/master", "ref: config\n") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put("a", "a")
			w.secret()
			spoil(t, w)
			for action, input := range everyAction {
				_, code, err := w.do(t.Context(), action, contract.Path{"app"}, input)
				if err != nil || (code != plane.CodeUnsupported && code != plane.CodeDamaged) {
					t.Errorf("%s: code %q, error %v; want refused", action, code, err)
				}
			}
		})
	}
}

func TestNothingIsRunOrReadOutside(t *testing.T) {
	w := newWorld(t)
	secret := w.secret()
	marker := filepath.Join(t.TempDir(), "ran")
	script := "#!/bin/sh\ntouch " + marker + "\n"
	for _, hook := range []string{"pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "post-index-change", "fsmonitor-watchman"} {
		w.put(".git/hooks/"+hook, script)
		if err := os.Chmod(filepath.Join(w.dir, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join(w.dir, ".git/hooks/pre-commit")
	w.put(".git/config", fmt.Sprintf(`[core]
	repositoryformatversion = 0
	bare = false
	worktree = %[1]s
	hooksPath = %[2]s
	fsmonitor = %[3]s
	pager = %[3]s
	editor = %[3]s
	attributesFile = %[4]s
	excludesFile = %[4]s
[include]
	path = %[4]s
[filter "evil"]
	clean = %[3]s
	smudge = %[3]s
	process = %[3]s
[diff]
	external = %[3]s
[diff "evil"]
	textconv = %[3]s
	command = %[3]s
[gpg]
	program = %[3]s
[commit]
	gpgsign = true
[user]
	name = evil
`, filepath.Dir(secret), filepath.Dir(run), run, secret))
	w.put(".gitattributes", "* filter=evil diff=evil\n")
	w.put("a", "a")
	w.link("link", secret)
	w.link("folder", filepath.Dir(secret))
	w.link(".gitignore", secret)
	w.everything()
	w.put("a", "b")
	w.link("link", secret+"2")
	w.everything()
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program was run")
	}
	log := must[plane.LogOutput](w, "log", `{}`)
	if len(log.Commits) == 0 || log.Commits[0].Author.Name == "evil" {
		t.Errorf("log = %+v", log)
	}
}

func TestSubmodulesStayInside(t *testing.T) {
	w := newWorld(t)
	w.secret()
	other := filepath.Join(filepath.Dir(w.dir), "other")
	if _, err := git.PlainInit(other, false); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadDir(other)
	if err != nil {
		t.Fatal(err)
	}
	w.put(".gitmodules", "[submodule \"../../../other\"]\n\tpath = ../other\n\turl = /etc\n[submodule \"x\"]\n\tpath = .git\n\turl = ext::sh -c touch% /tmp/x\n\tupdate = !sh\n")
	w.put("a", "a")
	w.everything()
	after, err := os.ReadDir(other)
	if err != nil || len(after) != len(before) {
		t.Errorf("the repository beside it changed: %v %v", after, err)
	}
}

// object writes a loose object whose header may lie and returns its name.
func (w *world) object(header string, fill func(z *zlib.Writer, h *bytes.Buffer)) string {
	w.tb.Helper()
	var packed, small bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, zlib.BestCompression)
	if err != nil {
		w.tb.Fatal(err)
	}
	if _, err := z.Write([]byte(header)); err != nil {
		w.tb.Fatal(err)
	}
	small.WriteString(header)
	fill(z, &small)
	if err := z.Close(); err != nil {
		w.tb.Fatal(err)
	}
	sum := sha1.Sum(small.Bytes())
	name := hex.EncodeToString(sum[:])
	w.put(".git/objects/"+name[:2]+"/"+name[2:], packed.String())
	return name
}

func TestObjectsThatInflateAreRefused(t *testing.T) {
	w := newWorld(t)
	zeros := make([]byte, 1<<20)
	bomb := w.object("commit 100\x00", func(z *zlib.Writer, _ *bytes.Buffer) {
		for range 300 {
			if _, err := z.Write(zeros); err != nil {
				t.Fatal(err)
			}
		}
	})
	w.put(".git/refs/heads/master", bomb+"\n")
	w.refused("log", `{}`, plane.CodeTooLarge)
	w.refused("status", `{}`, plane.CodeTooLarge)
}

func TestOddNamesAndTexts(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"ü", "\xff\xfe", " leading", "new\nline", "back\\slash", "-rf", "dir/.gitkeep"} {
		w.put(name, "x\xff\n")
	}
	must[plane.StageOutput](w, "stage", `{"pathspec":[[]]}`)
	status := must[plane.StatusOutput](w, "status", `{}`)
	if len(status.Files) != 3 || !status.Truncated {
		t.Errorf("status = %+v, want the three names that a path can express", status)
	}
	must[plane.DiffOutput](w, "diff", `{"staged":true}`)
	must[plane.CommitOutput](w, "commit", `{"message":"odd"}`)
	tree := "0000000000000000000000000000000000000000"
	odd := w.object("commit 0\x00", func(z *zlib.Writer, h *bytes.Buffer) {
		body := "tree " + tree + "\nauthor \xff\xfe <\x00> 99999999999999 +9999\ncommitter nobody\n\n\xff message\n"
		h.WriteString(body)
		if _, err := z.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	})
	w.put(".git/refs/heads/master", odd+"\n")
	if _, code, err := w.do(t.Context(), "log", contract.Path{"app"}, `{}`); err != nil {
		t.Errorf("log of an odd commit: %s %v", code, err)
	}
}

// FuzzGitFile puts bytes in place of a file of .git: whatever it says, nothing
// escapes, nothing panics, and every answer is coded.
func FuzzGitFile(f *testing.F) {
	f.Add(uint8(0), []byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"))
	f.Add(uint8(1), []byte("ref: refs/heads/../../x\n"))
	f.Add(uint8(2), []byte("[core]\n\tworktree = /\n[submodule \"..\"]\n\tpath=..\n"))
	f.Add(uint8(3), []byte("# pack-refs with: peeled\n0123456789012345678901234567890123456789 refs/heads/master\n"))
	f.Add(uint8(4), []byte("[submodule \"../..\"]\n\tpath = ../..\n\turl = x\n"))
	f.Add(uint8(5), []byte("0123456789012345678901234567890123456789\n"))
	names := []string{".git/index", ".git/HEAD", ".git/config", ".git/packed-refs", ".gitmodules", ".git/refs/heads/master", ".git/shallow", ".gitignore"}
	f.Fuzz(func(t *testing.T, n uint8, content []byte) {
		w := newWorld(t)
		w.secret()
		w.put("a", "a")
		w.put(names[int(n)%len(names)], string(content))
		w.everything()
	})
}
