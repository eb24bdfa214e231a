package client

import (
	"context"
	"net/http"
)

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
// Release, which is due soon: while an endpoint has a large answer, others wait with theirs. If the service
// refuses this request (Refusal), Date and Age are those of the refusal. Other errors are those of any
// request (see the package's comment).
func (e *Endpoint) Page(ctx context.Context, query string) (p Page, err error) {
	r := newCall(e.client, e.path, query, &e.body, e.count)
	r.check = func(body []byte) (err error) {
		p, err = openPage(body, e.rows)
		e.rows = p.Rows
		return err
	}
	for again := true; again && err == nil; {
		var req *http.Request
		if req, err = r.prepare(ctx); err == nil {
			again, err = r.judge(ctx, r.receive(r.client.http.Do(req)))
		}
	}
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
