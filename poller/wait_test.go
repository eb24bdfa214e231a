package poller

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// An owner that the service has asked to wait lives: whoever reads its watermark sees that, and what it waits
// for. What the watermark said before it says again afterwards.
func TestTheWatermarkIsWrittenAndSaysSoWhileTheServiceAskedForAWait(t *testing.T) {
	s := openShop(t, 3, nil)
	p := s.poller
	p.state.noteTrouble(watermark.Trouble{Why: "a transaction is open", Since: s.now, Publishes: true},
		p.cfg.Clock())
	before, began := *p.writer.trouble(), s.now
	tell := func(why string, since, until time.Time) {
		t.Helper()
		if err := p.writer.reportWait(why, since, until); err != nil {
			t.Fatal(err)
		}
	}
	none := time.Time{}
	tell("", none, none)
	tell("429", s.now.Time(), s.now.Time().Add(time.Second))
	if p.writer.trouble() == nil || !p.writer.trouble().Publishes {
		t.Errorf("a wait of a second is told: %v", p.writer.trouble())
	}
	why, since, until := "the service answered 429", s.now.Time(), s.now.Time().Add(5*time.Minute)
	for s.now.Time().Before(until) {
		s.now = s.now.Add(time.Second)
		if tell(why, since, until); s.now.Sub(s.mark.Written) > idleWrite {
			t.Fatalf("at %s the watermark was last written at %s", s.now, s.mark.Written)
		}
	}
	told := s.mark.Trouble
	if told == nil || !told.Failing || told.Since != began || !strings.Contains(told.Why, why) ||
		!strings.Contains(told.Why, "until 2026-11-20T12:05:00") {
		t.Errorf("the watermark says %+v", told)
	}
	s.now = s.now.Add(30 * time.Second) // the answer of the next request is under way
	if tell(why, since, until); s.mark.Trouble == nil || !s.mark.Trouble.Failing ||
		s.now.Sub(s.mark.Written) < 20*time.Second {
		t.Errorf("when the wait is over, and nobody knows how the service answers: %+v", s.mark.Trouble)
	}
	if tell("", none, none); s.mark.Trouble == nil || *s.mark.Trouble != before {
		t.Errorf("after the wait the watermark says %+v, and said %+v", s.mark.Trouble, before)
	}
}

// A service that refuses requests may answer with an error in the end. It has failed since it refused first.
func TestAFailureAfterAWaitBeganWithTheWait(t *testing.T) {
	s := openShop(t, 3, nil)
	began, until := s.now, s.now.Time().Add(5*time.Minute)
	s.now = s.now.Add(idleWrite)
	err := s.poller.writer.reportWait("429", began.Time(), until)
	if err != nil || s.mark.Trouble == nil {
		t.Fatalf("%+v, %v", s.mark.Trouble, err)
	}
	s.now = schemas.InstantOf(until.Add(idleWrite))
	if err := s.poller.writer.reportFailure(errors.New("connection refused"), until); err != nil {
		t.Fatal(err)
	}
	if held := s.poller.Status().Trouble; held == nil || !held.Failing || held.Since != began ||
		held.Why != "connection refused" {
		t.Errorf("it has failed since %s, and the watermark says %+v", began, held)
	}
}

// A predecessor's trouble in the watermark says nothing of this owner until its first poll has ended. A pause
// that the service asks for is the owner's own.
func TestThePollersTroubleIsNotItsPredecessors(t *testing.T) {
	s := openShop(t, 3, nil)
	s.mark.Trouble = &watermark.Trouble{Why: "the database is down", Since: s.now, Failing: true}
	s.takeOver()
	w, none := s.poller.writer, time.Time{}
	for _, step := range []struct {
		since, until time.Time
		says         string
	}{
		{none, none, ""},
		{s.now.Time(), s.now.Time().Add(time.Hour), "waiting for the service: 429"},
		{none, none, ""},
	} {
		s.now = s.now.Add(2 * idleWrite)
		if err := w.reportWait("429", step.since, step.until); err != nil {
			t.Fatal(err)
		}
		if why := s.troubled(); (why == "") != (step.says == "") || !strings.HasPrefix(why, step.says) {
			t.Errorf("it says %q, expected %q", why, step.says)
		}
	}
}
