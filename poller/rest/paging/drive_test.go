package paging

// drive asks a service all questions of m. It ends with the service's first error.
func drive(m *Machine, ask func(created Span, page, size int) (Answer, error)) (Outcome, error) {
	defer m.Stop()
	for q, ok := m.Next(); ok; q, ok = m.Next() {
		a, err := ask(q.Created, q.Page, q.Size)
		if err != nil {
			return m.Outcome(), err
		}
		m.Answer(a)
	}
	return m.Outcome(), nil
}
