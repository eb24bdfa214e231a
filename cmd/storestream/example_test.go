package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/schemas"
)

// What --help shows is pasted. Every example is run, beside an instance that polls, and its output goes
// through jq where that is installed. It may say that something differs or is late, and not that it failed or
// is no command. Completions are given to the shell that they are for.
func TestEveryExampleOfHelpWorksAsPasted(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Serve(nil)
	s.Settings = append(s.Settings, "store.max_requests_per_second=1000")
	for _, name := range schemas.Names() {
		s.Settings = append(s.Settings, "resources."+name+".interval=100ms", "resources."+name+".overlap=0s")
	}
	out, _ := s.start("run")
	stage.Eventually(t, "all is loaded", func() bool {
		return strings.Count(out.stderr.String(), "first load finished") == 5
	})
	examples := 0
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			examples++
			s.paste(t, strings.TrimSpace(line))
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	s.Settings = append(s.Settings, "http.listen="+address(t, out)) // all go by one file, as beside the demo
	visit(rootCommand(&environment{}))
	if examples < 20 {
		t.Errorf("%d examples in all", examples)
	}
}

// paste runs a line as a shell would, on a terminal where every question is answered with yes.
func (s *scene) paste(t *testing.T, line string) {
	t.Helper()
	command, _, _ := strings.Cut(line, " # ")
	if strings.Contains(command, ">") || strings.Contains(command, "storestream completion ") {
		s.shell(t, command)
		return
	}
	command, filter, _ := strings.Cut(command, " | ")
	words := strings.Fields(command)
	c := s.call()
	for len(words) > 0 && strings.Contains(words[0], "=") {
		c.environ, words = append(c.environ, words[0]), words[1:]
	}
	switch {
	case len(words) < 2 || words[0] != "storestream" || strings.ContainsAny(command, `'"$&;<`):
		t.Errorf("%q: expected storestream and plain words", line)
		return
	case words[1] == "run" && !slices.Contains(words, "--once"): // it does not end by itself
		out, interrupt := s.start(words[1:]...)
		address(t, out)
		if ended := interrupt(); ended.code != exitDone {
			t.Errorf("%q exits %d:\n%s", line, ended.code, out.stderr)
		}
		return
	}
	c.args, c.terminal, c.answer = words[1:], true, "y\n"
	if c.run(t.Context()); c.code == exitFailed || c.code == exitUsage {
		t.Errorf("%q exits %d:\n%s%s", line, c.code, c.stdout, c.stderr)
	}
	if strings.HasPrefix(filter, "jq ") {
		through(t, filter, c.stdout.String())
	}
}

// through gives out to a filter, jq and what it shall do. A member that is not there is null to jq, and no
// mistake, so every name in the filter has to be in out.
func through(t *testing.T, filter, out string) {
	t.Helper()
	for _, name := range regexp.MustCompile(`[a-z_]+`).FindAllString(filter, -1) {
		if name != "jq" && name != "select" && !strings.Contains(out, `"`+name+`"`) {
			t.Errorf("%s: there is no %q in\n%s", filter, name, out)
		}
	}
	if _, err := exec.LookPath("jq"); err != nil {
		return
	}
	jq := exec.Command("sh", "-c", filter)
	jq.Stdin = strings.NewReader(out)
	if text, err := jq.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", filter, err, text)
	}
}

// completed has a shell read what it reads when it begins, and fail if it does not complete storestream's
// commands.
var completed = map[string]string{
	"bash": "{ [ ! -e ~/.bashrc ] || . ~/.bashrc; } && complete -p storestream",
	"zsh":  "{ [ ! -e ~/.zshrc ] || . ~/.zshrc; } && (( $+_comps[storestream] ))",
	"fish": "begin; cat ~/.config/fish/config.fish 2>/dev/null | source; end && " +
		"complete -C 'storestream wat' | grep watermark",
	"powershell": "", // no Debian has it
}

// shell gives a line to bash, or to the shell whose completion it is about where that is installed, in a home
// that has nothing yet.
func (s *scene) shell(t *testing.T, line string) {
	t.Helper()
	shell, ask := "bash", "true"
	if _, after, found := strings.Cut(line, "storestream completion "); found {
		shell, _, _ = strings.Cut(after, " ")
		shell = strings.Trim(shell, "')")
		if ask, found = completed[shell]; !found {
			t.Errorf("%q is for %q: expected a shell that storestream knows", line, shell)
		}
	}
	if _, err := exec.LookPath(shell); err != nil && shell != "bash" {
		return
	}
	folder, home := t.TempDir(), t.TempDir()
	binary, err := os.Executable()
	if err == nil {
		err = os.Symlink(binary, filepath.Join(folder, "storestream"))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(shell, "-c", line+" && "+ask)
	cmd.Dir, cmd.Env = home, append(s.call().environ, asProgram+"=1", "HOME="+home,
		"PATH="+folder+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%q in a new home: %v\n%s", line, err, out)
	}
}
