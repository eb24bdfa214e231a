package row

import (
	"fmt"
	"strings"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/verify"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
)

// facts is what notes go by.
type facts struct {
	report   *Report
	overview health.Resource // empty if the resource's state is unknown
	overlap  time.Duration
	deletes  string // config.Tombstone or config.Report
	start    schemas.Instant
	policy   string // the fingerprint of the policies for fields that are in force here
	nameless int    // rows without a usable id that the service shows
	// The updated_at of either side, or MinInstant if that side has no row.
	topicUpdated, serviceUpdated schemas.Instant
}

// notes say why the two differ, as far as that can be told, and what to do.
func (f *facts) notes() []string {
	var all []string
	add := func(text string) {
		if text != "" {
			all = append(all, text)
		}
	}
	r := f.report
	for _, s := range r.InTopic.Strays {
		add(fmt.Sprintf("Another program wrote a record of it into partition %d (offset %d), where its key does "+
			"not belong. Consumers may take that for the row. %s", s.Partition, s.Offset, f.sweep()))
	}
	if r.Verdict != verify.Different {
		if r.InService.State == Present && f.serviceUpdated < f.start && r.InTopic.State != Present {
			add(fmt.Sprintf("It was last updated before %s, where the topic begins (resources.%s.start).", f.start,
				r.Resource))
		}
		return all
	}
	switch {
	case r.InTopic.State == Unreadable:
		add("Another program wrote the topic's newest record of it. " + f.sweep())
	case r.InService.State == Unpublishable:
		add(f.unpublishable())
	case r.DeadLetter != nil && r.InService.State == Present:
		add("It has a dead letter, so it could not be published when that was written. A poll or a sweep that " +
			"can publish it takes the letter out.")
	case r.InService.State == Absent && r.InTopic.State == Present:
		add(f.extra())
	case r.InTopic.State == Present && f.topicUpdated > f.serviceUpdated:
		add(fmt.Sprintf("The service shows an older state than the topic has. A server that lags does that for a "+
			"while. If the service shows it for the overlap of %s it is published.", text(f.overlap)))
	case f.policies() != "" && r.InTopic.State == Present && f.topicUpdated == f.serviceUpdated:
		// The same version: how polls met it is no reason.
	case r.InService.State == Present && len(r.InTopic.Strays) == 0:
		add(f.behind())
	}
	add(f.policies())
	if f.overview.Replay != nil {
		add("A replay is in hand, from " + f.overview.Replay.From.String() + ": rows are published again.")
	}
	add(f.trouble())
	return all
}

// sweep is what repairs a row that no poll meets.
func (f *facts) sweep() string {
	return fmt.Sprintf("`storestream sweep %s` repairs it.", f.report.Resource)
}

// behind is why the topic lacks a version that the service shows.
func (f *facts) behind() string {
	o := f.overview
	if o.AsOf == nil {
		return "The first load is not finished: no complete poll was made yet."
	}
	age := text(max(0, o.Now.Sub(f.serviceUpdated)))
	switch {
	case f.serviceUpdated >= o.AsOf.Add(-f.overlap):
		return fmt.Sprintf("It was updated %s ago, and the last complete poll began %s ago. A row may be readable "+
			"only as late as the overlap (%s) after its updated_at, so it may be under way: ask again after the next "+
			"poll. If it still differs an overlap later, `storestream sweep %s` repairs it.", age,
			text(max(0, o.Now.Sub(*o.AsOf))), text(f.overlap), f.report.Resource)
	case o.Settled == nil || f.serviceUpdated >= *o.Settled:
		return "It was updated " + age + " ago, and polls should have met it. Ask again after the next one. If " +
			"it still differs, " + f.sweep()
	}
	return fmt.Sprintf("It was updated before %s, which is settled, so no poll meets it again. It changed "+
		"without a new updated_at, or could be read later than overlap allows, or another program wrote into the "+
		"topic. %s", o.Settled, f.sweep())
}

// policies says that the topic may hold the row as other policies for fields let it through, else "".
func (f *facts) policies() string {
	switch o := f.overview; {
	case o.Rows == 0 || !o.Policies.Older(f.policy):
		return ""
	case o.Policies.InForce(f.policy):
		return "The topic holds rows as policies for fields (privacy.fields) let them through that are no longer " +
			"in force. " + f.sweep()
	}
	return "The topic's rows are published under other policies for fields than privacy.fields says here: " +
		"restart the instances with this configuration, then " + f.sweep()
}

// unpublishable is why the service's row is not in the topic.
func (f *facts) unpublishable() string {
	what, s := "The service's row", f.report.InService
	if s.Field != "" {
		what = "Its " + s.Field + " in the service"
	}
	why := fmt.Sprintf("%s cannot be published: %s. ", what, s.Error)
	if f.report.DeadLetter == nil {
		return why + "It has no dead letter yet: the next poll that meets it writes one."
	}
	return why + "It is in the dead letters, and the topic keeps what it had."
}

// extra is why the topic holds a row that the service does not show.
func (f *facts) extra() string {
	const since = "The service does not show it now: it was deleted there, or is being updated. "
	for _, e := range f.overview.Erase {
		if e.ID == f.report.ID {
			return since + "The running instance was asked to erase it, and looks for it again after an overlap."
		}
	}
	if f.nameless > 0 {
		return fmt.Sprintf("The service does not show it under its id: it was deleted there, is being updated, or "+
			"has no usable id there. The service shows %s without one (in the dead letters), and while it does this "+
			"one stays.", terminal.Plural(f.nameless, "row"))
	}
	stays := "It stays until the next sweep (they are daily by default), or `storestream erase %s %d`."
	if f.deletes == config.Report {
		stays = "It stays, because sweep.deletes is report, unless somebody asks for it: `storestream erase %s %d`."
	}
	return since + fmt.Sprintf(stays, f.report.Resource, f.report.ID)
}

// trouble is why the resource is not up to date, or does not settle.
func (f *facts) trouble() string {
	o := f.overview
	switch {
	case o.Name == "":
		return ""
	case !o.UpToDate:
		return "The resource is not up to date: " + strings.TrimSuffix(o.Text(), ".") + "."
	case o.State != health.SettlingDelayed:
		return ""
	}
	why := strings.ToUpper(o.Text()[:1]) + strings.TrimSuffix(o.Text()[1:], ".")
	if o.Trouble.Until != nil {
		why += fmt.Sprintf(". Deferred rows are looked at again at %s", o.Trouble.Until)
	}
	return why + "."
}

// text is a duration as people write it.
func text(d time.Duration) string { return terminal.Duration(d) }
