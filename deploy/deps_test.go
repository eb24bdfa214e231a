package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user without rights. As root the script would install for real.
const nobody = 65534

// sudo does nothing, and notes what it is asked for.
const sudo = `#!/bin/sh
shift # -n
echo "$@" >> "${0%/*}/asked"
cat > /dev/null
`

func TestWhatMakeTestInstallsIsSaidBeforeAndLeavesNoSettingBehind(t *testing.T) {
	script, err := filepath.Abs("../build/deps")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	// A folder of its own in /tmp, which nobody may enter: t.TempDir's is root's alone.
	folder, err := os.MkdirTemp("", "storestream-deps-") //nolint:usetesting // as above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	// It finds no kcat and no jq: no other programs are on its path than those that it works with.
	for _, name := range []string{"bash", "cat", "grep", "rm", "tr", "true"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"sudo": sudo, "apt-get": "#!/bin/sh\n", "deps": string(text)} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	if err := os.Chmod(folder, 0o777); err != nil { //nolint:gosec // sudo notes what it is asked for there
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "bash"), filepath.Join(folder, "deps"))
	cmd.Env, cmd.Dir = []string{"PATH=" + folder}, folder
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.CombinedOutput()
	asked, _ := os.ReadFile(filepath.Join(folder, "asked"))
	if err != nil || !bytes.Contains(asked, []byte("apt-get install")) {
		t.Fatalf("%v\n%s\n%s", err, out, asked)
	}
	for _, word := range []string{"will install", " kcat", " jq", "sudo"} {
		if !bytes.Contains(out, []byte(word)) {
			t.Errorf("it does not say %q before: %s", word, out)
		}
	}
	var written, removed string
	for line := range strings.Lines(string(asked)) {
		switch program, files, _ := strings.Cut(strings.TrimSpace(line), " "); program {
		case "tee", "cp", "mv", "ln":
			written += files + "\n"
			if !bytes.Contains(out, []byte(files)) {
				t.Errorf("it does not say that it writes %s: %s", files, out)
			}
		case "rm":
			removed += files + " "
		}
	}
	if written == "" {
		t.Errorf("it writes nothing: %s", asked)
	}
	for path := range strings.Lines(written) {
		if path = strings.TrimSpace(path); !strings.Contains(removed, path+" ") {
			t.Errorf("%s stays behind, of %s", path, asked)
		}
	}
}
