package row

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storestream/storestream/cmd/storestream/internal/verify"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
)

// notes say why the two differ, as far as that can be told, and what to do. now is the state of the resource,
// or empty.
func (l *look) notes(r *Report, now health.Resource, topic, service *schemas.Value) (notes []string) {
	repairs := fmt.Sprintf("`storestream sweep %s` repairs it.", r.Resource)
	if len(r.InTopic.Strays) > 0 {
		s := r.InTopic.Strays[0]
		notes = append(notes, fmt.Sprintf("Another program wrote a record of it into partition %d (offset %d), "+
			"where its key does not belong. Consumers may take that for the row. %s", s.Partition, s.Offset, repairs))
	}
	if r.Verdict != verify.Different {
		if service != nil && topic == nil && service.UpdatedAt < l.start {
			notes = append(notes, fmt.Sprintf("It was last updated before %s, where the topic begins "+
				"(resources.%s.start).", l.start, r.Resource))
		}
		return notes
	}
	otherPolicy := now.Rows > 0 && now.Policies.Older(l.resource.PolicyFingerprint())
	switch {
	case r.InTopic.State == Unreadable:
		notes = append(notes, "Another program wrote the topic's newest record of it. "+repairs)
	case r.InService.State == Unpublishable && r.DeadLetter != nil:
		notes = append(notes, "It cannot be published as the service has it. The topic keeps what it had.")
	case r.InService.State == Unpublishable:
		notes = append(notes, "It cannot be published as the service has it. The next poll that meets it "+
			"writes a dead letter, and the topic keeps what it had.")
	case topic != nil && slices.Contains(r.Differs, "id"):
		notes = append(notes, "The record under its key is another row's: another program wrote it. "+repairs)
	case topic != nil && r.InService.State == Absent:
		notes = append(notes, l.extra())
	case topic != nil && topic.UpdatedAt > service.UpdatedAt &&
		(now.Settled == nil || service.UpdatedAt >= *now.Settled):
		notes = append(notes, fmt.Sprintf("The service shows an older state than the topic has. A server that "+
			"lags does that for a while. If the service shows it for the overlap of %s it is published.",
			terminal.Duration(l.settings.Overlap)))
	case otherPolicy && topic != nil && topic.UpdatedAt == service.UpdatedAt:
		// The same version: polls have met it.
	case topic != nil && len(r.Differs) == 0 && len(r.InTopic.Strays) == 0:
		notes = append(notes, "Every field is equal, and its encoding is not: another program wrote it. "+repairs)
	case now.State == health.Blocked:
		notes = append(notes, "Its resource is blocked: ask again when it is not.")
	case service != nil && r.DeadLetter != nil:
		notes = append(notes, fmt.Sprintf("It could not be published, and can be now. If it was corrected without "+
			"a later updated_at, no poll meets it: `storestream dead-letters retry %s %d` publishes it.",
			r.Resource, l.ID))
	case service != nil && now.Settled != nil && service.UpdatedAt < *now.Settled:
		notes = append(notes, fmt.Sprintf("It was updated before %s, which is settled, so no poll meets it again. "+
			"Perhaps it changed without a later updated_at, or the server that answered lags, or the row could be "+
			"read later than overlap allows, or another program wrote into the topic. %s", now.Settled, repairs))
	case service != nil && now.AsOf != nil:
		notes = append(notes, fmt.Sprintf("It was updated %s ago, and the last complete poll began %s ago, so it "+
			"may be under way: ask again after the next poll. If it still differs after the overlap (%s), %s",
			terminal.Duration(now.Now.Sub(service.UpdatedAt)), terminal.Duration(now.Now.Sub(*now.AsOf)),
			terminal.Duration(l.settings.Overlap), repairs))
	}
	if otherPolicy {
		notes = append(notes, "The topic holds rows that were published under other policies for fields than "+
			"privacy.fields says here. Once all instances run with this configuration, "+repairs)
	}
	if text := now.Text(); text != "" {
		notes = append(notes, "The resource: "+strings.TrimSuffix(text, ".")+".")
	}
	return notes
}

// extra is why the topic holds a row that the service does not show.
func (l *look) extra() string {
	if l.figures.Nameless > 0 {
		return fmt.Sprintf("The service does not show it under its id, and shows %s without a usable one (in the "+
			"dead letters). Perhaps it is one of them, was deleted there, or is being updated. While the service "+
			"shows such rows this one stays.", terminal.Plural(l.figures.Nameless, "row"))
	}
	stays := "until the next sweep (they are daily by default)"
	if l.Settings.Sweep.Deletes == config.Report {
		stays = "because sweep.deletes is report"
	}
	return fmt.Sprintf("The service does not show it now. Perhaps it was deleted there, or is being updated. "+
		"It stays %s, or `storestream erase %s %d`.", stays, l.resource.Name, l.ID)
}
