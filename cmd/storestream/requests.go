package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func requestsCommand(env *environment) *cobra.Command {
	return requestsList(env, "requests", "List the requests and their results",
		watermark.Kinds...)
}

// requestsList makes a command that lists the requests of these kinds.
func requestsList(env *environment, path, short string, kinds ...watermark.Kind) *cobra.Command {
	cmd := &cobra.Command{
		Use:       path[strings.LastIndex(path, " ")+1:] + " [RESOURCE...]",
		ValidArgs: schemas.Names(),
		Args:      resourceArgs(0, math.MaxInt),
		Short:     short,
		Long: short + `.

The topic of requests keeps them for seven days. The watermark of a resource
keeps the results of its last twenty requests. "accepted" means that an instance
took the request, and that its result is no longer known.

BY and WHY are the words of the program that wrote the request: docs/security.md
says how far to trust them.`,
		Example: "  storestream " + path + " orders",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return env.inKafka(cmd, func(cfg *config.Config, _ *schemas.Set, cluster *producer.Cluster) error {
			all, err := readRequests(cmd.Context(), cfg, cluster, args, kinds)
			if err != nil {
				return err
			}
			if *asJSON {
				return env.printJSON(all)
			}
			rows := [][]string{{"RESOURCE", "ASKED", "BY", "WHAT", "WHY", "RESULT"}}
			for _, r := range all {
				rows = append(rows, []string{r.Resource, rowTime(r.At.Time()), r.By, whatText(&r.Request),
					cmp.Or(r.Why, "-"), r.Result})
			}
			return printTable(env.stdout, rows)
		})
	}
	return cmd
}

// asked is a request and its result.
type asked struct {
	// ID is the offset in the requests topic.
	ID int64 `json:"id"`
	watermark.Request
	// Result is the outcome in words.
	Result string `json:"result"`
}

// readRequests returns the requests of these kinds for the named resources, or for all, in order.
func readRequests(ctx context.Context, cfg *config.Config, cluster *producer.Cluster, names []string,
	kinds []watermark.Kind) ([]asked, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	resources, err := overview.Read(ctx, cfg, cluster) // it has caught up with the requests
	all := []asked{}
	for i := range resources {
		r := &resources[i]
		if len(names) > 0 && !slices.Contains(names, r.Name) {
			continue
		}
		for _, q := range cluster.Requests().After(r.Name, -1, "") {
			if slices.Contains(kinds, q.Kind) {
				all = append(all, asked{ID: q.ID, Request: q, Result: outcome(&q, r)})
			}
		}
	}
	slices.SortFunc(all, func(a, b asked) int { return cmp.Compare(a.ID, b.ID) })
	return all, err
}

// whatText returns the content of a request, in words.
func whatText(q *watermark.Request) string {
	text := string(q.Kind)
	if q.From != nil {
		text += " from " + pointerText(q.From)
	}
	if q.To != nil {
		text += " to " + pointerText(q.To)
	}
	const shown = 5
	for i, id := range q.Rows[:min(shown, len(q.Rows))] {
		text += [2]string{" of ", ", "}[min(i, 1)] + strconv.FormatInt(id, 10)
	}
	if n := len(q.Rows) - shown; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if q.ConfirmedDeletes > 0 {
		text += ", confirms " + terminal.Plural(q.ConfirmedDeletes, "deletion")
	}
	return text
}

// outcome returns the result of a request, as far as the watermark of its resource has it.
func outcome(q *watermark.Request, r *health.Resource) string {
	mark := &r.Mark
	part := slices.IndexFunc(mark.Parts, func(p watermark.Part) bool { return p.RequestUID == q.UID })
	ended := func(text string) string { return strings.TrimPrefix(text, r.Name+": ") }
	switch {
	case r.Unreadable != nil:
		return "unknown: the watermark cannot be read"
	case slices.ContainsFunc(r.Pending, func(p watermark.Request) bool { return p.UID == q.UID }):
		return "waits for an instance"
	case mark.Replay != nil && mark.Replay.RequestUID == q.UID:
		return "in hand: " + terminal.Plural(mark.Replay.Rows, "row") + " published"
	case part > 0:
		return "waits behind others"
	case part == 0:
		return "in hand: " + partText(&mark.Parts[0])
	case mark.ResultOf(q.ID, q.UID) != nil:
		return resultText(mark.ResultOf(q.ID, q.UID))
	case mark.Sweep != nil && mark.Sweep.RequestUID == q.UID:
		return "in hand"
	case mark.Swept != nil && mark.Swept.RequestUID == q.UID:
		return ended(sweepText(r.Name, mark.Swept))
	case q.Kind == watermark.Erases:
		return erasedText(q.UID, mark)
	}
	return "accepted"
}

// partText returns how far a replay of a part is.
func partText(p *watermark.Part) string {
	if p.Kind == watermark.Retries {
		return "looking up rows with dead letters"
	}
	if p.Of == 0 {
		return "replaying a part: its rows are not counted yet"
	}
	return fmt.Sprintf("replaying a part: %s of at most %s published again", terminal.Count(p.Rows),
		terminal.Plural(p.Of, "row"))
}

// erasedText returns the result of an erase.
func erasedText(uid string, mark *watermark.Watermark) string {
	if slices.ContainsFunc(mark.Erase, func(e watermark.Erase) bool { return e.RequestUID == uid }) {
		return "in hand"
	}
	rows := map[bool]int{} // by whether they were erased
	for _, e := range mark.Erased {
		if e.RequestUID == uid {
			rows[e.Left == ""]++
		}
	}
	if len(rows) == 0 {
		return "accepted"
	}
	return fmt.Sprintf("%d erased, %d stay", rows[true], rows[false])
}
