package client

import (
	"context"
	"net/http"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
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

// Trial is the result of Try.
type Trial struct {
	// Row is false if the service has no rows. Reject is why the row cannot be published, nil if it can.
	Row    bool
	Reject *schemas.Reject
	// Unknown are fields that the row has and the schema has not.
	Unknown []string
	// Missing are the fields of the schema that the row does not have. It is empty if the row is rejected.
	Missing []string
}

// Try asks for one row of r, as polling does. That shows whether the address, the key, the endpoint and the
// shape of the answer are right. Its error is a
// *RequestError, or a *poller.BlockedError for a fault that only a person can mend.
func (c *Client) Try(ctx context.Context, r *schemas.Resource) (Trial, error) {
	tomorrow := c.clock.Now().AddDate(0, 0, 1).UTC().Format("2006-01-02") // by any clock of the service
	endpoint := c.Endpoint(r.Path, uncounted)
	defer endpoint.Release()
	page, err := endpoint.Page(ctx, "updated_to="+tomorrow+"&page=0&page_size=1")
	if refused := Refusal(err); refused != nil {
		err = &poller.BlockedError{What: "the service refuses a request", Err: refused}
	}
	if err != nil || len(page.Rows) == 0 {
		return Trial{}, err
	}
	parser := schemas.NewRowParser(r)
	_, reject := parser.Parse(page.Rows[0])
	trial := Trial{Row: true, Reject: reject, Unknown: parser.Unknown()}
	_, missing := parser.Missing(nil)
	for i, n := range missing {
		if n > 0 {
			trial.Missing = append(trial.Missing, r.Fields[i].Name)
		}
	}
	return trial, nil
}
