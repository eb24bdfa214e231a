package client

import "context"

// Endpoint asks one data endpoint for pages. It reuses its memory from one answer to the next, so each
// reader has its own.
type Endpoint struct {
	client *Client
	path   string
	count  Counters
	body   body
	rows   [][]byte
}

// Endpoint of the path that follows the base address.
func (c *Client) Endpoint(path string, count Counters) *Endpoint {
	return &Endpoint{client: c, path: path, count: count, body: body{large: c.large}}
}

// Page sends a request and finds the rows in its answer. They are good until the next call, or until
// Release, which is due soon: while an endpoint has a large answer, others wait with theirs. A *StatusError
// says that the service refuses this request. Then Date and Age are those of the refusal. The other errors
// are those of any request (see the package's comment).
func (e *Endpoint) Page(ctx context.Context, query string) (p Page, err error) {
	r := &call{client: e.client, path: e.path, query: query, body: &e.body, count: e.count}
	r.check = func(body []byte) error {
		p, err = openPage(body, e.rows)
		e.rows = p.Rows
		return err
	}
	err = r.do(ctx)
	p.Date, p.Age = r.date, r.age
	return p, err
}

// Release gives back the memory of the last Page. The caller no longer needs its rows.
func (e *Endpoint) Release() {
	e.body.release()
	if len(e.rows) > 10_000 {
		e.rows = nil
	}
	clear(e.rows) // they would keep the text
}
