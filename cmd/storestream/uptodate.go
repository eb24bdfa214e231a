package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// letters are rows of one resource that cannot be published, for one reason. They are named by id; what they hold is in the topic alone.
type letters struct {
	Field string   `json:"field,omitempty"` // "": the row as a whole
	Error string   `json:"error"`
	Rows  int      `json:"rows"`
	IDs   []string `json:"ids"` // a few of them, the newest first
}

func lettersOf(reasons []producer.DeadLetterReason) []letters {
	all := []letters{}
	for _, r := range reasons {
		all = append(all, letters{r.Field, r.Err, r.Count, r.IDs})
	}
	return all
}

// printStates is `watermark list` for a person: the table, and what follows from it.
func (a *app) printStates(cfg *config.Config, states []state) error {
	t := terminal.NewTable(a.paint, "RESOURCE", "SETTLED", "", "AS OF", "LAG", "ROWS", "SWEPT", "OWNER", "REQUEST").Numbers(2, 4, 5)
	for _, s := range states {
		lag, owner := "-", s.owner()
		if s.LagSeconds != nil {
			lag = terminal.Duration(s.lag())
		}
		if s.late(cfg) != "" {
			lag = a.paint.As(terminal.Red, lag)
		}
		if s.Owner == "" && !s.between {
			owner = a.paint.As(terminal.Red, owner)
		}
		t.Row(s.Resource, pointerText(s.Settled), ago(s.Settled, s.now), pointerText(s.AsOf), lag, terminal.Count(s.Rows), s.swept(), owner, s.request())
	}
	if err := t.Print(a.stdout); err != nil {
		return err
	}
	a.print("\n%s\n", a.verdict(cfg, states))
	for _, s := range states {
		for _, l := range s.DeadLetters {
			a.print("%s\n", a.paint.As(terminal.Yellow, s.dead(cfg, l)))
		}
	}
	return nil
}

// verdict says whether every enabled resource is up to date, and if not, why not.
func (a *app) verdict(cfg *config.Config, states []state) string {
	var reasons []string
	resources := map[string][]string{} // by reason
	var largest state
	for _, s := range states {
		if !cfg.Resources[s.Resource].Enabled {
			continue
		}
		if why := s.late(cfg); why != "" {
			if resources[why] == nil {
				reasons = append(reasons, why)
			}
			resources[why] = append(resources[why], s.Resource)
		} else if largest.LagSeconds == nil || s.lag() > largest.lag() {
			largest = s
		}
	}
	if len(reasons) > 0 {
		text := a.paint.As(terminal.Red, "NOT up to date.")
		for _, why := range reasons {
			text += "\n  " + strings.Join(resources[why], ", ") + ": " + why
		}
		return text + "\n`storestream check` tries what it needs; its log and status page say more."
	}
	if largest.LagSeconds == nil {
		return "No resource is enabled here."
	}
	return a.paint.As(terminal.Green, "Everything is up to date:") + fmt.Sprintf(" the largest lag is %s (%s).", terminal.Duration(largest.lag()), largest.Resource)
}

// lateAfter is how old the last complete pass may be, or three intervals where those are longer: what the status page calls behind.
const lateAfter = time.Minute

// late says why the resource is not up to date, "" if it is. An unchanged watermark is written every ten seconds, so that much lag says nothing.
func (s state) late(cfg *config.Config) string {
	allowed := max(lateAfter, 3*cfg.Resources[s.Resource].Interval)
	switch {
	case s.Written == nil && s.Owner == "":
		return "nothing is published yet, and no instance polls it"
	case s.LagSeconds == nil:
		return "the first load is not finished"
	case s.Owner == "" && !s.between:
		return "no instance polls it, since " + terminal.Duration(s.lag())
	case s.lag() > allowed:
		return "the last complete pass began " + terminal.Duration(s.lag()) + " ago"
	}
	return ""
}

func (s state) lag() time.Duration {
	if s.LagSeconds == nil {
		return 0
	}
	return time.Duration(*s.LagSeconds * float64(time.Second))
}

// swept is when the last sweep was and what it found.
func (s state) swept() string {
	if s.LastSweep == nil {
		return "never"
	}
	text := ago(s.LastSweep, s.now)
	if s.Swept == nil {
		return text
	}
	if n := s.Swept.Missing + s.Swept.Stale + s.Swept.Extra; n > 0 {
		return fmt.Sprintf("%s: %d differed", text, n)
	}
	return text + ": equal"
}

func (s state) dead(cfg *config.Config, l letters) string {
	what := "the row"
	if l.Field != "" {
		what = "its " + l.Field
	}
	return fmt.Sprintf("%s: %s cannot be published, %s: %s (%s/%s in %sdead_letters)", s.Resource, terminal.Plural(l.Rows, "row"), what, l.Error, s.Resource,
		strings.Join(l.IDs, ", "), cfg.Kafka.TopicPrefix)
}

func pointerText(i *schemas.Instant) string {
	if i == nil {
		return "-"
	}
	return instantText(*i)
}
