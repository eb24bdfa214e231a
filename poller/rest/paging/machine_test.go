package paging

import "testing"

// However many questions were answered, a machine that is stopped asks no more, and has no outcome.
func TestAMachineThatIsStoppedAsksNoMore(t *testing.T) {
	s := &plain{rows: plainRows(950, 30), counts: true}
	_, whole := s.read(t, Always)
	all := s.requests
	for answered := range all {
		s.requests = 0
		m := NewReader(true).Read(Set{Created: Always})
		for s.requests < answered {
			q, _ := m.Next()
			a, _ := s.ask(q.Created, q.Page, q.Size)
			m.Answer(a)
		}
		m.Next()
		m.Stop()
		m.Stop()
		if _, ok := m.Next(); ok || m.Outcome().Whole {
			t.Errorf("stopped at question %d of %d, it goes on, or says %+v", answered, all, m.Outcome())
		}
	}
	if !whole.Whole || all < 10 {
		t.Errorf("%+v after %d questions: the test says little", whole, all)
	}
}

// A defect in the rules reaches the caller, who has an owner for it.
func TestAPanicOfTheRulesReachesTheCaller(t *testing.T) {
	m := NewReader(true).machine(Set{}, func(*Machine) Outcome { panic("a defect") })
	defer func() {
		if v := recover(); v != "a defect" {
			t.Errorf("the caller saw %v", v)
		}
	}()
	m.Next()
}
