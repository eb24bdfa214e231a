package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/storestream/storestream/internal/compare"
	"github.com/storestream/storestream/internal/terminal"
)

// report prints what came of a verification; its error is the exit status.
func (v *verification) report(asJSON bool) error {
	total := v.verdict()
	if asJSON {
		if err := printJSON(v.stdout, struct {
			Verdict   verdict     `json:"verdict"`
			Resources []*verified `json:"resources"`
		}{total, v.all}); err != nil {
			return err
		}
	} else if err := v.print(total); err != nil {
		return err
	}
	switch total {
	case different:
		return differentError{fmt.Errorf("different from the service: %s", strings.Join(v.having(different), ", "))}
	case unknown:
		return fmt.Errorf("could not tell: %s", strings.Join(v.having(unknown), ", "))
	}
	return nil
}

// verdict is different where one is known to differ, whatever could not be told of the others.
func (v *verification) verdict() verdict {
	switch {
	case len(v.having(different)) > 0:
		return different
	case len(v.having(unknown)) > 0:
		return unknown
	}
	return identical
}

func (v *verification) having(which verdict) []string {
	var names []string
	for _, one := range v.all {
		if one.Verdict == which {
			names = append(names, one.Resource)
		}
	}
	return names
}

func (v *verification) inFlight() (n int) {
	for _, one := range v.all {
		n += one.InFlight
	}
	return n
}

func (v *verification) print(total verdict) error {
	t := terminal.NewTable(v.paint, "RESOURCE", "SERVICE", "TOPIC", "DEAD LETTERS", "IN FLIGHT", "MISSING", "STALE", "EXTRA", "FIRST IDS").Numbers(1, 2, 3, 4, 5, 6, 7)
	rows := 0
	for _, one := range v.all {
		if one.Verdict == unknown {
			t.Row(one.Resource, "-", "-", "-", "-", "-", "-", "-", v.paint.As(terminal.Yellow, "could not tell"))
			continue
		}
		rows += one.SourceRows
		cells := []string{one.Resource}
		for _, n := range []int{one.SourceRows, one.TopicRows, one.DeadLetters, one.InFlight} {
			cells = append(cells, terminal.Count(n))
		}
		for _, n := range []int{one.Missing, one.Stale, one.Extra} {
			text := terminal.Count(n)
			if n > 0 {
				text = v.paint.As(terminal.Red, text)
			}
			cells = append(cells, text)
		}
		t.Row(append(cells, one.firstIDs())...)
	}
	if err := t.Print(v.stdout); err != nil {
		return err
	}
	v.conclude(total, rows)
	return nil
}

// conclude prints the verdict, and what is to be said beside the table.
func (v *verification) conclude(total verdict, rows int) {
	switch total {
	case identical:
		v.app.print("\n%s %s of %s, row by row.\n", v.paint.As(terminal.Green, "Identical:"), terminal.Plural(rows, "row"), terminal.Plural(len(v.all), "resource"))
		if n := v.inFlight(); n > 0 {
			v.app.print("In flight: %s changed while they were read, and were equal when looked at again.\n", terminal.Plural(n, "row"))
		}
	case different:
		names := strings.Join(v.having(different), " ")
		v.app.print("\n%s %s. `storestream sweep %s` asks the running instance to repair the topic.\n", v.paint.As(terminal.Red, "DIFFERENT:"), strings.Join(v.having(different), ", "), names)
	case unknown:
		v.app.print("\n%s\n", v.paint.As(terminal.Yellow, "Could not tell."))
	}
	for _, one := range v.all {
		if one.Error != "" {
			v.app.print("%s: %s\n", one.Resource, one.Error)
		}
		if one.Note != "" {
			v.app.print("%s: %s\n", one.Resource, one.Note)
		}
		if one.Untracked > 0 {
			v.app.print("%s: %s differed and were too many to look at again: some may be under way\n", one.Resource, terminal.Plural(one.Untracked, "row"))
		}
	}
}

// fewIDs is how many ids of each kind a person is shown.
const fewIDs = 5

func (o *verified) firstIDs() string {
	var parts []string
	for _, kind := range compare.Kinds() {
		ids := *o.ids(kind)
		if len(ids) == 0 {
			continue
		}
		var text []string
		for _, id := range ids[:min(fewIDs, len(ids))] {
			text = append(text, fmt.Sprint(id))
		}
		if len(ids) > fewIDs {
			text = append(text, "...")
		}
		parts = append(parts, string(kind)+" "+strings.Join(text, ", "))
	}
	return strings.Join(parts, "; ")
}

// isDifferent says whether err is verify's exit status 3.
func isDifferent(err error) bool {
	_, ok := errors.AsType[differentError](err)
	return ok
}
