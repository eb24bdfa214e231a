// Package client is the HTTP way to the commerce data service. It sends requests and reads answers. Its
// callers decide which days to ask for, and when.
//
// A Client is shared by all resources of a process, because the service counts requests by key:
//
//	Endpoint (orders)    --+                                  +-- one key, fetched again when refused
//	Endpoint (products)  --+--> Client: one way out       ---+-- limiter: one rate, a pause for each path
//	Endpoint (users)     --+                                  +-- Clock: the service's clock beside ours
//
// A request is tried again after a fault that passes by itself: a broken connection, a timeout, a 5xx, a
// refusal for the rate, an expired key, a body that is not JSON (a gateway's error page), a 4xx that the
// service's description does not name. Other faults end it with an error: *RequestError for a 4xx, which the
// caller may understand, and *poller.BlockedError for a fault that only a person can mend. Bodies are
// bounded. Errors and logs show the code and the message of an error's body, without words that may be
// personal data. They show no other body.
package client
