//go:build linux && drills

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// drills pastes the commands that docs/operations.md and docs/lifecycle.md have people practise on the demo.
type drills struct {
	t       *testing.T
	page    string            // both documents
	ours    *strings.Replacer // has this demo's addresses, file and process ids in place of the page's
	environ []string
	folder  string // where all is pasted; it goes with the demo
}

func newDrills(t *testing.T, r *running, program string) *drills {
	t.Helper()
	var page []byte
	for _, name := range []string{"operations.md", "lifecycle.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		page = append(page, text...)
	}
	file := r.configuration()
	broker := lastWord(r.until("bootstrap.servers"))
	r.until("stop storestream")
	pid, demo := lastWord(r.until("kill ")), lastWord(r.until("kill -USR1"))
	_, postgres, _ := strings.Cut(r.until("set total_amount = 1e25"), "@")
	postgres, _, _ = strings.Cut(postgres, "/")
	return &drills{t: t, page: string(page), folder: filepath.Dir(file),
		ours: strings.NewReplacer("127.0.0.1:9092", broker, "127.0.0.1:5432", postgres, "FILE", file, "kill PID",
			"kill "+pid, "kill -USR1", "kill -USR1 "+demo),
		environ: append(os.Environ(), "STORESTREAM_CONFIG="+file,
			"PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))}
}

// block is the first block of commands after some words of the page, a command each. Where the page shows
// what some print, commands stand behind a prompt.
func (d *drills) block(after string) (commands []string) {
	d.t.Helper()
	_, rest, _ := strings.Cut(d.page, after)
	_, rest, _ = strings.Cut(rest, "\n```\n")
	block, _, found := strings.Cut(rest, "\n```\n")
	if !found {
		d.t.Fatalf("the documents have no block after %q", after)
	}
	prompts, goesOn := strings.Contains("\n"+block, "\n$ "), false
	for line := range strings.SplitSeq(block, "\n") {
		command, begins := strings.CutPrefix(line, "$ ")
		begins = begins || !prompts && !goesOn
		switch {
		case begins:
			commands = append(commands, command)
		case goesOn:
			commands[len(commands)-1] += "\n" + line
		}
		goesOn = (begins || goesOn) && strings.HasSuffix(line, "|")
	}
	return commands
}

// inline are the commands within a sentence of the page, which the pattern puts into parentheses.
func (d *drills) inline(sentence string) []string {
	d.t.Helper()
	found := regexp.MustCompile(sentence).FindStringSubmatch(d.page)
	if found == nil {
		d.t.Fatalf("the documents do not say %s", sentence)
	}
	return found[1:]
}

// paste gives commands to one shell, and returns what it says.
func (d *drills) paste(commands ...string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", d.ours.Replace(strings.Join(commands, "\n")))
	cmd.Dir, cmd.Env = d.folder, d.environ
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited || ctx.Err() != nil {
		d.t.Fatalf("%q: %v\n%s", commands, err, out)
	}
	return string(out)
}

// says pastes commands, and expects texts.
func (d *drills) says(commands []string, texts ...string) {
	d.t.Helper()
	out := d.paste(commands...)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			d.t.Errorf("%s\nsays\n%s\nexpected %q", strings.Join(commands, "\n"), out, text)
		}
	}
}

// comesToSay pastes commands until they say what a pattern describes.
func (d *drills) comesToSay(pattern string, commands ...string) {
	d.t.Helper()
	expected, out := regexp.MustCompile(pattern), ""
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(deadline); time.Now().Before(end); <-tick.C {
		if out = d.paste(commands...); expected.MatchString(out) {
			return
		}
	}
	d.t.Fatalf("%s\nsays\n%s\nexpected %s", strings.Join(commands, "\n"), out, pattern)
}

// Whoever practises pastes what the page has, and should see what it says. The shop rests, so that nobody
// else changes a row.
func TestTheDrillsOfOperationsWorkOnTheDemo(t *testing.T) {
	for _, program := range []string{"kcat", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: make deps installs it", err)
		}
	}
	if _, err := exec.LookPath("psql"); err != nil {
		t.Skipf("%v: a PostgreSQL that was fetched comes without it", err)
	}
	program, folder := program(t), isolated(t)
	r := start(t, "--storestream", program, "--traffic", "0", "--users", "2000")
	d := newDrills(t, r, program)
	column := strings.TrimSpace(r.until("alter table orders add channel"))
	d.comesToSay("Everything is up to date", "storestream watermark list")

	d.says(d.block("break a topic, have it found, have it\nrepaired."), "DIFFERENT: orders, order_items.",
		"\n3\n",
		" 1 missing, 0 stale, 0 extra; 1 published", " 0 missing, 1 stale, 0 extra; 1 published", "Identical:",
		"\n0\n")

	d.paste(column)
	d.says(d.block("\n### A field is added\n"), "not registered; compatible", "Nothing fails")
	schema := d.block("To practise on the demo, first run its line")
	d.paste(schema[:2]...)
	r.until("storestream was stopped, and is started again")

	letter := d.block("**To practise**, on the demo (which prints another port if its PostgreSQL has one):")
	all := d.block("To see all letters as they are:")
	d.paste(letter[0])
	d.comesToSay(`(?s)^orders/7  resource=orders,source=postgres,field=total_amount,error=expected [^\n]*\n`+
		`\{"id":"7",[^\n]*"total_amount":"10000000000000000000000000",[^\n]*\}\n$`, all...)
	d.paste(letter[1:]...)
	d.comesToSay(`\norders/7  resource=orders,source=postgres,field=,error=\n\n$`, all...)
	d.comesToSay(`orders/7 .*"total_amount":49.5,.*"channel":"web"`, schema[2])

	toggle := d.inline("\\*\\*And\\*\\*: `(kill -USR1)` with the demo's process id")
	d.paste(toggle...)
	d.comesToSay(`FAIL  database .*no server for it`, "storestream check")
	d.paste(toggle...)
	d.comesToSay("Nothing fails", "storestream check")
	d.comesToSay("Everything is up to date", "storestream watermark list")

	r.interrupt()
	if status, stdout, stderr := r.end(); status != exitDone {
		t.Errorf("exit status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	nothingLeft(t, folder)
}
